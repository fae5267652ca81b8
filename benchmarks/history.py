"""The ratios of earlier runs, and the rows that have become slower since.

Each run that is kept is a line of ``history.jsonl``: when it ended, the commit, the machine, and for each row our wall
and CPU time over the times of each opponent. Ratios of a run survive a change of the machine; seconds do not.
"""

import json
import math
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path
from statistics import median

from benchmarks.measure import Row

HISTORY = Path(__file__).parent / "history.jsonl"
YARDSTICKS = ("parquet", "pyarrow")
"""The opponents that change least: a ratio to them that rises means that ours became slower."""
TOLERANCE = 1.2
"""The largest ratio to an earlier ratio that still counts as equally fast."""
_RECENT = 5
_CLOCKS = ("wall", "cpu")

Ratios = Mapping[str, Mapping[str, Mapping[str, float]]]
"""The ratios of a run: ``["name of the row, its number of rows"][opponent]["wall" or "cpu"]``."""


@dataclass(frozen=True, slots=True)
class Sitting:
    """One run of the benchmarks.

    Attributes:
        ended: the time at which it ended, in ISO 8601 with seconds.
        commit: the commit that was measured, with a plus sign if files differed from it.
        machine: the line of `report.machine`.
        ratios: the ratios of its rows.
    """

    ended: str
    commit: str
    machine: str
    ratios: Ratios


def ratios_of(rows: Iterable[Row]) -> dict[str, dict[str, dict[str, float]]]:
    """Return our time over the time of each opponent, for each row with an opponent; three digits after the point."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    for row in rows:
        for who in row.timings if "ours" in row.timings else ():
            measured = {clock: round(row.ratio(who, clock), 3) for clock in _CLOCKS if row.ratio(who, clock) > 0}
            if who != "ours" and measured:
                found.setdefault(f"{row.name}, {row.rows:,} rows", {})[who] = measured
    return found


def sitting(rows: Iterable[Row], machine: str, repository: Path) -> Sitting:
    """Return the run that just ended.

    Args:
        rows: its rows.
        machine: the line of `report.machine`.
        repository: the directory of the code that was measured.
    """
    commit = _git(repository, "rev-parse", "--short=8", "HEAD") or "unknown"
    changed = "+" if _git(repository, "status", "--porcelain", "--untracked-files=no") else ""
    ended = datetime.now(timezone.utc).isoformat(timespec="seconds")
    return Sitting(ended, commit + changed, machine, ratios_of(rows))


def earlier(path: Path = HISTORY) -> list[Sitting]:
    """Return the kept runs, the oldest first; none if the file does not exist."""
    if not path.exists():
        return []
    return [Sitting(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]


def keep(run: Sitting, path: Path = HISTORY) -> None:
    """Append a run to the file."""
    with path.open("a", encoding="utf-8") as out:
        out.write(json.dumps(asdict(run)) + "\n")


def slower(ratios: Ratios, before: Sequence[Sitting]) -> list[str]:
    """Return a sentence for each row that became slower than `TOLERANCE` allows, relative to a yardstick.

    A row is compared with the median of its last five kept ratios. It is slower only if both its wall and its CPU time
    are: other programs on the machine raise the first, and waiting hardly raises the second.
    """
    found = []
    for name, opponents in ratios.items():
        for who in (who for who in YARDSTICKS if who in opponents):
            now = opponents[who]
            past = {clock: _usual(name, who, clock, before) for clock in _CLOCKS}
            compared = [clock for clock in _CLOCKS if clock in now and not math.isnan(past[clock])]
            if "wall" in compared and all(now[clock] > TOLERANCE * past[clock] for clock in compared):
                changes = ", ".join(f"{clock} {past[clock]:.2f} -> {now[clock]:.2f}" for clock in compared)
                found.append(f"{name}: slower relative to {who}: {changes}")
    return found


def _usual(name: str, who: str, clock: str, before: Sequence[Sitting]) -> float:
    """Return the median of the last ratios of a row; NaN: no kept run has one."""
    past = [s.ratios[name][who][clock] for s in before if clock in s.ratios.get(name, {}).get(who, {})]
    return median(past[-_RECENT:]) if past else math.nan


def _git(repository: Path, *arguments: str) -> str:
    """Return what git prints; empty if the directory is no repository."""
    command = ["git", "-C", str(repository), *arguments]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    except FileNotFoundError:
        return ""
