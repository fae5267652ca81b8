"""The operation and the version of the writer in snapshots."""

import re

import pyarrow as pa

from paimon_core import Schema, Table

ROWS = pa.table({"id": [1, 2, 3], "p": ["a", "a", "b"]})


def operations(table: Table) -> list[tuple[str, str | None]]:
    return [(snapshot.commit_kind, snapshot.operation) for snapshot in table.snapshots()]


def test_snapshots_store_operation(tmp_path):
    schema = Schema(ROWS.schema, partition_keys=["p"], options={"compaction.min.file-num": "100"})
    table = Table.create(str(tmp_path / "t"), schema)
    table.write(ROWS)
    table.write(ROWS)
    table.compact(full=True)
    table.overwrite(ROWS)
    table.delete("id = 1")
    table.delete("p = 'b'")
    table.drop_partitions([{"p": "a"}])
    table.write(ROWS)
    table.truncate()
    assert operations(table) == [
        ("APPEND", "WRITE"),
        ("APPEND", "WRITE"),
        ("COMPACT", None),
        ("OVERWRITE", "OVERWRITE"),
        ("OVERWRITE", "DELETE"),
        ("OVERWRITE", "DELETE"),
        ("OVERWRITE", "TRUNCATE"),
        ("APPEND", "WRITE"),
        ("OVERWRITE", "TRUNCATE"),
    ]


def test_delete_and_update_of_other_tables_store_operation(tmp_path):
    keyed = Table.create(str(tmp_path / "k"), Schema(ROWS.schema, primary_keys=["id"], options={"bucket": "1"}))
    keyed.write(ROWS)
    keyed.delete("id = 1")
    assert operations(keyed)[:2] == [("APPEND", "WRITE"), ("APPEND", "DELETE")]
    options = {"row-tracking.enabled": "true", "data-evolution.enabled": "true"}
    evolving = Table.create(str(tmp_path / "e"), Schema(ROWS.schema, options=options))
    evolving.write(ROWS)
    ids = evolving.to_arrow(["_ROW_ID"])
    evolving.update_columns(ids.append_column("p", pa.array(["x", "y", "z"])))
    assert operations(evolving)[-1][1] == "UPDATE"


def test_every_snapshot_stores_version_of_writer(tmp_path):
    table = Table.create(str(tmp_path / "t"), Schema(ROWS.schema))
    table.write(ROWS)
    rows = table.system_table("snapshots").to_arrow(["operation", "writer_version"]).to_pylist()
    assert rows[0]["operation"] == "WRITE"
    assert re.fullmatch(r"pyspark-paimon-\d+\.\d+\.\d+.*", rows[0]["writer_version"])
