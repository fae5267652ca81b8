"""Options and schemas that cannot be: refused when the table is made, opened or changed, by name, with the way out."""

import pyarrow as pa
import pytest

from paimon_core.errors import InvalidInputError, UnsupportedError
from paimon_core.schema.change import AddColumn, DropColumn, RemoveOption, RenameColumn, SetOption, UpdateType
from paimon_core.schema.schema import Schema
from paimon_core.table import Table
from tests.support.tables import ORDERS, files_below, keyed_table, orders

PARTITIONED = pa.schema([pa.field("id", pa.int64()), pa.field("dt", pa.string()), ("v", pa.string())])


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (Schema(ORDERS, ["id"], options={"buckets": "2"}), "'buckets'.*did you mean 'bucket'"),
        (Schema(ORDERS, ["id"], options={"bucket": "two"}), "bucket.*two"),
        (Schema(ORDERS, ["id"], options={"bucket": "0"}), "bucket"),
        (Schema(ORDERS, ["id"], options={"bucket": "2", "file.format": "csvv"}), "file.format|csvv"),
        (Schema(ORDERS, ["id"], options={"bucket": "2", "bucket-key": "v"}), "bucket-key.*'v'|'v'.*bucket-key"),
        (Schema(ORDERS, ["id"], options={"bucket": "2", "bucket-key": "nosuch"}), "nosuch"),
        (Schema(ORDERS, options={"bucket": "2"}), "bucket-key"),
        (Schema(ORDERS, options={"bucket-key": "id"}), "bucket"),
        (Schema(ORDERS, ["id"], options={"bucket": "2", "sequence.field": "nosuch"}), "nosuch"),
        (Schema(ORDERS, ["id"], options={"bucket": "2", "rowkind.field": "n"}), "rowkind.field"),
        (Schema(ORDERS, ["id"], options={"bucket": "2", "primary-key": "id"}), "primary-key|primary key"),
        (Schema(ORDERS, ["id", "id"], options={"bucket": "2"}), "id"),
        (Schema(ORDERS, ["nosuch"], options={"bucket": "2"}), "nosuch"),
        (Schema(ORDERS, [], ["nosuch"]), "nosuch"),
        (Schema(ORDERS, ["id"], ["id"], {"bucket": "2"}), "primary key|partition"),
        (Schema(ORDERS, ["id"], options={"bucket": "2", "write-buffer-size": "lots"}), "write-buffer-size.*lots"),
        (Schema(ORDERS, ["id"], options={"bucket": "2", "merge-engine": "dedup"}), "merge-engine"),
        (Schema(pa.schema([("a", pa.int32()), ("A", pa.string())])), "'?[aA]'?.*case|twice|more than once|[aA].*[aA]"),
        (Schema(pa.schema([("a", pa.int32()), ("a", pa.string())])), "a"),
        (Schema(pa.schema([("_KEY_a", pa.int32())])), "_KEY_"),
        (Schema(pa.schema([])), "column"),
        (Schema(pa.schema([("a", pa.duration("s"))])), "duration"),
        (Schema(pa.schema([("a", pa.null())])), "a"),
    ],
)  # fmt: skip
def test_contradicting_options_create_no_table(tmp_path, schema, message):
    with pytest.raises((InvalidInputError, UnsupportedError), match=message):
        Table.create(str(tmp_path / "t"), schema)
    assert not files_below(tmp_path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bucket": "8"}, "bucket"),
        ({"bucket-key": "n"}, "bucket-key"),
        ({"primary-key": "v"}, "primary-key"),
        ({"partition": "v"}, "partition"),
        ({"merge-engine": "first-row"}, "merge-engine"),
        ({"bucket-function.type": "mod"}, "bucket-function.type"),
        ({"path": "/elsewhere"}, "path"),
        ({"scan.snapshot-idd": "3"}, "did you mean 'scan.snapshot-id'"),
        ({"read.batch-size": "many"}, "read.batch-size.*many"),
        ({"scan.snapshot-id": "1", "scan.tag-name": "x"}, "scan"),
    ],
)
def test_dynamic_options_do_not_change_table(tmp_path, options, message):
    table = keyed_table(tmp_path / "t")
    table.write(orders((1, "a", 1)))
    with pytest.raises((InvalidInputError, UnsupportedError), match=message):
        Table.open(table.path, options=options).to_arrow()
    with pytest.raises((InvalidInputError, UnsupportedError), match=message):
        table.with_options(options).to_arrow()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (SetOption("bucket-key", "id"), "bucket-key"),
        (SetOption("bucket", "-1"), "bucket"),
        (RemoveOption("bucket"), "bucket"),
        (SetOption("merge-engine", "first-row"), "merge-engine"),
        (SetOption("primary-key", "v"), "primary-key"),
        (SetOption("partition", "v"), "partition"),
        (SetOption("sequence.field", "nosuch"), "nosuch"),
        (SetOption("bukcet", "1"), "bukcet"),
        (DropColumn("id"), "'id'.*primary key"),
        (DropColumn("nosuch"), "nosuch"),
        (AddColumn("V", "INT"), "V"),
        (AddColumn("x", "INT NOT NULL"), "NOT NULL"),
        (AddColumn("x", "INTT"), "INTT"),
        (RenameColumn("v", "n"), "n"),
        (UpdateType("id", "STRING"), "id"),
        (UpdateType("n", "ROW<a INT>"), "n"),
    ],
)
def test_change_that_data_do_not_allow_is_refused_and_changes_nothing(tmp_path, change, message):
    table = keyed_table(tmp_path / "t")
    table.write(orders((1, "a", 1)))
    files = files_below(tmp_path)
    with pytest.raises(Exception, match=message) as caught:
        table.alter([AddColumn("fine", "INT"), change])
    assert type(caught.value).__module__ == "paimon_core.errors"
    assert files_below(tmp_path) == files


