"""Make the golden tables again with the Java engine: ``python -m tests.golden.generate`` (needs java, javac, mvn).

Each table is in ``cases/<name>/table``; ``cases/<name>/case.json`` says why it is there, who wrote it, and what Java
reads at every snapshot.
"""

import json
import random
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.conformance.judge import DEFAULT_VERSION, Judge
from tests.conformance.kinds import APPEND, FORMATS, KINDS, Kind, dotted, keyed
from tests.conformance.shared_table import SharedTable, created_by_java

CASES = Path(__file__).parent / "cases"
SEED = 20_260_101
Act = Callable[[SharedTable, Kind, random.Random], None]


def one_commit(table: SharedTable, kind: Kind, rng: random.Random) -> None:
    """Nothing but rows."""
    table.java("write", rows=kind.rows(rng, 9))


def commits(table: SharedTable, kind: Kind, rng: random.Random) -> None:
    """Two commits."""
    for _ in range(2):
        table.java("write", rows=kind.rows(rng, 12))


def levels(table: SharedTable, kind: Kind, rng: random.Random) -> None:
    """A full compaction between commits: files on the first and on the last level."""
    table.java("write", rows=kind.rows(rng, 16))
    table.java("compact", kind="full")
    table.java("write", rows=kind.rows(rng, 12))


def evolution(table: SharedTable, kind: Kind, rng: random.Random) -> None:
    """Files of two schemas."""
    table.java("write", rows=kind.rows(rng, 8))
    changes = [
        {"op": "rename_column", "name": "c1", "to": "renamed"},
        {"op": "drop_column", "name": "c2"},
        {"op": "update_type", "name": "c0", "type": "BIGINT"},
        {"op": "add_column", "name": ["c8", "new"], "type": "DATE"},
        {"op": "add_column", "name": "first", "type": "STRING", "move": {"to": "first"}},
    ]
    table.java("alter_table", changes=changes)
    rows = [[k, {**row, "renamed": "x", "first": "y"}] for k, row in kind.rows(rng, 8)]
    table.java("write", rows=rows)


def kind_named(name: str) -> Kind:
    """One of KINDS."""
    return next(kind for kind in KINDS if kind.name == name)


def cases() -> dict[str, tuple[str, Kind, Act]]:
    """Name to (why, kind of table, what happens to it)."""
    found: dict[str, tuple[str, Kind, Act]] = {}
    for file_format in FORMATS:
        wide = APPEND.of_format(file_format)
        found[f"types_{file_format}"] = (
            f"every type the engine stores in {file_format}, corners and nulls",
            wide,
            one_commit,
        )
        merged = replace(keyed("keys", bucket="1"), file_format=file_format)
        found[f"keys_{file_format}"] = ("upserts and deletes merged over two levels", merged, levels)
    found["partitions"] = (
        "partition directories with odd names, NULL and empty",
        kind_named("append-partitions"),
        one_commit,
    )
    downwards = dotted("sequence", {"bucket": "1"}, kind_named("sequence-descending"))
    found["sequence_descending"] = ("two sequence columns, downwards", downwards, levels)
    found["thin"] = ("key columns stored once", dotted("thin", {"data-file.thin-mode": "true", "bucket": "1"}), commits)
    found["evolution"] = (
        "columns renamed, dropped, widened, added, also inside a row",
        keyed("evolution", bucket="1"),
        evolution,
    )
    return found


def generate(judge: Judge, name: str, why: str, kind: Kind, act: Act) -> None:
    """Write one case again."""
    rng = random.Random(f"{SEED} {name}")
    table = created_by_java(judge, f"db.{name}", kind)
    act(table, kind, rng)
    home = CASES / name
    shutil.rmtree(home, ignore_errors=True)
    shutil.copytree(table.path, home / "table")
    told: dict[str, Any] = {
        "why": why,
        "engine": f"Java {DEFAULT_VERSION}",
        "options": {**kind.options},
        "snapshots": {},
    }
    for snapshot in table.java("snapshots"):
        answer = table.java("read", snapshot=snapshot["id"])
        told["snapshots"][snapshot["id"]] = {
            "columns": answer["columns"], "types": answer["types"], "rows": [row[1:] for row in answer["rows"]],
        }  # fmt: skip
    (home / "case.json").write_text(
        json.dumps(told, ensure_ascii=False).replace("], [", "],\n[") + "\n", encoding="utf-8"
    )


def main() -> None:
    """All cases."""
    with tempfile.TemporaryDirectory() as warehouse, Judge(warehouse) as judge:
        for name, (why, kind, act) in cases().items():
            generate(judge, name, why, kind, act)


if __name__ == "__main__":
    main()
