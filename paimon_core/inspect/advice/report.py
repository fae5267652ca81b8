"""The value types of advice."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from paimon_core.inspect.advice.history_bytes import HistoryBytes
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.types.display import table_html, text_html

SEVERE: Final = "severe"
"""Rows are not visible yet, or the table gets worse with every commit."""
WARNING: Final = "warning"
"""Reads, writes or storage cost clearly more than they need to."""
HINT: Final = "hint"
"""The table would be faster or smaller, but there may be reasons not to change it."""
SEVERITIES: Final = (SEVERE, WARNING, HINT)
"""The severities, most urgent first."""


@dataclass(frozen=True, slots=True)
class Scope:
    """The part of a table that advice is about: all of it, a partition such as ``dt=d1``, or one bucket of either.

    ``None``: all partitions, or all buckets.
    """

    partition: str | None = None
    bucket: int | None = None

    def __str__(self) -> str:
        parts = [self.partition, None if self.bucket is None else f"bucket {self.bucket}"]
        return " ".join(part for part in parts if part) or "table"


@dataclass(frozen=True, slots=True)
class Measure:
    """A measured number, and the threshold from which advice is given, both in ``unit``."""

    name: str
    value: float
    unit: str
    threshold: float

    def __str__(self) -> str:
        return f"{self.name}: {_number(self.value)} {self.unit}, advised from {_number(self.threshold)}"


@dataclass(frozen=True, slots=True)
class Remedy:
    """The remedy for a finding in three languages; `None` where a language has no single statement for it.

    ``command``: a shell line; ``sql``: a statement; ``python``: an expression on ``table``, which is a `Table`.
    If all are `None`, the advice text says what to do.
    """

    command: str | None = None
    sql: str | None = None
    python: str | None = None


@dataclass(frozen=True, slots=True, repr=False)
class Advice:
    """A problem in a scope of a table, the measure that shows it, and the remedy.

    ``kind``: a stable name, one of `check_registry.KINDS`, such as "small-files"; ``severity``: one of `SEVERITIES`;
    ``text``: one or two sentences. ``command``, ``sql`` and ``python``: see `Remedy`.
    """

    kind: str
    severity: str
    scope: Scope
    text: str
    measure: Measure
    command: str | None = None
    sql: str | None = None
    python: str | None = None

    def __post_init__(self) -> None:
        if self.severity not in SEVERITIES:
            raise ValueError(f"{self.severity!r} is not a severity of advice")

    def __repr__(self) -> str:
        """Return the severity, the kind and the scope; ``str`` also returns the text and the command."""
        return f"Advice({self.severity} {self.kind}, {self.scope})"

    def __str__(self) -> str:
        first = self.command or self.sql or self.python
        line = f"{self.severity} {self.kind} ({self.scope}): {self.text}"
        return line if first is None else f"{line}\n    {first}"


class AdviceList(list[Advice]):
    """A list of advice. ``print`` and a notebook show it as text and as a table; `repr` is the repr of a list."""

    def __str__(self) -> str:
        return report(self)

    def _repr_html_(self) -> str:
        if not self:
            return text_html(report(self))
        rows = [(a.severity, a.kind, str(a.scope), a.text, a.command or a.sql or a.python) for a in self]
        return table_html(("severity", "kind", "scope", "advice", "to run"), rows)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Print the text in IPython."""
        printer.text(str(self))


@dataclass(frozen=True, slots=True)
class TableOverview:
    """The size of a table at one snapshot, and the advice on the table, most urgent first.

    Args:
        snapshot: the newest snapshot; `None` if the table has no snapshot.
        files: the number of live data files, also of files that reads do not show yet.
        bytes: the bytes of these files.
        advice: see `TableHealth`.
        history: the bytes of other data files in the table's directory.
    """

    snapshot: Snapshot | None
    files: int
    bytes: int
    advice: tuple[Advice, ...]
    history: HistoryBytes


@dataclass(frozen=True, slots=True)
class TableHealth:
    """The measures of a table at one snapshot, and the resulting advice, most urgent first.

    ``buckets`` has a row for each bucket with files, sorted by partition and bucket; docs/guides/advice.md describes
    its columns. ``snapshot_id``: `None` if the table has no snapshot.
    """

    snapshot_id: int | None
    buckets: pa.Table
    advice: tuple[Advice, ...]

    def __repr__(self) -> str:
        at = "no snapshot" if self.snapshot_id is None else f"snapshot {self.snapshot_id}"
        kinds = ", ".join(dict.fromkeys(advice.kind for advice in self.advice)) or "none"
        return f"TableHealth({at}, buckets: {self.buckets.num_rows}, advice: {kinds})"

    @property
    def severity(self) -> str | None:
        """The severity of the most urgent advice; `None` without advice."""
        return self.advice[0].severity if self.advice else None

    def __str__(self) -> str:
        return report(self.advice)


def report(advice: Sequence[Advice]) -> str:
    """Return advice as text."""
    return "\n".join(map(str, advice)) if advice else "no advice: nothing would make the table faster or smaller"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == round(value) else f"{value:,.1f}"
