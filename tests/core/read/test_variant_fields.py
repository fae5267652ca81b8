"""Values at paths of variants: in the columns of a read, and in filters."""

import pickle
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paimon_core import InvalidInputError, RenameColumn, Schema, Table, col, variant_get
from paimon_core.format.conform import conform
from paimon_core.predicate.compute import evaluate
from paimon_core.predicate.filter import bound_filter
from paimon_core.predicate.parse import parse_predicate
from paimon_core.types import datatype
from paimon_core.types.arrow import to_arrow
from paimon_core.types.datatype import DataField, RowType, with_nullable
from tests.core.format.test_variants import draw
from tests.support.variants import MISSING, shredded_column

VARIANT = to_arrow(datatype.VARIANT)
COLUMNS = pa.schema([pa.field("id", pa.int64(), False), pa.field("v", VARIANT)])
FIELDS = (DataField(0, "id", with_nullable(datatype.BIGINT, False)), DataField(1, "v", datatype.VARIANT))
SHAPE = (
    '{"type":"ROW","fields":[{"name":"v","type":{"type":"ROW","fields":[{"name":"a","type":"BIGINT"},'
    '{"name":"s","type":"STRING"},{"name":"c","type":{"type":"ROW","fields":[{"name":"a","type":"BOOLEAN"},'
    '{"name":"d","type":{"type":"ARRAY","element":"DOUBLE"}}]}}]}}]}'
)
LAYOUTS = {
    "whole": {},
    "shredded": {"variant.shreddingSchema": SHAPE},
    "inferred": {"variant.inferShreddingSchema": "true"},
}
KINDS = {
    "append": {},
    "evolved": {"row-tracking.enabled": "true", "data-evolution.enabled": "true"},
    "deduplicate": {"bucket": "1"},
}
CALLS = (
    "try_variant_get(v, '$.a', 'BIGINT')",
    "try_variant_get(v, '$.a', 'INT')",
    "try_variant_get(v, '$.s', 'STRING')",
    "try_variant_get(v, '$.c.a', 'BOOLEAN')",
    "try_variant_get(V, '$.c.d[1]', 'DOUBLE')",
    "variant_get(v, '$.c')",
    "variant_get(v, '$.rest')",
    "variant_get(v, '$[\"c\"].d')",
    "variant_get(v, '$[0]')",
    "variant_get(v, '$')",
)
FILTERS = (
    "try_variant_get(v, '$.a', 'BIGINT') > 3",
    "try_variant_get(v, '$.a', 'int') IN (2, 7, 100) AND id > 10",
    "NOT (try_variant_get(v, '$.s', 'STRING') LIKE 's1%')",
    "variant_get(v, '$.c') IS NULL OR try_variant_get(v, '$.a', 'BIGINT') <=> 5",
    "try_variant_get(v, '$.c.a', 'BOOLEAN')",
    "5 >= try_variant_get(v, '$.a', 'DOUBLE') AND variant_get(v, '$.s') IS NOT NULL",
)


def variants(values):
    return conform(shredded_column(values, None), VARIANT, variants=True)


def rows_of(n):
    rng = random.Random(n)
    values = []
    for i in range(n):
        value = {"a": i, "s": f"s{i}", "c": {"a": i % 2 == 0, "d": [i / 2, 1.5]}, "rest": [i]}
        for name in rng.sample(sorted(value), rng.choice((0, 0, 1, 2))):
            del value[name]
        values.append(rng.choice((value, value, value, draw(rng), {**value, "a": "text"}, MISSING)))
    return pa.table([pa.array(range(n), pa.int64()), variants(values)], schema=COLUMNS)


def table_of(path, kind, **options):
    keys = ["id"] if "bucket" in KINDS[kind] else []
    return Table.create(str(path), Schema(FIELDS, keys, options={**KINDS[kind], **options}))


