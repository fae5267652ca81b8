"""Append tables with a single bucket: rows are encoded while more arrive, with the same files as in sequence."""

import tempfile

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from paimon_core.schema.schema import Schema
from paimon_core.store.create import create_table
from paimon_core.store.file_store import FileStore
from paimon_core.table import Table
from paimon_core.write import append_writer, table_write, writer_plan
from tests.support.faulty_io import FaultyIO, MemoryIO

ROOT = "memory://w/t"
ROWS = 60_000


def rows(seed: int = 0) -> pa.Table:
    numbers = np.random.default_rng(seed).integers(0, 1 << 40, (2, ROWS))
    return pa.table({"k": numbers[0], "v": numbers[1]})


def made(**options: str) -> Table:
    io = MemoryIO()
    table = create_table(io, ROOT, Schema(rows().schema, (), (), {k.replace("_", "-"): v for k, v in options.items()}))
    return Table(FileStore(io, ROOT, table))


def set_row_group_bytes(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    for module in (append_writer, writer_plan):
        monkeypatch.setattr(module, "ROW_GROUP_BYTES", size)


@pytest.mark.parametrize("roll", ["256 mb", "200 kb"])
def test_parallel_encoding_makes_files_of_sequential_encoding(monkeypatch, roll):
    written = []
    for piece_bytes in (1 << 40, 1 << 17):
        set_row_group_bytes(monkeypatch, piece_bytes)
        table = made(**{"target-file-size": roll})
        with table.writer() as writer:
            give(writer)
            messages = writer.prepare_commit()
        assert table.committer().commit(messages) is not None
        assert table.to_arrow().equals(rows())
        (message,) = messages
        written.append([(f.row_count, f.value_stats, f.min_sequence_number) for f in message.new_files])
    together, apart = written
    assert (len(together) > 1) == (roll == "200 kb")
    assert together == apart if roll == "256 mb" else sum(f[0] for f in apart) == ROWS


@pytest.mark.parametrize("mode", ["before", "lost-answer"])
def test_errors_of_encoder_are_raised_and_leave_no_file(monkeypatch, mode):
    set_row_group_bytes(monkeypatch, 1 << 17)
    table = made(**{"target-file-size": "200 kb"})
    before = set(table.store.io.files)
    dry = FaultyIO(table.store.io)
    write(Table(FileStore(dry, ROOT, table.schema)))
    assert len([verb for verb, _ in dry.log if verb == "create"]) > 2
    for name in set(table.store.io.files) - before:
        table.store.io.delete(name)
    for at in range(dry.calls):
        faulty = FaultyIO(table.store.io, at, mode)
        with pytest.raises(OSError, match="injected"):
            write(Table(FileStore(faulty, ROOT, table.schema)))
        assert set(table.store.io.files) == before, faulty.log[at]


def test_rows_that_failed_to_be_encoded_fail_commit(monkeypatch):
    """A writer that continues after the error raises it again, and commits nothing without the failed rows."""
    set_row_group_bytes(monkeypatch, 1 << 17)
    table = made()
    faulty = FaultyIO(table.store.io)
    with Table(FileStore(faulty, ROOT, table.schema)).writer() as writer:
        faulty.at = faulty.calls  # where the first file is created
        with pytest.raises(OSError, match="injected"):
            give(writer)
        with pytest.raises(OSError, match="injected"):
            writer.prepare_commit()
        writer.abort()


def write(table: Table) -> None:
    with table.writer() as writer:
        give(writer)
        writer.prepare_commit()


def give(writer: table_write.TableWrite) -> None:
    for batch in rows().to_batches(max_chunksize=1000):
        writer.write(batch)


def test_row_groups_double(tmp_path):
    table = Table.create(f"{tmp_path}/t", Schema(rows().schema, (), (), {"write-buffer-size": "1 mb"}))
    table.write(pa.concat_tables([rows(seed) for seed in range(20)]))
    (file,) = (tmp_path / "t" / "bucket-0").iterdir()
    metadata = pq.read_metadata(file)
    sizes = [metadata.row_group(i).num_rows * 16 / (1 << 20) for i in range(metadata.num_row_groups)]
    assert len(sizes) == 3
    assert 4 <= sizes[0] < 8 <= sizes[1] < 12


PLACES = 40


class CountingIO(MemoryIO):
    """Knows how many files are open for writing, and how many ever were."""

    def __init__(self) -> None:
        super().__init__()
        self.open_now = self.most = 0

    def create(self, path):
        self.open_now += 1
        self.most = max(self.most, self.open_now)
        sink, counting = super().create(path), self

        class Sink:
            def __getattr__(self, name):
                return getattr(sink, name)

            def close(self):
                counting.open_now -= 1
                sink.close()

        return Sink()


def partitioned(io, **options: str) -> Table:
    schema = pa.schema([("p", pa.int32()), ("k", pa.int64()), ("v", pa.string())])
    settings = {"write-buffer-size": "1 mb", **{k.replace("_", "-"): v for k, v in options.items()}}
    table = create_table(io, ROOT, Schema(schema, (), ["p"], settings))
    return Table(FileStore(io, ROOT, table))


def spread(count: int, start: int) -> pa.Table:
    numbers = np.arange(start, start + count)
    return pa.table({
        "p": pa.array((numbers % PLACES).astype(np.int32)), "k": numbers, "v": pa.array(["text" * 8] * count),
    })  # fmt: skip


@pytest.mark.cases(5)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"write_buffer_spillable": "false"},
        {"write_buffer_spill.max_disk_size": "1 mb", "spill-compression": "none"},
    ],
)
@pytest.mark.parametrize("format_", ["parquet", "orc", "avro"])
def test_open_files_share_write_buffer(tmp_path, monkeypatch, options, format_):
    """More partitions than row groups that the buffer has room for: what files hold counts, and goes with a flush."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    table = partitioned(MemoryIO(), **{"file.format": format_, **options})
    most = 0
    with table.writer() as writer:
        for start in range(0, 160_000, 8_000):
            writer.write(spread(8_000, start))
            most = max(most, sum(w.buffered for w in writer._writers.values()))
        messages = writer.prepare_commit()
        table.committer().commit(messages)
    assert 1 << 19 < most <= 3 << 19
    actual = table.to_arrow()
    assert actual.sort_by("k")["k"].to_numpy().tolist() == list(range(160_000))
    one = actual.filter(pc.equal(actual["p"], 7))["k"].to_numpy()
    assert (np.diff(one) > 0).all()  # in order of arrival
    files = sum(len(m.new_files) for m in messages)
    assert files == PLACES if not options else files > PLACES
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("most", [1, 3])
@pytest.mark.parametrize("spillable", ["true", "false"])
def test_few_files_are_open_at_time(monkeypatch, most, spillable):
    """Buckets may have enough rows for a row group each; their files are not all kept open."""
    set_row_group_bytes(monkeypatch, 1 << 12)
    io = CountingIO()
    table = partitioned(io, write_max_writers_to_spill=str(most), write_buffer_spillable=spillable)
    with table.writer() as writer:
        for start in range(0, 80_000, 8_000):
            writer.write(spread(8_000, start))
        assert io.open_now == most
        table.committer().commit(writer.prepare_commit())
    assert io.open_now == 0
    assert most <= io.most <= most + table_write.ENCODERS
    assert sorted(table.to_arrow()["k"].to_pylist()) == list(range(80_000))


@pytest.mark.parametrize("end", ["abort", "close"])
def test_spilled_rows_are_deleted_with_writer(tmp_path, monkeypatch, end):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    table = partitioned(MemoryIO())
    before = set(table.store.io.files)
    writer = table.writer()
    for start in range(0, 80_000, 8_000):
        writer.write(spread(8_000, start))
    assert list(tmp_path.iterdir())
    getattr(writer, end)()
    assert not list(tmp_path.iterdir())
    assert set(table.store.io.files) == before


def test_spilled_rows_become_row_groups_between_commits(tmp_path, monkeypatch):
    """A bucket whose rows never make a row group at once does not fill the disk."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(append_writer, "SPILLED_BYTES", 1 << 20)
    table = made(write_buffer_size="256 kb")
    most = 0
    with table.writer() as writer:
        for seed in range(5):
            writer.write(rows(seed))
            most = max(most, sum(f.stat().st_size for f in tmp_path.rglob("*.arrow")))
        (message,) = writer.prepare_commit()
        table.committer().commit([message])
    assert 0 < most < 3 << 19
    assert len(message.new_files) == 1
    assert table.to_arrow().equals(pa.concat_tables([rows(seed) for seed in range(5)]))
