"""A chart of the files of one bucket of an append table: a bar for each file, in write order."""

from dataclasses import dataclass

import numpy as np

from paimon_core.inspect.html.chart import Bar, divided
from paimon_core.inspect.html.file_sums import FileColumns
from paimon_core.inspect.html.tree import described
from paimon_core.types.human_text import count, size
from paimon_core.types.selection import Positions

MOST_COLUMNS = 90
"""Largest number of bars for a bucket. With more files, adjacent files share a bar of their mean size and a whisker."""
_HEIGHT = 64


@dataclass(frozen=True, slots=True)
class RunProfile:
    """Bars whose heights are file sizes. ``limit``: height of the line that marks a full file, in pixels."""

    bars: tuple[Bar, ...]
    columns: int
    height: int
    limit: float
    target: str


def run_profile_of(files: FileColumns, positions: Positions, target: int, small: int) -> RunProfile:
    """Return the chart of the files of one bucket.

    Args:
        files: all files.
        positions: the positions of the bucket's files.
        target: size of a full file in bytes.
        small: compaction picks files smaller than this number of bytes.
    """
    ordered = positions[np.lexsort((files.created[positions], files.sequence[positions]))]
    parts = divided(ordered, MOST_COLUMNS)
    means = [int(files.size[part].mean()) for part in parts]
    top = max(target, *means)
    width = 100 / max(len(parts), 24)
    bars = []
    for number, (part, mean) in enumerate(zip(parts, means, strict=True)):
        height = max(2.0, round(_HEIGHT * float(np.sqrt(mean / top)), 1))
        kind = "small" if mean < small else "full"
        lines = tuple(line for line in _lines(files, part) if line)
        bars.append(Bar(kind, round(number * width, 2), round(width, 2), round(_HEIGHT - height, 1), height, lines))
        if len(part) > 1:
            bars.append(_whisker((number + 0.5) * width, width, files.size[part], top))
    limit = round(_HEIGHT - _HEIGHT * float(np.sqrt(target / top)), 1)
    return RunProfile(tuple(bars), len(parts), _HEIGHT, limit, size(target))


def _whisker(middle: float, width: float, sizes: Positions, top: int) -> Bar:
    """Return a thin bar from the 10th to the 90th percentile of the sizes."""
    low, high = (_HEIGHT * float(np.sqrt(min(1.0, q / top))) for q in np.percentile(sizes, (10, 90)))
    y, height = round(_HEIGHT - high, 1), round(max(1.0, high - low), 1)
    return Bar("whisker", round(middle - width / 12, 2), round(width / 6, 2), y, height)


def _lines(files: FileColumns, part: Positions) -> list[str]:
    lines = described(files, part)
    if len(part) > 1:
        sizes = files.size[part]
        spread = f"{size(int(sizes.min()))} to {size(int(sizes.max()))}, mean {size(int(sizes.mean()))}"
        return [lines[0], spread, count(int(files.rows[part].sum()), "row"), lines[2]]
    return lines
