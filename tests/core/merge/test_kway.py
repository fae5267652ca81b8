"""Merging runs against a dict, for any division of rows into batches and runs."""

import math
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon_core.errors import CorruptedError, InvalidInputError
from paimon_core.merge import kway
from paimon_core.merge.deduplicate import deduplicate
from paimon_core.merge.kway import MergeOrder, merge_runs, sort_rows

KEY_POOLS = {
    "int": (pa.int64(), st.integers(-20, 20)),
    "wide int": (pa.int64(), st.sampled_from([-(2**63), -1, 0, 1, 2**40, 2**63 - 1])),
    "string": (pa.string(), st.text("ab\0é\U0001f600", max_size=3)),
    "timestamp": (pa.timestamp("ns"), st.integers(-20, 20)),
    "decimal": (pa.decimal128(38, 0), st.sampled_from([-(10**30), -1, 0, 5, 10**30])),
    "bool": (pa.bool_(), st.booleans()),
    "double": (pa.float64(), st.sampled_from([-math.inf, -1.5, -0.0, 0.0, 1.5, math.inf])),
}
SCHEMA_TAIL = [
    ("_SEQUENCE_NUMBER", pa.int64()),
    ("_VALUE_KIND", pa.int8()),
    ("s1", pa.int32()),
    ("s2", pa.string()),
    ("v", pa.int64()),
]


def exact(key):
    """Return a key that distinguishes the zeros, -0.0 first."""
    return tuple((value, math.copysign(1, value)) if isinstance(value, float) else value for value in key)


@st.composite
def histories(draw):
    """A schema of keys, and runs of rows (key, seq, kind, s1, s2, v), keys once a run, sorted by key."""
    names = draw(st.lists(st.sampled_from(sorted(KEY_POOLS)), min_size=1, max_size=3))
    schema = pa.schema([(f"k{i}", KEY_POOLS[name][0]) for i, name in enumerate(names)] + SCHEMA_TAIL)
    keys = st.tuples(*[KEY_POOLS[name][1] for name in names])
    in_order = draw(st.booleans())
    runs, number = [], 0
    for _ in range(draw(st.integers(1, 5))):
        rows = {}
        for key in draw(st.lists(keys, max_size=25)):
            kind = draw(st.sampled_from([0, 0, 1, 2, 3]))
            fields = (draw(st.sampled_from([None, 1, 2])), draw(st.sampled_from([None, "", "a", "b"])))
            sequence = number if in_order else draw(st.integers(0, 3))
            rows[exact(key)] = (*key, sequence, kind, *fields, number)
            number += 1
        runs.append([row for _, row in sorted(rows.items())])
    return schema, runs


def as_batches(draw, schema, rows):
    """Return the rows in batches of random sizes, empty batches included."""
    cuts = sorted(draw(st.lists(st.integers(0, len(rows)), max_size=4)))
    table = (
        pa.table([[row[i] for row in rows] for i in range(len(schema))], schema=schema)
        if rows
        else schema.empty_table()
    )
    whole = table.combine_chunks().to_batches() or [pa.RecordBatch.from_pylist([], schema=schema)]
    return [whole[0].slice(a, b - a) for a, b in zip([0, *cuts], [*cuts, len(rows)], strict=True)]


def newest(schema, runs, order, ignore_delete=False):
    """Return the last row of every key by plain comparison of tuples, as the model."""
    at = {name: i for i, name in enumerate(schema.names)}

    def field_rank(row, name):
        value = row[at[name]]
        values = sorted({r[at[name]] for run in runs for r in run} - {None}, reverse=order.descending)
        return -1 if value is None else values.index(value)

    best = {}
    count = Counter(exact(row[at[name]] for name in order.key) for run in runs for row in run)
    for number, run in enumerate(runs):
        for row in run:
            kind = row[at["_VALUE_KIND"]]
            alone = count[exact(row[at[name]] for name in order.key)] == 1
            if ignore_delete and kind in (1, 3) and not alone:
                continue
            rank = (
                [field_rank(row, name) for name in order.sequence_fields],
                row[at["_SEQUENCE_NUMBER"]],
                kind in (0, 2),
                number,
            )
            key = exact(row[: len(order.key)])
            if key not in best or best[key][0] < rank:
                best[key] = (rank, row)
    return [best[key][1] for key in sorted(best)]


def plain(table, schema):
    views = [kway_view(table.column(name)) for name in schema.names]
    return list(zip(*views, strict=True))


def kway_view(column):
    kind = column.type
    return (column.cast(pa.int64()) if pa.types.is_timestamp(kind) else column).to_pylist()


