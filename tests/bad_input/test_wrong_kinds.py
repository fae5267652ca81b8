"""A value of another Python type than an argument takes: the error is Paimon's and names it, and nothing changes."""

import pyarrow as pa
import pytest

from paimon_core import FileSystemCatalog, Schema, Table
from paimon_core.errors import PaimonError

COLUMNS = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("day", pa.string(), nullable=False)])
ROWS = pa.table({"id": [1], "day": ["a"]}, COLUMNS)
CALLS = {
    "update, text": lambda t: t.update("id"),
    "update, None": lambda t: t.update(None),
    "update, list": lambda t: t.update(["id"]),
    "update, condition": lambda t: t.update({"day": "b"}, where=5),
    "delete, number": lambda t: t.delete(5),
    "delete, None": lambda t: t.delete(None),
    "merge, None": lambda t: t.merge(ROWS, on=None),
    "merge, number": lambda t: t.merge(ROWS, on=5),
    "merge, list of numbers": lambda t: t.merge(ROWS, on=[5]),
    "merge, mapping to numbers": lambda t: t.merge(ROWS, on={"id": 5}),
    "merge, rows": lambda t: t.merge(5, on="id"),
    "merge, values": lambda t: t.merge(ROWS, on="id").when_matched_update(set="day").execute(),
    "merge, condition": lambda t: t.merge(ROWS, on="id").when_matched_delete(condition=5).execute(),
    "upsert, rows": lambda t: t.upsert("rows", on=["id"]),
    "upsert, on": lambda t: t.upsert(ROWS, on=7),
    "drop_partitions, mapping": lambda t: t.drop_partitions({"day": "a"}),
    "drop_partitions, text": lambda t: t.drop_partitions("day=a"),
    "drop_partitions, list of texts": lambda t: t.drop_partitions(["day=a"]),
    "compact, mapping": lambda t: t.compact(partitions={"day": "a"}),
    "compact, text": lambda t: t.compact(partitions="day=a"),
    "compact, filter": lambda t: t.compact(filter=5),
    "overwrite, text": lambda t: t.overwrite(ROWS, "day=a"),
    "overwrite, list of texts": lambda t: t.overwrite(ROWS, ["day=a"]),
    "write, number": lambda t: t.write(5),
    "read, filter": lambda t: t.to_arrow(filter=5),
    "read, number of a column": lambda t: t.to_arrow([5]),
    "read, version": lambda t: t.to_arrow(version=[1]),
    "options": lambda t: t.with_options("bucket=1"),
    "open": lambda t: Table.open(5),
    "create": lambda t: Table.create(t.path + "2", COLUMNS),
    "create in a catalog": lambda t: FileSystemCatalog(t.path).create_table("d.t", COLUMNS),
    "tag": lambda t: t.tags.create(5),
    "branch": lambda t: t.branches.create(None),
    "rollback": lambda t: t.rollback_to("one"),
    "files": lambda t: t.add_files(5),
    "alter": lambda t: t.alter("DROP COLUMN day"),
}


@pytest.mark.parametrize("call", CALLS)
def test_value_of_another_type_is_refused(tmp_path, call):
    schema = Schema(COLUMNS, primary_keys=["id", "day"], partition_keys=["day"], options={"bucket": "1"})
    table = Table.create(str(tmp_path / "t"), schema)
    table.write(ROWS)
    with pytest.raises(PaimonError) as refused:
        CALLS[call](table)
    assert len(str(refused.value)) > 20
    assert Table.open(table.path).snapshot().id == 1
    assert Table.open(table.path).to_arrow().equals(ROWS)
