"""Mutants: each removes one guard of the engine, or brings a defect back, and the simulation must find it.

A mutant is a list of edits of the source of functions: see `tests/support/edits.py`. To add one, add an entry to
`MUTANTS`: a name, its edits, and the operations among which the guard matters.
"""

import functools
import logging
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from tests.simulation.history import Outcome, run_seed
from tests.simulation.plan import ALONE, MANY_FAULTS, NO_FAULTS, UNHURT, Profile
from tests.support.edits import BROKEN, Edit, applied


@dataclass(frozen=True)
class Mutant:
    """An engine with a fault.

    Args:
        name: the name of the missing guard.
        edits: the edits of the engine.
        profile: the profile of the searched histories.
        steps: the steps within which a history must fail.
        quick: True if a few histories are enough.
    """

    name: str
    edits: Sequence[Edit]
    profile: Profile
    steps: int = 60_000
    quick: bool = False

    def applied(self) -> AbstractContextManager[None]:
        """Return a context in which the engine has the fault."""
        return applied(self.edits)


_profile = functools.partial(Profile, alone=ALONE, unhurt=UNHURT)
_MARKED_ROWS = ("evolution, vectors",)
_APPEND = ("append",)
_KEYS = ("keys",)
_PUBLISHER = "paimon_core.commit.publisher:Publisher."
_PUBLISH = "paimon_core.commit.publish:"
_SCHEMA_CHECK = "paimon_core.commit.schema_check:"
_CURRENT_SCHEMA = "paimon_core.store.current_schema:"
_DROP = "paimon_core.store.drop:"
_CHECK = "paimon_core.commit.conflict_check:ConflictCheck."

