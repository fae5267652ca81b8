"""A writer that compacts its buckets: reads do not change, levels keep their order, and no file is left over."""

from random import Random

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon_core.errors import CommitConflictError
from paimon_core.manifest.data_file import FileSource
from paimon_core.manifest.entry import ADD
from paimon_core.schema.change import AddColumn
from paimon_core.schema.schema import Schema
from paimon_core.schema.schemas import Schemas
from paimon_core.store.create import create_table
from paimon_core.store.file_store import FileStore
from paimon_core.table import Table
from paimon_core.write.table_write import WriterRole
from tests.support.compaction import check_levels, delta, levels_of, only_levels, rows_rewritten, shape
from tests.support.draws import draws
from tests.support.faulty_io import MemoryIO
from tests.support.model import KeyedModel
from tests.support.tables import ORDERS, files_below, keyed_table, orders, rows_of

ROOT = "memory://w/t"


def table_in_memory(**options: str) -> Table:
    settings = {"bucket": "1", **{k.replace("_", "-"): v for k, v in options.items()}}
    io = MemoryIO()
    create_table(io, ROOT, Schema(ORDERS, primary_keys=["id"], options=settings))
    schema = Schemas(io, ROOT).latest()
    assert schema is not None
    return Table(FileStore(io, ROOT, schema))


SHAPES = st.fixed_dictionaries(
    {
        "bucket": st.sampled_from(["1", "2"]),
        "num-sorted-run.compaction-trigger": st.integers(1, 5).map(str),
        "target-file-size": st.sampled_from(["1 b", "3 kb", "128 mb"]),
        "compaction.size-ratio": st.sampled_from(["0", "1", "100"]),
        "compaction.force-up-level-0": st.sampled_from(["true", "false"]),
        "file.format.per.level": st.sampled_from(["0:avro,5:orc", "0:parquet"]),
    },
    optional={
        "num-levels": st.integers(2, 7).map(str),
        "sequence.field": st.just("n"),
        "compaction.force-rewrite-all-files": st.just("true"),
        "compaction.total-size-threshold": st.just("10 kb"),
        "full-compaction.delta-commits": st.integers(1, 3).map(str),
    },
)
ROW = st.tuples(st.integers(0, 40), st.integers(0, 9))
CHANGES = st.lists(st.tuples(st.sampled_from(["+I", "+I", "+U", "-D"]), ROW), max_size=25)
MOVES = st.one_of(CHANGES, st.sampled_from(["full", "minor", "other writer"]))


@draws(60)
@given(SHAPES, st.lists(MOVES, min_size=3, max_size=14))
def test_compaction_changes_no_read(options, moves):
    table = table_in_memory(**options)
    adds_only = "sequence.field" in options  # a forgotten delete no longer outranks what is written later, but older
    model = KeyedModel(["id"], ["n"] if adds_only else [])
    long_lived, identifier = table.writer(), 0
    for number, move in enumerate(moves):
        if isinstance(move, str) and move != "other writer":
            table.compact(full=move == "full")
            check_levels(table)
            if move == "full":
                assert all(len(levels.runs) == 1 for levels in levels_of(table).values())
        else:
            changes = [("+I", (k, 3)) for k in range(number % 7)] if isinstance(move, str) else move
            kinds = ["+I" if adds_only else kind for kind, _ in changes]
            rows = [(key, f"v{number}-{i}", n) for i, (_, (key, n)) in enumerate(changes)]
            if isinstance(move, str):
                table.with_options({"write-only": "true"}).write(orders(*rows), kinds)
            else:
                identifier += 1
                long_lived.write(orders(*rows), kinds)
                table.committer("me").commit(long_lived.prepare_commit(identifier), identifier)
            names = ORDERS.names
            model.upsert([(kind, dict(zip(names, row, strict=True))) for kind, row in zip(kinds, rows, strict=True)])
        assert rows_of(table.to_arrow()) == model.rows()
    for snapshot in table.snapshots():
        check_levels(table, None)
        table.to_arrow(snapshot_id=snapshot.id)
    assert orphans(table) == set()


