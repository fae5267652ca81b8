"""CSV and JSON data files: what is written comes back, what could not is refused; recorded lines of the Java engine."""

import io

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon_core.errors import CorruptedError, InvalidInputError, UnsupportedError
from paimon_core.format import TEXT_FORMATS, format_named, format_of
from paimon_core.format.csv_lines import CsvFormat
from paimon_core.format.file_format import ReadRequest
from paimon_core.options.option import Options
from paimon_core.types.arrow import arrow_schema
from paimon_core.types.datatype import DataField
from paimon_core.types.parse import parse_type
from tests.support.draws import draws
from tests.support.samples import fields_of, rows_of

PLAIN = (
    "BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(9, 2)", "DECIMAL(38, 10)",
    "DATE", "TIME(0)", "TIME(3)", "TIMESTAMP(3)", "TIMESTAMP(6)", "TIMESTAMP(9)", "BYTES",
)  # fmt: skip
NESTED = ("ARRAY<INT>", "MAP<STRING, ARRAY<DATE>>", "MAP<INT, STRING>", "ROW<a INT, b ARRAY<ROW<c BYTES>>>", "STRING")
TYPES = {"csv": PLAIN, "json": (*PLAIN, *NESTED)}
ENDS = {"none": "", "gzip": ".gz", "bzip2": ".bz2", "zstd": ".zst"}
formats = pytest.mark.parametrize("name", sorted(TEXT_FORMATS))


def fields(*types):
    return [DataField(i, f"c{i}", parse_type(t)) for i, t in enumerate(types)]


def encode(name, columns, table, compression="none", **options):
    sink = io.BytesIO()
    writer = format_named(name, columns, Options(options)).open_writer(sink, columns, Options(options), compression)
    writer.write(table)
    writer.close()
    return sink.getvalue()


def decode(name, columns, data, requested=None, path=None, batch_rows=7, **options):
    found = format_named(name, columns, Options(options))
    columns = columns if requested is None else requested
    request = ReadRequest(columns, batch_rows, 1 << 16, path=path or f"f.{name}")
    batches = list(found.read(pa.BufferReader(data), request))
    return pa.Table.from_batches(batches, arrow_schema(columns))


def texts(*rows, column="STRING"):
    columns = fields(*[column] * len(rows[0]))
    arrays = [pa.array([row[i] for row in rows], pa.string()) for i in range(len(rows[0]))]
    return columns, pa.Table.from_arrays(arrays, schema=arrow_schema(columns))


@formats
@pytest.mark.parametrize("codec", sorted(ENDS))
def test_rows_come_back(name, codec):
    columns = fields_of(TYPES[name])
    table = rows_of(columns, 3, 60)
    data, path = encode(name, columns, table, codec), f"f.{name}{ENDS[codec]}"
    back = decode(name, columns, data, path=path)
    for column in table.column_names:
        assert back[column].equals(table[column]), column
    some = [columns[3], columns[0]]
    assert decode(name, columns, data, some, path).column(0).equals(table.column(3))
    counted = format_of(path, columns).read(pa.BufferReader(data), ReadRequest([], 7, path=path))
    assert sum(b.num_rows for b in counted) == 60
    assert format_of(path, columns).row_count(pa.BufferReader(data), path) == 60


marks = st.text(st.sampled_from(list('a,"\\ é\t;x')), max_size=5)


@draws(150)
@given(st.lists(st.tuples(marks, marks), min_size=1, max_size=6), st.booleans())
def test_any_text_comes_back_from_csv(rows, header):
    columns, table = texts(*rows)
    options = {"csv.null-literal": "NULL", "csv.include-header": str(header).lower()}
    assert decode("csv", columns, encode("csv", columns, table, **options), **options).equals(table)


@draws(100)
@given(st.lists(st.tuples(marks, marks, st.text(max_size=3)), min_size=1, max_size=6))
def test_any_text_comes_back_from_json(rows):
    columns, table = texts(*rows)
    assert decode("json", columns, encode("json", columns, table)).equals(table)


