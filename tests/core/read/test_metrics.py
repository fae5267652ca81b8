"""The metrics of a read: every count against a manual count, and the same rows with and without metrics."""

import json
import pickle
import random
from dataclasses import replace

import pyarrow as pa
import pytest

from paimon_core.metrics.values import PHASES, ReadMetrics
from paimon_core.read.metrics import ReadRecorder
from paimon_core.table import Table
from tests.support.merge_specs import SPECS
from tests.support.tables import append_table, keyed_table, orders

MERGED = pa.schema(
    [pa.field("k", pa.int64(), nullable=False), *((name, pa.int32()) for name in "acdghstu"), ("b", pa.string()),
     ("f", pa.bool_())]
)  # fmt: skip
NUMBERS = ("splits", "files", "files_skipped", "bytes", "batches", "rows")
LEFT_OUT = ("rows_skipped", "rows_deleted", "rows_merged", "rows_retracted", "rows_filtered")


def measured(table: Table, text: str | None = None, columns=None) -> tuple[ReadMetrics, pa.Table]:
    """Return the metrics of a read of all splits, each in a separate task, and the rows."""
    read, total, batches = table.reader(columns, text), ReadMetrics(), []
    for split in table.scan(columns, text).plan().splits:
        recorder = ReadRecorder()
        batches += replace(read, recorder=recorder).to_batches(split)
        total += recorder.metrics()
    return total, pa.Table.from_batches(batches, read.schema)


def check(table: Table, text: str | None = None, columns=None) -> ReadMetrics:
    """Compare with a read that measures nothing; return the metrics."""
    result, rows = measured(table, text, columns)
    assert rows.equals(table.to_arrow(columns, text))
    assert result.rows == rows.num_rows
    assert result.rows_stored == result.rows + sum(getattr(result, name) for name in LEFT_OUT)
    assert all(getattr(result, name) >= 0 for name in (*NUMBERS, *LEFT_OUT))
    assert result.phase_seconds.keys() == {*PHASES}
    assert min(result.phase_seconds.values()) >= 0
    return result


def left_out(found: ReadMetrics) -> dict[str, int]:
    """Return the counts that are not 0, without the prefix."""
    return {name[5:]: getattr(found, name) for name in LEFT_OUT if getattr(found, name)}


@pytest.mark.cases(5)
@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_every_merge_engine_returns_same_rows(tmp_path, spec):
    rng = random.Random(spec.name)
    table = keyed_table(tmp_path / "t", MERGED, ["k"], **{"write-only": "true", "bucket": "1", **spec.options})
    for _ in range(4):
        keys = sorted(rng.sample(range(40), 15))
        columns = {f.name: [rng.choice([None, 1, 2, 3]) for _ in keys] for f in MERGED if pa.types.is_int32(f.type)}
        data = pa.table({**columns, "k": keys, "b": ["x"] * 15, "f": [True] * 15}).select(MERGED.names).cast(MERGED)
        table.write(data, [rng.choice(spec.kinds) for _ in keys])
    if spec.shows_compacted_only:
        table.with_options({"write-only": "false"}).compact(full=True)
    stored = sum(split.row_count for split in table.scan().plan().splits)
    for text in (None, "k > 10", "a = 2 OR c = 1"):
        result = check(table, text, ["k", "a", "b"])
        assert result.rows_stored == stored
        spilled = check(table.with_options({"sort-spill-threshold": "2"}), text)
        assert left_out(spilled) == left_out(check(table, text))


def test_merged_and_retracted_rows_are_counted(tmp_path):
    table = keyed_table(tmp_path / "t", bucket="1", write_only="true")
    table.write(orders((1, "a", 1), (2, "b", 2), (3, "c", 3)))
    table.write(orders((2, "B", 2), (3, "c", 3), (4, "d", 4)), ["+I", "-D", "+I"])
    table.write(orders((9, "x", 9)), ["-D"])  # a section of its own, not merged
    result = check(table)
    assert left_out(result) == {"merged": 2, "retracted": 2}
    assert (result.files, result.rows_stored, result.rows) == (3, 7, 3)
    assert left_out(check(table, "v > 'a'")) == {"merged": 2, "retracted": 2, "filtered": 2}