def orphans(table: Table) -> set[str]:
    """Data files that no snapshot names."""
    named = {e.file.file_name for s in table.snapshots() for e in delta(table, s) if e.kind == ADD}
    return {path for path in table.store.io.files if "/bucket-" in path and path.rsplit("/", 1)[1] not in named}


@pytest.mark.parametrize("trigger", [2, 3, 5])
@pytest.mark.cases(1)
def test_runs_and_write_amplification_are_bounded(trigger):
    """A row is rewritten about as often as the table has grown by the size ratio, not once a commit."""
    table = table_in_memory(**{"num-sorted-run.compaction-trigger": str(trigger)})
    random, commits, rows = Random(1), 40, 150
    for i in range(commits):
        table.write(orders(*((i * rows + k, random.randbytes(150).hex(), k) for k in range(rows))))
        check_levels(table, most_runs=trigger)
    assert table.to_arrow().num_rows == commits * rows
    assert rows_rewritten(table) <= 8 * commits * rows  # rewriting all at every commit would be 20 times


def test_writer_in_one_commit_bounds_its_runs_too(tmp_path):
    table = keyed_table(tmp_path / "t", bucket="1", write_buffer_size="16 kb", **{"target-file-size": "4 kb"})
    with table.writer() as writer:
        for start in range(0, 60_000, 600):
            writer.write(orders(*((i % 20_000, f"v{i}", i) for i in range(start, start + 600))))
        messages = writer.prepare_commit()
    snapshot = table.committer().commit(messages)
    assert snapshot.commit_kind == "COMPACT"
    check_levels(table, most_runs=5)
    assert rows_of(table.to_arrow()) == [{"id": i, "v": f"v{40_000 + i}", "n": 40_000 + i} for i in range(20_000)]
    named = {f.file_name for m in messages for f in (*m.new_files, *m.compact_after)}
    assert {name.rsplit("/", 1)[1] for name in files_below(tmp_path / "t") if "bucket-" in name} == named


def test_message_has_new_files_and_their_compaction(tmp_path):
    table = keyed_table(tmp_path / "t", bucket="1", **{"num-sorted-run.compaction-trigger": "3"})
    for i in range(2):
        table.write(orders((i, "a", i)))
    writer = table.writer()
    writer.write(orders((1, "b", 1), (2, "b", 2)))
    (message,) = writer.prepare_commit()
    assert [f.level for f in message.new_files] == [0]
    assert len(message.compact_before) == 3
    assert message.new_files[0].file_name in {f.file_name for f in message.compact_before}
    (made,) = message.compact_after
    assert (made.level, made.row_count, made.file_source, made.delete_row_count) == (3, 3, FileSource.COMPACT, 0)
    assert (made.min_sequence_number, made.max_sequence_number) == (0, 3)
    snapshot = table.committer().commit([message], started_from=writer.started_from)
    assert [s.commit_kind for s in table.snapshots()] == ["APPEND"] * 3 + ["COMPACT"]
    assert (snapshot.total_record_count, snapshot.delta_record_count) == (3, -1)


def test_large_file_without_overlap_is_upgraded(tmp_path):
    table = keyed_table(tmp_path / "t", bucket="1", write_only="true", **{"target-file-size": "3 kb"})
    big = [(i, f"value {i * 7919}", i) for i in range(300)]
    table.write(orders(*big))
    table.write(orders(*((1000 + i, v, n) for i, v, n in big)))
    before = {f.file_name for f in only_levels(table).all_files}
    table.compact(full=True)
    levels = only_levels(table)
    assert {f.file_name for f in levels.all_files} == before
    assert {(f.level, f.file_source) for f in levels.all_files} == {(5, FileSource.APPEND)}
    table.write(orders((3000, "small", 1)))
    table.write(orders((4000, "small", 1)))
    table.compact(full=True)
    small = {f.row_count for f in only_levels(table).all_files if f.file_name not in before}
    assert small == {2}
    assert only_levels(table).files[5][-1].file_source == FileSource.COMPACT
    table.write(orders((5000, None, None)), ["-D"])
    table.compact(full=True)
    assert all(f.delete_row_count == 0 for f in only_levels(table).all_files)
    assert table.compact(full=True) is None
    rewritten = table.with_options({"compaction.force-rewrite-all-files": "true"})
    assert rewritten.compact(full=True) is not None
    assert not {f.file_name for f in only_levels(table).all_files} & before
    assert table.to_arrow().num_rows == 602