def test_another_bucket_count_is_refused_on_write_until_everything_is_overwritten(tmp_path):
    table = keyed_table(tmp_path / "t")
    table.write(orders((1, "a", 1), (2, "b", 2)))
    table = table.alter([SetOption("bucket", "5")])
    with pytest.raises(InvalidInputError, match=r"5 buckets.*written with 2 buckets.*Overwrite"):
        table.write(orders((3, "c", 3)))
    assert table.to_arrow(filter="id = 2").num_rows == 1
    table.overwrite(orders((3, "c", 3)))
    table.write(orders((4, "d", 4)))
    assert table.to_arrow().num_rows == 2


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"snapshot_id": "x"}, "snapshot_id"),
        ({"timestamp": "yesterday"}, "yesterday"),
        ({"snapshot_id": 1, "tag": "a"}, "one"),
        ({"moment": 1}, "moment"),
        ({"limit": -1}, "limit"),
        ({"columns": ["nosuch"]}, "nosuch"),
        ({"columns": ["id", "id"]}, "id"),
        ({"columns": "id"}, "list"),
        ({"filter": "nosuch = 1"}, "nosuch"),
        ({"filter": "id = "}, "id = "),
        ({"filter": "id = 'x'"}, "id"),
        ({"filter": "id == 1 &&"}, "&&"),
    ],
)
def test_bad_arguments_of_reads_are_refused(tmp_path, how, message):
    table = keyed_table(tmp_path / "t")
    table.write(orders((1, "a", 1)))
    with pytest.raises(Exception, match=message) as caught:
        table.to_arrow(**how)
    assert type(caught.value).__module__ == "paimon_core.errors"


@pytest.mark.parametrize(
    ("partition", "message"),
    [({"nosuch": 1}, "nosuch"), ({"v": "x"}, "'v'"), ("all", "'all'"), ({"dt": object()}, "dt")],
)
def test_wrong_partition_is_refused(tmp_path, partition, message):
    options = {"bucket": "1"}
    table = Table.create(str(tmp_path / "t"), Schema(PARTITIONED, ["id", "dt"], ["dt"], options))
    rows = pa.table({"id": [1], "dt": ["a"], "v": ["x"]})
    table.write(rows)
    with pytest.raises(InvalidInputError, match=message):
        table.overwrite(rows, partition)
    assert table.to_arrow().num_rows == 1
    with pytest.raises(InvalidInputError):
        table.drop_partitions([])
