"""CSV and JSON data files, both ways, plain and compressed."""

import pytest

from tests.conformance.domain import value
from tests.conformance.kinds import Kind, keyed
from tests.conformance.shared_table import created_by_java

pytestmark = pytest.mark.java
PLAIN = [
    "BOOLEAN", "TINYINT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(18, 5)", "DECIMAL(38, 10)", "BYTES", "BINARY(4)",
    "DATE", "TIME(0)", "TIME(3)", "TIMESTAMP(0)", "TIMESTAMP(3)", "TIMESTAMP(6)", "TIMESTAMP(9)", "CHAR(5)",
    "VARCHAR(10)",
]  # fmt: skip
NESTED = [
    "ARRAY<STRING>",
    "MAP<STRING, INT>",
    "MAP<INT, ARRAY<DATE>>",
    "ROW<a INT, r ROW<t TIMESTAMP(3), l ARRAY<BYTES>>>",
]


def fitting(row, file_format):
    """Text that Java reads back from CSV: not empty, no line breaks, no backslashes, no quotes before blanks."""
    if file_format == "json":
        return row
    return {k: None if v in ("", "\\", "a\nb", 'q"q') else v for k, v in row.items()}


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    ("file_format", "codec"), [("csv", "none"), ("csv", "gzip"), ("json", "none"), ("json", "bzip2")]
)
def test_rows_are_the_same(judge, name, rng, file_format, codec):
    columns = PLAIN if file_format == "csv" else PLAIN + NESTED
    kind = Kind("text", {"file.compression": codec}, file_format=file_format)
    table = created_by_java(judge, name, kind, fields=[["k", "INT"], *([f"c{i}", t] for i, t in enumerate(columns))])
    fields = table.ours().schema.fields
    for turn in range(4):
        rows = [["+I", fitting(drawn(rng, fields), file_format)] for _ in range(15)]
        if turn % 2:
            table.we_write(rows)
        else:
            table.java("write", rows=rows)
        table.agree()
    table.ours().compact(full=True)
    table.agree()
    table.java("compact", kind="full", options={"compaction.min.file-num": "2"})
    table.java("alter_table", changes=[{"op": "add_column", "name": "more", "type": "STRING"}])
    table.we_write([["+I", {"k": 1, "more": "x"}]])
    table.agree_everywhere()


def drawn(rng, fields):
    return {f.name: value(rng, f.type) for f in fields}


@pytest.mark.parametrize("text", ["a,b", 'say "x"', "back\\slash", "\\", 'end\\"', " ", 'é,"\\'])
def test_java_reads_csv_files_correctly(judge, name, text):
    name = f"{name}_{text.encode().hex()}"
    table = created_by_java(
        judge,
        name,
        Kind("csv", {"file.compression": "none"}, file_format="csv"),
        fields=[["k", "STRING"], ["v", "STRING"]],
    )
    table.we_write([["+I", {"k": text, "v": text}], ["+I", {"k": "x", "v": text}]])
    assert sorted(table.agree()) == sorted([[text, text], ["x", text]])


def test_json_under_a_primary_key(judge, name, rng):
    kind = keyed("json", **{"file.compression": "none"}).of_format("json")
    fields = [["k", "INT NOT NULL"], ["v", "STRING"], ["d", "DECIMAL(9, 2)"]]
    table = created_by_java(judge, name, kind, fields=fields)
    for turn in range(4):
        rows = [[rng.choice(kind.row_kinds), {"k": rng.randrange(9), "v": f"{turn}", "d": "1.50"}] for _ in range(12)]
        table.we_write(rows) if turn % 2 else table.java("write", rows=rows)
        table.agree()
    table.ours().compact(full=True)
    table.agree()