@pytest.mark.parametrize(("ratio", "are_moved"), [("0", True), ("0.7", False), ("1", False)])
def test_small_file_ratio_selects_rewritten_files(tmp_path, ratio, are_moved):
    table = keyed_table(tmp_path / "t", bucket="1", write_only="true", **{"compaction.small-file-ratio": ratio})
    table.write(orders((1, "one", 1)))
    table.write(orders((1000, "other", 1)))
    before = {f.file_name for f in only_levels(table).all_files}
    table.compact(full=True)
    assert ({f.file_name for f in only_levels(table).all_files} == before) == are_moved


def test_deletes_stay_while_higher_levels_have_files(tmp_path):
    amplification = {"compaction.max-size-amplification-percent": "1000"}  # a file of one row is not much smaller
    table = keyed_table(tmp_path / "t", bucket="1", write_only="true", **amplification)
    table.write(orders(*((i, "x" * 50, i) for i in range(2000))))
    table.compact(full=True)
    for i in range(5):
        table.write(orders((i, None, None)), ["-D"])
    snapshot = table.compact()
    assert snapshot.commit_kind == "COMPACT"
    assert shape(table) == [(4, 5), (5, 2000)]
    assert [f.delete_row_count for f in only_levels(table).all_files] == [5, 0]
    assert table.to_arrow(columns=["id"]).num_rows == 1995
    table.compact(full=True)
    assert shape(table) == [(5, 1995)]
    assert table.snapshot().total_record_count == 1995


def test_table_without_rows_has_no_files(tmp_path):
    table = keyed_table(tmp_path / "t", bucket="1", write_only="true")
    table.write(orders((1, "a", 1)))
    table.write(orders((1, None, None)), ["-D"])
    snapshot = table.compact(full=True)
    assert levels_of(table) == {}
    assert snapshot.total_record_count == 0
    assert table.to_arrow().num_rows == 0
    table.write(orders((1, "b", 1)))
    assert table.to_arrow().num_rows == 1


def test_format_codec_and_statistics_of_each_level(tmp_path):
    table = keyed_table(
        tmp_path / "t",
        bucket="1",
        write_only="true",
        **{
            "file.format.per.level": "0:avro,5:orc",
            "file.compression.per.level": "5:lz4",
            "metadata.stats-mode.per.level": "0:none",
            "file.suffix.include.compression": "true",
        },
    )
    table.write(orders((1, "a", 1), (2, "b", 2)))
    table.write(orders((2, "c", 3)))
    assert {f.file_name.split(".", 1)[1] for f in only_levels(table).all_files} == {"zst.avro"}
    assert {f.value_stats_cols for f in only_levels(table).all_files} == {()}
    table.compact(full=True)
    (file,) = only_levels(table).all_files
    assert file.file_name.endswith(".lz4.orc")
    assert file.value_stats_cols is None
    assert rows_of(table.to_arrow(filter="n >= 1")) == rows_of(orders((1, "a", 1), (2, "c", 3)))


def test_writers_that_never_compact(tmp_path):
    often = {"num-sorted-run.compaction-trigger": "1"}
    for name, options, numbers in (("a", {"write_only": "true"}, (0, 1)), ("b", {}, (0, 2))):
        table = keyed_table(tmp_path / name, bucket="1", **options, **often)
        for i in range(6):
            with table.writer(role=WriterRole(*numbers)) as writer:
                writer.write(orders((i, "a", 1)))
                table.committer().commit(writer.prepare_commit())
        assert shape(table) == [(0, 1)] * 6


