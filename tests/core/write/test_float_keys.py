"""FLOAT and DOUBLE keys: -0.0 and 0.0 are two keys, -0.0 first; NaN is one key, the largest (decision 14)."""

import math
import struct

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon_core.schema.schema import Schema
from paimon_core.table import Table
from tests.support.draws import draws

NEGATIVE_NAN = struct.unpack("<d", struct.pack("<Q", 0xFFF8_0000_0000_0000))[0]
KEYS = [-math.inf, -1.5, -0.0, 0.0, 1.5, math.inf, math.nan]
"""In their order."""
WAYS = {
    "one bucket": {"bucket": "1"},
    "compacts": {"bucket": "1", "num-sorted-run.compaction-trigger": "1"},
    "hashed": {"bucket": "4"},
    "dynamic": {"bucket": "-1", "dynamic-bucket.target-row-num": "2"},
    "changelog": {"bucket": "2", "changelog-producer": "lookup"},
    "full changelog": {"bucket": "1", "changelog-producer": "full-compaction"},
    "vectors": {"bucket": "2", "deletion-vectors.enabled": "true"},
    "small files": {"bucket": "1", "target-file-size": "1 b"},
    "indexed": {"bucket": "1", "file-index.bloom-filter.columns": "k"},
}


def made(path, kind=None, **options):
    key = pa.field("k", kind or pa.float64(), nullable=False)
    return Table.create(str(path), Schema(pa.schema([key, ("v", pa.string())]), primary_keys=["k"], options=options))


def rows(table, keys, value):
    schema = pa.schema([table.arrow_schema.field("k"), ("v", pa.string())])
    return pa.table([pa.array(keys, schema.field("k").type), pa.array([value] * len(keys))], schema=schema)


def known(key) -> str:
    return repr(float(key)).replace("-nan", "nan")


def shown(table) -> dict[str, str]:
    found = table.to_arrow()
    listed = [known(k) for k in found["k"].to_pylist()]
    assert len(set(listed)) == len(listed)
    read = dict(zip(listed, found["v"].to_pylist(), strict=True))
    got = table.get(pa.table({"k": pa.array(KEYS, found["k"].type)}))
    assert {known(k): v for k, v in zip(got["k"].to_pylist(), got["v"].to_pylist(), strict=True)} == read
    for key in KEYS:
        row = table.get({"k": key})
        assert (None if row is None else row["v"]) == read.get(known(key))
    return read


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()], ids=str)
@pytest.mark.parametrize("options", WAYS.values(), ids=WAYS)
def test_each_zero_is_key_and_nan_is_one(tmp_path, options, kind):
    table = made(tmp_path / "t", kind, **options)
    table.write(rows(table, KEYS, "first"))
    table.write(rows(table, [0.0, NEGATIVE_NAN], "second"))
    table.write(rows(table, [-0.0, 1.5], "gone"), ["-D", "-D"])
    table.compact()
    expected = {known(k): "first" for k in KEYS} | {"0.0": "second", "nan": "second"}
    del expected["-0.0"], expected["1.5"]
    assert shown(table) == expected
    table.write(rows(table, [-0.0], "third"))
    table.compact(full=True)
    expected["-0.0"] = "third"
    assert shown(table) == expected


@pytest.mark.parametrize("options", WAYS.values(), ids=WAYS)
def test_filter_finds_both_zeros(tmp_path, options):
    table = made(tmp_path / "t", **options)
    table.write(rows(table, KEYS, "v"))
    table.compact(full=True)
    for literal in ("0.0", "-0.0"):
        actual = table.to_arrow(filter=f"k = {literal}")["k"].to_pylist()
        assert sorted(map(str, actual)) == ["-0.0", "0.0"]


def test_files_are_sorted_with_negative_zero_first_and_nan_last(tmp_path):
    table = made(tmp_path / "t", bucket="1")
    table.write(rows(table, [KEYS[i] for i in (6, 3, 0, 2, 5, 1, 4)], "v"))
    assert list(map(repr, table.to_arrow()["k"].to_pylist())) == list(map(repr, KEYS))


def test_changes_hold_each_key(tmp_path):
    table = made(tmp_path / "t", bucket="1", **{"changelog-producer": "lookup"})
    table.write(rows(table, [0.0, math.nan], "a"))
    table.write(rows(table, [-0.0, NEGATIVE_NAN], "b"))
    table.write(rows(table, [0.0], "a"), ["-D"])
    told = table.changes(0)
    actual = [(kind, known(k), v) for kind, k, v in zip(*(c.to_pylist() for c in told.columns), strict=True)]
    assert actual == [
        ("+I", "0.0", "a"), ("+I", "nan", "a"), ("+I", "-0.0", "b"), ("-U", "nan", "a"), ("+U", "nan", "b"),
        ("-D", "0.0", "a"),
    ]  # fmt: skip


KEY = st.sampled_from([*KEYS, NEGATIVE_NAN])


@draws(25)
@given(data=st.data(), options=st.sampled_from(list(WAYS.values())))
def test_any_history_equals_a_dictionary(tmp_path_factory, data, options):
    table, model = made(tmp_path_factory.mktemp("t") / "t", **options), {}
    for number in range(data.draw(st.integers(1, 4))):
        changes = data.draw(st.lists(st.tuples(st.sampled_from(["+I", "-D"]), KEY), min_size=1, max_size=6))
        table.write(rows(table, [key for _, key in changes], str(number)), [kind for kind, _ in changes])
        for kind, key in changes:
            model.pop(known(key), None)
            if kind == "+I":
                model[known(key)] = str(number)
        if "deletion-vectors.enabled" in options or data.draw(st.booleans()):
            table.compact(full=data.draw(st.booleans()) or "deletion-vectors.enabled" in options)
        assert shown(table) == model


def test_keys_of_several_columns_and_partitions(tmp_path):
    fields = [pa.field(name, pa.float64(), nullable=False) for name in ("p", "a", "b")]
    schema = Schema(pa.schema(fields), primary_keys=["p", "a", "b"], partition_keys=["p"], options={"bucket": "1"})
    table = Table.create(str(tmp_path / "t"), schema)
    values = [-0.0, 0.0, math.nan]
    grid = np.array([(p, a, b) for p in values for a in values for b in values])
    given_rows = pa.table([pa.array(column) for column in grid.T], schema=table.arrow_schema)
    for _ in range(2):
        table.write(given_rows)
    table.compact(full=True)
    assert table.to_arrow().num_rows == 27
    got = table.get(given_rows)
    assert [list(map(repr, row)) for row in zip(*(c.to_pylist() for c in got.columns), strict=True)] == [
        list(map(repr, row)) for row in grid.tolist()
    ]
