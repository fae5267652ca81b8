"""Fields of structs by their paths: in the columns of a read, and in filters."""

from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paimon_core import AddColumn, DropColumn, InvalidInputError, RenameColumn, Schema, Table, UpdateType, col
from paimon_core.predicate.expr import FieldPath, path_of
from paimon_core.predicate.filter import bound_filter
from paimon_core.predicate.parse import parse_predicate
from paimon_core.read.table_read import TableRead

INNER = pa.struct([("z", pa.string()), ("w", pa.list_(pa.int32()))])
STRUCT = pa.struct([("x", pa.int32()), ("y", INNER), ("big", pa.string())])
COLUMNS = pa.schema([pa.field("id", pa.int64(), False), ("a", STRUCT)])
ROWS = [
    {
        "id": i,
        "a": None
        if i % 5 == 0
        else {
            "x": i if i % 3 else None,
            "y": None if i % 4 == 0 else {"z": f"z{i}", "w": [i]},
            "big": f"big {i}" * 50,
        },
    }
    for i in range(60)
]
KINDS = {
    "append": {},
    "evolved": {"row-tracking.enabled": "true", "data-evolution.enabled": "true"},
    "deduplicate": {"bucket": "1"},
    "partial-update": {"bucket": "1", "merge-engine": "partial-update"},
}
FILTERS = {
    "a.x > 50": lambda row: inside(row, "x") is not None and inside(row, "x") > 50,
    "NOT (A.Y.Z = 'z7')": lambda row: inside(row, "y", "z") not in (None, "z7"),
    "a.y IS NULL OR a.x IN (7, 8)": lambda row: inside(row, "y") is None or inside(row, "x") in (7, 8),
    "a.y.z LIKE 'z1%' AND id < 15": lambda row: (inside(row, "y", "z") or "").startswith("z1") and row["id"] < 15,
    "`a`.x <=> NULL": lambda row: inside(row, "x") is None,
}


def inside(row, *path):
    value = row["a"]
    for name in path:
        value = value if value is None else value[name]
    return value


def table_of(path, kind, schema=COLUMNS, **options):
    keys = ["id"] if "bucket" in KINDS[kind] else []
    return Table.create(str(path), Schema(schema, keys, options={**KINDS[kind], **options}))


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
@pytest.mark.parametrize("kind", KINDS)
def test_fields_are_read_and_filtered_by_path(tmp_path, kind, file_format):
    table = table_of(tmp_path / "t", kind, **{"file.format": file_format})
    table.write(pa.Table.from_pylist(ROWS[:40], COLUMNS))
    table.write(pa.Table.from_pylist(ROWS[30 if "bucket" in KINDS[kind] else 40 :], COLUMNS))
    expected = [
        {"a.y.z": inside(r, "y", "z"), "id": r["id"], "A.x": inside(r, "x"), "a.y": inside(r, "y")} for r in ROWS
    ]
    found = table.to_arrow(["a.y.z", "id", "A.x", "a.y"])
    assert found.sort_by("id").to_pylist() == expected
    assert found.schema.types == [pa.string(), pa.int64(), pa.int32(), INNER]
    for text, holds in FILTERS.items():
        matching = [row for row in ROWS if holds(row)]
        for columns in (None, ["id"], ["id", "a.y.z"], ["a", "id", "a.x"]):
            rows = table.to_arrow(columns, filter=text).sort_by("id")
            assert rows["id"].to_pylist() == [row["id"] for row in matching], (text, columns)
            if columns is None:
                assert rows.to_pylist() == matching
            elif "a.y.z" in columns:
                assert rows["a.y.z"].to_pylist() == [inside(row, "y", "z") for row in matching]
    assert table.to_arrow(["id"], filter=(col("a.x") == 7) | col("a.y.w").is_null(), limit=1).num_rows == 1
    assert table.to_arrow(["a.x"], filter="a.x = 1", snapshot_id=1).num_rows == 1


def test_only_the_named_fields_are_decoded(tmp_path, monkeypatch):
    table = table_of(tmp_path / "t", "append")
    table.write(pa.Table.from_pylist(ROWS, COLUMNS))
    decoded, iter_batches = [], pq.ParquetFile.iter_batches

    def spy(file, *arguments, columns=None, **more):
        decoded.append(sorted(columns))
        return iter_batches(file, *arguments, columns=columns, **more)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", spy)
    for columns, filter, expected in (
        (["a.x"], None, ["a.x"]),
        (["a.y.z"], "a.x > 3", ["a.x", "a.y.z"]),
        (["a", "a.x"], None, ["a"]),
        (["id"], "a.y.w IS NULL", ["a.y.w", "id"]),
        (["a.y", "a.big", "a.x"], None, ["a"]),
    ):
        table.to_arrow(columns, filter=filter)
        assert decoded.pop() == expected, columns


@pytest.mark.parametrize("file_format", ["parquet", "orc"])
def test_paths_follow_changes_of_the_schema(tmp_path, file_format):
    table = table_of(tmp_path / "t", "append", **{"file.format": file_format})
    table.write(pa.Table.from_pylist(ROWS[:8], COLUMNS))
    table = table.alter([RenameColumn(("a", "x"), "n"), UpdateType(("a", "n"), "BIGINT"), DropColumn(("a", "big"))])
    table = table.alter([AddColumn(("a", "x"), "STRING"), RenameColumn("a", "s")])
    new = {"n": 100, "y": None, "x": "new"}
    table.write(pa.Table.from_pylist([{"id": 100, "s": new}], table.arrow_schema))
    rows = table.to_arrow(["id", "s.n", "s.x"]).sort_by("id").to_pylist()
    assert rows == [
        *({"id": r["id"], "s.n": inside(r, "x"), "s.x": None} for r in ROWS[:8]),
        {"id": 100, "s.n": 100, "s.x": "new"},
    ]
    assert table.to_arrow(["id"], filter="s.n >= 7").num_rows == 2
    assert table.to_arrow(["id"], filter="s.x = 'new' AND s.n = 100")["id"].to_pylist() == [100]
    with pytest.raises(InvalidInputError, match="column 'big' does not exist in the struct s"):
        table.to_arrow(filter="s.big = 'x'")


