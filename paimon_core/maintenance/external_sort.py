"""Sorting more rows than memory holds: dealt out to ranges on local disk, each sorted by itself.

Bounds from a sample part the keys into ranges that fit into memory. A key that is a bound gets a range of its own,
which needs no sorting; so a key that repeats any number of times is no obstacle, and every other range is smaller than
what it came from. One that is still too large is dealt out again.
"""

import itertools
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from paimon_core.maintenance.cluster_key import ClusterKey, distinct, placed, quantiles, sorted_positions
from paimon_core.options.lsm import (
    LOCAL_SORT_MAX_NUM_FILE_HANDLES,
    SPILL_COMPRESSION,
    SPILL_COMPRESSION_ZSTD_LEVEL,
    WRITE_BUFFER_SIZE,
)
from paimon_core.options.option import Options

__all__ = ["SAMPLE_ROWS", "SortLimits", "sample_rows", "sort_stream"]

SAMPLE_ROWS = 1 << 17
_SAMPLE_BYTES = 64 << 20
_SHARE = 4  # rows held, the same rows taken in order, their words, and what is being written
_LARGEST_SHARE = 512 << 20  # far below the 2 GiB that a text column can hold in one chunk
_PIECE_ROWS = 1 << 17


@dataclass(frozen=True, slots=True)
class SortLimits:
    """Bytes of rows sorted at once, files of ranges open at once, and the codec of these files."""

    bytes: int
    files: int = 128
    codec: pa.Codec | None = None

    @staticmethod
    def of(options: Options) -> "SortLimits":
        """As the table's options have it: ``write-buffer-size`` bounds what all steps hold together."""
        codec, level = options.value(SPILL_COMPRESSION).lower(), options.value(SPILL_COMPRESSION_ZSTD_LEVEL)
        known = {"zstd": lambda: pa.Codec("zstd", level), "lz4": lambda: pa.Codec("lz4")}
        return SortLimits(
            max(1, min(options.value(WRITE_BUFFER_SIZE) // _SHARE, _LARGEST_SHARE)),
            options.value(LOCAL_SORT_MAX_NUM_FILE_HANDLES),
            known[codec]() if codec in known else None,
        )


def sample_rows(pieces: Iterable[pa.Table], total: int) -> pa.Table:
    """About SAMPLE_ROWS of ``total`` rows, chosen at random, fewer where they are long; the same in every run.

    REQUIRES: at least one piece.
    """
    random = np.random.default_rng(0)
    chance = min(1.0, SAMPLE_ROWS / max(1, total))
    kept: list[pa.Table] = []
    size = 0
    for piece in pieces:
        kept.append(piece if chance == 1.0 else piece.filter(pa.array(random.random(piece.num_rows) < chance)))
        size += kept[-1].nbytes
        if size > _SAMPLE_BYTES:
            chance /= 2
            rows = pa.concat_tables(kept)
            kept = [rows.filter(pa.array(random.random(rows.num_rows) < 0.5)).combine_chunks()]
            size = kept[0].nbytes
    return pa.concat_tables(kept).combine_chunks()


def sort_stream(
    pieces: Iterable[pa.Table], total: int, key: ClusterKey, sample: Callable[[], pa.Table], limits: SortLimits
) -> Iterator[pa.Table]:
    """The rows of ``pieces`` in the order of ``key``, equal ones in the order they came.

    ``total`` is about how many rows there are, ``sample()`` gives some of them, key columns at least; it is called only
    when they do not fit into ``limits.bytes``. Spilled rows lie in a temporary directory, gone when the iterator is.
    """
    source = iter(pieces)
    held: list[pa.Table] = []
    size = 0
    for piece in source:
        held.append(piece)
        size += piece.nbytes
        if size > limits.bytes:
            break
    else:
        yield from _sorted_pieces(held, key)
        return
    rows = sum(piece.num_rows for piece in held)
    parts = 2 + int(
        1.5 * size / max(1, rows) * total / limits.bytes
    )  # somewhat more than needed: samples are not exact
    bounds = distinct(quantiles(key.of(sample()), max(1, min(parts, (limits.files - 1) // 2))))
    with tempfile.TemporaryDirectory(prefix="paimon-sort-") as directory:
        ranges = _deal_out(itertools.chain(_drained(held), source), key, bounds, Path(directory), limits)
        for spilled in ranges:
            if spilled.is_one_key:
                yield from spilled.pieces()
            else:
                sampled = _sampler(spilled)
                yield from sort_stream(spilled.pieces(), spilled.rows, key, sampled, limits)
            spilled.path.unlink()


class _Range:
    """Rows of one range of keys, in a file."""

    def __init__(self, path: Path, *, is_one_key: bool) -> None:
        self.path, self.is_one_key = path, is_one_key
        self.rows = 0
        self._sink: pa.OSFile | None = None
        self._writer: pa.RecordBatchWriter | None = None

    def add(self, rows: pa.Table, codec: pa.Codec | None) -> None:
        if self._writer is None:
            self._sink = pa.OSFile(str(self.path), "wb")
            self._writer = pa.ipc.new_stream(self._sink, rows.schema, options=pa.ipc.IpcWriteOptions(compression=codec))
        self._writer.write_table(rows)
        self.rows += rows.num_rows

    def close(self) -> None:
        if self._writer is not None and self._sink is not None:
            self._writer.close()
            self._sink.close()

    def pieces(self) -> Iterator[pa.Table]:
        with pa.OSFile(str(self.path)) as source, pa.ipc.open_stream(source) as stream:
            for batch in stream:
                yield pa.Table.from_batches([batch])


def _sampler(spilled: _Range) -> Callable[[], pa.Table]:
    return lambda: sample_rows(spilled.pieces(), spilled.rows)


def _drained(held: list[pa.Table]) -> Iterator[pa.Table]:
    """What is held, let go of piece by piece."""
    held.reverse()
    while held:
        yield held.pop()


def _deal_out(
    pieces: Iterable[pa.Table], key: ClusterKey, bounds: pa.Table, directory: Path, limits: SortLimits
) -> list[_Range]:
    """Every row to the file of its range; the ranges that got rows, in order.

    With n bounds there are 2n + 1 ranges: what equals bound i goes to range 2i + 1, all else to an even one.
    """
    ranges: dict[int, _Range] = {}
    try:
        for piece in pieces:
            where = placed(bounds, key.of(piece))
            number = where.below + where.through
            order = np.argsort(number, kind="stable")
            present, starts = np.unique(number[order], return_index=True)
            for at, start, end in zip(present.tolist(), starts, [*starts[1:], len(order)], strict=True):
                if at not in ranges:
                    ranges[at] = _Range(directory / f"{at}.arrow", is_one_key=bool(at % 2))
                ranges[at].add(piece.take(pa.array(order[start:end])), limits.codec)
    finally:
        for spilled in ranges.values():
            spilled.close()
    return [ranges[at] for at in sorted(ranges)]


def _sorted_pieces(held: list[pa.Table], key: ClusterKey) -> Iterator[pa.Table]:
    if not held:
        return
    rows = pa.concat_tables(held).combine_chunks()
    held.clear()
    order = sorted_positions(key.of(rows))
    for at in range(0, len(order), _PIECE_ROWS):
        yield rows.take(pa.array(order[at : at + _PIECE_ROWS]))
