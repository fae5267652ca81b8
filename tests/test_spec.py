"""docs/spec/format.md says what the code does: tables and examples of the page, compared with the engine."""

import datetime as dt
import io
import json
import re
from dataclasses import fields
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyorc
import pytest

from paimon_core.deletion.vector import DeletionVector
from paimon_core.errors import CorruptedError, UnsupportedError
from paimon_core.fileindex import FILE_INDEXES
from paimon_core.fileindex.bloom import hashes as bloom_hashes
from paimon_core.format import FORMATS
from paimon_core.format.avro_types import avro_schema
from paimon_core.manifest.serializers import INDEX_MANIFEST_SCHEMA, MANIFEST_LIST_SCHEMA, MANIFEST_SCHEMA
from paimon_core.options import ALL_OPTIONS
from paimon_core.options.option import Options
from paimon_core.row.binary_row import serialize
from paimon_core.row.encode import encode
from paimon_core.row.murmur import hashes
from paimon_core.schema.schema import Schema
from paimon_core.schema.support import LIMITS, check_readable, check_writable
from paimon_core.schema.table_schema import TableSchema
from paimon_core.schema.validate import create
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.types.arrow import arrow_schema
from paimon_core.types.datatype import INT, DataField
from paimon_core.types.parse import parse_type

PAGE = (Path(__file__).parent.parent / "docs" / "spec" / "format.md").read_text()
SECTIONS = dict(re.findall(r"^##+ ([0-9.]+) [^\n]*\n(.*?)(?=^##+ [0-9]|\Z)", PAGE, re.MULTILINE | re.DOTALL))
EPOCH = dt.date(1970, 1, 1)


def tables(section):
    """The tables of a section, each as a list of rows by column title."""
    found = []
    for block in re.findall(r"(?:^\|.*\n)+", SECTIONS[section] + "\n", re.MULTILINE):
        titles, _, *rows = [[cell.strip() for cell in line[1:-1].split("|")] for line in block.splitlines()]
        found.append([dict(zip(titles, row, strict=True)) for row in rows])
    return found


def quoted(cell):
    """The texts between backticks."""
    return re.findall(r"`([^`]+)`", cell)


# ---- rows and hashes


def values_of(cell):
    """Types and internal values of ``INT 7, STRING 'abc'``."""
    found = re.findall(r"([A-Z]+(?:\([0-9, ]+\))?) ('[^']*'|\S+?)(?: (?:ms|us))?(?:, |$)", cell)
    types = [parse_type(kind) for kind, _ in found]
    values = []
    for (_, text), kind in zip(found, arrow_schema([DataField(0, "v", t) for t in types]).types, strict=True):
        if text == "null":
            values.append(None)
        elif text.startswith("'"):
            values.append(text[1:-1])
        elif pa.types.is_boolean(kind):
            values.append(text == "true")
        elif pa.types.is_decimal(kind):
            values.append(Decimal(text))
        elif pa.types.is_date(kind):
            values.append((dt.date.fromisoformat(text) - EPOCH).days)
        elif pa.types.is_binary(kind):
            values.append(bytes.fromhex(text[2:]))
        else:
            values.append(float(text) if pa.types.is_floating(kind) else int(text))
    return types, values


@pytest.mark.parametrize("row", tables("5.4")[0], ids=lambda row: row["Values"])
def test_rows_and_hashes_agree_with_examples(row):
    types, values = values_of(row["Values"])
    schema = arrow_schema([DataField(i, f"c{i}", t) for i, t in enumerate(types)])
    stored = bytes.fromhex(*quoted(row["Bytes"]))
    assert serialize(values, schema) == stored
    bare = [pa.int32() if pa.types.is_date(t) else t for t in schema.types]
    columns = [pa.array([v], b).view(t) for v, b, t in zip(values, bare, schema.types, strict=True)]
    batch = pa.record_batch(columns, schema=schema)
    assert encode(batch).serialized()[0].as_py() == stored
    assert hashes(encode(batch)).tolist() == [int(row["Hash"])]


# ---- Avro


