"""Golden tables and what a reader must find in them."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paimon_core.table import Table
from paimon_core.types.datatype import DataField
from tests.conformance.compare import same
from tests.conformance.values import normal, rows

CASES = Path(__file__).parent / "cases"
NAMES = sorted(path.name for path in CASES.iterdir() if (path / "case.json").exists())


@dataclass(frozen=True)
class Golden:
    """One golden table at a place (a copy may be elsewhere), with the story of its case."""

    home: Path

    @property
    def told(self) -> dict[str, Any]:
        """Return the contents of case.json."""
        return json.loads((self.home / "case.json").read_text(encoding="utf-8"))

    @property
    def table(self) -> Table:
        """The table, opened by our engine."""
        return Table.open(str(self.home / "table"))

    def fields_at(self, snapshot: int) -> tuple[DataField, ...]:
        """Its columns at a snapshot."""
        table = self.table
        return table.store.schemas.get(table.snapshot(snapshot_id=snapshot).schema_id).fields

    def expected(self, snapshot: int) -> list[list[Any]]:
        """The rows Java read there."""
        fields = self.fields_at(snapshot)
        return [
            [normal(v, f.type) for v, f in zip(row, fields, strict=True)]
            for row in self.told["snapshots"][str(snapshot)]["rows"]
        ]

    def check(self) -> None:
        """Compare every snapshot, columns and rows; raises Difference."""
        for text, seen in self.told["snapshots"].items():
            snapshot = int(text)
            fields = self.fields_at(snapshot)
            types = [t.replace("`", "") for t in seen["types"]]
            columns = [[f.name, str(f.type).replace("`", "")] for f in fields]
            same(
                columns, [list(pair) for pair in zip(seen["columns"], types, strict=True)], f"{self.home.name}: columns"
            )
            found = rows(self.table.to_arrow(snapshot_id=snapshot), fields)
            same(found, self.expected(snapshot), f"{self.home.name} at snapshot {snapshot}")
