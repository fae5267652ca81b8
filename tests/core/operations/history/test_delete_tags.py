"""Tags that are deleted at once: which files go and stay, what is read for it, and what an unreadable file means."""

import logging
import random
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

from paimon_core.errors import CorruptedError, NotFoundError
from paimon_core.fileio.fileio import FileIO
from paimon_core.operations.history.automatic_tags import trigger
from paimon_core.operations.history.remembered_names import RememberedNames
from paimon_core.procedures.procedure import Call
from paimon_core.procedures.tags import delete_tag
from paimon_core.table import Table
from tests.core.operations.history.test_expire_snapshots import (
    KINDS,
    ROOT,
    act,
    open_table,
    stored,
    table_of,
    what_shows,
)
from tests.support.draws import rounds
from tests.support.faulty_io import FaultyIO, MemoryIO
from tests.support.tables import orders
from tests.support.timeline import needed_files

MOST_READS = 4
"""The number of reads of one file by one deletion of many tags."""


def expired_tags(count: int, kind: str = "keyed", **options: str) -> MemoryIO:
    """A table with ``count`` tags ``t<i>`` of expired snapshots, and two others. Only the tag needs a file of each."""
    io = table_of(kind, **{"tag.time-expire-enabled": "false", **options})
    for i in range(count + 2):
        open_table(io).overwrite(orders((i, "v", i)))
        if i < count:
            open_table(io).tags.create(f"t{i}", retained="1 ms")
        elif i == count:
            open_table(io).tags.create("stays")
    open_table(io).tags.create("young")
    open_table(io).maintenance.expire_snapshots(retain_max=1, retain_min=1)
    assert len(open_table(io).snapshots()) == 1
    return io


def names(count: int) -> list[str]:
    return [f"t{i}" for i in range(count)]


def by_procedure(io: FileIO, count: int) -> None:
    class OfTable(Call):
        def table(self, name: str = "table") -> Table:
            return open_table(io)

    call = OfTable(None, "c", delete_tag, {"table": "t", "tag": ", ".join(names(count))})
    assert delete_tag.run(call) == [(True,)]


def by_age(io: FileIO, count: int) -> None:
    assert open_table(io).tags.expire() == names(count)


def by_number(io: FileIO, count: int) -> None:
    """All tags but the newest two are too many."""
    options = {"tag.automatic-creation": "batch", "tag.num-retained-max": "2", "tag.batch.customized-name": "young"}
    trigger(open_table(io).with_options(options).store)


WAYS: dict[str, Callable[[FileIO, int], None]] = {
    "method": lambda io, count: open_table(io).tags.delete_several(names(count)),
    "procedure": by_procedure,
    "age": by_age,
    "number": by_number,
}


@pytest.mark.parametrize("way", WAYS)
def test_many_tags_are_deleted_with_one_reading_of_every_file(way):
    most = {}
    for count in (2, 40):
        io = FaultyIO(expired_tags(count))
        WAYS[way](io, count)
        reads = Counter(path for verb, path in io.log if verb in ("read", "open"))
        most[count] = max(reads.values())
        assert [tag.name for tag in open_table(io.inner).tags.list()] == ["stays", "young"]
        assert stored(io.inner) == needed_files(open_table(io.inner).store)
    assert most[40] <= most[2] <= MOST_READS


def test_one_of_many_tags_is_deleted_with_one_reading_of_every_file():
    io = FaultyIO(expired_tags(30))
    open_table(io).tags.delete("t1")
    assert max(Counter(path for verb, path in io.log if verb == "read").values()) <= MOST_READS


def test_next_tag_is_deleted_without_reading_the_same_manifests_again():
    io = FaultyIO(expired_tags(30))
    reads = []
    for name in ("t3", "t7", "t20"):
        io.log.clear()
        open_table(io).tags.delete(name)
        reads.append({path for verb, path in io.log if verb == "read" and "/manifest-" in path and "list" not in path})
        assert stored(io.inner) == needed_files(open_table(io.inner).store)
    others = reads[0] - reads[1]
    assert len(others) > 25
    assert len(reads[1]) <= 6
    assert len(reads[2]) <= 6


def test_remembered_names_are_bounded_and_the_latest_used():
    names = RememberedNames(most=10_000)
    one = np.zeros(10, np.uint64), np.zeros(10, np.int8)
    for number in range(100):
        names.put(("io", f"m{number}", 1), one)
        assert names.get(("io", "m0", 1)) is one
    kept = [number for number in range(100) if names.get(("io", f"m{number}", 1))]
    assert len(kept) == 10_000 // 590
    assert kept[1:] == [*range(100 - len(kept) + 1, 100)]
    names.put(("io", "large", 1), (np.zeros(200, np.uint64), np.zeros(200, np.int8)))
    assert names.get(("io", "large", 1)) is None
    assert names.get(("io", "m99", 2)) is None


