"""Directives in comments declare blobs in new tables; all others are refused by name."""

import pyarrow as pa
import pytest

from paimon_core import AddColumn, Schema, Table, UpdateComment
from paimon_core.errors import InvalidInputError, UnsupportedError
from paimon_core.types.datatype import DataField
from paimon_core.types.parse import parse_type

OPTIONS = {"row-tracking.enabled": "true", "data-evolution.enabled": "true"}


def schema(comment: str, kind: str = "BYTES", **options: str) -> Schema:
    fields = [DataField(0, "id", parse_type("INT")), DataField(1, "b", parse_type(kind), comment)]
    return Schema(fields, options={**OPTIONS, **options})


@pytest.mark.parametrize(
    ("comment", "rest"),
    [("__BLOB_FIELD", None), ("__BLOB_FIELD; a picture", "a picture"), (" __BLOB_FIELD; ", None)],
)
def test_directive_declares_blob(tmp_path, comment, rest):
    path = str(tmp_path / "t")
    table = Table.create(path, schema(comment))
    field = table.schema.field("b")
    assert (str(field.type), field.description, table.schema.options["blob-field"]) == ("BLOB", rest, "b")
    table.write(pa.table({"id": [1, 2], "b": [b"xy", None]}))
    assert Table.open(path).to_arrow().to_pylist() == [{"id": 1, "b": b"xy"}, {"id": 2, "b": None}]
    assert list((tmp_path / "t").rglob("*.blob"))


def test_directive_declares_descriptors(tmp_path):
    """The names of the option's former key move to the new key, as in Java."""
    comment = "__BLOB_DESCRIPTOR_FIELD; elsewhere"
    table = Table.create(str(tmp_path / "t"), schema(comment, **{"blob.stored-descriptor-fields": "b"}))
    field, options = table.schema.field("b"), table.schema.options
    assert (str(field.type), field.description, options["blob-descriptor-field"]) == ("BLOB", "elsewhere", "b")
    assert "blob.stored-descriptor-fields" not in options


@pytest.mark.parametrize(
    ("kind", "stored"),
    [
        ("ARRAY<BINARY(3) NOT NULL> NOT NULL", "ARRAY<BLOB NOT NULL> NOT NULL"),
        ("MAP<STRING NOT NULL, BYTES>", "MAP<STRING NOT NULL, BLOB>"),
    ],
)
def test_directive_declares_arrays_and_maps_of_blobs(tmp_path, kind, stored):
    assert str(Table.create(str(tmp_path / "t"), schema("__BLOB_FIELD", kind)).schema.field("b").type) == stored


def test_directive_and_option_may_both_name_columns(tmp_path):
    table = Table.create(str(tmp_path / "t"), schema("__BLOB_FIELD", **{"blob-field": "b"}))
    assert table.schema.options["blob-field"] == "b"


@pytest.mark.parametrize(
    ("comment", "kind", "error", "message"),
    [
        ("__BLOB_FIELD", "INT", InvalidInputError, "not a column of type BLOB or BYTES"),
        ("__BLOB_FIELD", "ARRAY<INT>", InvalidInputError, "nor an ARRAY or MAP of BLOB or BYTES"),
        ("__BLOB_FIELD", "ARRAY<ARRAY<BYTES>>", InvalidInputError, "nor an ARRAY or MAP of BLOB or BYTES"),
        ("__BLOB_FIELD", "MAP<DOUBLE NOT NULL, BYTES>", InvalidInputError, "keys of a map of blobs must be one of"),
        ("__BLOB_DESCRIPTOR_FIELD; x", "ARRAY<BYTES>", InvalidInputError, "not a column of type BLOB or BYTES"),
        ("__BLOB_VIEW_FIELD", "MAP<INT NOT NULL, BYTES>", InvalidInputError, "not a column of type BLOB or BYTES"),
        ("__VECTOR_FIELD;3", "ARRAY<FLOAT>", UnsupportedError, "there is no vector type"),
        ("__BLOB_FEILD", "BYTES", InvalidInputError, "unknown directive '__BLOB_FEILD'"),
    ],
)
def test_other_directives_are_refused(tmp_path, comment, kind, error, message):
    with pytest.raises(error, match=message):
        Table.create(str(tmp_path / "t"), schema(comment, kind))


@pytest.mark.parametrize("comment", ["__BLOB_FIELD", "__VECTOR_FIELD;3"])
def test_directives_are_refused_for_existing_tables(tmp_path, comment):
    table = Table.create(str(tmp_path / "t"), schema("bytes"))
    for change in (AddColumn("c", "BYTES", comment), UpdateComment("b", comment)):
        with pytest.raises(UnsupportedError, match="is not supported"):
            table.alter([change])