@pytest.mark.cases(2)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", KINDS)
def test_paths_are_read_and_filtered_as_in_whole_variants(tmp_path, kind, layout):
    table, given = table_of(tmp_path / "t", kind, **LAYOUTS[layout]), rows_of(120)
    table.write(given.slice(0, 70))
    table.write(given.slice(50 if "bucket" in KINDS[kind] else 70))
    whole = table.to_arrow().sort_by("id")
    found = table.to_arrow(["id", *CALLS]).sort_by("id")
    assert found.column_names == ["id", *CALLS]
    for text in CALLS:
        path, *kinds = text.partition("'")[2].rstrip("')").split("', '")
        strict, kind_of = not text.startswith("try"), (kinds or [None])[0]
        assert (
            found[text].combine_chunks().equals(variant_get(whole["v"], path, kind_of, strict=strict).combine_chunks())
        )
        assert table.to_arrow([text]).num_rows == whole.num_rows
    for text in FILTERS:
        matching = whole.filter(evaluate(bound_filter(text, table.schema.fields), whole))
        assert 0 < matching.num_rows < whole.num_rows
        for columns in (None, ["id"], ["id", CALLS[0]], ["v", "id", CALLS[2]]):
            rows = table.to_arrow(columns, filter=text).sort_by("id")
            assert rows["id"].to_pylist() == matching["id"].to_pylist(), (text, columns)
            if columns is None or "v" in columns:
                assert rows["v"].to_pylist() == matching["v"].to_pylist()


def test_only_the_columns_of_a_path_are_decoded(tmp_path, monkeypatch):
    table = table_of(tmp_path / "t", "append", **LAYOUTS["shredded"])
    table.write(rows_of(60))
    decoded, iter_batches = [], pq.ParquetFile.iter_batches

    def spy(file, *arguments, columns=None, **more):
        decoded.append(sorted(columns))
        return iter_batches(file, *arguments, columns=columns, **more)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", spy)
    group = ["v.typed_value.a.typed_value", "v.typed_value.a.value"]
    for columns, filter, expected in (
        ([CALLS[0]], None, ["v.metadata", *group]),
        (["id"], FILTERS[0], ["id", "v.metadata", *group]),
        (["variant_get(v, '$.rest')"], None, ["v.metadata", "v.value"]),
        (["try_variant_get(v, '$.c.zz', 'INT')"], None, ["v.metadata", "v.typed_value.c.value"]),
        (
            [CALLS[4]],
            None,
            ["v.metadata", "v.typed_value.c.typed_value.d.typed_value", "v.typed_value.c.typed_value.d.value"],
        ),
        (["v"], FILTERS[0], ["v"]),
        (["variant_get(v, '$')"], None, ["v"]),
    ):
        decoded.clear()
        table.to_arrow(columns, filter=filter)
        assert {*map(tuple, decoded)} == {tuple(expected)}


def groups_read(monkeypatch):
    read, iter_batches = [], pq.ParquetFile.iter_batches

    def spy(file, *arguments, row_groups=None, **more):
        read.extend(row_groups)
        return iter_batches(file, *arguments, row_groups=row_groups, **more)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", spy)
    return read


def test_bounds_of_typed_columns_skip_row_groups(tmp_path, monkeypatch):
    table = table_of(tmp_path / "t", "append", **LAYOUTS["shredded"])
    values = [{"a": i, "s": f"s{i:03}", "c": {"a": True}} for i in range(400)]
    values[250] = {"a": "text", "s": None}  # in the third row group, the bounds say nothing about `a`
    values[399] = {"a": 399}
    table.write(pa.table([pa.array(range(400)), variants(values)], schema=COLUMNS))
    path = next((tmp_path / "t").rglob("data-*.parquet"))
    rows = pa.Table.from_batches([*pq.ParquetFile(path).iter_batches()])
    with pq.ParquetWriter(path, rows.schema) as writer:
        for start in range(0, 400, 100):
            writer.write_table(rows.slice(start, 100), row_group_size=100)
    table = Table.open(str(tmp_path / "t"))
    whole, read = table.to_arrow(), groups_read(monkeypatch)
    for text, expected in (
        ("try_variant_get(v, '$.a', 'BIGINT') = 5", [0, 2]),
        ("try_variant_get(v, '$.a', 'INT') >= 350", [2, 3]),
        ("try_variant_get(v, '$.a', 'TINYINT') = 5", [0, 1, 2, 3]),
        ("try_variant_get(v, '$.a', 'TINYINT') IS NULL", [0, 1, 2, 3]),
        ("try_variant_get(v, '$.a', 'DOUBLE') = 5", [0, 1, 2, 3]),
        ("try_variant_get(v, '$.a', 'BIGINT') IS NULL", [2]),
        ("try_variant_get(v, '$.s', 'STRING') = 's150'", [1, 2]),
        ("try_variant_get(v, '$.s', 'STRING') IS NULL", [2, 3]),
        ("try_variant_get(v, '$.c.a', 'BOOLEAN') = FALSE", []),
    ):
        read.clear()
        matching = whole.filter(evaluate(bound_filter(text, table.schema.fields), whole))
        assert table.to_arrow(["id"], filter=text).num_rows == matching.num_rows
        assert sorted({*read}) == expected, text