@pytest.mark.parametrize("expired", [True, False])
def test_many_tags_of_one_snapshot_are_deleted_with_one_reading_of_every_file(expired):
    io = table_of("keyed")
    open_table(io).write(orders((1, "v", 1)))
    for name in names(20):
        open_table(io).tags.create(name)
    if expired:
        open_table(io).overwrite(orders((1, "v", 2)))
        open_table(io).maintenance.expire_snapshots(retain_max=1, retain_min=1)
    counted = FaultyIO(io)
    open_table(counted).tags.delete_several(names(20))
    assert max(Counter(path for verb, path in counted.log if verb == "read").values()) <= MOST_READS
    assert stored(io) == needed_files(open_table(io).store)


def test_all_or_none_of_several_tags_are_deleted():
    io = expired_tags(3)
    tags, before = open_table(io).tags, dict(io.files)
    with pytest.raises(NotFoundError, match="'nope'"):
        tags.delete_several(["t0", "nope"])
    assert [tag.name for tag in tags.delete_several(["t1", "t0"], dry_run=True)] == ["t1", "t0"]
    assert tags.delete_several([]) == []
    assert io.files == before
    assert [tag.name for tag in tags.delete_several(["t1", "t0", "t1"])] == ["t1", "t0"]
    assert [tag.name for tag in tags.list()] == ["t2", "stays", "young"]


def test_success_files_go_with_their_tags():
    io = expired_tags(3, **{"tag.create-success-file": "true"})
    open_table(io).tags.delete_several(["t0", "t2", "young"])
    left = {path.rpartition("/")[2] for path in io.files if "tag-success-file" in path}
    assert left == {"t1_SUCCESS", "stays_SUCCESS"}


def test_only_tags_are_deleted_if_files_of_another_tag_are_unknown():
    io = expired_tags(4)
    store = open_table(io).store
    lost = store.manifests.path(store.tags.get("stays").snapshot.delta_manifest_list)
    io.delete(lost)
    before = set(io.files)
    with pytest.raises(CorruptedError, match=r"files .* stay.*is missing.*orphan"):
        open_table(io).tags.delete_several(names(3))
    assert before - set(io.files) == {store.tags.path(name) for name in names(3)}
    open_table(io).tags.delete_several(["t3", "stays"])  # the damaged one goes as well
    assert [tag.name for tag in open_table(io).tags.list()] == ["young"]
    open_table(io).maintenance.remove_orphan_files(older_than=store.now())
    assert stored(io) == needed_files(open_table(io).store)


@pytest.mark.parametrize("damage", ["missing", "cut", "damaged"])
@pytest.mark.parametrize("what", ["list", "manifest", "index"])
def test_tag_whose_own_metadata_are_damaged_keeps_no_other_from_being_deleted(what, damage, caplog):
    io = table_of("append, deleted rows marked")
    open_table(io).write(orders((1, "v", 1), (2, "v", 2)))
    open_table(io).tags.create("t0")
    open_table(io).write(orders((3, "v", 3)))
    open_table(io).delete("id = 1")
    open_table(io).tags.create("t1")
    open_table(io).maintenance.compact_manifests()
    for i in range(3):
        open_table(io).overwrite(orders((i, "w", i)))
        open_table(io).tags.create(["t2", "stays", "young"][i])
    open_table(io).maintenance.expire_snapshots(retain_max=1, retain_min=1)
    store = open_table(io).store
    snapshot = store.tags.get("t1").snapshot
    name = {
        "list": snapshot.delta_manifest_list,
        "manifest": store.manifests.read_list(snapshot.base_manifest_list)[-1].file_name,
        "index": snapshot.index_manifest,
    }[what]
    path = store.manifests.path(name)
    data = {"missing": b"", "cut": io.files[path][:-9], "damaged": b"?" * len(io.files[path])}[damage]
    io.delete(path)
    if damage != "missing":
        io.write(path, data)
    with caplog.at_level(logging.WARNING):
        open_table(io).tags.delete_several(["t0", "t1", "t2"])
    assert [record.message for record in caplog.records if name in record.message]
    assert [tag.name for tag in open_table(io).tags.list()] == ["stays", "young"]
    assert needed_files(store) <= stored(io)
    assert len(stored(io) - needed_files(store)) <= 2, "what only the damaged one names"
    open_table(io).maintenance.remove_orphan_files(older_than=store.now())
    assert stored(io) == needed_files(store)


# ---- drawn histories