def avro_type(text, name, records):
    """The Avro type that a cell means, by the rules of 4.5."""
    if text.endswith("??"):
        inner = avro_type(text[:-2].removeprefix("array of "), name, records)
        return ["null", {"type": "array", "items": ["null", inner]}]
    if text.endswith("?"):
        return ["null", avro_type(text[:-1], name, records)]
    if text.startswith("array of "):
        return {"type": "array", "items": avro_type(text.removeprefix("array of "), name, records)}
    if text == "timestamp-millis":
        return {"type": "long", "logicalType": "timestamp-millis"}
    return record(name, records[text], records) if text in records else text


def record(name, rows, records):
    described = []
    for row in rows:
        (field,) = quoted(row["Field"])
        kind = avro_type(row["Avro type"], f"{name}_{field}", records)
        described.append({"name": field, "type": kind} | ({"default": None} if isinstance(kind, list) else {}))
    return {"type": "record", "name": name, "fields": described}


def test_avro_schemas_agree_with_tables():
    parts = tables("8.1")[1]
    records = {
        "SimpleStats": tables("4.5")[1],
        "DataFileMeta": tables("4.4")[0],
        "DeletionRange": [row for row in parts if row["Record"] == "DeletionRange"],
        "GlobalIndex": [row for row in parts if row["Record"] == "GlobalIndex"],
    }
    for section, schema in (("4.2", MANIFEST_LIST_SCHEMA), ("4.3", MANIFEST_SCHEMA), ("8.1", INDEX_MANIFEST_SCHEMA)):
        rows = tables(section)[0]
        assert [row["#"] for row in rows] == [str(i) for i in range(len(rows))]
        described = record("record", rows, records) | {"namespace": "org.apache.paimon.avro.generated"}
        assert described == schema, section
    assert [row["#"] for row in tables("4.4")[0]] == [str(i) for i in range(21)]


# ---- JSON

OF_KIND = {"number": 1, "string": "text", "object": {"a": "b"}}


def test_keys_of_snapshots_agree_with_table():
    rows = tables("2.1")[0]
    keys = {quoted(row["Key"])[0]: OF_KIND[row["JSON"]] for row in rows}
    written = Snapshot.from_json(json.dumps(keys).encode(), "p").to_json()
    assert list(json.loads(written)) == list(keys)
    assert len(keys) == len(fields(Snapshot)) - 1  # without what is not known
    for row in rows:
        (key,) = quoted(row["Key"])
        without = json.dumps({k: v for k, v in keys.items() if k != key}).encode()
        wrong = json.dumps({**keys, key: []}).encode()
        with pytest.raises(CorruptedError, match=key):
            Snapshot.from_json(wrong, "p")
        if row["Presence"] == "required":
            with pytest.raises(CorruptedError, match=key):
                Snapshot.from_json(without, "p")
        else:
            Snapshot.from_json(without, "p")


def test_keys_of_schemas_agree_with_table():
    rows = tables("3.1")[0]
    document = json.loads(re.findall(r"```json\n(.*?)```", SECTIONS["3.5"], re.DOTALL)[0])
    document["comment"] = "text"
    keys = [quoted(row["Key"])[0] for row in rows]
    schema = TableSchema.from_json(json.dumps(document).encode(), "p")
    assert schema.extra == ()
    assert json.loads(schema.to_json()) == document
    assert list(json.loads(schema.to_json())) == keys
    for row in rows:
        (key,) = quoted(row["Key"])
        without = json.dumps({k: v for k, v in document.items() if k != key}).encode()
        if row["Presence"] == "required":
            with pytest.raises(CorruptedError):
                TableSchema.from_json(without, "p")
        else:
            TableSchema.from_json(without, "p")


def test_types_are_written_and_read_as_table_has_it():
    rows = tables("3.4")[0]
    for row in rows:
        written = quoted(row["Text written"])
        assert written
        assert [str(parse_type(text)) for text in written] == written
        for text in quoted(row["Also read"]):
            if not text.startswith((".", "(")):
                assert str(parse_type(text)).partition("(")[0] in {w.partition("(")[0] for w in written}, text


