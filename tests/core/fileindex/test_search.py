"""An index finds the rows for which a test is true: exactly, except bloom filters, which may find too many."""

import random
import struct

import numpy as np
import pyarrow as pa
import pytest

from paimon_core.errors import CorruptedError
from paimon_core.fileindex import FILE_INDEXES
from paimon_core.fileindex.indexed_columns import FileIndexes, indexed_columns
from paimon_core.fileindex.search import search
from paimon_core.predicate.compute import evaluate
from paimon_core.predicate.expr import FALSE, TRUE, Leaf, Not, col
from tests.support.index_files import unpack
from tests.support.samples import EVERYWHERE, NANOS, fields_of, rows_of

SETTINGS = [
    ("bloom-filter", {"items": "200"}),
    ("bitmap", {}),
    ("bitmap", {"version": "1"}),
    ("bitmap", {"index-block-size": "64 b"}),
    ("bsi", {}),
    ("range-bitmap", {}),
    ("range-bitmap", {"chunk-size": "20 b"}),
]
NAN = float("nan")


def can(kind, field):
    try:
        indexed_columns({f"file-index.{kind}.columns": field.name}, [field])
    except ValueError:
        return False
    return True


def fields_for(kind):
    return [f for f in fields_of((*EVERYWHERE, *NANOS)) if can(kind, f)]


def made(kind, settings, fields, *pieces):
    options = {f"file-index.{kind}.columns": ",".join(f.name for f in fields)}
    options |= {f"file-index.{kind}.{f.name}.{key}": text for f in fields for key, text in settings.items()}
    indexes = FileIndexes(indexed_columns(options, fields))
    for piece in pieces:
        indexes.add(piece)
    return indexes.finish()


def internal(column):
    kind = column.type
    if pa.types.is_timestamp(kind):
        column = column.cast(pa.int64())
    elif pa.types.is_date(kind) or pa.types.is_time(kind):
        column = column.cast(pa.int32())
    return column.to_pylist()


def random_tests(rng, field, values):
    name = field.name
    yield from (Leaf(op, name, (rng.choice(values),)) for op in ("=", "!=", "<", "<=", ">", ">=", "<=>"))
    yield from (Leaf(op, name, tuple(rng.choices(values, k=3))) for op in ("in", "not in"))
    yield from (Leaf(op, name) for op in ("is null", "is not null"))
    yield from (Leaf("in", name), Leaf("not in", name), Leaf("<=>", name, (None,)), Not(Leaf("<=>", name, (None,))))
    if field.type.root == "VARCHAR":
        yield from (Leaf("starts with", name, ("é",)), Not(Leaf("contains", name, ("中",))))


def mask_of(found, rows):
    return np.full(rows, found) if isinstance(found, bool) else found


@pytest.mark.parametrize(("kind", "settings"), SETTINGS)
@pytest.mark.parametrize("seed", range(2))
def test_search_finds_matching_rows(kind, settings, seed):
    rng = random.Random(seed)
    fields = fields_for(kind)
    sample, others = rows_of(fields, seed, 9), rows_of(fields, seed + 99, 3)
    rows = sample.take(pa.array([rng.randrange(9) for _ in range((1, 200)[seed])]))
    cut = rng.randrange(rows.num_rows + 1)
    indexes = unpack(made(kind, settings, fields, rows.slice(0, cut), rows.slice(cut)), "here")
    assert set(indexes) == {f.name for f in fields}
    for field in fields:
        values = [v for v in internal(sample[field.name]) + internal(others[field.name]) if v is not None]
        for test in random_tests(rng, field, values):
            truth = evaluate(test, rows).to_numpy(zero_copy_only=False)
            result = mask_of(search(indexes, test, fields, rows.num_rows, "here"), rows.num_rows)
            assert not (truth & ~result).any(), test
            if kind != "bloom-filter" and field.type.precision not in (8, 9):
                assert (truth == result).all(), test


@pytest.mark.parametrize(("kind", "settings"), SETTINGS[:4] + SETTINGS[5:])
def test_search_treats_zeros_and_nan_as_equal(kind, settings):
    fields = fields_of(("FLOAT", "DOUBLE"))
    rows = pa.table(
        {
            f.name: pa.array([0.0, -0.0, NAN, 1.5, None], t)
            for f, t in zip(fields, (pa.float32(), pa.float64()), strict=True)
        }
    )
    indexes = unpack(made(kind, settings, fields, rows), "here")
    for test in [t for f in fields for v in (0.0, -0.0, NAN, 1.5, 7.0) for t in random_tests(random.Random(0), f, [v])]:
        truth = evaluate(test, rows).to_numpy(zero_copy_only=False)
        result = mask_of(search(indexes, test, fields, 5, "here"), 5)
        assert not (truth & ~result).any(), test
        assert kind == "bloom-filter" or (truth == result).all(), test


