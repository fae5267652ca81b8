import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon_core.errors import UnsupportedError
from paimon_core.schema.evolution import evolve
from paimon_core.types.arrow import arrow_schema
from paimon_core.types.datatype import ArrayType, DataField, MapType, MultisetType, RowType
from paimon_core.types.parse import parse_type


def f(i, name, t):
    return DataField(i, name, parse_type(t) if isinstance(t, str) else t)


def row(*fields, nullable=True):
    return RowType(fields, nullable)


def run(file_fields, read_fields, rows):
    """Evolve rows as a file reader would hand them over: just the columns asked for."""
    plan = evolve(file_fields, read_fields)
    table = pa.Table.from_pylist(rows, schema=arrow_schema(plan.file_columns))
    batch = table.combine_chunks().to_batches()[0] if rows else pa.RecordBatch.from_pylist([], schema=table.schema)
    actual = plan.apply(batch)
    actual.validate(full=True)
    assert actual.schema == arrow_schema(read_fields)
    return actual.to_pylist()


def test_unchanged_schema_returns_same_batch():
    fields = (f(0, "a", "INT"), f(1, "b", row(f(2, "x", "INT"))))
    plan = evolve(fields, fields)
    batch = pa.RecordBatch.from_pylist([{"a": 1, "b": {"x": 2}}], schema=arrow_schema(fields))
    assert plan.identity
    assert plan.apply(batch) is batch
    assert evolve(list(fields), list(fields)) is plan


def test_only_requested_columns_are_read_from_file():
    file = (f(0, "a", "INT"), f(1, "b", "STRING"), f(2, "c", "DATE"))
    assert evolve(file, (f(2, "c", "DATE"), f(0, "z", "INT"))).file_columns == (file[2], file[0])
    assert evolve(file, (f(9, "a", "INT"),)).file_columns == ()


def test_rename_reorder_widen_add_and_drop_at_once():
    file = (f(0, "a", "INT"), f(1, "b", "STRING"), f(2, "c", "INT"))
    read = (f(3, "a", "INT"), f(2, "cc", "BIGINT"), f(0, "b", "INT"))
    assert run(file, read, [{"c": 7, "a": 1}, {"c": None, "a": None}]) == [
        {"a": None, "cc": 7, "b": 1},
        {"a": None, "cc": None, "b": None},
    ]


def test_swapped_names_are_not_mixed_up():
    assert run((f(0, "a", "INT"), f(1, "b", "INT")), (f(0, "b", "INT"), f(1, "a", "INT")), [{"a": 1, "b": 2}]) == [
        {"b": 1, "a": 2}
    ]


def test_column_dropped_and_added_again_is_another_one():
    assert run((f(0, "a", "INT"),), (f(0, "a0", "INT"), f(5, "a", "INT")), [{"a": 1}]) == [{"a0": 1, "a": None}]


def test_no_column_in_common():
    plan = evolve((f(0, "a", "INT"),), (f(1, "b", "INT"),))
    empty = pa.record_batch([pa.nulls(3)], names=["_"]).select([])
    assert plan.apply(empty).schema.names == ["b"]


def test_new_column_that_may_not_be_null_is_null_in_old_files():
    actual = evolve((f(0, "a", "INT"),), (f(0, "a", "INT"), f(1, "b", "INT NOT NULL")))
    batch = pa.RecordBatch.from_pylist([{"a": 1}], schema=arrow_schema(actual.file_columns))
    assert actual.apply(batch).to_pylist() == [{"a": 1, "b": None}]


def test_nullability_alone_changes_schema_only():
    file, read = (f(0, "a", "INT NOT NULL"),), (f(0, "a", "INT"),)
    assert run(file, read, [{"a": 1}]) == [{"a": 1}]
    assert run(read, file, [{"a": 1}]) == [{"a": 1}]


OLD = row(f(11, "x", "INT"), f(12, "y", row(f(13, "z", "STRING"))), f(14, "gone", "INT"))
NEW = row(f(15, "new", "INT"), f(12, "why", row(f(16, "w", "DATE"), f(13, "z", "STRING"))), f(11, "x", "BIGINT"))
OLD_VALUE = {"x": 1, "y": {"z": "s"}, "gone": 9}
NEW_VALUE = {"new": None, "why": {"w": None, "z": "s"}, "x": 1}


def test_rows_change_inside_by_id():
    values = [{"r": OLD_VALUE}, {"r": None}, {"r": {"x": None, "y": None, "gone": 1}}]
    assert run((f(1, "r", OLD),), (f(1, "r", NEW),), values) == [
        {"r": NEW_VALUE},
        {"r": None},
        {"r": {"new": None, "why": None, "x": None}},
    ]