def test_full_compaction_every_nth_commit(tmp_path):
    table = keyed_table(tmp_path / "t", bucket="2", **{"full-compaction.delta-commits": "3"})
    writer, committer = table.writer(), table.committer("stream")
    for identifier in range(1, 10):
        writer.write(orders(*((k, "v", identifier) for k in range(identifier if identifier % 3 else 1))))
        committer.commit(writer.prepare_commit(identifier), identifier)
        in_full = [[run.level for run in levels.runs] == [5] for levels in levels_of(table).values()]
        assert all(in_full) == (identifier % 3 == 0)
    table.write(orders((1, "batch", 1)))
    assert {tuple(run.level for run in levels.runs) for levels in levels_of(table).values()} == {(5,)}


def test_overwrite_in_many_flushes_is_compacted_behind_it(tmp_path):
    table = keyed_table(tmp_path / "t", bucket="1", write_buffer_size="8 kb", write_buffer_spillable="false")
    table.write(orders((99_999, "old", 1)))
    snapshot = table.overwrite(
        pa.concat_tables([orders(*((i, "v", i) for i in range(at, at + 500))) for at in range(0, 10_000, 500)])
    )
    assert [s.commit_kind for s in table.snapshots()] == ["APPEND", "OVERWRITE", "COMPACT"]
    assert snapshot.total_record_count == table.to_arrow().num_rows == 10_000
    check_levels(table, most_runs=5)


def test_files_of_newer_schema_are_compacted_under_it(tmp_path):
    table = keyed_table(tmp_path / "t", bucket="1", **{"num-sorted-run.compaction-trigger": "2"})
    newer = table.alter([AddColumn("extra", "INT")])
    newer.with_options({"write-only": "true"}).write(pa.table({"id": [1], "extra": pa.array([7], pa.int32())}))
    for i in range(2, 6):
        table.write(orders((i, "old", i)))
    assert len(shape(table)) < 5
    newer.with_options({"write-only": "true"}).write(pa.table({"id": [6], "extra": pa.array([8], pa.int32())}))
    with pytest.raises(CommitConflictError, match="open the table again"):
        table.compact(full=True)
    for _ in range(2):
        rows = rows_of(newer.to_arrow())
        assert rows[0] == {"id": 1, "v": None, "n": None, "extra": 7}
        assert [(row["id"], row["extra"]) for row in rows[1:]] == [*((i, None) for i in range(2, 6)), (6, 8)]
        newer.compact(full=True)


@pytest.mark.parametrize("prepared", [True, False])
def test_abort_deletes_compacted_files(tmp_path, prepared):
    table = keyed_table(tmp_path / "t", bucket="1", write_buffer_size="8 kb", **{"target-file-size": "2 kb"})
    for i in range(4):
        table.write(orders(*((k, f"{i}", i) for k in range(i * 100, i * 100 + 200))))
    before, rows = files_below(tmp_path), rows_of(table.to_arrow())
    writer = table.writer()
    for at in range(0, 5000, 500):
        writer.write(orders(*((i, "new", i) for i in range(at, at + 500))))
    if prepared:
        table.committer().abort(writer.prepare_commit())
    else:
        writer.abort()
    assert files_below(tmp_path) == before
    assert rows_of(table.to_arrow()) == rows


def test_rows_are_committed_although_their_compaction_was_rejected(tmp_path):
    table = keyed_table(tmp_path / "t", bucket="1", **{"num-sorted-run.compaction-trigger": "3"})
    for i in range(2):
        table.write(orders((i, "a", i)))
    writer = table.writer()
    writer.write(orders((7, "late", 7)))
    messages = writer.prepare_commit()
    assert messages[0].compact_after
    table.compact(full=True)
    snapshot = table.committer().commit(messages, started_from=writer.started_from)
    assert snapshot.commit_kind == "APPEND"
    assert shape(table) == [(0, 1), (5, 2)] or shape(table) == [(0, 1), (3, 2)]
    assert [r["id"] for r in rows_of(table.to_arrow())] == [0, 1, 7]
    lost = messages[0].compact_after[0].file_name
    assert not any(lost in name for name in files_below(tmp_path))
    writer.write(orders((8, "on", 8)))  # the writer looks at the table again, and goes on
    table.committer().commit(writer.prepare_commit(), started_from=writer.started_from)
    assert [r["id"] for r in rows_of(table.to_arrow())] == [0, 1, 7, 8]
    check_levels(table, most_runs=3)
