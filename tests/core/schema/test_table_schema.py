import json
import pickle

import pyarrow as pa
import pytest

from paimon_core.errors import CorruptedError, NotFoundError
from paimon_core.options.file import FILE_FORMAT
from paimon_core.options.option import Options
from paimon_core.schema.table_schema import TableSchema
from paimon_core.types.datatype import AtomicType, DataField

STORED = b"""{
  "version" : 3, "id" : 1,
  "fields" : [ {"id":0,"name":"k","type":"INT NOT NULL"},
               {"id":1,"name":"v2","type":"STRING","description":"a comment","defaultValue":"x"},
               {"id":2,"name":"w","type":{"type":"ROW","fields":[{"id":3,"name":"p","type":"INT"}]}},
               {"id":4,"name":"dt","type":"DATE NOT NULL"} ],
  "highestFieldId" : 4,
  "partitionKeys" : [ "dt" ], "primaryKeys" : [ "dt", "k" ],
  "options" : { "bucket" : "2", "file.format" : "parquet", "of.tomorrow" : "7" },
  "timeMillis" : 1795223672520, "newThing" : {"a" : [1, null]}
}"""


def test_schemas_of_java_are_read():
    schema = TableSchema.from_json(STORED, "s3://b/t/schema/schema-1")
    assert schema.names == ("k", "v2", "w", "dt")
    assert schema.trimmed_primary_keys == ("k",) == schema.bucket_keys
    assert schema.key_arrow == pa.schema([pa.field("k", pa.int32(), nullable=False)])
    assert schema.partition_arrow == pa.schema([pa.field("dt", pa.date32(), nullable=False)])
    assert [f.id for f in schema.fields] == [0, 1, 2, 4]
    assert schema.field("v2").default == "x"
    assert schema.bucket == 2
    assert not schema.is_cross_partition
    assert schema.comment is None


def test_schema_is_written_as_it_was_read():
    schema = TableSchema.from_json(STORED, "x")
    document = json.loads(schema.to_json())
    assert document == json.loads(STORED)
    assert "comment" not in document, "a null comment would be read as the text null"
    assert TableSchema.from_json(schema.to_json(), "x") == schema


def test_schema_pickles_and_hashes():
    schema = TableSchema.from_json(STORED, "x")
    _ = schema.arrow
    again = pickle.loads(pickle.dumps(schema))
    assert again == schema
    assert hash(again) == hash(schema)
    assert again.arrow == schema.arrow


@pytest.mark.parametrize(
    ("version", "options", "bucket", "file_format"),
    [
        (None, {}, 1, "orc"),
        (1, {}, 1, "orc"),
        (1, {"bucket": "4", "file.format": "avro"}, 4, "avro"),
        (2, {}, -1, "orc"),
        (3, {}, -1, "parquet"),
    ],
)
def test_old_versions_had_other_defaults_and_keep_them(version, options, bucket, file_format):
    document = json.loads(STORED) | {"options": options}
    document.pop("version")
    if version is not None:
        document["version"] = version
    schema = TableSchema.from_json(json.dumps(document).encode(), "x")
    for one in (schema, TableSchema.from_json(schema.to_json(), "x")):
        assert one.bucket == bucket
        assert one.options.value(FILE_FORMAT) == file_format


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b"null", b'{"id": 0, "fields": [{"id": 0}]}', b"\xff"])
def test_garbage_names_file(data):
    with pytest.raises(CorruptedError, match="/t/schema/schema-7"):
        TableSchema.from_json(data, "/t/schema/schema-7")


def test_unknown_type_cannot_be_opened_and_is_named():
    with pytest.raises(CorruptedError, match="HYPERCUBE"):
        TableSchema.from_json(STORED.replace(b"STRING", b"HYPERCUBE"), "schema-1")


def test_unknown_column_error_lists_existing_columns():
    schema = TableSchema.from_json(STORED, "x")
    with pytest.raises(NotFoundError, match=r"'V2'.*k, v2, w, dt"):
        schema.field("V2")


def test_dynamic_options_replace_stored_ones():
    schema = TableSchema.from_json(STORED, "x")
    assert schema.copy({}) is schema
    copied = schema.copy({"file.format": "orc", "bucket": None})
    assert copied.options == Options({"file.format": "orc", "of.tomorrow": "7"})
    assert copied.bucket == -1
    assert schema.bucket == 2


def test_key_without_its_partition_column_crosses_partitions():
    fields = tuple(DataField(i, name, AtomicType("INT", False)) for i, name in enumerate("kp"))
    schema = TableSchema(0, fields, 1, ("p",), ("k",))
    assert schema.is_cross_partition
    assert schema.trimmed_primary_keys == ("k",)