def test_rows_in_arrays_and_maps_change_by_id():
    file = (f(1, "a", ArrayType(OLD)), f(2, "m", MapType(parse_type("INT NOT NULL"), ArrayType(OLD))))
    read = (f(2, "m", MapType(parse_type("INT NOT NULL"), ArrayType(NEW))), f(1, "a", ArrayType(NEW)))
    values = [
        {"a": [OLD_VALUE, None], "m": [(1, [OLD_VALUE]), (2, None)]},
        {"a": None, "m": None},
        {"a": [], "m": []},
        {"a": [OLD_VALUE], "m": [(3, [None, OLD_VALUE])]},
    ]
    assert run(file, read, values) == [
        {"m": [(1, [NEW_VALUE]), (2, None)], "a": [NEW_VALUE, None]},
        {"m": None, "a": None},
        {"m": [], "a": []},
        {"m": [(3, [None, NEW_VALUE])], "a": [NEW_VALUE]},
    ]


def test_slices_of_batches_are_evolved_right():
    file, read = (f(1, "a", ArrayType(OLD)), f(2, "r", OLD)), (f(1, "a", ArrayType(NEW)), f(2, "r", NEW))
    plan = evolve(file, read)
    values = [
        {"a": None, "r": None},
        {"a": [OLD_VALUE], "r": OLD_VALUE},
        {"a": [OLD_VALUE] * 2, "r": None},
        {"a": [], "r": None},
    ]
    batch = pa.RecordBatch.from_pylist(values, schema=arrow_schema(file))
    whole = plan.apply(batch)
    for start in range(5):
        for length in range(5 - start):
            piece = plan.apply(batch.slice(start, length))
            piece.validate(full=True)
            assert piece.to_pylist() == whole.slice(start, length).to_pylist()


def test_values_hidden_under_nulls_stay_hidden():
    offsets, values = pa.array([0, 2, 3, 4], pa.int32()), pa.array([1, 2, 99, 3], pa.int32())
    hidden = pa.Array.from_buffers(
        pa.list_(pa.field("element", pa.int32())), 3, [pa.py_buffer(b"\x05"), offsets.buffers()[1]], children=[values]
    )
    assert hidden.to_pylist() == [[1, 2], None, [3]]
    plan = evolve((f(0, "a", "ARRAY<INT>"),), (f(0, "a", "ARRAY<BIGINT>"),))
    batch = pa.RecordBatch.from_arrays([hidden], schema=arrow_schema(plan.file_columns))
    assert plan.apply(batch).to_pylist() == [{"a": [1, 2]}, {"a": None}, {"a": [3]}]


def test_text_under_null_row_is_not_parsed():
    struct = pa.StructArray.from_arrays(
        [pa.array(["1", "junk"])], fields=[pa.field("x", pa.string())], mask=pa.array([False, True])
    )
    plan = evolve((f(0, "r", row(f(1, "x", "STRING"))),), (f(0, "r", row(f(1, "x", "INT"))),))
    batch = pa.RecordBatch.from_arrays([struct], schema=arrow_schema(plan.file_columns))
    assert plan.apply(batch).to_pylist() == [{"r": {"x": 1}}, {"r": None}]


def test_inner_nullability_follows_reader():
    file, read = (f(0, "a", "ARRAY<INT NOT NULL>"),), (f(0, "a", "ARRAY<INT>"),)
    assert run(file, read, [{"a": [1, 2]}, {"a": None}]) == [{"a": [1, 2]}, {"a": None}]


def test_multisets_keep_their_counts():
    file, read = (
        (f(0, "s", MultisetType(parse_type("INT NOT NULL"))),),
        (f(0, "s", MultisetType(parse_type("BIGINT NOT NULL"))),),
    )
    assert run(file, read, [{"s": [(1, 2)]}, {"s": None}]) == [{"s": [(1, 2)]}, {"s": None}]


@pytest.mark.parametrize(
    ("source", "target"), [("INT", "ARRAY<INT>"), ("ARRAY<INT>", "MAP<INT, INT>"), ("ROW<x INT>", "ARRAY<INT>")]
)
def test_impossible_changes_are_refused_by_name(source, target):
    with pytest.raises(UnsupportedError, match="column c"):
        evolve((f(0, "c", source),), (f(0, "c", target),))


IDS = st.lists(st.integers(0, 6), unique=True, max_size=5)


@given(IDS, IDS, st.integers(0, 3))
def test_values_are_found_by_field_id_only(file_ids, read_ids, rows):
    file = tuple(f(i, f"c{i}", "INT") for i in file_ids)
    read = tuple(f(i, f"c{(i + 1) % 7}", "INT") for i in read_ids)
    plan = evolve(file, read)
    values = [{c.name: 10 * n + c.id for c in plan.file_columns} for n in range(rows)]
    batch = pa.RecordBatch.from_pylist(values, schema=arrow_schema(plan.file_columns))
    if not plan.file_columns:
        batch = pa.record_batch([pa.nulls(rows)], names=["_"]).select([])
    actual = plan.apply(batch)
    assert actual.num_rows == rows
    for c in read:
        expected = [10 * n + c.id if c.id in file_ids else None for n in range(rows)]
        assert actual.column(c.name).to_pylist() == expected
