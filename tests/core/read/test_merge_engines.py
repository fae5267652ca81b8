"""Tables of every merge engine, written and read: additional columns, pruning by statistics, refused options."""

import pyarrow as pa
import pytest

from paimon_core.catalog.filesystem import FileSystemCatalog
from paimon_core.errors import InvalidInputError
from paimon_core.schema.change import RenameColumn
from paimon_core.schema.schema import Schema

COLUMNS = pa.schema(
    [pa.field("k", pa.int64(), nullable=False), ("s", pa.int32()), ("a", pa.int32()), ("b", pa.string())]
)


def table(tmp_path, options):
    catalog = FileSystemCatalog(str(tmp_path))
    catalog.create_database("d", ignore_if_exists=True)
    settings = {"bucket": "1", "write-only": "true"} | options
    catalog.create_table("d.t", Schema(COLUMNS, primary_keys=["k"], options=settings))
    return lambda: catalog.table("d.t")


def write(opened, *rows, kinds=None):
    with opened().writer("u") as writer:
        data = pa.Table.from_pylist([dict(zip(COLUMNS.names, row, strict=True)) for row in rows], schema=COLUMNS)
        writer.write(data, row_kinds=kinds)
        opened().committer("u").commit(writer.prepare_commit())


def read(opened, columns=None, predicate=None):
    now = opened()
    reader = now.reader(columns=columns, filter=predicate)
    splits = now.scan(columns=columns, filter=predicate).plan().splits
    return [row for split in splits for batch in reader.to_batches(split) for row in batch.to_pylist()]


PARTIAL = {"merge-engine": "partial-update"}
GROUP = PARTIAL | {"fields.s.sequence-group": "a"}


def test_single_sequence_group_column_reads_like_all_columns(tmp_path):
    opened = table(tmp_path, GROUP)
    write(opened, (1, 5, 10, "x"))
    write(opened, (1, 3, 99, None))
    write(opened, (1, None, 77, "z"))
    assert read(opened, ["a"]) == [{"a": 10}]
    assert read(opened, ["b"]) == [{"b": "z"}]
    assert read(opened) == [{"k": 1, "s": 5, "a": 10, "b": "z"}]


def test_removing_sequence_group_is_read_for_every_column(tmp_path):
    opened = table(tmp_path, GROUP | {"partial-update.remove-record-on-sequence-group": "s"})
    write(opened, (1, 5, 10, "x"), (2, 1, 1, "y"))
    write(opened, (1, 6, None, None), kinds=["-D"])
    assert read(opened, ["b"]) == [{"b": "y"}]


def test_filter_finds_merged_row_that_no_file_stores(tmp_path):
    opened = table(tmp_path, {"merge-engine": "aggregation", "fields.a.aggregate-function": "sum"})
    for _ in range(3):
        write(opened, (1, 0, 10, "x"))
    assert [row["a"] for row in read(opened, predicate="a > 25")] == [30]
    assert read(opened, predicate="a = 10") == []


def test_partial_update_filter_on_columns_of_two_files(tmp_path):
    opened = table(tmp_path, PARTIAL)
    write(opened, (1, 1, None, "x"))
    write(opened, (1, None, 7, None))
    assert read(opened, predicate="b = 'x' AND a = 7") == [{"k": 1, "s": 1, "a": 7, "b": "x"}]
    assert read(opened, ["k"], "a IS NULL") == []