def test_text_of_a_call_is_parsed_again_and_names_are_resolved(tmp_path):
    table = table_of(tmp_path / "t", "append")
    table.write(rows_of(10))
    table = table.alter([RenameColumn("v", "odd `name")]) or Table.open(str(tmp_path / "t"))
    column = col("odd `name").variant_get('$["it\'s"]', "BIGINT", strict=False)
    for predicate in (column == 5, column.is_null() | (col("ID").isin([1])), ~(column < 7)):
        bound = bound_filter(predicate, table.schema.fields)
        assert str(bound_filter(parse_predicate(str(predicate)), table.schema.fields)) == str(bound)
        assert pickle.loads(pickle.dumps(bound)) == bound
        assert parse_predicate(str(bound)) == bound
    call = "try_variant_get(`ODD ``name`, '$.a', 'bigint')"
    assert table.to_arrow([call]).column_names == [call]
    assert len({str(column == 1), str(col("odd `name").variant_get("$.a", "BIGINT") == 1)}) == 2


def test_variants_in_structs_are_read_by_path(tmp_path):
    inner = RowType((DataField(2, "v", datatype.VARIANT), DataField(3, "n", datatype.INT)))
    table = Table.create(str(tmp_path / "t"), Schema((FIELDS[0], DataField(1, "s", inner))))
    structs = pa.StructArray.from_arrays([variants([{"a": 1}, {"a": 2}]), pa.array([7, 8], pa.int32())], ["v", "n"])
    table.write(pa.table({"id": [1, 2], "s": structs}))
    call = "variant_get(s.V, '$.a', 'INT')"
    assert table.to_arrow([call, "s.n"], filter=f"{call} > 1").to_pylist() == [{call: 2, "s.n": 8}]


@pytest.mark.parametrize(
    ("read", "message"),
    [
        (
            {"filter": "variant_get(id, '$.a', 'INT') = 1"},
            "for a column of type VARIANT, but 'id' .* is BIGINT NOT NULL",
        ),
        ({"filter": "variant_get(w, '$.a', 'INT') = 1"}, "'w'"),
        ({"filter": "variant_get(v, 'a', 'INT') = 1"}, r"begins with \$"),
        ({"filter": "variant_get(v, '$.a', 'ARRAY<INT>') = 1"}, "cannot return ARRAY<INT>"),
        ({"filter": "variant_get(v, '$.a') = 1"}, "a column of type VARIANT can only be tested for NULL"),
        ({"filter": "variant_get(v, $.a) = 1"}, "expected a path such as"),
        ({"filter": "variant_get(variant_get(v, '$.a'), '$.b') IS NULL"}, "expected the name of a column"),
        ({"filter": "variant_get(v, '$.a', 'INT') = 'x'"}, "INT"),
        ({"columns": ["variant_get(v, '$.a', INT)"]}, "cannot parse the column .* expected a type such as 'INT'"),
        ({"columns": ["variant_get(v, '$.a') x"]}, "cannot parse the column"),
        ({"columns": ["variant_get(v, '$.a', 'INT')"]}, r"variant_get: 1 values at \$.a are no INT"),
        ({"columns": [CALLS[0], CALLS[0]]}, "names a column twice"),
    ],
)
def test_wrong_calls_are_refused(tmp_path, read, message):
    table = table_of(tmp_path / "t", "append", **LAYOUTS["shredded"])
    table.write(pa.table([pa.array([1, 2]), variants([{"a": 1}, {"a": "x"}])], schema=COLUMNS))
    with pytest.raises(InvalidInputError, match=message):
        table.to_arrow(**read)