def test_ids_are_given_as_in_example():
    (row,) = tables("3.3")[1]
    (columns,) = quoted(row["Columns"])
    expected = {name: int(number) for name, number in re.findall(r"`(\w+)` (\d+)", row["Ids"])}
    whole = parse_type(f"ROW<{columns}>")
    table = create(Schema(whole.fields), 0)
    actual = {}

    def walk(parts):
        for field in parts:
            actual[field.name] = field.id
            walk(getattr(field.type, "fields", ()))

    walk(table.fields)
    assert actual == expected
    assert table.highest_field_id == max(expected.values())


# ---- options


@pytest.mark.parametrize("row", tables("14")[0], ids=lambda row: quoted(row["Option"])[0])
def test_options_exist_with_defaults_of_table(row):
    names = quoted(row["Option"])
    defaults = [text.strip("` ") for text in row["Default"].split(";")]
    defaults = defaults * len(names) if len(defaults) == 1 else defaults
    assert len(defaults) == len(names)
    for name, text in zip(names, defaults, strict=True):
        option = ALL_OPTIONS[name]
        if text.startswith(("none", "as ", "by ")) and name != "changelog-producer":
            assert not option.default
        else:
            assert option.parse(text) == option.default


# ---- binary files


def test_deletion_vectors_agree_with_example():
    for row in tables("8.3")[1]:
        data = bytes.fromhex(*quoted(row["Bytes"]))
        wide = row["Form"] == "64"
        vector = DeletionVector.of([3, 7]).to_bytes(wide)
        assert b"\1" + vector == data
        assert (int(row["`f1`"]), int(row["`f2`"])) == (1, len(vector) - (0 if wide else 8))


def test_indexes_agree_with_examples():
    example = bytes.fromhex(re.findall(r"```\n(02 .*?)```", SECTIONS["9.4"], re.DOTALL)[0])
    builder = FILE_INDEXES["bitmap"].builder(INT, {})
    builder.add(pa.array([1, 2, None, 1], pa.int32()))
    assert builder.finish() == example
    number, text = (int(n) for n in re.findall(r"\d{15,}", SECTIONS["9.3"]))
    assert bloom_hashes(pa.array([1], pa.int32())).view(np.int64).tolist() == [number]
    assert bloom_hashes(pa.array([b"aaaaaa"])).view(np.int64).tolist() == [text]


def test_hash_indexes_agree_with_example():
    (example,) = re.findall(r"`([0-9a-f]{8} [0-9a-f]{8})`", SECTIONS["8.2"])
    batch = pa.record_batch([pa.array([1, 2], pa.int32())], names=["k"])
    assert hashes(encode(batch)).astype(">i4").tobytes() == bytes.fromhex(example)


# ---- Parquet

EXAMPLES = {
    "DECIMAL of at most 9, 18 digits": ["DECIMAL(9, 2)", "DECIMAL(18, 2)"],
    "DECIMAL of more digits": ["DECIMAL(38, 2)"],
    "TIMESTAMP of at most 3, 6 digits": ["TIMESTAMP(3)", "TIMESTAMP(6)"],
    "TIMESTAMP_LTZ of at most 3, 6 digits": ["TIMESTAMP_LTZ(3)", "TIMESTAMP_LTZ(6)"],
    "TIMESTAMP, TIMESTAMP_LTZ of more digits": ["TIMESTAMP(9)", "TIMESTAMP_LTZ(7)"],
}


@pytest.mark.parametrize("row", tables("7.4")[1][:13], ids=lambda row: row["Type"])
def test_parquet_types_agree_with_table(row):
    kinds = EXAMPLES.get(row["Type"]) or row["Type"].split(", ")
    physical = re.findall(r"\b[A-Z][A-Z0-9_]{3,}\b", row["Physical"].partition(":")[0])
    logical = re.findall(r"([A-Z]+)(?:\(|$|,)", row["Logical"]) or ["NONE"]
    columns = [DataField(i, f"c{i}", parse_type(kind)) for i, kind in enumerate(kinds)]
    sink = pa.BufferOutputStream()
    writer = FORMATS["parquet"].open_writer(sink, columns, Options({}), "zstd")
    schema = arrow_schema(columns)
    writer.write(pa.table([pa.nulls(1, kind) for kind in schema.types], schema=schema))
    writer.close()
    stored = pq.read_metadata(pa.BufferReader(sink.getvalue())).schema
    for i, kind in enumerate(kinds):
        assert stored.column(i).physical_type == physical[i % len(physical)], kind
        assert stored.column(i).logical_type.type == logical[0], kind