@given(data=st.data(), history=histories(), descending=st.booleans(), ignore_delete=st.booleans())
def test_merge_equals_model_for_any_batch_cuts(data, history, descending, ignore_delete):
    schema, runs = history
    keys = tuple(name for name in schema.names if name.startswith("k"))
    fields = data.draw(st.sampled_from([(), ("s1",), ("s1", "s2"), ("s2",)]))
    order = MergeOrder(keys, fields, descending)
    with pytest.MonkeyPatch.context() as patch:  # the same windows as with millions of rows, on a few
        patch.setattr(kway, "_BUFFERED_ROWS", data.draw(st.integers(1, 4)))
        patch.setattr(kway, "_SINGLE_RUN_ROWS", data.draw(st.integers(1, 4)))
        patch.setattr(kway, "_WINDOW_BYTES", data.draw(st.sampled_from([200, 1 << 30])))
        batches = [iter(as_batches(data.draw, schema, rows)) for rows in runs]
        tables = list(merge_runs(batches, order, deduplicate(ignore_delete=ignore_delete)))
    assert all(table.num_rows for table in tables)
    merged = pa.concat_tables([schema.empty_table(), *tables])
    assert plain(merged, schema) == newest(schema, runs, order, ignore_delete)


@given(history=histories(), fields=st.sampled_from([(), ("s1",), ("s2", "s1")]), descending=st.booleans())
def test_sorted_buffer_fold_equals_model(history, fields, descending):
    schema, runs = history
    keys = tuple(name for name in schema.names if name.startswith("k"))
    rows = sorted((row for run in runs for row in run), key=lambda row: row[-1])
    at = schema.names.index("_SEQUENCE_NUMBER")
    rows = [(*row[:at], i, *row[at + 1 :]) for i, row in enumerate(rows)]
    table = pa.table([[row[i] for row in rows] for i in range(len(schema))], schema=schema)
    order = MergeOrder(keys, fields, descending)
    window = sort_rows(table, order)
    expected = newest(schema, [[row] for row in rows], order)
    assert plain(deduplicate()(window), schema) == expected


def random_runs(random, count, rows, key, *, disjoint):
    runs = []
    for number in range(count):
        ids = np.sort(random.choice(3 * rows, rows, replace=False))
        sequence = np.arange(rows) + number * rows if disjoint else random.permutation(rows) * count + number
        table = pa.table(
            {
                "k": key(ids),
                "_SEQUENCE_NUMBER": pa.array(sequence, pa.int64()),
                "_VALUE_KIND": pa.array(random.integers(0, 4, rows), pa.int8()),
                "v": pa.array([f"{number}/{i}" for i in ids]),
            }
        )
        runs.append(table.combine_chunks())
    return runs


