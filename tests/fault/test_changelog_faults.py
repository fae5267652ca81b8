"""Fault points of commits whose compactions write changelogs or deletion vectors.

The N-th call of a commit fails in every way. Every snapshot and its changes stay readable. Repeating the commit and
compacting level 0 give the expected table, and replaying all changes gives its rows. A commit that did not land leaves
no file behind.
"""

from contextlib import suppress

import pytest

from paimon_core.datafile.deletion_vectors import vector_entries
from paimon_core.errors import CommitUnknownError, PaimonError
from paimon_core.scan.entries import live_entries
from paimon_core.schema.schema import Schema
from paimon_core.schema.schemas import Schemas
from paimon_core.store.create import create_table
from paimon_core.store.file_store import FileStore
from paimon_core.table import Table
from tests.support.compaction import levels_of
from tests.support.draws import points
from tests.support.faulty_io import MODES, Crash, FaultyIO, MemoryIO
from tests.support.merge_model import ADDS
from tests.support.tables import ORDERS, orders, rows_of

ROOT = "memory://w/t"
USER, IDENTIFIER = "writer-1", 7
SHAPE = {"bucket": "1", "file.format": "avro", "num-sorted-run.compaction-trigger": "9"}
TABLES = {
    "lookup": {"changelog-producer": "lookup"},
    "vectors": {"deletion-vectors.enabled": "true"},
    "vectors, lookup": {"changelog-producer": "lookup", "deletion-vectors.enabled": "true"},
    "sums": {
        "changelog-producer": "lookup", "deletion-vectors.enabled": "true", "merge-engine": "aggregation",
        "fields.n.aggregate-function": "sum",
    },
    "full-compaction": {"changelog-producer": "full-compaction", "full-compaction.delta-commits": "1"},
    "input": {"changelog-producer": "input"},
}  # fmt: skip
QUICK = ("sums", "input")


def opened(io) -> Table:
    schema = Schemas(io, ROOT).latest()
    assert schema is not None
    return Table(FileStore(io, ROOT, schema))


def base(options: dict[str, str]) -> MemoryIO:
    """Rows at the highest level and at one above it."""
    io = MemoryIO()
    create_table(io, ROOT, Schema(ORDERS, primary_keys=["id"], options={**SHAPE, **options}))
    opened(io).write(orders(*((k, f"{k * 2654435761 % 2**32:08x}", 1) for k in range(90))))
    opened(io).write(orders(*((k, "second", 2) for k in range(5))))
    return io


def commit(io) -> None:
    table = opened(io)
    with table.writer() as writer:
        writer.write(orders((1, "third", 1), (7, "third", 1), (999, "new", 1)))
        messages = writer.prepare_commit(IDENTIFIER)
    committer = table.committer(USER)
    try:
        committer.commit(messages, IDENTIFIER, started_from=writer.started_from)
    except CommitUnknownError:
        raise
    except Exception:
        committer.abort(messages)
        raise


def told(table: Table) -> list[tuple]:
    """Return the changes of all snapshots, sorted: which compaction emitted a change does not matter."""
    return sorted(map(repr, table.changes(0).to_pylist()))


def lead_to(table: Table) -> list[dict]:
    held = {}
    for row in table.changes(0).to_pylist():
        if row.pop("rowkind") in ADDS:
            held[row["id"]] = row
        else:
            assert held.pop(row["id"]) == row
    return sorted(held.values(), key=lambda row: row["id"])


def names(table: Table) -> set[str]:
    """Every data, changelog and index file that a snapshot names."""
    store, found = table.store, set()
    for snapshot in table.snapshots():
        found |= {e.file.file_name for e in live_entries(store, snapshot).live}
        found |= {e.file_name for e in vector_entries(store, snapshot)}
        for name in {snapshot.changelog_manifest_list} - {None}:
            metas = store.manifests.read_list(name)
            found |= {e.file.file_name for m in metas for e in store.manifests.read(m.file_name)}
    return found


def unnamed(io: MemoryIO) -> set[str]:
    stored = {path.rsplit("/", 1)[1] for path in io.files if "/bucket-" in path or "/index/" in path}
    return stored - names(opened(io))


@pytest.mark.drawn
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in TABLES])
def test_survives_a_fault_at_every_call(name, mode):
    start = base(TABLES[name])
    before = opened(start).to_arrow().to_pylist()
    done = start.copy()
    dry = FaultyIO(done)
    commit(dry)
    after, changes = rows_of(opened(done).to_arrow()), told(opened(done))
    levels = {f.level for levels in levels_of(opened(done)).values() for f in levels.all_files}
    assert (0 in levels) == (name == "input"), "what is to be told, or marked, is compacted at once"
    for at, (verb, _) in points(list(enumerate(dry.log))):
        if verb in ("read", "exists", "list") or (mode != "before" and verb == "open"):
            continue  # what other commits read as well; and an open file has no answer to lose
        io = start.copy()
        with suppress(OSError, PaimonError, Crash):
            commit(FaultyIO(io, at, mode))
        table = opened(io)
        assert table.to_arrow().to_pylist() == before or rows_of(table.to_arrow()) == after, dry.log[at]
        table.changes(0)
        nothing_landed = len(table.snapshots()) == len(opened(start).snapshots())
        if nothing_landed and mode == "before" and verb != "delete":
            assert not unnamed(io), dry.log[at]
        commit(io)
        opened(io).compact(full=name == "full-compaction")
        table = opened(io)
        assert rows_of(table.to_arrow()) == after, dry.log[at]
        assert told(table) == changes, dry.log[at]
        if TABLES[name].get("changelog-producer") in ("lookup", "full-compaction"):
            assert lead_to(table) == after
