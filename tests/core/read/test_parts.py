"""Large raw files read in parts: all parts together hold each row of a file once, in file order."""

import itertools
from dataclasses import replace
from types import SimpleNamespace

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as examples
from hypothesis import strategies as st

from paimon_core import DataSplit, Schema, Table
from paimon_core.errors import CorruptedError, InvalidInputError, UnsupportedError
from paimon_core.format import parquet_writer
from paimon_core.format.file_format import ReadRequest
from paimon_core.format.parquet_prune import row_groups_to_read
from paimon_core.scan import table_scan, task_plan
from paimon_core.scan.split_plan import Packing, cut_split
from paimon_core.scan.task_plan import plan_tasks
from tests.support.tables import append_table, orders

ROWS = pa.schema([pa.field("k", pa.int64(), False), ("n", pa.int32()), ("s", pa.string()), pa.field("p", pa.int8())])
MARKS = {"deletion-vectors.enabled": "true"}
BITMAPS = {"file-index.bitmap.columns": "n"}
SMALL_GROUPS = {"file.block-size": "1 b"}  # rows sorted by key are grouped like others
TABLES = {
    "append": ((), {}),
    "append, marked": ((), MARKS),
    "append, bitmaps beside": ((), {**MARKS, **BITMAPS, "file-index.in-manifest-threshold": "1 b"}),
    "append, bitmaps inside": ((), {**BITMAPS, "file-index.in-manifest-threshold": "1 mb"}),
    "tracked": ((), {"row-tracking.enabled": "true", "bucket": "-1"}),
    "evolving": ((), {"row-tracking.enabled": "true", "data-evolution.enabled": "true", "bucket": "-1"}),
    "keyed": (("k", "p"), {"bucket": "2"}),
    "keyed, marked": (("k", "p"), {**MARKS, "bucket": "1"}),
    "first-row": (("k", "p"), {"bucket": "1", "merge-engine": "first-row"}),
    "orc": ((), {"file.format": "orc"}),
}  # fmt: skip
FILTERS = (None, "k >= 20 AND k < 31", "n = 3", "n = 3 OR k = 7", "p = 1", "s IS NULL", "k = -1")


@pytest.fixture(autouse=True)
def _cuts_small_files(monkeypatch):
    monkeypatch.setattr(task_plan, "LEAST_PART", 1)
    monkeypatch.setattr(table_scan, "LEAST_PART", 1)


@pytest.fixture
def _seven_rows_a_group(monkeypatch):
    monkeypatch.setattr(parquet_writer, "_ROW_GROUP_ROWS", 7)


def some_rows(keys) -> pa.Table:
    columns = {
        "k": keys,
        "n": [None if k % 5 == 0 else k % 4 for k in keys],
        "s": [None if k % 11 == 0 else f"{k}" * (k % 13) for k in keys],
        "p": [k % 2 for k in keys],
    }
    return pa.table(columns, ROWS)


def read(table, splits, columns, text) -> pa.Table:
    reader = table.reader(columns=columns, filter=text)
    batches = [batch for split in splits for batch in reader.to_batches(split)]
    return pa.Table.from_batches(batches, reader.schema).combine_chunks()


