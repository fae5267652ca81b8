"""Append tables of one place: rows are encoded while others are on their way, and it does not show."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paimon_core.schema.schema import Schema
from paimon_core.store.create import create_table
from paimon_core.store.file_store import FileStore
from paimon_core.table import Table
from paimon_core.write import append_writer, table_write
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


def set_piece(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    for module in (append_writer, table_write):
        monkeypatch.setattr(module, "PIECE_BYTES", size)


@pytest.mark.parametrize("roll", ["256 mb", "200 kb"])
def test_pieces_encoded_apart_make_the_files_of_one_piece(monkeypatch, roll):
    written = []
    for piece_bytes in (1 << 40, 1 << 17):
        set_piece(monkeypatch, piece_bytes)
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
def test_what_fails_in_the_encoder_is_told_and_leaves_nothing(monkeypatch, mode):
    set_piece(monkeypatch, 1 << 17)
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


def test_rows_that_failed_to_be_encoded_are_not_passed_over(monkeypatch):
    """Whoever goes on after the error gets it again, and no commit without them."""
    set_piece(monkeypatch, 1 << 17)
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
