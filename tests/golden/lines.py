"""Write the tables of every line of the Java engine again: ``python -m tests.golden.lines`` (needs java, javac, mvn).

``lines/<writer>/tables.tar.xz`` holds the tables that one version wrote; ``lines/<writer>/rows.json`` has the rows that
this version itself read at every snapshot, tag and branch, and its changes.
"""

import json
import random
import shutil
import sys
import tarfile
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.conformance.judge import Judge, JudgeError
from tests.conformance.kinds import APPEND, FORMATS, Kind, keyed
from tests.conformance.shared_table import SharedTable, created_by_java

LINES = Path(__file__).parent / "lines"
VERSIONS = ("0.9.0", "1.0.1", "1.1.1", "1.2.0", "1.3.1", "1.4.2")
SEED = 20_261_127


def kinds() -> dict[str, Kind]:
    """Return the kinds of tables by name."""
    found = {f"append_{one}": APPEND.of_format(one) for one in FORMATS}
    found["partitions"] = Kind("append-partitions", partition_keys=("p",))
    vectors = {"changelog_producer": "lookup", "deletion_vectors.enabled": "true"}
    found["vectors"] = keyed("vectors", bucket="2", **vectors)
    for one in FORMATS:
        found[f"keyed_{one}"] = replace(keyed("keyed", bucket="1"), file_format=one)
    found["changelog"] = keyed("changelog", bucket="1", **{"changelog_producer": "full-compaction"})
    found["lookup"] = keyed("lookup", bucket="1", **{"changelog_producer": "lookup"})
    found["append_vectors"] = Kind("append_vectors", {"deletion-vectors.enabled": "true"})
    return found


def history(table: SharedTable, kind: Kind, rng: random.Random) -> None:
    """Write twice, compact, tag, branch, change the schema, and write again."""
    if kind.file_format == "parquet":
        kind = kind.of_format("orc")  # times from 1970 on: before Java 1.3 reads of earlier ones fail
    for _ in range(2):
        table.java("write", rows=kind.rows(rng, 10))
    if kind.primary_keys:
        table.java("compact", kind="full")
    elif "deletion-vectors.enabled" in kind.options:
        table.java("append_delete", where={"s1": 2})
    table.java("create_tag", name="first", snapshot=1)
    table.java("create_branch", name="side", tag="first")
    table.java("write", rows=kind.rows(rng, 4), branch="side")
    changes = [
        {"op": "rename_column", "name": "c1", "to": "renamed"},
        {"op": "drop_column", "name": "c2"},
        {"op": "update_type", "name": "s1", "type": "BIGINT"},
        {"op": "add_column", "name": "added", "type": "DATE"},
    ]
    table.java("alter_table", changes=changes)
    rows = kind.rows(rng, 6)
    fields = {name for name, _ in kind.columns} - {"c1", "c2"}
    rows = [[one, {**{n: v for n, v in row.items() if n in fields}, "added": "2026-11-27"}] for one, row in rows]
    table.java("write", rows=rows)


def read(table: SharedTable, kind: Kind) -> dict[str, Any]:
    """Return what the engine reads of a table: columns, types and rows by the moment."""
    moments = {f"snapshot {one['id']}": {"snapshot": one["id"]} for one in table.java("snapshots")}
    moments |= {"tag first": {"tag": "first"}, "branch side": {"branch": "side"}, "now": {}}
    found = {}
    for name, arguments in moments.items():
        answer = table.java("read", **arguments)
        rows = [row[1:] for row in answer["rows"]]
        found[name] = {"columns": answer["columns"], "types": answer["types"], "rows": rows}
    if "changelog-producer" in kind.options:
        answer = table.java("stream_read", options={"scan.snapshot-id": "1"})
        found["changes"] = {
            "columns": answer["columns"], "types": answer["types"],
            "rows": [row for plan in answer["plans"] for row in plan["rows"]],
        }  # fmt: skip
    return found


def packed(home: Path, warehouse: Path, told: dict[str, Any]) -> None:
    """Store the tables of a warehouse and what was read of them."""
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    with tarfile.open(home / "tables.tar.xz", "w:xz", preset=9) as archive:
        for name in told:
            archive.add(warehouse / "db.db" / name, name, filter=_plain)
    text = json.dumps(told, ensure_ascii=False).replace("], [", "],\n[")
    (home / "rows.json").write_text(text + "\n", encoding="utf-8")


def _plain(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Return a member without what the machine adds; `None` for checksums of the local file system."""
    if member.name.endswith(".crc"):
        return None
    member.uid = member.gid = member.mtime = 0
    member.uname = member.gname = ""
    return member


def main() -> None:
    """Write the tables of every version, or of the versions in the arguments; print what a version cannot do itself."""
    for version in sys.argv[1:] or VERSIONS:
        told = {}
        with tempfile.TemporaryDirectory() as warehouse:
            with Judge(warehouse, version, linked=True) as judge:
                for name, kind in kinds().items():
                    table = created_by_java(judge, f"db.{name}", kind)
                    try:
                        history(table, kind, random.Random(f"{SEED} {name}"))
                        told[name] = read(table, kind)
                    except JudgeError as error:
                        print(f"{version} {name}: left out: {error}")
            packed(LINES / f"java-{version}", Path(warehouse), told)


if __name__ == "__main__":
    main()
