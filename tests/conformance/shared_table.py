"""A table that both engines use, and what they must agree on."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from paimon_core.table import Table
from paimon_core.types.datatype import DataField
from tests.conformance.compare import same
from tests.conformance.judge import Judge
from tests.conformance.kinds import Kind
from tests.conformance.values import arrow, normal, rows


class SharedTable:
    """One table of the judge's warehouse, seen by the Java engine and by ours."""

    def __init__(
        self, judge: Judge, name: str, branch: str | None = None, options: Mapping[str, str] | None = None
    ) -> None:
        self.judge, self.name, self.branch = judge, name, branch
        self.options = dict(options or {})
        database, table = name.split(".")
        self.path = f"{judge.warehouse}/{database}.db/{table}"

    @property
    def java_name(self) -> str:
        """The name of the table, or of its branch, to which the name of a system table can be added."""
        return self.name if self.branch is None else f"{self.name}$branch_{self.branch}"

    def java(self, command: str, **arguments: Any) -> Any:
        """Let the Java engine do something with this table."""
        if self.branch is not None:
            arguments["branch"] = self.branch
        return self.judge.call(command, table=self.name, **arguments)

    def ours(self, **options: str) -> Table:
        """The table as our engine sees it now, under the options of all our reads and these."""
        return Table.open(self.path, options={**self.options, **options}, branch=self.branch)

    def fields_at(self, **when: Any) -> tuple[DataField, ...]:
        """The columns as of a moment."""
        table = self.ours()
        snapshot = table.snapshot(**when) if when else None
        return (table.schema if snapshot is None else table.store.schemas.get(snapshot.schema_id)).fields

    # ---- reading

    def java_rows(self, fields: Sequence[DataField], **arguments: Any) -> list[list[Any]]:
        """Return the rows that Java reads, as normal written values; raise if names or types differ from ``fields``."""
        answer = self.java("read", **arguments)
        theirs = [[n, t.replace("`", "")] for n, t in zip(answer["columns"], answer["types"], strict=True)]
        same(theirs, [[f.name, str(f.type).replace("`", "")] for f in fields], f"{self.name}: columns {arguments}")
        return [[normal(v, f.type) for v, f in zip(row[1:], fields, strict=True)] for row in answer["rows"]]

    def our_rows(self, fields: Sequence[DataField], **arguments: Any) -> list[list[Any]]:
        """Return the rows that we read, as normal written values."""
        return rows(self.ours().to_arrow(**arguments), fields)

    def agree(self, *, snapshot: int | None = None, tag: str | None = None) -> list[list[Any]]:
        """Both engines read the same rows and columns, now or at one snapshot or tag; returns them."""
        ours = {k: v for k, v in (("snapshot_id", snapshot), ("tag", tag)) if v is not None}
        java = {k: v for k, v in (("snapshot", snapshot), ("tag", tag)) if v is not None}
        fields = self.fields_at(**ours)
        expected = self.java_rows(fields, **java)
        same(self.our_rows(fields, **ours), expected, f"{self.name} {ours or 'now'}")
        return expected

    def agree_everywhere(self) -> list[list[Any]]:
        """Both engines agree on every snapshot kept, and on the newest rows, which are returned."""
        for snapshot in self.java("snapshots"):
            self.agree(snapshot=snapshot["id"])
        return self.agree()

    # ---- writing

    def arrow(self, found: Sequence[dict[str, Any]]) -> pa.Table:
        """Written rows as an Arrow table with the columns of the table now."""
        return arrow(found, self.ours().schema.fields)

    def we_write(self, changes: Sequence[Sequence[Any]]) -> None:
        """Commit [kind, row] pairs with our engine."""
        table = self.ours()
        kinds = [kind for kind, _ in changes]
        table.write(self.arrow([row for _, row in changes]), kinds if set(kinds) != {"+I"} else None)


def created_by_java(judge: Judge, name: str, kind: Kind, **definition: Any) -> SharedTable:
    """A new table of a kind, made by the Java engine."""
    table = SharedTable(judge, name)
    table.java("create_table", **{**kind.definition, **definition})
    return table