# ---- ORC and Avro


@pytest.mark.parametrize("row", tables("7.5")[0][:8], ids=lambda row: row["Type"])
def test_orc_types_agree_with_table(row):
    kinds, expected = row["Type"].split(", "), row["ORC type"].split(", ")
    columns = [
        DataField(i, f"c{i}", parse_type("DECIMAL(20, 2)" if t == "DECIMAL" else t)) for i, t in enumerate(kinds)
    ]
    sink = pa.BufferOutputStream()
    writer = FORMATS["orc"].open_writer(sink, columns, Options({}), "zstd")
    writer.close()
    stored = pyorc.Reader(io.BytesIO(sink.getvalue().to_pybytes())).schema
    for i in range(len(kinds)):
        assert str(stored.fields[f"c{i}"]).partition("(")[0] == expected[i % len(expected)]


AVRO = {
    "TIME of at most 3 digits": ["TIME(0)", "TIME(3)"],
    "TIMESTAMP of at most 3, 6 digits": ["TIMESTAMP(3)", "TIMESTAMP(6)"],
    "TIMESTAMP_LTZ of at most 3, 6 digits": ["TIMESTAMP_LTZ(3)", "TIMESTAMP_LTZ(6)"],
    "ARRAY": ["ARRAY<INT>"],
    "MAP, MULTISET with keys of text": ["MAP<STRING, INT>", "MULTISET<CHAR(3)>"],
    "MAP, MULTISET with other keys": ["MAP<INT, INT>", "MULTISET<DATE>"],
    "ROW": ["ROW<a INT>"],
    "TIME, TIMESTAMP, TIMESTAMP_LTZ of more digits, VARIANT, GEOMETRY, GEOGRAPHY": [
        *("TIME(4)", "TIMESTAMP(7)", "TIMESTAMP_LTZ(7)", "VARIANT", "GEOMETRY", "GEOGRAPHY")
    ],
}


@pytest.mark.parametrize("row", tables("7.6")[0], ids=lambda row: row["Type"])
def test_avro_types_agree_with_table(row):
    kinds = AVRO.get(row["Type"]) or row["Type"].split(", ")
    columns = [DataField(i, f"c{i}", parse_type(kind)) for i, kind in enumerate(kinds)]
    if row["Avro type"] == "refused":
        for column in columns:
            with pytest.raises(UnsupportedError):
                avro_schema([column])
        return
    plain, _, logical = row["Avro type"].partition(":")[0].partition(", logical type ")
    for i, described in enumerate(avro_schema(columns)["fields"]):
        null, stored = described["type"]
        assert (null, described["default"]) == ("null", None)
        kind = stored if isinstance(stored, str) else stored["type"]
        names = plain.partition(" of records")[0].split(", ")
        assert kind == names[i % len(names)]
        if logical:
            assert stored["logicalType"] == logical.split(", ")[i % len(logical.split(", "))]


# ---- limits

