"""Rows of files of other tools: types, NULL, partitions, and files that cannot be read."""

import gzip
import json
from datetime import datetime, timezone
from decimal import Decimal

import fastavro
import pyarrow as pa
import pyarrow.json as pajson
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

from paimon_core.errors import CorruptedError, InvalidInputError, NotFoundError, UnsupportedError
from paimon_core.fileio.fileio import FileIO
from paimon_core.migration.read_rows import IMPORTED_FORMATS, TextForm, rows_of_files
from paimon_core.types.arrow import arrow_schema, fields_from_arrow
from paimon_core.types.datatype import DataField
from paimon_core.types.parse import parse_type

ROWS = pa.table({"id": [1, 2, 3], "n": ["a", None, "c,\n"], "x": [1.5, None, -2.0]})
AVRO = {
    "type": "record",
    "name": "r",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "n", "type": ["null", "string"]},
        {"name": "x", "type": ["null", "double"]},
    ],
}
TYPES = fields_from_arrow(
    pa.schema([pa.field("id", pa.int32(), False), ("n", pa.string()), ("x", pa.float32()), ("z", pa.int8())])
)


def store(path, format):
    """Write the rows into a file."""
    if format == "parquet":
        pq.write_table(ROWS, path)
    elif format == "orc":
        orc.write_table(ROWS, path)
    elif format == "avro":
        with open(path, "wb") as out:
            fastavro.writer(out, AVRO, ROWS.to_pylist())
    elif format == "json":
        lines = [{k: v for k, v in row.items() if v is not None} for row in ROWS.to_pylist()]
        path.write_text("\n".join(map(json.dumps, lines)))
    else:
        path.write_text('id,n,x\n1,a,1.5\n2,,\n3,"c,\n",-2\n')


def read(*paths, **how):
    return rows_of_files(FileIO.of(str(paths[0]), {}), [str(path) for path in paths], **how)


@pytest.mark.parametrize("format", IMPORTED_FORMATS)
def test_rows_of_each_format(tmp_path, format):
    store(tmp_path / f"a.{format}", format)
    rows = read(tmp_path / f"a.{format}")
    assert rows.reader().read_all() == ROWS
    typed = read(tmp_path / f"a.{format}", columns=TYPES).reader().read_all()
    names = [*ROWS.schema.names, *(["z"] if format == "json" else [])]
    assert typed.schema == pa.schema([arrow_schema(TYPES).field(name).with_nullable(True) for name in names])
    assert typed.select(ROWS.schema.names).to_pylist() == ROWS.to_pylist()


@pytest.mark.parametrize(("ending", "format"), [("csv.gz", "csv"), ("jsonl.gz", "json")])
def test_compressed_texts(tmp_path, ending, format):
    store(tmp_path / "plain", format)
    (tmp_path / f"a.{ending}").write_bytes(gzip.compress((tmp_path / "plain").read_bytes()))
    assert read(tmp_path / f"a.{ending}").reader().read_all() == ROWS


def test_null_and_delimiter_of_csv(tmp_path):
    (tmp_path / "a.tsv").write_text('a\tb\n""\t\n-\tNA\n')
    rows = read(tmp_path / "a.tsv", form=TextForm("\t", "-")).reader().read_all()
    assert rows.to_pylist() == [{"a": "", "b": None}, {"a": None, "b": "NA"}]


def test_directories_add_columns(tmp_path):
    for day in ("1", "2"):
        (tmp_path / f"day={day}").mkdir()
        store(tmp_path / f"day={day}" / "a.parquet", "parquet")
        (tmp_path / f"day={day}" / "_SUCCESS").write_text("x")
    rows = read(tmp_path).reader().read_all()
    assert rows.column("day").to_pylist() == ["1"] * 3 + ["2"] * 3
    typed = read(tmp_path, columns=fields_from_arrow(pa.schema([*ROWS.schema, ("day", pa.int8())]))).reader().read_all()
    assert typed.column("day").to_pylist() == [1] * 3 + [2] * 3


def test_columns_of_several_files_are_joined(tmp_path):
    (tmp_path / "a.csv").write_text("id,a,u\n1,5,\n")
    (tmp_path / "b.csv").write_text("id,b\n2,x\n")
    rows = read(tmp_path / "a.csv", tmp_path / "b.csv")
    assert rows.schema == pa.schema([("id", pa.int64()), ("a", pa.int64()), ("u", pa.string()), ("b", pa.string())])
    assert rows.reader().read_all().to_pylist() == [
        {"id": 1, "a": 5, "u": None, "b": None},
        {"id": 2, "a": None, "u": None, "b": "x"},
    ]


@pytest.mark.parametrize(
    ("files", "how", "fault"),
    [
        ({"a.txt": "x"}, {}, "a.txt ends with none of csv, json, parquet, orc, avro"),
        ({"a.csv": "id\n1\n", "b.json": '{"id": 1}'}, {}, "the files are of the formats csv, json"),
        ({"a.csv": "id,id\n1,2\n"}, {}, r"a.csv has \['id'\] more than once"),
        ({"a.csv": "id,q\n1,2\n"}, {"columns": TYPES}, r"a.csv has columns \['q'\] that the table lacks"),
        ({"a.csv": "id\nx\n"}, {"columns": TYPES}, "a.csv: In CSV column #0"),
        ({"a.csv": "id\n1\n", "b.csv": "id\nx\n"}, {}, "the files have different types of a column"),
        ({"a.json": '{"id": 1}\n{"id": '}, {}, "a.json: JSON parse error"),
        ({"a.csv": ""}, {}, "there are no files with rows"),
    ],
)
def test_files_that_cannot_be_read(tmp_path, files, how, fault):
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(InvalidInputError, match=fault):
        read(*(tmp_path / name for name in files), **how).reader().read_all()


EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
INSTANT, WALL = pa.timestamp("us", "UTC"), pa.timestamp("us")


@pytest.mark.parametrize(
    ("stored", "kind"),
    [
        (pa.array([1 << 40]), "INT"),
        (pa.array([1.5]), "INT"),
        (pa.array([1]), "STRING"),
        (pa.array(["1"]), "INT"),
        (pa.array([True]), "INT"),
        (pa.array([0], INSTANT), "TIMESTAMP(6)"),
        (pa.array([0], WALL), "TIMESTAMP_LTZ(6)"),
        (pa.array([0], WALL), "DATE"),
        (pa.array([[1]]), "ARRAY<STRING>"),
    ],
    ids=str,
)
def test_values_of_other_kinds_do_not_fit(tmp_path, stored, kind):
    pq.write_table(pa.table({"c": stored}), tmp_path / "a.parquet")
    with pytest.raises(InvalidInputError, match=r"column 'c' of .*a\.parquet is .*, which cannot become"):
        read(tmp_path / "a.parquet", columns=[DataField(0, "c", parse_type(kind))]).reader().read_all()


@pytest.mark.parametrize(
    ("stored", "kind", "value"),
    [
        (pa.array([7]), "SMALLINT", 7),
        (pa.array([7]), "DECIMAL(5, 2)", Decimal("7.00")),
        (pa.array([7.0]), "BIGINT", 7),
        (pa.array(["x"]).dictionary_encode(), "STRING", "x"),
        (pa.array(["x"], pa.large_string()), "STRING", "x"),
        (pa.array([b"xy"], pa.binary(2)), "BYTES", b"xy"),
        (
            pa.array([0], pa.timestamp("ms", "Asia/Tokyo")),
            "TIMESTAMP_LTZ(6)",
            datetime(1970, 1, 1, tzinfo=timezone.utc),
        ),
        (pa.array([[7]]), "ARRAY<INT>", [7]),
    ],
    ids=str,
)
def test_values_of_the_same_kind_fit(tmp_path, stored, kind, value):
    pq.write_table(pa.table({"c": stored}), tmp_path / "a.parquet")
    rows = read(tmp_path / "a.parquet", columns=[DataField(0, "c", parse_type(kind))]).reader().read_all()
    assert rows.column("c").to_pylist() == [value]


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        ("a.json", '{"c": {"a": 1}}', "VARIANT"),
        ("a.json", '{"c": "00ff"}', "BYTES"),
        ("a.json", '{"c": ["00ff"]}', "ARRAY<BYTES>"),
        ("a.csv", "c\n00ff\n", "BYTES"),
    ],
)
def test_columns_without_known_form_are_refused(tmp_path, name, text, kind):
    (tmp_path / name).write_text(text)
    columns = [DataField(0, "c", parse_type(kind)), DataField(1, "d", parse_type("INT"))]
    with pytest.raises(UnsupportedError, match=r"column 'c' of .* has the type .* in the table"):
        read(tmp_path / name, columns=columns)
    other = tmp_path / f"other.{name[2:]}"
    other.write_text(text.replace("c", "d", 1).replace('{"a": 1}', "1").replace('["00ff"]', "1").replace('"00ff"', "1"))
    if name.endswith("json"):
        assert read(other, columns=columns).reader().read_all().to_pylist() == [{"d": 1}]


def test_nested_values_of_csv_are_refused(tmp_path):
    (tmp_path / "a.csv").write_text("c\n[1]\n")
    with pytest.raises(InvalidInputError, match=r"a\.csv: "):
        read(tmp_path / "a.csv", columns=[DataField(0, "c", parse_type("ARRAY<INT>"))]).reader().read_all()


@pytest.fixture
def late(tmp_path):
    """A JSON file with a field that begins after the first megabyte, from which types are taken."""
    lines = [json.dumps({"id": n, "n": "x" * 50}) for n in range(40_000)]
    (tmp_path / "a.json").write_text("\n".join([*lines, '{"id": 1, "late": 5}']))
    return tmp_path / "a.json"


@pytest.mark.skipif(not hasattr(pajson, "open_json"), reason="this Arrow reads JSON files as a whole")
def test_late_field_of_json_is_not_lost(late):
    with pytest.raises(InvalidInputError, match=r"a\.json: JSON parse error: unexpected field"):
        read(late).reader().read_all()


def test_late_field_of_json_in_table_is_read(late):
    columns = fields_from_arrow(pa.schema([("id", pa.int64()), ("n", pa.string()), ("late", pa.int32())]))
    assert read(late, columns=columns).reader().read_all().column("late").to_pylist()[-1] == 5


def test_missing_and_damaged_files(tmp_path):
    with pytest.raises(NotFoundError, match="there is no file or directory"):
        read(tmp_path / "a.csv")
    for format in ("parquet", "orc", "avro"):
        store(tmp_path / f"a.{format}", format)
        data = (tmp_path / f"a.{format}").read_bytes()
        (tmp_path / f"a.{format}").write_bytes(data[: len(data) // 2])
        with pytest.raises(CorruptedError, match=f"a.{format}"):
            read(tmp_path / f"a.{format}").reader().read_all()