def test_rows_deleted_by_vectors_are_counted(tmp_path):
    table = append_table(tmp_path / "t", **{"deletion-vectors.enabled": "true"})
    table.write(orders(*((n, "v", n) for n in range(10))))
    table.delete("id IN (2, 3, 5)")
    assert left_out(check(table)) == {"deleted": 3}
    assert left_out(check(table, "n < 4")) == {"deleted": 3, "filtered": 5}


@pytest.mark.parametrize("place", ["1 b", "1 mb"])
def test_rows_that_index_excludes_are_not_deleted(tmp_path, place):
    options = {"file-index.bitmap.columns": "n", "file-index.in-manifest-threshold": place}
    table = append_table(
        tmp_path / "t", **{"deletion-vectors.enabled": "true", "metadata.stats-mode": "none", **options}
    )
    table.write(orders(*((n, "v", n % 5) for n in range(20))))
    table.delete("id IN (3, 8, 9)")
    assert left_out(check(table, "n = 3")) == {"skipped": 16, "deleted": 2}
    nothing = check(table, "n = 77")
    assert (nothing.rows, nothing.files, nothing.files_skipped) == ((0, 1, 1) if place == "1 b" else (0, 0, 0))


def test_bytes_count_read_columns_and_row_groups(tmp_path):
    table = append_table(tmp_path / "t", **{"file.block-size": "1 b"})
    table.write(orders(*((n, f"a long text {n}", 1) for n in range(1000))))
    whole, narrow = check(table), check(table, None, ["n"])
    assert 0 < narrow.bytes < whole.bytes < sum(split.size for split in table.scan().plan().splits)
    parts = table.with_options({"source.split.target-size": "64 kb"})
    assert check(parts).bytes == whole.bytes
    lines = append_table(tmp_path / "lines", **{"file.format": "json"})
    lines.write(orders((1, "a", 1)))
    assert check(lines).bytes == lines.scan().plan().splits[0].size


def test_parts_count_as_one_file(tmp_path, monkeypatch):
    monkeypatch.setattr("paimon_core.scan.table_scan.LEAST_PART", 1)
    table = append_table(tmp_path / "t")
    table.write(orders(*((n, f"v{n}", n) for n in range(100))))
    cut = table.with_options({"source.split.target-size": "300 b"})
    result, _ = measured(cut)
    assert result.splits > 2
    assert (result.files, result.rows_stored, result.rows) == (1, 100, 100)


def test_columns_of_several_files_are_joined(tmp_path):
    options = {"row-tracking.enabled": "true", "data-evolution.enabled": "true", "bucket": "-1"}
    table = append_table(tmp_path / "t", **options)
    table.write(orders(*((n, "v", n) for n in range(10))))
    ids = table.to_arrow(["_ROW_ID", "n"])
    table.update_columns(ids)
    result = check(table)
    assert (result.files, result.rows_stored, result.rows_merged, result.rows) == (2, 20, 10, 10)
    assert check(table, None, ["n"]).rows_merged == 0


def test_read_metrics_add_up_and_are_picklable(tmp_path):
    table = keyed_table(tmp_path / "t", bucket="2")
    table.write(orders(*((n, "v", n) for n in range(10))))
    one, _ = measured(table)
    both = one + pickle.loads(pickle.dumps(one))
    assert (both.rows, both.splits, both.bytes) == (20, 4, 2 * one.bytes)
    assert both.phase_seconds["decode"] == 2 * one.phase_seconds["decode"]
    assert json.loads(json.dumps(both.to_dict()))["rows"] == 20
    planned = one.with_phase("plan", 1.0)
    assert planned.phase_seconds["plan"] == 1.0
    assert planned.seconds == one.seconds + 1.0
    assert ReadMetrics() + one == one