REFUSED = {
    "option `type`": [{"type": "format-table"}],
    "column of type VECTOR": ["VECTOR<FLOAT, 3>", "GEOMETRY", "GEOGRAPHY"],
    "column of type BLOB": ["ARRAY<ARRAY<BLOB>>", "ROW<b BLOB>"],
    "blobs under a primary key": [
        ({"bucket": "-2"}, "BLOB"),
        ({"merge-engine": "aggregation"}, "ARRAY<BLOB>"),
        ({"changelog-producer": "input"}, "MAP<INT NOT NULL, BLOB>"),
    ],
    "column of type VARIANT": [({"file.format": "orc"}, "VARIANT"), ({"file.format.per.level": "5:avro"}, "VARIANT")],
    "column whose values text": [
        ({"file.format": "json"}, "TIMESTAMP_LTZ(6)"),
        ({"changelog-file.format": "csv"}, "ARRAY<INT>"),
    ],
    "partition column of a binary type": [({"partition.legacy-name": "true"}, "BYTES")],
    "a codec": [
        {"file.compression": "x"},
        {"file.compression.per.level": "0:x"},
        {"changelog-file.compression": "x"},
        {"manifest.compression": "x"},
        {"parquet.compression": "x"},
        {"orc.compress": "x", "file.format": "orc"},
        {"avro.codec": "x", "file.format": "avro"},
    ],
    "`force-lookup`": [{"force-lookup": "true", "changelog-producer": "full-compaction"}],
    "`write.sequence-number-init-mode`": [{"write.sequence-number-init-mode": "snapshot"}],
    "`postpone.merge-on-read`": [{"postpone.merge-on-read": "true", "bucket": "-2"}],
    "cross-partition key": [{"bucket": "2"}],
    "`blob-field`": [{"blob-field": "v"}, {"blob-descriptor-field": "v"}, {"blob-view-field": "v"}],
    "`blob-as-descriptor`": [{"blob-as-descriptor": "true"}],
    "maps in shared columns": [
        {"fields.v.map.storage-layout": "x"},
        {"a.shared-shredding": "1"},
        {"chain-table.x": "1"},
    ],
    "`fields.<column>.default-value`": [{"fields.v.default-value": "1"}],
    "`file-index.<kind>.columns`": [{"file-index.strange.columns": "v"}],
    "`global-index.*`": [{"global-index.x": "1"}, {"pk-x.index.columns": "v"}],
    "`file.format`, `changelog-file.format` other": [
        {"file.format": "lance"},
        {"file.format.per.level": "0:csv"},
        {"changelog-file.format": "lance"},
    ],
    "`file.format` = `csv`": [{"file.format": "csv"}],
    "`partition.end-input-to-done`": [
        {"partition.end-input-to-done": "true", "partition.mark-done-action": "http-report"},
        {"partition.end-input-to-done": "true", "partition.mark-done-action": "success-file,mark-event"},
    ],
    "`manifest.format`": [{"manifest.format": "orc"}],
    "`metadata.iceberg.storage`": [{"metadata.iceberg.storage": "rest-catalog"}],
    "`incremental-between`": [{"scan.mode": "incremental"}],
}
"""Options or types that a row of 16.1 is about, by its beginning, where its options are no switches."""


def refused_by(row):
    """Schemas with what a row of 16.1 is about; options that the row only names are switched on."""
    part = row["Part of the schema"]
    cases = next((cases for start, cases in REFUSED.items() if part.startswith(start)), [])
    given = [case[0] if isinstance(case, tuple) else case for case in cases]
    shown = {name for options in given if isinstance(options, dict) for name in options}
    cases = [*cases, *({name: "true"} for name in quoted(part) if name in ALL_OPTIONS and name not in shown)]
    for case in cases:
        options, kind = case if isinstance(case, tuple) else (case, "STRING") if isinstance(case, dict) else ({}, case)
        types = {"k": "INT NOT NULL", "p": "INT", "v": kind}
        columns = tuple(DataField(i, name, parse_type(t)) for i, (name, t) in enumerate(types.items()))
        partitions = {"cross-partition key": ("p",), "partition column of": ("v",)}.get(part[:19], ())
        yield TableSchema(0, columns, 2, partitions, ("k",), Options(options))


@pytest.mark.parametrize("row", tables("16.1")[0], ids=lambda row: row["Part of the schema"])
def test_limits_agree_with_table(row):
    schemas = list(refused_by(row))
    assert schemas
    for schema in schemas:
        for check, cell in ((check_readable, row["Read"]), (check_writable, row["Write"])):
            if cell == "refused":
                with pytest.raises(UnsupportedError):
                    check(schema)
            else:
                check(schema)


def test_every_limit_has_row():
    schemas = [schema for row in tables("16.1")[0] for schema in refused_by(row)]
    assert all(any(limit.detect(schema) for schema in schemas) for limit in LIMITS)