MUTANTS = [
    Mutant(
        "predecessor",
        [
            Edit(
                "paimon_core.commit.publish:_check_base",
                "if base is not None and still_newest(store, base):",
                "if True:",
            )
        ],
        _profile({"write": 3, "expire": 2}, _APPEND, faults=NO_FAULTS),
    ),
    Mutant(
        "search of a retry",
        [
            Edit(
                "paimon_core.commit.find_commit:CommitSearch.find",
                "if latest is None or",
                "if True or latest is None or",
            )
        ],
        _profile({"write": 1}, _APPEND, faults=MANY_FAULTS),
    ),
    Mutant(
        "search of a repeated batch",
        [Edit("paimon_core.commit.idempotent:IdempotentCommits._begin", "return intent\n", "return now\n")],
        _profile({"sink": 4, "write": 1}, _APPEND, faults=MANY_FAULTS),
    ),
    Mutant(
        "files kept while the outcome is unknown",
        [
            Edit(
                _PUBLISHER + "_attempt",
                "attempts.unknown = cause",
                "attempts.unknown = cause; prepared.discard(self.store)",
            )
        ],
        _profile({"write": 1}, _APPEND, faults=MANY_FAULTS),
    ),
    Mutant(
        "files kept after CommitUnknownError",
        [
            Edit(
                _PUBLISHER + "deleting_unless_published",
                "raise  # the snapshot may refer to the files",
                "delete_written_files(self.store, messages); raise",
            )
        ],
        _profile({"write": 3}, _APPEND, faults=(0.08,)),
    ),
    Mutant(
        "snapshot before hint",
        [
            Edit(
                "paimon_core.commit.publish:publish",
                "started = time.monotonic()",
                'started = time.monotonic(); store.snapshots.write_hint("LATEST", snapshot.id)',
            )
        ],
        _profile({"write": 1}, _APPEND, faults=MANY_FAULTS),
    ),
    Mutant(
        "conflict of compactions",
        [
            Edit(
                "paimon_core.commit.commit_messages:_compact",
                "still_valid(store, base, compactions)",
                "(compactions, [])",
            )
        ],
        _profile({"write": 2, "compact_fully": 2, "overwrite": 1}, ("append", "keys"), faults=NO_FAULTS),
        quick=True,
    ),
    Mutant(
        "conflict of replaced files",
        [Edit(_CHECK + "find", "if changes.needs_check else None", "if False else None")],
        _profile({"write": 2, "delete": 3, "overwrite": 1}, ("append", "vectors"), faults=NO_FAULTS),
        quick=True,
    ),
    Mutant(
        "conflict of rows that were read",
        [Edit(_CHECK + "_guarded_conflict", "if Guard.ROWS in started.guards:", "if False:")],
        _profile({"write": 2, "statement": 2, "delete": 1}, _KEYS, faults=NO_FAULTS),
        quick=True,
    ),
    Mutant(
        "conflict of columns",
        [Edit(_CHECK + "_row_range_conflict", "if changes.replaces_columns:", "if False:")],
        _profile({"update_columns": 3, "overwrite": 1, "compact": 1}, ("evolution",), faults=NO_FAULTS),
        quick=True,
    ),
    Mutant(
        "overwrite of what is live",
        [
            Edit(
                "paimon_core.commit.overwrite_partitions:replace_files",
                "def decide(base: Snapshot | None) -> Changes:",
                "first = store.snapshots.latest()\n\n"
                "    def decide(base: Snapshot | None) -> Changes:\n        base = first",
            )
        ],
        _profile({"write": 2, "overwrite": 2}, _APPEND, faults=NO_FAULTS),
        quick=True,
    ),
    Mutant(
        "expiry deletes snapshots before files",
        [
            Edit(
                "paimon_core.operations.history.expire_snapshots:expire_snapshots",
                "removed = _remove(store, expiring, after)",
                "delete_files(store, plan.paths(store, names)[0]); removed = _remove(store, expiring, after)",
            )
        ],
        _profile({"write": 1, "overwrite": 2, "expire": 2, "read": 2}, _APPEND, faults=MANY_FAULTS),
        quick=True,
    ),
    Mutant(
        "expiry keeps the files of tags",
        [
            Edit(
                "paimon_core.operations.history.expire_snapshots:_needed",
                "referenced_names(store, plan, tags) |",
                "set() |",
            )
        ],
        _profile({"write": 1, "overwrite": 2, "expire": 2, "tag": 1}, _APPEND, faults=NO_FAULTS),
        quick=True,
    ),
    Mutant(
        "expiry looks for new tags",
        [
            Edit(
                "paimon_core.operations.history.expire_snapshots:expire_snapshots",
                "added = [tag for tag in store.tags.list() if tag not in tags]",
                "added = []",
            )
        ],
        _profile({"overwrite": 1, "expire": 3, "tag": 3}, _APPEND, faults=NO_FAULTS),
        quick=True,
    ),
    Mutant(
        "age of orphan files",
        [
            Edit(
                "paimon_core.operations.history.orphan_files:remove_orphan_files",
                "limit = _limit(store, now, older_than)",
                "limit = now",
            )
        ],
        _profile({"write": 2, "orphans": 2}, _APPEND, faults=NO_FAULTS),
        quick=True,
    ),
    Mutant(
        "orphan files are those without a name",
        [
            Edit(
                "paimon_core.operations.history.orphan_files:remove_orphan_files",
                "old_files = old_files.filter(pa.array(~contains(names.read(), hashes)))",
                "pass",
            )
        ],
        _profile({"write": 2, "orphans": 2}, _APPEND, faults=NO_FAULTS),
        quick=True,
    ),
    Mutant(
        "rollback deletes the newest snapshots first",
        [
            Edit(
                "paimon_core.operations.history.rollback:_delete_snapshots",
                "for number in reversed(ids):",
                "for number in ids:",
            )
        ],
        _profile({"write": 2, "rollback": 3}, _APPEND, faults=MANY_FAULTS),
        steps=100_000,
    ),
    Mutant(
        "base after publishing (rollback)",
        [Edit(_PUBLISH + "_check_base", "if base is not None and still_newest(store, base):", "if True:")],
        _profile({"write": 3, "rollback": 2}, _APPEND, faults=NO_FAULTS),
        quick=True,
    ),
    Mutant(
        "the table that was opened (drop and create)",
        [
            Edit(_CURRENT_SCHEMA + "is_same_table", "return schemas", "return True or schemas"),
            Edit(
                _SCHEMA_CHECK + "current_schema_id", "if latest is None or latest.id < ours.id:", "if latest is None:"
            ),
            Edit(
                _SCHEMA_CHECK + "current_schema_id",
                "if stored is None or stored.time_millis != ours.time_millis:",
                "if False:",
            ),
            Edit(_PUBLISH + "_check_base", "if base is not None and still_newest(store, base):", "if True:"),
        ],
        _profile({"write": 3, "drop": 2, "create": 3}, _APPEND, faults=NO_FAULTS),
    ),
    Mutant(
        "the table that was opened (rename)",
        [
            Edit("tests.simulation.store:SimulatedIO.inside", "self._simulated.inside(directories)", "self._simulated"),
            Edit(_CURRENT_SCHEMA + "is_same_table", "return schemas", "return True or schemas"),
            Edit(_PUBLISH + "_check_base", "if base is not None and still_newest(store, base):", "if True:"),
        ],
        _profile({"write": 3, "rename": 2}, _APPEND, ("local",), faults=NO_FAULTS),
    ),
    Mutant(
        "the schema that was opened (replacement)",
        [
            Edit(
                _SCHEMA_CHECK + "current_schema_id",
                "None if latest.id == ours.id else why_not_continued(stored, latest)",
                "None",
            )
        ],
        _profile({"write": 3, "write_late": 2, "replace": 2}, _APPEND, faults=NO_FAULTS),
        quick=True,
    ),
    Mutant(
        "a drop is one step",
        [
            Edit("paimon_core.store.drop:drop_directory", "if io.renames_atomically:", "if False:"),
            Edit(
                "paimon_core.store.drop:drop_directory",
                "_delete_in_order(io, path, before)",
                "io.delete_directory(path)",
            ),
        ],
        _profile({"write": 2, "drop": 2, "create": 3}, _APPEND, faults=MANY_FAULTS),
        quick=True,
    ),
    Mutant(
        "compactions know newer columns",
        [
            Edit(
                "paimon_core.write.bucket_compaction:BucketCompaction._run",
                "self._store = _at_newest_schema(self._store)",
                "return False",
            )
        ],
        _profile({"write_stale": 3, "alter": 3, "write": 1}, ("keys, vectors",), faults=NO_FAULTS),
    ),
    Mutant(
        "a replacement counts when its rows are there",
        [
            Edit(
                "paimon_core.catalog.staged:StagedTable.publish",
                "replacing(schema, schema.id - 1) if has_rows else schema",
                "schema",
            )
        ],
        _profile({"write": 1, "replace": 2, "read": 3}, _APPEND, faults=NO_FAULTS),
        quick=True,
    ),
    Mutant(
        "statements know newer columns",
        [Edit(_SCHEMA_CHECK + "check_knows_columns", "if snapshot is not None and", "if False and")],
        _profile({"statement": 3, "alter": 2, "write": 2}, _KEYS, faults=NO_FAULTS),
    ),
    Mutant(
        "a new table takes nothing from a dropped one",
        [Edit("paimon_core.store.create:check_unused", "if directories and not", "if False and not")],
        _profile({"write": 2, "drop": 2, "create": 3}, _APPEND, ("object",), faults=MANY_FAULTS),
    ),
    Mutant(
        "deletes stop at a replacement",
        [Edit("paimon_core.operations.row_changes.delete:_newest", "check_opened(", "(lambda *given: None)(")],
        _profile({"delete": 3, "replace": 2, "write": 1}, _KEYS, faults=NO_FAULTS),
    ),
    Mutant(
        "copies of replaced tables",
        [Edit("paimon_core.migration.clone:clone", "if snapshot is not None:", "if False:")],
        _profile({"clone": 3, "replace": 2, "write": 1}, _APPEND, faults=NO_FAULTS),
        quick=True,
    ),
    Mutant(
        "half a branch takes no place",
        [
            Edit(
                "paimon_core.operations.history.table_branches:TableBranches.fast_forward",
                "if not self._is_whole(name):",
                "if False:",
            )
        ],
        _profile({"write": 2, "branch": 3, "fast_forward": 3}, _APPEND, ("object",), faults=MANY_FAULTS),
    ),
    Mutant(
        "a rollback that lost sets the hint back",
        [
            Edit(
                "paimon_core.operations.history.rollback:rollback",
                "if ids := snapshots.ids():",
                "if False:",
            )
        ],
        _profile({"write": 2, "rollback": 4, "overwrite": 1}, ("append", "keys")),
    ),
    Mutant(
        "deleted rows stay in compacted row ranges",
        [
            Edit(
                "paimon_core.operations.row_changes.data_evolution:_deleted_in",
                "if deleted is not None",
                "if deleted is not None and first",
            )
        ],
        _profile({"write": 2, "delete": 2, "update_columns": 2, "compact_fully": 1}, _MARKED_ROWS, faults=NO_FAULTS),
        quick=True,
    ),
    Mutant(
        "restores know newer columns",
        [
            Edit(
                "paimon_core.operations.compaction.rescale:rewritten",
                "check_no_newer(store, [file for split in splits for file in split.files])",
                "pass",
            ),
            Edit("paimon_core.operations.compaction.restore:_restore", "check_knows_columns(store, snapshot)", "pass"),
        ],
        _profile({"write": 6, "alter": 1, "restore_late": 2}, _KEYS, faults=NO_FAULTS),
    ),
    Mutant(
        "expiry stops at a rollback",
        [
            Edit(
                "paimon_core.operations.history.expire_snapshots:_remove",
                "if not store.snapshots.exists(following.id):",
                "if False:",
            )
        ],
        _profile({"write": 2, "expire": 3, "rollback": 3}, _APPEND, faults=NO_FAULTS),
    ),
    Mutant(
        "expiry puts the newest snapshot back",
        [
            Edit(
                "paimon_core.operations.history.expire_snapshots:_remove",
                "if removed and not _has_newer(store, removed[-1].id, order[len(removed)].id):",
                "if False:",
            )
        ],
        _profile({"write": 3, "expire": 8, "rollback": 8}, _APPEND, faults=NO_FAULTS),
        steps=120_000,
    ),
    Mutant(
        "orphan snapshots are removed",
        [
            Edit(
                _PUBLISHER + "_remove_orphan",
                "if now is not None and now.fingerprint == orphan.fingerprint:",
                "if False:",
            )
        ],
        _profile({"write": 5, "rollback": 2, "overwrite": 2}, _APPEND, faults=MANY_FAULTS),
        steps=150_000,
    ),
    Mutant(
        "a target of two rollbacks",
        [
            Edit(
                "paimon_core.operations.history.rollback:_put_back",
                "tagged and _follows(store, target)",
                "tagged",
            ),
            Edit(
                "paimon_core.operations.history.rollback:_put_back",
                "if _follows(store, target):\n            return",
                "return",
            ),
        ],
        _profile({"write": 3, "rollback": 3}, _APPEND, faults=NO_FAULTS),
    ),
]


@dataclass(frozen=True)
class Catch:
    """The first history that fails with a mutant, and the steps of all histories up to it."""

    name: str
    steps: int
    outcome: Outcome | None

    def __str__(self) -> str:
        seed, why = ("-", "not found") if self.outcome is None else (self.outcome.plan.seed, self.outcome.violation)
        return f"{self.name:44} {seed!s:>6} {self.steps:>8}  {str(why)[:120]}"


HEADER = f"{'without':44} {'seed':>6} {'steps':>8}  found by"


def catch(mutant: Mutant, first_seed: int = 0) -> Catch:
    """Search for a history that fails with the mutant, and does not fail without it."""
    steps, seed = 0, first_seed
    while steps <= mutant.steps:
        with mutant.applied():
            outcome = run_seed(seed, mutant.profile)
        steps += outcome.steps
        kind = (outcome.violation or "").partition(":")[0]
        assert kind not in BROKEN, f"{mutant.name} is no engine any more: {outcome.violation}"
        if outcome.violation is not None and run_seed(seed, mutant.profile).violation is None:
            return Catch(mutant.name, steps, outcome)
        seed += 1
    return Catch(mutant.name, steps, None)


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    print(HEADER)
    for one in MUTANTS:
        print(catch(one), flush=True)
