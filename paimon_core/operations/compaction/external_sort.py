"""Sort more rows than fit in memory: distribute them to key ranges on local disk, and sort each range.

Bounds from a sample divide the keys into ranges that fit in memory. Every bound is also a range of a single key, which
needs no sorting. Thus a key may repeat any number of times, and every other range is smaller than its input. A range
that is still too large is distributed again.
"""

import itertools
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from paimon_core.memory import MemoryShares
from paimon_core.operations.compaction.cluster_key import ClusterKey, bound_ranks, distinct, quantiles, sorted_positions
from paimon_core.options.lsm import LOCAL_SORT_MAX_NUM_FILE_HANDLES
from paimon_core.options.option import Options
from paimon_core.read.external_merge import spill_codec

SAMPLE_ROWS = 1 << 17
_BATCH_ROWS = 1 << 17


@dataclass(frozen=True, slots=True)
class SortLimits:
    """The limits of a sort: bytes of rows to sort at once, number of open range files, the files' codec, a sample."""

    bytes: int
    files: int = 128
    codec: pa.Codec | None = None
    sample_bytes: int = MemoryShares().sample

    @staticmethod
    def of(options: Options) -> "SortLimits":
        """Return the limits from the table's options.

        All steps together take four times the rows: the rows, the same rows sorted, their normalized keys, and rows
        being written.
        """
        shares, files = MemoryShares.of(options), options.value(LOCAL_SORT_MAX_NUM_FILE_HANDLES)
        return SortLimits(shares.sort, files, spill_codec(options), shares.sample)


def sample_rows(tables: Iterable[pa.Table], total: int, most_bytes: int = MemoryShares().sample) -> pa.Table:
    """Return a random sample of about `SAMPLE_ROWS` of ``total`` rows, or fewer if they have over ``most_bytes``.

    The sample is the same in every run. REQUIRES: at least one table.
    """
    random = np.random.default_rng(0)
    chance = min(1.0, SAMPLE_ROWS / max(1, total))
    sampled: list[pa.Table] = []
    size = 0
    for table in tables:
        sampled.append(table if chance == 1.0 else table.filter(pa.array(random.random(table.num_rows) < chance)))
        size += sampled[-1].nbytes
        if size > most_bytes:
            chance /= 2
            rows = pa.concat_tables(sampled)
            sampled = [rows.filter(pa.array(random.random(rows.num_rows) < 0.5)).combine_chunks()]
            size = sampled[0].nbytes
    return pa.concat_tables(sampled).combine_chunks()


def sort_stream(
    tables: Iterable[pa.Table], total: int, key: ClusterKey, sample: Callable[[], pa.Table], limits: SortLimits
) -> Iterator[pa.Table]:
    """Yield the rows in the order of ``key``; rows of equal keys keep their order.

    Spilled rows are in a temporary directory, which is deleted with the iterator.

    Args:
        tables: the rows.
        total: the approximate number of rows.
        key: the sort key; a curve must have its cuts.
        sample: returns sample rows with at least the key columns; called only if the rows exceed the limit.
        limits: the limits of memory and files.
    """
    source = iter(tables)
    buffered: list[pa.Table] = []
    size = 0
    for table in source:
        buffered.append(table)
        size += table.nbytes
        if size > limits.bytes:
            break
    else:
        yield from _sorted_tables(buffered, key)
        return
    # slightly more ranges than necessary, because a sample is not exact
    rows = sum(table.num_rows for table in buffered)
    parts = 2 + int(1.5 * size / max(1, rows) * total / limits.bytes)
    bounds = distinct(quantiles(key.of(sample()), max(1, min(parts, (limits.files - 1) // 2))))
    with tempfile.TemporaryDirectory(prefix="paimon-sort-") as directory:
        ranges = _distribute(itertools.chain(_release_in_order(buffered), source), key, bounds, Path(directory), limits)
        for spilled in ranges:
            if spilled.is_one_key:
                yield from spilled.tables()
            else:
                sampled = _sampler(spilled, limits)
                yield from sort_stream(spilled.tables(), spilled.rows, key, sampled, limits)
            spilled.path.unlink()


class _Range:
    """The rows of one key range, in a file."""

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

    def tables(self) -> Iterator[pa.Table]:
        with pa.OSFile(str(self.path)) as source, pa.ipc.open_stream(source) as stream:
            for batch in stream:
                yield pa.Table.from_batches([batch])


def _sampler(spilled: _Range, limits: SortLimits) -> Callable[[], pa.Table]:
    return lambda: sample_rows(spilled.tables(), spilled.rows, limits.sample_bytes)


def _release_in_order(buffered: list[pa.Table]) -> Iterator[pa.Table]:
    """Yield the tables in order, releasing the memory of each one."""
    buffered.reverse()
    while buffered:
        yield buffered.pop()


def _distribute(
    tables: Iterable[pa.Table], key: ClusterKey, bounds: pa.Table, directory: Path, limits: SortLimits
) -> list[_Range]:
    """Write every row to the file of its range; return the non-empty ranges in key order.

    With n bounds there are ``2n + 1`` ranges: rows equal to bound i go to range ``2i + 1``, all others to even ranges.
    """
    ranges: dict[int, _Range] = {}
    try:
        for table in tables:
            where = bound_ranks(bounds, key.of(table))
            number = where.smaller + where.through
            order = np.argsort(number, kind="stable")
            present, starts = np.unique(number[order], return_index=True)
            for at, start, end in zip(present.tolist(), starts, [*starts[1:], len(order)], strict=True):
                if at not in ranges:
                    ranges[at] = _Range(directory / f"{at}.arrow", is_one_key=bool(at % 2))
                ranges[at].add(table.take(pa.array(order[start:end])), limits.codec)
    finally:
        for spilled in ranges.values():
            spilled.close()
    return [ranges[at] for at in sorted(ranges)]


def _sorted_tables(buffered: list[pa.Table], key: ClusterKey) -> Iterator[pa.Table]:
    if not buffered:
        return
    rows = pa.concat_tables(buffered).combine_chunks()
    buffered.clear()
    order = sorted_positions(key.of(rows))
    for at in range(0, len(order), _BATCH_ROWS):
        yield rows.take(pa.array(order[at : at + _BATCH_ROWS]))