def test_first_row_shows_compacted_rows_only(tmp_path):
    opened = table(tmp_path, {"merge-engine": "first-row"})
    write(opened, (1, 1, 1, "first"))
    write(opened, (1, 2, 2, "second"), (2, 1, 1, "other"))
    assert read(opened) == []
    opened().compact(full=True)
    assert [row["b"] for row in read(opened)] == ["first", "other"]


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        (PARTIAL, "-D", "remove-record-on-delete.*sequence group"),
        ({"merge-engine": "first-row"}, "-U", "'ignore-delete'"),
        (
            {"merge-engine": "aggregation", "fields.a.aggregate-function": "max"},
            "-D",
            "'a'.*max.*fields.a.ignore-retract",
        ),
        (
            {
                "merge-engine": "aggregation",
                "fields.a.aggregate-function": "max",
                "aggregation.remove-record-on-delete": "true",
            },
            "-U",
            "fields.a.ignore-retract",
        ),
    ],
)
def test_unmergeable_kinds_are_refused_on_write(tmp_path, options, kind, message):
    opened = table(tmp_path, options)
    with pytest.raises(InvalidInputError, match=message):
        write(opened, (1, 1, 1, "x"), kinds=[kind])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"merge-engine": "aggregation", "fields.a.aggregate-function": "count"}, "'a'.*no aggregate function 'count'"),
        ({"merge-engine": "aggregation", "fields.a.aggregate-function": "summ"}, "did you mean 'sum'"),
        ({"merge-engine": "aggregation", "fields.default-aggregate-function": "median"}, "'median'"),
        ({"merge-engine": "aggregation", "fields.b.aggregate-function": "sum"}, "'b' has type STRING.*sum"),
        ({"merge-engine": "aggregation", "fields.a.aggregate-function": "listagg"}, "listagg takes STRING"),
        ({"merge-engine": "aggregation", "fields.a.aggregate-function": "bool_and"}, "bool_and takes BOOLEAN"),
        ({"merge-engine": "aggregation", "fields.a.ignore-retract": "perhaps"}, "fields.a.ignore-retract.*'perhaps'"),
        (
            {
                "merge-engine": "aggregation",
                "aggregation.remove-record-on-delete": "true",
                "fields.a.ignore-retract": "true",
            },
            "are mutually exclusive",
        ),
        (PARTIAL | {"fields.a.aggregate-function": "sum"}, "'a'.*in no sequence group"),
        (PARTIAL | {"fields.default-aggregate-function": "sum"}, "in no sequence group"),
        (GROUP | {"partial-update.remove-record-on-delete": "true"}, "excludes sequence groups"),
        (
            PARTIAL | {"ignore-delete": "true", "partial-update.remove-record-on-delete": "true"},
            "are mutually exclusive",
        ),
        (GROUP | {"partial-update.remove-record-on-sequence-group": "b"}, "'b', which orders no sequence group"),
        (PARTIAL | {"fields.zz.sequence-group": "a"}, "'zz'"),
        (PARTIAL | {"fields.s.sequence-group": "zz"}, "'zz'"),
        (PARTIAL | {"fields.s.sequence-group": "k"}, "'k', which is a primary key column"),
        (PARTIAL | {"fields.s.sequence-group": "a", "fields.b.sequence-group": "a"}, "two sequence groups"),
        ({"merge-engine": "first-row", "sequence.field": "s"}, "takes no 'sequence.field'"),
    ],
)
def test_contradicting_options_are_refused_on_create(tmp_path, options, message):
    with pytest.raises(InvalidInputError, match=message):
        table(tmp_path, options)


def test_overflowing_sum_and_nan_order_are_refused(tmp_path):
    opened = table(tmp_path, {"merge-engine": "aggregation", "fields.a.aggregate-function": "sum"})
    with pytest.raises(InvalidInputError, match=r"'a'.*sum.*INT.*wider"):
        write(opened, (1, 1, 2**31 - 1, "x"), (1, 1, 1, "x"))


def test_renamed_column_stays_in_sequence_group(tmp_path):
    opened = table(tmp_path, GROUP | {"partial-update.remove-record-on-sequence-group": "s"})
    FileSystemCatalog(str(tmp_path)).alter_table("d.t", [RenameColumn("s", "version")])
    options = opened().schema.options
    assert options["fields.version.sequence-group"] == "a"
    assert options["partial-update.remove-record-on-sequence-group"] == "version"


def test_expired_rows_are_shown_until_compaction(tmp_path):
    opened = table(tmp_path, {"record-level.expire-time": "10 s", "record-level.time-field": "s"})
    write(opened, (1, 1, 1, "old"), (2, 2**31 - 1, 1, "new"))
    write(opened, (3, 1, 1, "old"), (4, None, 1, "timeless"))
    assert [row["k"] for row in read(opened)] == [1, 2, 3, 4]
    opened().compact(full=True)
    assert [row["k"] for row in read(opened)] == [2, 4]


def test_full_compaction_drops_expired_rows_of_highest_level(tmp_path):
    opened = table(tmp_path, {"write-only": "true"})
    write(opened, (1, 1, 1, "old"), (2, 2**31 - 1, 1, "new"))
    opened().compact(full=True)
    expiring = opened().with_options({"record-level.expire-time": "10 s", "record-level.time-field": "s"})
    assert expiring.compact(full=True) is not None
    assert [row["k"] for row in read(opened)] == [2]
    assert expiring.compact(full=True) is None, "nothing is left to expire"
