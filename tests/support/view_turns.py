"""Turns of two engines with the views of one catalog."""

import json
import random
from collections.abc import Sequence
from typing import Any

from paimon_core import Catalog, DataField, View
from paimon_core.types.parse import parse_type

TYPES = ("INT NOT NULL", "STRING", "DECIMAL(5, 2)", "ARRAY<INT>", "MAP<STRING, DATE>", "TIMESTAMP(6)", "BOOLEAN")
KEPT_BY_HIVE = ("INT", "STRING", "DECIMAL(5, 2)", "ARRAY<INT>", "DATE", "BOOLEAN")
"""Types that Java reads from a view of Hive as they were: it loses NOT NULL and the digits of timestamps."""
_OF_SERVER = ("owner", "createdAt", "createdBy", "updatedAt", "updatedBy")
_OF_METASTORE = ("transient_lastDdlTime", "paimon.view.fields")
_ADDED = (*_OF_SERVER, *_OF_METASTORE)
"""Options that Java's REST catalog, a metastore or this engine adds to a view."""
_ACTIONS = ("create", "create", "rename", "drop", "read")


class ViewPlayers:
    """This engine and Java, and the views that both must see; each action is one turn of one engine.

    ``dialects``: True if the catalog stores the texts of dialects; ``types``: the types of columns.
    """

    def __init__(
        self, catalog: Catalog, java: Any, database: str, *, dialects: bool, types: Sequence[str] = TYPES
    ) -> None:
        self.catalog, self.java, self.database, self.dialects, self.types = catalog, java, database, dialects, types
        self.expected: dict[str, View] = {}

    def play(self, dice: random.Random, turn: int) -> str:
        """Let one engine act, and check that the other one sees the result."""
        free = [name for name in "abcde" if name not in self.expected]
        action = dice.choice(_ACTIONS) if self.expected else "create"
        if action in ("create", "rename") and not free:
            action = "drop"
        ours = dice.random() < 0.5
        name = dice.choice(free) if action == "create" else dice.choice(sorted(self.expected))
        full = f"{self.database}.{name}"
        if action == "create":
            view = self._drawn(dice, turn)
            if ours:
                self.catalog.create_view(full, view)
            else:
                self.java.tell("create_view", full, json.dumps(view.to_json()))
            self.expected[name] = view
        elif action == "rename":
            new = dice.choice(free)
            target = f"{self.database}.{new}"
            if ours:
                self.catalog.rename_view(full, target)
            else:
                self.java.tell("rename_view", full, target)
            self.expected[new] = self.expected.pop(name)
        elif action == "drop":
            if ours:
                self.catalog.drop_view(full)
            else:
                self.java.tell("drop_view", full)
            del self.expected[name]
        self.check()
        return action

    def check(self) -> None:
        """Check the names and the parts of all views, as each engine sees them."""
        names = sorted(self.expected)
        assert self.catalog.list_views(self.database) == names
        assert self.java.tell("views", self.database) == f"[{', '.join(names)}]"
        for name, view in self.expected.items():
            full = f"{self.database}.{name}"
            for seen in (self.catalog.view(full).to_json(), json.loads(self.java.tell("view", full))):
                assert parts(seen) == parts(view.to_json()), f"{full}: {parts(seen)}, not {parts(view.to_json())}"

    def _drawn(self, dice: random.Random, turn: int) -> View:
        kinds = dice.sample(self.types, dice.randrange(1, len(self.types)))
        fields = [
            DataField(i, f"c{i}", parse_type(kind), dice.choice((None, "a comment"))) for i, kind in enumerate(kinds)
        ]
        texts = {"spark": f"SELECT {turn} -- 'ä'", "flink": f"SELECT {turn} AS `x`"}
        chosen = {key: texts[key] for key in texts if self.dialects and dice.random() < 0.5}
        options = {"k": str(turn), "spark.view.mode": "x"} if dice.random() < 0.5 else {}
        return View(fields, f"SELECT {turn}", chosen, dice.choice((None, "what it is")), options)


def parts(view: dict[str, Any]) -> dict[str, Any]:
    """Return the parts of a view as they can be compared: without ids of fields, empty comments and what Java adds."""
    fields = [(field["name"], field["type"], field.get("description")) for field in view["fields"]]
    options = {key: value for key, value in view["options"].items() if key not in _ADDED}
    return {**view, "options": options, "fields": fields, "comment": view.get("comment") or None}
