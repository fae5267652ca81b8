"""``Table.write`` and ``Table.overwrite`` with ``write.merge-schema``."""

import pyarrow as pa
import pytest

from paimon_core import Schema, Table
from paimon_core.errors import InvalidInputError, UnsupportedError

MERGE = {"write.merge-schema": "true"}


def created(tmp_path, **kwargs):
    path = str(tmp_path / "t")
    return Table.create(path, Schema(pa.schema([("id", pa.int32()), ("p", pa.int32())]), **kwargs))


def columns(table):
    return [f"{field.name} {field.type}" for field in Table.open(table.path).schema.fields]


def test_write_adds_columns_that_table_lacks(tmp_path):
    table = created(tmp_path, partition_keys=["p"])
    rows = pa.table({"id": [1], "p": [1], "a": ["x"]})
    with pytest.raises(InvalidInputError, match=r"columns \['a'\] that the table lacks"):
        table.write(rows)
    merging = table.with_options(MERGE)
    merging.write(rows)
    assert merging.to_arrow().to_pylist() == [{"id": 1, "p": 1, "a": "x"}]
    merging.write(pa.RecordBatchReader.from_batches(rows.schema, rows.to_batches()))
    assert columns(table) == ["id INT", "p INT", "a STRING"]
    assert merging.schema.id == 1
    untyped = rows.append_column("n", pa.nulls(1))
    with pytest.raises(InvalidInputError, match=r"columns \['n'\] that the table lacks"):
        merging.write(untyped)
    merging.overwrite(pa.table({"id": [5], "b": [pa.scalar(2.5)]}), {"p": 1})
    assert merging.to_arrow().to_pylist() == [{"id": 5, "p": 1, "a": None, "b": 2.5}]
    with pytest.raises(InvalidInputError, match="cannot be stored as INT"):
        merging.write(pa.table({"id": [1 << 40], "p": [1]}))
    wider = merging.with_options({"write.merge-schema.type-widening": "true"})
    wider.write(pa.table({"id": [1 << 40], "p": pa.array([1], pa.int32())}))
    assert columns(table) == ["id BIGINT", "p INT", "a STRING", "b DOUBLE"]


def test_option_is_accepted_for_write_only(tmp_path):
    table = created(tmp_path, options=MERGE)
    with pytest.raises(InvalidInputError, match="that the table lacks"):  # a property has no effect
        table.write(pa.table({"id": [1], "a": [1]}))
    with pytest.raises(UnsupportedError, match=r"write\.merge-schema.*Table\.write"):
        Table.open(table.path, options=MERGE).writer()
    with pytest.raises(InvalidInputError, match=r"'write\.merge-schema' is 'perhaps'"):
        table.with_options({"write.merge-schema": "perhaps"})
    off = table.with_options(MERGE).with_options({"write.merge-schema": None})
    with pytest.raises(InvalidInputError, match="that the table lacks"):
        off.write(pa.table({"id": [1], "a": [1]}))