MOVES = ["write"] * 4 + ["tag"] * 4 + ["compact", "overwrite", "delete", "delete", "rewrite", "vectors", "expire"]
MORE = [
    {},
    {"changelog.num-retained.min": "101"},
    {"changelog.num-retained.min": "3", "changelog.num-retained.max": "4"},
    {"manifest.merge-min-count": "2"},
    {"manifest.merge-min-count": "100"},
]


class History:
    """Moves on the main line and on branches, drawn from a seed."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.kind = self.draw.choice(sorted(KINDS))
        self.io = table_of(self.kind, **self.draw.choice(MORE))
        self.branches, self.made = ["main"], 0
        for _ in range(self.draw.randint(15, 30)):
            self.move()
        for branch in self.branches:
            act(open_table(self.io, branch), self.draw.choice(["compact", "overwrite", "write"]), 99)
            open_table(self.io, branch).maintenance.expire_snapshots(retain_max=1, retain_min=1)

    def move(self) -> None:
        self.made += 1
        branch, rare = self.draw.choice(self.branches), self.draw.random()
        table = open_table(self.io, branch)
        if not table.snapshots():
            table.write(orders((1, "v1", 1)))
        elif rare < 0.02:
            table.rollback_to(self.draw.choice(table.snapshots()).id)
        elif rare < 0.04 and table.tags.list():
            table.rollback_to(self.draw.choice(table.tags.list()).name)
        elif rare < 0.08 and branch == "main" and len(self.branches) < 3:
            self.branch(table)
        else:
            self.often(table, branch, self.draw.choice(MOVES))

    def branch(self, table: Table) -> None:
        name, tags = f"b{self.made}", table.tags.list()
        if tags and self.draw.random() < 0.7:
            table.branches.create(name, tag=self.draw.choice(tags).name)
        else:
            table.branches.create(name, snapshot_id=self.draw.choice(table.snapshots()).id)
        self.branches.append(name)

    def often(self, table: Table, branch: str, move: str) -> None:
        if move == "tag":
            table.tags.create(f"t{self.made}", self.draw.choice(table.snapshots()).id)
        elif move == "expire":
            self.expire(branch)
        elif move == "vectors":
            if "deletion-vectors.enabled" in table.schema.options:
                table.maintenance.materialize_deletion_vectors()
        elif move == "rewrite":
            if self.kind == "indexes beside":
                columns = self.draw.choice(["v", "id", "v,id"])
                table.with_options({"file-index.bitmap.columns": columns}).maintenance.rewrite_file_index()
        else:
            act(table, move, self.made)

    def expire(self, branch: str) -> None:
        few = self.draw.randint(1, 3)
        open_table(self.io, branch).maintenance.expire_snapshots(retain_max=few, retain_min=1)


@pytest.mark.drawn
@pytest.mark.slow
def test_random_deletes_remove_exactly_files_of_deleted_tags():
    deleted = freed = 0
    for seed in range(rounds(100, 20)):
        history = History(seed)
        draw, io = history.draw, history.io
        now = open_table(io).store.now()
        open_table(io).maintenance.remove_orphan_files(older_than=now)
        shown, stays = what_shows(io), needed_files(open_table(io).store)
        assert stays <= stored(io), seed
        branch = draw.choice(["main", *history.branches])
        tags = [tag.name for tag in open_table(io, branch).tags.list()]
        chosen = draw.sample(tags, draw.randint(min(1, len(tags)), len(tags)))
        single = io.copy()
        open_table(io, branch).tags.delete_several(chosen)
        assert what_shows(io) == {k: v for k, v in shown.items() if k not in {(branch, name) for name in chosen}}, seed
        assert open_table(io).verify(deep=True).sound, seed
        assert needed_files(open_table(io).store) <= stored(io), seed
        assert open_table(io).maintenance.remove_orphan_files(older_than=now, dry_run=True).paths == [], seed
        for name in chosen:
            open_table(single, branch).tags.delete(name)
        assert single.files == io.files, seed
        deleted, freed = deleted + len(chosen), freed + len(stays - stored(io))
    assert deleted > 30
    assert freed > 50


def test_branch_and_rollback_keep_files_of_deleted_tags():
    io = expired_tags(3)
    open_table(io).branches.create("b", tag="t0")
    open_table(io).rollback_to("t1")
    shown = what_shows(io)
    open_table(io).tags.delete_several(["t0", "t1"])
    assert what_shows(io) == {key: rows for key, rows in shown.items() if key not in (("main", "t0"), ("main", "t1"))}
    assert {key[0] for key in shown} == {"main", "b"}
    assert open_table(io).verify(deep=True).sound
    assert f"{ROOT}/tag/tag-t0" not in io.files
