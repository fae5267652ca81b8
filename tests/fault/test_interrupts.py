"""Ctrl-C at any call: nothing is left behind but what a snapshot names."""

from collections.abc import Callable

import pyarrow as pa
import pytest

from paimon_core.fileio.fileio import FileIO
from paimon_core.scan.entries import live_entries
from paimon_core.schema.schema import Schema
from paimon_core.schema.schemas import Schemas
from paimon_core.store.create import create_table
from paimon_core.store.file_store import FileStore
from paimon_core.table import Table
from tests.support.faulty_io import FaultyIO, MemoryIO
from tests.support.tables import ORDERS, orders

ROOT = "memory://w/t"
COMPACTING = {"num-sorted-run.compaction-trigger": "2", "num-levels": "3"}
MARKED = {"deletion-vectors.enabled": "true"}
DEEDS: dict[str, tuple[list[str], dict[str, str], Callable[[Table], object]]] = {
    "append": ([], {}, lambda t: t.write(orders((7, "new", 1)))),
    "upsert, compacting": (["id"], {"bucket": "1", **COMPACTING}, lambda t: t.write(orders((1, "new", 1)))),
    "upsert, changelog": (
        ["id"],
        {"bucket": "1", "changelog-producer": "lookup"},
        lambda t: t.write(orders((1, "n", 1))),
    ),
    "upsert, dynamic": (["id"], {"bucket": "-1"}, lambda t: t.write(orders((1, "new", 1), (8, "new", 1)))),
    "overwrite": (["id"], {"bucket": "1"}, lambda t: t.overwrite(orders((1, "new", 1)))),
    "delete, rewriting": ([], {}, lambda t: t.delete("id = 1")),
    "delete, marking": ([], MARKED, lambda t: t.delete("id = 1")),
    "delete, keys": (["id"], {"bucket": "1"}, lambda t: t.delete("id = 1")),
    "compact": (["id"], {"bucket": "1", "write-only": "true"}, lambda t: t.compact(full=True)),
    "compact, append": ([], {"compaction.min.file-num": "2"}, lambda t: t.compact()),
    "sort": ([], {}, lambda t: t.compact(order_by=["v"])),
}


def opened(io: FileIO) -> Table:
    schema = Schemas(io, ROOT).latest()
    assert schema is not None
    return Table(FileStore(io, ROOT, schema))


def started(keys: list[str], options: dict[str, str]) -> MemoryIO:
    io = MemoryIO()
    create_table(io, ROOT, Schema(ORDERS, primary_keys=keys, options=options))
    for n in range(2):
        opened(io).write(orders((1, "old", n), (2, "old", n)))
    return io


def left_behind(io: MemoryIO) -> set[str]:
    """Data, index and manifest files that no snapshot names."""
    table, named = opened(io), set()
    for s in table.snapshots():
        manifests = table.store.manifests
        lists = {s.base_manifest_list, s.delta_manifest_list, *filter(None, [s.changelog_manifest_list])}
        named |= {*lists, s.index_manifest}
        for meta in (m for name in lists for m in manifests.read_list(name)):
            named |= {meta.file_name, *(e.file.file_name for e in manifests.read(meta.file_name))}
        named |= {e.file.file_name for e in live_entries(table.store, s).live}
        if s.index_manifest:
            named |= {e.file_name for e in manifests.read_index(s.index_manifest)}
    places = ("/bucket-", "/manifest/", "/index/")
    return {path for path in io.files if any(p in path for p in places) and path.rsplit("/", 1)[1] not in named}


@pytest.mark.cases(3)
@pytest.mark.parametrize("name", DEEDS)
def test_interrupt_leaves_no_file(name):
    keys, options, deed = DEEDS[name]
    base = started(keys, options)
    assert left_behind(base) == set()
    before, landed = opened(base).snapshot().id, set()
    for at in range(1000):
        io = base.copy()
        faulty = FaultyIO(io, at, "interrupt")
        try:
            deed(opened(faulty))
        except KeyboardInterrupt:
            verb, path = faulty.log[at]
            if verb == "create_exclusive" or "delete" in verb:
                continue  # the outcome is unknown, and the deletion was interrupted
            assert left_behind(io) == set(), (at, verb, path)
            landed.add(opened(io).snapshot().id > before)
            continue
        break
    assert False in landed
    assert isinstance(opened(io).to_arrow(), pa.Table)