def test_a_column_with_a_dot_wins_and_backticks_decide(tmp_path):
    schema = pa.schema(
        [("a", pa.struct([("b", pa.int32()), ("c.d", pa.int32())])), ("a.b", pa.string()), ("c.e", pa.int32())]
    )
    table = table_of(tmp_path / "t", "append", schema)
    table.write(pa.Table.from_pylist([{"a": {"b": 1, "c.d": 2}, "a.b": "top", "c.e": 5}], schema))
    assert table.to_arrow(["a.b", "`a`.b", "a.`c.d`"]).to_pylist() == [{"a.b": "top", "`a`.b": 1, "a.`c.d`": 2}]
    assert table.to_arrow(filter="a.b = 1 AND `a.b` = 'top' AND a.`c.d` = 2").num_rows == 1
    assert table.to_arrow(filter=col("a.b") == "top").num_rows == 1
    with pytest.raises(InvalidInputError, match=r"has a column of this name: write `c\.e`"):
        table.to_arrow(filter="c.e = 5")


REFUSED = {
    "columns": [
        (["a.q"], "column 'q' does not exist in the struct a; it has"),
        (["id.x"], "id of type BIGINT NOT NULL has no fields"),
        (["q.x"], "column 'q' does not exist in the table"),
        (["a.x", "a.x"], "names a column twice"),
        (["a."], "column 'a.' does not exist in the table"),
    ],
    "filter": [
        ("a.q = 1", "column 'q' does not exist in the struct a"),
        ("a.y = 1", "can only be tested for NULL"),
        ("a.x = 'one'", "a column of type INT cannot be compared with 'one'"),
        ("q.x = 1", "column 'q' does not exist in the filtered table"),
        ("a..x = 1", "cannot parse"),
    ],
}


def test_backticks_around_a_whole_column(tmp_path):
    columns = pa.schema([("a.b", pa.int32()), ("x `y", pa.string()), ("a", pa.struct([("b", pa.int32())]))])
    table = Table.create(str(tmp_path), Schema(columns))
    table.write(pa.Table.from_pylist([{"a.b": 1, "x `y": "t", "a": {"b": 2}}], columns))
    found = table.to_arrow(["`x ``y`", "`A.b`", "`a`.`b`"], filter="`a.b` = 1 AND `x ``y` = 't'").to_pylist()
    assert found == [{"x `y": "t", "a.b": 1, "`a`.`b`": 2}]
    with pytest.raises(InvalidInputError, match=r"column 'a\.c' does not exist"):
        table.to_arrow(["`a.c`"])
    with pytest.raises(InvalidInputError, match="names a column twice"):
        table.to_arrow(["`a.b`", "a.b"])


@pytest.mark.parametrize("argument", REFUSED)
def test_wrong_paths_are_refused(tmp_path, argument):
    table = table_of(tmp_path / "t", "append")
    table.write(pa.Table.from_pylist(ROWS[:2], COLUMNS))
    for value, message in REFUSED[argument]:
        with pytest.raises(InvalidInputError, match=message):
            table.to_arrow(**{argument: value})


def test_rows_are_changed_by_filters_on_fields(tmp_path):
    for kind in ("append", "deduplicate"):
        table = table_of(tmp_path / kind, kind)
        table.write(pa.Table.from_pylist(ROWS, COLUMNS))
        table.delete("a.x > 10")
        assert table.update({"a": None}, where="a.y.z = 'z2'").num_updated_rows == 1
        left = [row for row in ROWS if not (inside(row, "x") or 0) > 10]
        assert table.to_arrow(["id"], filter="a IS NULL").num_rows == sum(r["a"] is None for r in left) + 1
        assert table.to_arrow().num_rows == len(left)


@pytest.mark.parametrize("text", ["a.b", "`odd name`.b", "a.`b.c`.d", "`a``b`.`date`"])
def test_paths_print_as_they_parse(text):
    path = path_of(text)
    predicate = parse_predicate(f"{text} > 1")
    assert predicate.column == path
    assert isinstance(path, FieldPath)
    assert parse_predicate(str(predicate)) == predicate
    assert [path_of(wrong) for wrong in ("a", "a.", ".a", "a..b", "`a.b`", "a`b.c")] == [None] * 6


@pytest.mark.parametrize("kind", ["append", "deduplicate", "partial-update"])
def test_a_filter_tests_other_fields_than_the_read_returns(tmp_path, kind):
    """As Spark asks: some fields of a struct, and the option `filter` on others."""
    table = table_of(tmp_path / "t", kind)
    table.write(pa.Table.from_pylist(ROWS, COLUMNS))
    column = table.schema.field("a")
    some = replace(column, type=replace(column.type, fields=column.type.fields[:1]))
    predicate = bound_filter("a.y.z = 'z7' OR a.y.z = 'z58'", table.schema.fields)
    read = TableRead(table.store, (some,), predicate)
    rows = [batch for split in table.scan().plan().splits for batch in read.to_batches(split)]
    assert pa.Table.from_batches(rows).to_pylist() == [{"a": {"x": 7}}, {"a": {"x": 58}}]
