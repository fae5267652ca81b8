"""Splits packed into tasks: the same rows in the same order, in tasks of about the target size."""

import itertools

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon_core import Schema, Table
from paimon_core.deletion.vector_files import StoredVector
from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.manifest.index_entry import DeletionRange
from paimon_core.manifest.stats import EMPTY_STATS
from paimon_core.options.option import Options
from paimon_core.row.binary_row import EMPTY_ROW
from paimon_core.scan.split import DataSplit
from paimon_core.scan.split_plan import Packing
from paimon_core.scan.task_plan import pack_tasks, packing_of_tasks, plan_tasks, weight

SIZES = st.lists(st.tuples(st.booleans(), st.lists(st.integers(0, 300), min_size=1, max_size=6)), max_size=8)
PACKINGS = st.builds(Packing, st.integers(1, 400), st.integers(0, 60))


def splits_of(described) -> list[DataSplit]:
    """Return one split for each (raw?, sizes of its files); every second file has a deletion vector."""
    splits = []
    for n, (raw, sizes) in enumerate(described):
        files = tuple(
            DataFileMeta(f"{n}-{i}", size, 1, EMPTY_ROW, EMPTY_ROW, EMPTY_STATS, EMPTY_STATS, 0, 0, 0, 0)
            for i, size in enumerate(sizes)
        )
        vectors = tuple(StoredVector("dv", DeletionRange(f.file_name, 0, 1, 1)) for f in files[::2])
        splits.append(DataSplit(1, EMPTY_ROW, n, 1, files, raw, vectors))
    return splits


@given(SIZES, PACKINGS, st.integers(1, 12))
def test_tasks_keep_files_and_vectors_in_order(described, packing, least):
    splits = splits_of(described)
    tasks = plan_tasks(splits, packing, least)
    parts = [part for task in tasks for part in task]
    assert [f for part in parts for f in part.files] == [f for split in splits for f in split.files]
    assert [v for part in parts for v in part.vectors] == [v for split in splits for v in split.vectors]
    for part in parts:
        names = {f.file_name for f in part.files}
        assert {v.data_file for v in part.vectors} <= names
        assert part.raw_convertible or part in splits  # splits that are merged stay whole


@given(SIZES, PACKINGS, st.integers(1, 12))
def test_tasks_are_filled_up_to_target_size(described, packing, least):
    splits = splits_of(described)
    total = sum(weight(split.files, packing) for split in splits)
    bound = min(packing.target_size, max(packing.open_cost, packing.target_size // 8, -(-total // least)))
    tasks = plan_tasks(splits, packing, least)
    for task in tasks:
        alone = len(task) == 1 and (len(task[0].files) == 1 or not task[0].raw_convertible)
        assert alone or sum(weight(part.files, packing) for part in task) <= bound
    for task, following in itertools.pairwise(tasks):
        first = following[0]
        next_piece = first.files[:1] if first.raw_convertible else first.files
        filled = sum(weight(part.files, packing) for part in task)
        assert filled + max(packing.open_cost, weight(next_piece, packing)) > bound


@pytest.mark.parametrize(("least", "tasks"), [(1, 2), (3, 4), (1000, 10)])
def test_tasks_shrink_to_eighth_for_parallelism(least, tasks):
    splits = splits_of([(True, [1] * 20)])
    assert len(plan_tasks(splits, Packing(80, 5), least)) == tasks


@pytest.mark.parametrize(("root", "cost"), [("/a", 256 << 10), ("file:///a", 256 << 10), ("s3://b/a", 1 << 20)])
def test_open_cost_follows_option_or_store(root, cost):
    assert packing_of_tasks(Options({"source.split.target-size": "9 b"}), root) == Packing(9, cost)
    assert packing_of_tasks(Options({"source.split.open-file-cost": "4 mb"}), root) == Packing(128 << 20, 4 << 20)


def test_indivisible_items_are_packed_like_splits():
    assert pack_tasks([3, 4, 5, 90, 1], lambda n: n, Packing(10, 1)) == [(3, 4), (5,), (90,), (1,)]


def test_tasks_read_same_rows_as_splits(tmp_path):
    schema = pa.schema([pa.field("p", pa.int32(), False), pa.field("k", pa.int64(), False), ("v", pa.string())])
    table = Table.create(
        str(tmp_path / "t"),
        Schema(schema, primary_keys=["p", "k"], partition_keys=["p"], options={"bucket": "2", "write-only": "true"}),
    )
    for n in range(3):
        rows = [{"p": i % 3, "k": i * (n + 1), "v": f"{n}-{i}"} for i in range(100)]
        table.write(pa.Table.from_pylist(rows, schema))
    table.compact(full=True, partitions=[{"p": 0}])
    splits, reader = table.scan().plan().splits, table.reader()
    whole = [row for split in splits for batch in reader.to_batches(split) for row in batch.to_pylist()]
    for target in (1, 20_000, 1 << 20):
        tasks = plan_tasks(splits, Packing(target, 1), 2)
        assert len(tasks) > 1 or target > 1
        result = [row for task in tasks for part in task for b in reader.to_batches(part) for row in b.to_pylist()]
        assert result == whole