@pytest.mark.cases(5)
@examples(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
@pytest.mark.parametrize("kind", TABLES)
def test_parts_of_any_size_hold_the_rows_of_whole_files(tmp_path_factory, monkeypatch, kind, data):
    keys, options = TABLES[kind]
    monkeypatch.setattr(parquet_writer, "_ROW_GROUP_ROWS", data.draw(st.integers(1, 12), "rows of a group"))
    settings = {**SMALL_GROUPS, **options, "commit.sync": "false"}
    schema = Schema(ROWS, primary_keys=keys, partition_keys=["p"], options=settings)
    table = Table.create(str(tmp_path_factory.mktemp("t") / "t"), schema)
    for _ in range(data.draw(st.integers(1, 2))):
        table.write(some_rows(data.draw(st.lists(st.integers(0, 60), min_size=1, max_size=50, unique=True))))
    if keys:
        table.compact(full=True)
    if "deletion-vectors.enabled" in options:
        table.delete(f"k BETWEEN 10 AND {data.draw(st.integers(9, 40), 'deleted up to')}")
    tracked = ["_ROW_ID"] if "row-tracking.enabled" in options else []
    for _ in range(4):
        columns = data.draw(st.sampled_from([None, [], ["p"], ["s", "k"], ["k", *tracked], tracked]), "columns")
        text = data.draw(st.sampled_from(FILTERS), "filter")
        splits = table.scan(filter=text).plan().splits
        size, least = data.draw(st.integers(1, 3000), "bytes of a part"), data.draw(st.integers(1, 12), "tasks")
        parts = [part for task in plan_tasks(splits, Packing(size, 1), least) for part in task]
        parts = [DataSplit.from_bytes(part.to_bytes()) for part in parts]
        whole = read(table, splits, columns, text)
        assert read(table, parts, columns, text).equals(whole)
        assert sum(part.row_count for part in parts) == sum(split.row_count for split in splits)
        assert sum(part.size for part in parts) == sum(split.size for split in splits)
        cut = table.with_options({"source.split.target-size": f"{size} b"})
        assert cut.to_arrow(columns=columns, filter=text).num_rows == whole.num_rows


@given(st.lists(st.integers(0, 9), max_size=12), st.lists(st.integers(0, 60), max_size=8))
def test_every_row_group_is_in_one_part(counts, cuts):
    groups = [SimpleNamespace(num_rows=count) for count in counts]
    footer = SimpleNamespace(num_row_groups=len(counts), num_rows=sum(counts), row_group=groups.__getitem__)
    bounds = sorted({0, sum(counts), *(c for c in cuts if c < sum(counts))})
    ranges = [range(start, end) for start, end in itertools.pairwise(bounds)]
    chosen = [g for part in ranges for g in row_groups_to_read(footer, ReadRequest((), 1, part=part))]
    assert [g for g in chosen if counts[g]] == [g for g, count in enumerate(counts) if count]
    assert len(set(chosen)) == len(chosen)


@pytest.mark.usefixtures("_seven_rows_a_group")
def test_large_file_is_planned_as_several_splits(tmp_path):
    table = append_table(tmp_path / "t")
    table.write(orders(*((k, "x" * (k % 50), k) for k in range(700))))
    (whole,) = table.scan().plan().splits
    cut = table.with_options({"source.split.target-size": f"{whole.size // 4} b"})
    splits, reader = cut.scan().plan().splits, cut.reader()
    assert len(splits) == 5
    result = [[row["id"] for batch in reader.to_batches(split) for row in batch.to_pylist()] for split in splits]
    assert all(len(rows) % 7 == 0 and 100 <= len(rows) <= 200 for rows in result)
    assert [*itertools.chain(*result)] == list(range(700))
    assert all(split.size <= whole.size // 4 + 1 and split.certain_row_count is None for split in splits)
    assert "row groups at rows 0 to 139" in str(cut.explain())
    assert cut.to_arrow(limit=3).num_rows == 3
    assert cut.to_arrow(columns=[]).num_rows == 700


@pytest.mark.usefixtures("_seven_rows_a_group")
@pytest.mark.parametrize("options", [{}, MARKS], ids=["rewritten", "marked"])
def test_delete_rewrites_split_file_once(tmp_path, options):
    table = append_table(tmp_path / "t", **options).with_options({"source.split.target-size": "100 b"})
    table.write(orders(*((k, "x", k) for k in range(100))))
    assert len(table.scan().plan().splits) > 3
    table.delete("id >= 10 AND id < 95")
    assert table.to_arrow()["id"].to_pylist() == [*range(10), *range(95, 100)]


def test_small_file_is_not_cut(tmp_path, monkeypatch):
    monkeypatch.undo()
    table = append_table(tmp_path / "t").with_options({"source.split.target-size": "1 b"})
    table.write(orders(*((k, "x", k) for k in range(100))))
    (split,) = table.scan().plan().splits
    assert plan_tasks([split], Packing(1, 1), 8) == [(split,)]


@pytest.mark.usefixtures("_seven_rows_a_group")
@pytest.mark.parametrize("columns", [None, []])
def test_part_with_wrong_row_count_is_refused(tmp_path, columns):
    table = append_table(tmp_path / "t")
    table.write(orders(*((k, "x", k) for k in range(100))))
    (split,) = table.scan().plan().splits
    for promised in (93, 101):
        wrong = replace(split, files=(replace(split.files[0], row_count=promised),))
        for part in cut_split(wrong, split.size // 3):
            with pytest.raises(CorruptedError, match=f"holds 100 rows, but its manifest entry says {promised}"):
                read(table, [part], columns, None)


def test_part_of_other_file_than_raw_parquet_is_refused(tmp_path):
    table = append_table(tmp_path / "t", **{"file.format": "orc"})
    table.write(orders((1, "a", 1), (2, "b", 2)))
    (split,) = table.scan().plan().splits
    assert cut_split(split, 1) == [split]
    with pytest.raises(UnsupportedError, match="only Parquet files are read in parts"):
        read(table, [replace(split, part=range(1))], None, None)
    for wrong in ({"raw_convertible": False}, {"files": split.files * 2}):
        with pytest.raises(InvalidInputError, match="only a split of one raw file"):
            replace(split, part=range(1), **wrong)
    assert cut_split(replace(split, raw_convertible=False), 1) == [replace(split, raw_convertible=False)]
