"""A chart of the merge tree of one bucket: a strip for each sorted run, a bar for each file, along the sorted keys.

The horizontal axis shows which files overlap, for keys of any type: see `key_axis`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from paimon_core.errors import PaimonError
from paimon_core.inspect.html.chart import Bar, divided
from paimon_core.inspect.html.file_sums import FileColumns
from paimon_core.inspect.html.key_axis import KeyAxis, axis_of
from paimon_core.lsm.intervals import ranks
from paimon_core.row.binary_row import decode_rows
from paimon_core.store.file_store import FileStore
from paimon_core.types.cast import cast_array
from paimon_core.types.datatype import BINARY_ROOTS, STRING, AtomicType, DataType
from paimon_core.types.human_text import count, short, size, wall_clock
from paimon_core.types.selection import Positions
from paimon_core.types.sorted_values import run_starts

MOST_STRIPS = 12
"""Number of level-0 runs with a separate strip; older runs share one strip."""
MOST_BARS = 60
"""Largest number of bars in a strip; in a run with more files, adjacent files share a bar."""
_THIN, _THICK, _GAP = 7, 13, 3
_DEPTH = 30


@dataclass(frozen=True, slots=True)
class Strip:
    """The bars of one or more runs. ``label``: text on the left; ``note``: text on the right; ``y``, ``height``: px."""

    label: str
    note: str
    y: int
    height: int
    bars: tuple[Bar, ...]


@dataclass(frozen=True, slots=True)
class Tree:
    """The chart of a bucket: its strips, newest first, and the number of runs that overlap at each key."""

    strips: tuple[Strip, ...]
    height: int
    depth: tuple[Bar, ...]
    deepest: int
    depth_height: int
    low: str
    high: str
    scaled: bool
    """True if positions are proportional to the first key column; False if they only show the order of the keys."""


def tree_of(store: FileStore, files: FileColumns, positions: Positions, trigger: int) -> Tree:
    """Return the chart of the files of one bucket. REQUIRES: a primary key.

    Args:
        store: the table.
        files: all files.
        positions: the positions of the bucket's files.
        trigger: the number of runs from which a compaction is due; the overlap profile is at least this high.
    """
    keys = decode_rows(
        [files.min_keys[i] for i in positions] + [files.max_keys[i] for i in positions], store.schema.key_arrow
    )
    ranked = ranks(keys)
    low, high = ranked[: len(positions)], ranked[len(positions) :]
    axis = axis_of(ranked, low, high, keys.column(0), store.schema.key_fields[0].type)
    picture = _Picture(files, positions, low, high, axis, key_texts(store, keys))
    levels = files.level[positions]
    newest_first = np.lexsort((files.created[positions], files.sequence[positions]))[::-1]
    unsorted = newest_first[levels[newest_first] == 0]
    strips: list[Strip] = []
    y = 0
    for number, at in enumerate(unsorted[:MOST_STRIPS].tolist()):
        label, note = "", ""
        if number == 0:  # the first strip labels the whole of level 0
            label = f"L0 × {len(unsorted)}" if len(unsorted) > 1 else "L0"
            note = size(int(files.size[positions[unsorted]].sum()))
        strips.append(Strip(label, note, y, _THIN, picture.bars([[at]], "l0", y, _THIN)))
        y += _THIN + _GAP
    if len(unsorted) > MOST_STRIPS:
        merged_strip = unsorted[MOST_STRIPS:]
        strips.append(Strip(f"{len(merged_strip)} older", "", y, _THICK, picture.overlaid(merged_strip, y, _THICK)))
        y += _THICK + _GAP
    deepest_level = int(levels.max())
    for level in np.unique(levels[levels > 0]).tolist():
        members = np.flatnonzero(levels == level)
        members = members[np.argsort(low[members], kind="stable")]
        parts = divided(members, MOST_BARS)
        kind = "deep" if level == deepest_level else "mid"
        bars = picture.bars([part.tolist() for part in parts], kind, y, _THICK)
        strips.append(Strip(f"L{level}", size(int(files.size[positions[members]].sum())), y, _THICK, bars))
        y += _THICK + _GAP
    depth, deepest = _depth(low, high, axis, trigger)
    first, last = int(np.argmin(low)), int(np.argmax(high))
    return Tree(
        tuple(strips),
        max(y - _GAP, _THICK),
        depth,
        deepest,
        _DEPTH,
        picture.texts[first],
        picture.texts[len(positions) + last],
        axis.scaled,
    )


@dataclass(frozen=True, slots=True)
class _Picture:
    """The files of a bucket, the ranks of their keys, and the texts of all first keys, then of all last keys."""

    files: FileColumns
    chosen: Positions
    low: Positions
    high: Positions
    axis: KeyAxis
    texts: Sequence[str]

    def bars(self, groups: Sequence[Sequence[int]], kind: str, y: int, height: int) -> tuple[Bar, ...]:
        """Return a bar for each group of adjacent files."""
        return tuple(self._bar(group, kind, y, height) for group in groups)

    def _bar(self, group: Sequence[int], kind: str, y: int, height: int) -> Bar:
        first, last = group[0], group[-1]
        deletes = int(np.maximum(self.files.deletes[self.chosen[group]], 0).sum())
        lines = [
            *described(self.files, self.chosen[group]),
            f"from {short(self.texts[first], 80)}",
            f"to {short(self.texts[len(self.chosen) + last], 80)}",
            count(deletes, "row of kind -D or -U", "rows of kind -D or -U") if deletes else "",
        ]
        x, width = self.axis.span(int(self.low[first]), int(self.high[last]))
        return Bar(f"{kind} del" if deletes else kind, x, width, y, height, tuple(line for line in lines if line))

    def overlaid(self, members: Positions, y: int, height: int) -> tuple[Bar, ...]:
        """Return bars for runs that overlap each other, darker where more runs overlap."""
        if self.axis.scaled:
            parts = divided(members[np.argsort(self.low[members], kind="stable")], MOST_BARS)
            return tuple(self._pale(part, y, height) for part in parts)
        bars, _ = _depth(self.low[members], self.high[members], self.axis, 1)
        return tuple(
            Bar(f"l0 o{max(1, round(4 * bar.height / _DEPTH))}", bar.x, bar.width, y, height, bar.lines) for bar in bars
        )

    def _pale(self, members: Positions, y: int, height: int) -> Bar:
        x, width = self.axis.span(int(self.low[members].min()), int(self.high[members].max()))
        return Bar("l0 o1", x, width, y, height, (count(len(members), "run"),))


def described(files: FileColumns, members: Positions) -> list[str]:
    """Return the tooltip lines of one file, or of several files together."""
    rows, total = int(files.rows[members].sum()), int(files.size[members].sum())
    created = files.created[members].max()
    name = files.names[members[0]] if len(members) == 1 else f"{len(members)} files"
    level = files.level[members[0]]
    origin = "compacted" if files.compacted[members].all() else "written"
    return [
        short(name, 80),
        f"level {level}, {count(rows, 'row')}, {size(total)}",
        "" if created < 0 else f"{origin} {wall_clock(int(created))}",
    ]


def _depth(low: Positions, high: Positions, axis: KeyAxis, least_top: int) -> tuple[tuple[Bar, ...], int]:
    """Return bars for the number of files at each key, and the largest number; adjacent equal bars are joined.

    A bar of ``least_top`` files has the full height if no bar counts more files.
    """
    steps = len(axis.starts)
    change = np.bincount(low, minlength=steps + 1) - np.bincount(high + 1, minlength=steps + 1)
    depth = np.cumsum(change)[:steps]
    most = int(depth.max())
    if axis.scaled:  # a bar counts the files between two keys; a file with one key is not between two keys
        depth = (np.cumsum(np.bincount(low, minlength=steps) - np.bincount(high, minlength=steps)))[: steps - 1]
    cells = np.arange(min(len(depth), MOST_BARS)) * len(depth) // min(len(depth), MOST_BARS)
    coarse = np.maximum.reduceat(depth, cells)
    starts = np.flatnonzero(run_starts(coarse))
    ends = [*cells[starts[1:]].tolist(), len(depth)]
    bars = []
    for at, end in zip(starts.tolist(), ends, strict=True):
        number = int(coarse[at])
        if number:
            height = round(_DEPTH * number / max(most, least_top), 1)
            x, width = axis.span(int(cells[at]), end if axis.scaled else end - 1)
            bars.append(Bar("depth", x, width, round(_DEPTH - height, 1), height, (count(number, "run"),)))
    return tuple(bars), most


def key_texts(store: FileStore, keys: pa.RecordBatch) -> list[str]:
    """Return the keys as texts, with commas between columns."""
    columns = [column_texts(keys.column(i), field.type) for i, field in enumerate(store.schema.key_fields)]
    return [", ".join(values) for values in zip(*columns, strict=True)]


def column_texts(values: pa.Array, kind: DataType) -> list[str]:
    """Return the values of a column as texts; ``kind``: the type of the column."""
    if isinstance(kind, AtomicType) and kind.root not in BINARY_ROOTS:
        try:
            return ["NULL" if text is None else text for text in cast_array(values, kind, STRING).to_pylist()]
        except PaimonError:  # a type without a cast to text
            pass
    return [value.hex() if isinstance(value, bytes) else str(value) for value in values.to_pylist()]
