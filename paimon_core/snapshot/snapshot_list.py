"""A list of snapshots that shows itself as a table."""

from typing import Any

from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.types.display import table_html, table_text
from paimon_core.types.human_text import moment

_NAMES = ("snapshot", "kind", "committed", "rows", "rows stored", "schema", "commit user")
_MOST_SHOWN = 40


class SnapshotList(list[Snapshot]):
    """A list of snapshots. ``print`` and a notebook show the last 40 as a table; `repr` is the repr of a list."""

    def __str__(self) -> str:
        if not self:
            return "no snapshots"
        note = self._note()
        return table_text(_NAMES, self._rows()) + (f"\n{note}" if note else "")

    def _repr_html_(self) -> str:
        return table_html(_NAMES, self._rows(), self._note() if self else "no snapshots")

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Print the table in IPython."""
        printer.text(str(self))

    def _rows(self) -> list[tuple[object, ...]]:
        return [
            (s.id, s.commit_kind, moment(s.time_millis), _signed(s), s.total_record_count, s.schema_id, s.commit_user)
            for s in self[-_MOST_SHOWN:]
        ]

    def _note(self) -> str:
        return f"the last {_MOST_SHOWN} of {len(self):,} snapshots" if len(self) > _MOST_SHOWN else ""


def _signed(snapshot: Snapshot) -> str | None:
    return None if snapshot.delta_record_count is None else f"{snapshot.delta_record_count:+,}"