def test_and_or_not_combine_masks():
    fields = fields_of(("INT", "STRING", "INT"))
    rows = pa.table(
        {"c0": pa.array([1, 2, 3, None], pa.int32()), "c1": ["a", "b", "a", None], "c2": pa.array([1] * 4, pa.int32())}
    )
    indexes = unpack(made("bitmap", {}, fields[:2], rows), "here")

    def found(p):
        result = search(indexes, p, fields, 4, "here")
        return result if isinstance(result, bool) else np.flatnonzero(result).tolist()

    assert found((col("c0") < 3) & (col("c1") == "a")) == [0]
    assert found((col("c0") == 2) | (col("c1") == "a")) == [0, 1, 2]
    assert found(~((col("c0") == 2) | (col("c1") == "a"))) is False
    assert found((col("c0") == 2) & (col("c2") == 5)) == [1]
    assert found((col("c0") == 2) | (col("c2") == 5)) is True
    assert found((col("c0") == 2) & FALSE) is False
    assert found((col("c0") == 2) & TRUE) == [1]
    assert found(col("c0").is_null() | col("c0").is_not_null()) is True
    assert found((col("c0") == 2) & (col("c0") == 3)) is False


def test_bloom_filter_excludes_most_absent_values():
    fields = fields_of(("BIGINT",))
    rows = pa.table({"c0": pa.array(range(1000), pa.int64())})
    indexes = unpack(made("bloom-filter", {"items": "1000", "fpp": "0.02"}, fields, rows), "here")
    kept = sum(search(indexes, col("c0") == v, fields, 1000, "here") for v in range(5000, 6000))
    assert kept < 60


@pytest.mark.parametrize("kind", FILE_INDEXES)
def test_corrupt_index_is_named(kind):
    fields = fields_of(("INT", "STRING")) if kind != "bsi" else fields_of(("INT",))
    rows = rows_of(fields, 1, 60)
    data = made(kind, {"items": "100"} if kind == "bloom-filter" else {}, fields, rows)
    rng, refused = random.Random(5), []
    for turn in range(300):
        cut = rng.randrange(len(data))
        damaged = data[:cut] if turn % 3 == 0 else data[:cut] + bytes([rng.randrange(256)]) + data[cut + 1 :]
        try:
            indexes = unpack(damaged, "file x")
            for field in fields:
                search(indexes, Leaf("=", field.name, (7 if field.type.root == "INT" else "x",)), fields, 60, "file x")
        except CorruptedError as error:
            refused.append(str(error))
    assert len(refused) > 100
    assert all("file x" in message for message in refused)


def test_index_of_another_file_is_refused():
    fields = fields_of(("INT",))
    for kind in ("bitmap", "bsi", "range-bitmap"):
        indexes = unpack(made(kind, {}, fields, rows_of(fields, 1, 60)), "file x")
        with pytest.raises(CorruptedError, match=r"file x.*60 rows, but the file has 61"):
            search(indexes, col("c0") == 1, fields, 61, "file x")


def test_unknown_index_types_are_ignored():
    fields = fields_of(("INT",))
    assert search({"c0": {"of-tomorrow": b"?"}}, col("c0") == 1, fields, 3, "here") is True
    assert search({"gone": {"bitmap": b"?"}}, col("c0") == 1, fields, 3, "here") is True
    assert search({"c0": {"bitmap": b""}}, col("c0") == 1, fields, 3, "here") is False
    assert search({"c0": {"bitmap": b""}}, col("c0").is_null(), fields, 3, "here") is True


def test_value_too_large_omits_index():
    fields = fields_of(("BIGINT", "STRING"))
    rows = pa.table({"c0": pa.array([-(2**63), 1]), "c1": ["x" * 100, "y"]})
    assert unpack(made("bsi", {}, fields[:1], rows), "here") == {}
    assert unpack(made("bitmap", {"index-block-size": "64 b"}, fields[1:], rows), "here") == {}


def test_bitmap_index_equals_format_example():
    """INT column 1, 2, null, 1 (format 9.4)."""
    fields = fields_of(("INT",))
    data = made("bitmap", {}, fields, pa.table({"c0": pa.array([1, 2, None, 1], pa.int32())}))
    assert unpack(data, "here")["c0"]["bitmap"].hex() == (
        "02" "00000004" "00000002" "01" "fffffffd" "00000012" "00000001" "00000001" "00000000" "0000001c"
        "00000002" "00000001" "00000000" "00000014" "00000002" "fffffffe" "ffffffff"
        "3a300000" "01000000" "00000100" "10000000" "00000300"
    )  # fmt: skip
    assert struct.unpack(">qii", data[:16])[:2] == (1493475289347502, 1)