@pytest.mark.parametrize("disjoint", [True, False])
@pytest.mark.parametrize(
    "key",
    [
        lambda ids: pa.array(ids, pa.int64()),
        lambda ids: pa.array(ids.astype(np.int64) * (2**63 // 90_001) - 2**62, pa.int64()),
        lambda ids: pa.array([f"{i:016x}" for i in ids]),
        lambda ids: pa.array([f"u{i:05d}" + "x" * (i % 5) for i in ids]),
        lambda ids: pa.array([f"{i:05d}".replace("0", "\0") for i in ids]),
    ],
    ids=["int", "wide-int", "hex", "ragged", "nul"],
)
def test_many_windows_equal_one_sort(key, disjoint):
    random = np.random.default_rng(3)
    runs = random_runs(random, 4, 30_000, key, disjoint=disjoint)
    batches = [run.to_batches(max_chunksize=int(random.integers(1000, 25_000))) for run in runs]
    order = MergeOrder(("k",))
    merged = pa.concat_tables(merge_runs([iter(b) for b in batches], order, deduplicate()))
    whole = pa.concat_tables(runs).sort_by([("k", "ascending"), ("_SEQUENCE_NUMBER", "ascending")]).combine_chunks()
    key_column = whole.column("k").to_pylist()
    last = [i for i in range(len(key_column)) if i + 1 == len(key_column) or key_column[i] != key_column[i + 1]]
    assert merged.equals(whole.take(last))


def ints(*keys, first=0):
    table = pa.table(
        {
            "k": pa.array(keys, pa.int64()),
            "_SEQUENCE_NUMBER": pa.array(range(first, first + len(keys)), pa.int64()),
            "_VALUE_KIND": pa.array([0] * len(keys), pa.int8()),
        }
    )
    return table.to_batches()[0]


def test_single_run_is_not_copied():
    batch = ints(1, 2, 3)
    (table,) = merge_runs([iter([batch])], MergeOrder(("k",)), deduplicate())
    assert table.column("k").chunk(0).buffers()[1].address == batch.column(0).buffers()[1].address


def test_long_stretch_of_one_run_is_not_copied():
    early, late = ints(*range(10_000)), ints(*range(9_000, 20_000), first=10_000)
    tables = list(merge_runs([iter([early]), iter([late])], MergeOrder(("k",)), deduplicate()))
    assert tables[0].num_rows == 9_000
    assert tables[0].column("k").chunk(0).buffers()[1].address == early.column(0).buffers()[1].address
    assert pa.concat_tables(tables).column("k").to_pylist() == list(range(20_000))


def test_full_ties_go_to_adding_rows_then_newer_run():
    def row(kind, value):
        return pa.RecordBatch.from_pylist([{"k": 1, "_SEQUENCE_NUMBER": 7, "_VALUE_KIND": kind, "v": value}])

    def merged(*rows):
        (table,) = merge_runs([iter([r]) for r in rows], MergeOrder(("k",)), deduplicate())
        return table.column("v").to_pylist()

    assert merged(row(0, "added"), row(3, "deleted")) == ["added"]
    assert merged(row(0, "older"), row(2, "younger")) == ["younger"]
    assert merged(row(3, "older"), row(1, "younger")) == ["younger"]


def test_merge_memory_is_two_batches_per_run():
    pulled = []

    def run(number):
        for i in range(40):
            pulled.append(20_000)
            yield ints(*range(i * 40_000 + number, (i + 1) * 40_000, 2), first=i * 20_000)

    delivered = 0
    for table in merge_runs([run(0), run(1)], MergeOrder(("k",)), deduplicate()):
        delivered += table.num_rows
        assert sum(pulled) - delivered <= 2 * 2 * 20_000
    assert delivered == sum(pulled) == 2 * 40 * 20_000


def test_work_for_small_batches_grows_with_their_number(monkeypatch):
    measured, bytes_of = [], kway._bytes_of
    monkeypatch.setattr(kway, "_bytes_of", lambda batch: measured.append(0) or bytes_of(batch))
    runs = [iter([ints(n, first=n) for n in range(number, 3000, 2)]) for number in range(2)]
    tables = list(merge_runs(runs, MergeOrder(("k",)), deduplicate()))
    assert pa.concat_tables(tables).column("k").to_pylist() == list(range(3000))
    assert len(measured) <= 2 * 3000


def test_window_over_chunk_limit_is_split(monkeypatch):
    runs = [ints(*range(i, 8_000, 4), first=2_000 * i) for i in range(4)]
    monkeypatch.setattr(kway, "_WINDOW_BYTES", 20_000)
    tables = list(merge_runs([iter([run]) for run in runs], MergeOrder(("k",)), deduplicate()))
    assert all(table.nbytes <= 20_000 for table in tables)
    assert len(tables) < 20
    assert pa.concat_tables(tables).column("k").to_pylist() == list(range(8_000))


@pytest.mark.parametrize("keys", [[ints(2), ints(1)], [ints(1, 2), ints(2, 3)], [ints(3, 1)]])
def test_unsorted_run_is_refused(keys):
    with pytest.raises(CorruptedError, match="Run 0 is not sorted by its key"):
        list(merge_runs([iter(keys)], MergeOrder(("k",)), deduplicate()))


def test_merge_with_null_key_is_refused():
    batch = pa.RecordBatch.from_pylist([{"k": 1.0, "v": 1}, {"k": None, "v": 1}])
    with pytest.raises(InvalidInputError, match="'k' holds 1 nulls"):
        list(merge_runs([iter([batch])], MergeOrder(("k",)), deduplicate()))
    with pytest.raises(InvalidInputError, match="'k' holds 1 nulls"):
        sort_rows(pa.Table.from_batches([batch]), MergeOrder(("k",)))


def test_merge_with_nan_sequence_field_is_refused():
    old, new = (
        pa.RecordBatch.from_pylist([{"k": 1, "s": s, "_SEQUENCE_NUMBER": i, "_VALUE_KIND": 0}])
        for i, s in enumerate([math.nan, 1.0])
    )
    with pytest.raises(InvalidInputError, match="'s' orders rows"):
        list(merge_runs([iter([old]), iter([new])], MergeOrder(("k",), ("s",)), deduplicate()))
    with pytest.raises(InvalidInputError, match="'s' orders rows"):
        sort_rows(pa.Table.from_batches([old, new]), MergeOrder(("k",), ("s",)))


def test_float_keys_separate_zeros_and_sort_nan_last():
    old, new = (
        pa.RecordBatch.from_pylist([{"k": k, "_SEQUENCE_NUMBER": i, "_VALUE_KIND": 0} for k in keys])
        for i, keys in enumerate([[0.0, math.inf, math.nan], [-0.0, 1.0, math.nan]])
    )
    merged = pa.concat_tables(merge_runs([iter([old]), iter([new])], MergeOrder(("k",)), deduplicate()))
    assert [str(k) for k in merged["k"].to_pylist()] == ["-0.0", "0.0", "1.0", "inf", "nan"]
    assert merged["_SEQUENCE_NUMBER"].to_pylist() == [1, 0, 1, 0, 1]


def test_empty_runs_yield_no_rows():
    assert list(merge_runs([], MergeOrder(("k",)), deduplicate())) == []
    assert list(merge_runs([iter([ints(1).slice(1)])], MergeOrder(("k",)), deduplicate())) == []
    window = sort_rows(pa.Table.from_batches([ints(1).slice(1)]), MergeOrder(("k",)))
    assert window.num_groups == 0
    assert deduplicate()(window).num_rows == 0
