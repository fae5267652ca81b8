"""The values that advice consists of."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

SEVERE: Final = "severe"
"""Rows are not visible yet, or the table gets worse with every commit."""
WARNING: Final = "warning"
"""Reads, writes or storage cost clearly more than they need to."""
HINT: Final = "hint"
"""The table would be faster or smaller; there may be reasons to leave it as it is."""
SEVERITIES: Final = (SEVERE, WARNING, HINT)
"""The degrees of urgency, the most urgent one first."""


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
    """A number that was measured, and the threshold from which on advice is given, both in ``unit``."""

    name: str
    value: float
    unit: str
    threshold: float

    def __str__(self) -> str:
        return f"{self.name}: {_number(self.value)} {self.unit}, advised from {_number(self.threshold)}"


@dataclass(frozen=True, slots=True)
class Remedy:
    """One act that makes advice go away, in three languages; `None`: the language has no single statement for it.

    ``command`` is a line for a shell, ``sql`` a statement, ``python`` an expression of ``table``, which is a `Table`.
    All `None`: the text says what to do.
    """

    command: str | None = None
    sql: str | None = None
    python: str | None = None


@dataclass(frozen=True, slots=True)
class Advice:
    """What is wrong in a scope of a table, the measure that shows it, and the act that mends it.

    ``kind`` is a stable name, one of `registry.KINDS`, such as "small-files"; ``severity`` is one of `SEVERITIES`;
    ``text`` is a sentence or two. ``command``, ``sql`` and ``python``: as of `Remedy`.
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
            raise ValueError(f"{self.severity!r} is no severity of advice")

    def __str__(self) -> str:
        first = self.command or self.sql or self.python
        line = f"{self.severity} {self.kind} ({self.scope}): {self.text}"
        return line if first is None else f"{line}\n    {first}"


@dataclass(frozen=True, slots=True)
class TableHealth:
    """The measures of a table at one snapshot, and the advice that follows from them, the most urgent one first.

    ``buckets`` has a row for each bucket with files, in the order of partitions and buckets; its columns are described
    in docs/guides/advice.md. ``snapshot_id``: `None`: the table has no snapshot yet.
    """

    snapshot_id: int | None
    buckets: pa.Table
    advice: tuple[Advice, ...]

    def __repr__(self) -> str:
        at = "no snapshot" if self.snapshot_id is None else f"snapshot {self.snapshot_id}"
        kinds = ", ".join(dict.fromkeys(one.kind for one in self.advice)) or "none"
        return f"TableHealth({at}, buckets: {self.buckets.num_rows}, advice: {kinds})"

    @property
    def severity(self) -> str | None:
        """The severity of the most urgent advice; `None`: there is no advice."""
        return self.advice[0].severity if self.advice else None

    def __str__(self) -> str:
        return report(self.advice)


def report(advice: Sequence[Advice]) -> str:
    """Return advice as lines of text."""
    return "\n".join(map(str, advice)) if advice else "no advice: nothing would make the table faster or smaller"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == round(value) else f"{value:,.1f}"