@draws(150)
@given(st.lists(st.lists(st.text(st.sampled_from("ab ,'x"), max_size=4), min_size=3, max_size=3), min_size=1))
def test_both_line_parsers_agree(rows):
    """Lines as a writer makes them: with quotes around what needs them, nowhere else."""
    quoted = [",".join(f'"{v}"' if "," in v or v.isspace() else v for v in row) for row in rows]
    block = "".join(line + "\n" for line in quoted).encode()
    reader = CsvFormat.of(fields(*["STRING"] * 3), Options({}))
    assert reader._escaped(block, 0).equals(reader._plain(block, ["c0", "c1", "c2"], 0))


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("x\\", "x"), ("\\y", "y"), ('"\\"q\\""', '"q"'), ('"a\\\\"b"', None), ('"a, \\"b\\" \\ c"', 'a, "b"  c'),
        ('"C:\\dir\\,x"', "C:dir,x"), ("", None), (" ", " "),
    ],
)  # fmt: skip
def test_lines_are_read_as_java_reads_them(line, value):
    columns = fields("INT", "STRING", "INT")
    data = f"1,{line},\n2,\\,\n".encode()
    assert decode("csv", columns, data).column(1).to_pylist() == [value, None]


@pytest.mark.parametrize("value", ["", "a\nb", "\r"])
def test_text_that_csv_cannot_hold_is_refused(value):
    columns, table = texts((value, "x"))
    with pytest.raises(InvalidInputError, match="'c0'"):
        encode("csv", columns, table)


def test_with_null_literal_empty_text_is_value():
    columns, table = texts(("", None))
    options = {"csv.null-literal": "NULL", "csv.field-delimiter": ";", "csv.quote-character": "'"}
    data = encode("csv", columns, table, **options)
    assert data == b"'';NULL\n"
    assert decode("csv", columns, data, **options).equals(table)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("csv", "ARRAY<INT>"), ("csv", "ROW<a INT>"), ("json", "MULTISET<STRING>"), ("json", "MAP<DATE, INT>"),
        *((name, "TIMESTAMP(3) WITH LOCAL TIME ZONE") for name in ("csv", "json")),
    ],
)  # fmt: skip
def test_types_that_text_cannot_hold_are_refused(name, kind):
    columns = fields(kind)
    with pytest.raises(UnsupportedError, match="'c0'"):
        encode(name, columns, arrow_schema(columns).empty_table())
    with pytest.raises(UnsupportedError, match="'c0'"):
        decode(name, columns, b"x\n")


@formats
@pytest.mark.parametrize("data", [b"1,x,y\n", b'{"c0":"1"\n', b"no number\n", b"\xff\xfe\n", b'{"c0":"x"}\n'])
def test_damage_names_the_file(name, data):
    with pytest.raises(CorruptedError, match=f"f.{name}"):
        decode(name, fields("INT"), data)


def test_truncated_compression_names_file():
    columns, table = texts(*[(f"v{i}", "x" * i) for i in range(200)])
    for codec, end in ENDS.items():
        if end:
            data = encode("json", columns, table, codec)
            with pytest.raises(CorruptedError, match=f"f.json{end}"):
                decode("json", columns, b"\x00" * 10 + data[10:], path=f"f.json{end}")


@pytest.mark.parametrize(
    "options",
    [
        {"csv.field-delimiter": "||"}, {"csv.field-delimiter": '"'}, {"csv.escape-character": ""},
        {"csv.null-literal": 'a"'}, {"csv.line-delimiter": ";"},
    ],
)  # fmt: skip
def test_ambiguous_layouts_are_refused(options):
    with pytest.raises(InvalidInputError, match="csv"):
        CsvFormat.of(fields("INT"), Options(options))


def test_unknown_extensions_are_refused():
    for name in ("f.text", "f.text.gz", "f.csv.lz4", "f"):
        with pytest.raises(UnsupportedError):
            list(format_of(name, fields("INT")).read(pa.BufferReader(b""), ReadRequest(fields("INT"), 1, path=name)))
    assert format_of("p.q-0.csv.gz", fields("INT")).name == "csv"


def test_json_numbers_without_quotes_are_read():
    columns = fields("INT", "DOUBLE", "BOOLEAN", "STRING")
    row = decode("json", columns, b'{"c0":1,"c1":1.5e3,"c2":true,"c3":7,"x":[1]}\n{}\n').to_pylist()
    assert row == [{"c0": 1, "c1": 1500.0, "c2": True, "c3": "7"}, dict.fromkeys(["c0", "c1", "c2", "c3"])]
