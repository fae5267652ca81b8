"""Conflicts of a commit with the commits before it: the cases of `conflict.txt`."""

from dataclasses import replace

import pytest

from paimon_core.commit.changes import Changes, append_changes
from paimon_core.commit.compaction import has_compaction, still_valid
from paimon_core.commit.conflict import order_conflict
from paimon_core.commit.conflict_check import ConflictCheck
from paimon_core.errors import PaimonError
from paimon_core.manifest.entry import DELETE
from paimon_core.snapshot.snapshot import CommitKind
from paimon_core.snapshot.started_from import Guard, StartedFrom
from tests.support.manifests import KEY, entry
from tests.support.text_cases import text_cases
from tests.support.text_tables import ROOT, TextTable


def conflict(text: str) -> str:
    first, *lines, ours = text.splitlines()
    table, started_from = TextTable(first), None
    for line in lines:
        newest = table.store.snapshots.latest()
        if line == "we read":
            started_from = StartedFrom.of(newest, Guard.ROWS)
        elif line == "we begin":
            started_from = StartedFrom.of(newest, Guard.LAYOUT)
        else:
            assert table.commit(line) is not None, line
    base = table.store.snapshots.latest()
    messages = table.messages(ours.removeprefix("we "))
    if any(map(has_compaction, messages)):
        found = next((rejected.conflict for rejected in still_valid(table.store, base, messages)[1]), None)
    else:
        changes = replace(append_changes(messages), started_from=started_from)
        try:
            found = ConflictCheck(table.store).find(changes, base)
        except PaimonError as error:
            return f"refused: {error}".replace(ROOT, "TABLE")
    return "ok" if found is None else found.reason


@text_cases(__file__, "conflict.txt")
def test_conflict_cases(case, check_case):
    check_case(case, conflict)


@pytest.mark.parametrize(
    ("sequence", "mixes", "conflicts"),
    [((50, 60), True, True), ((50, 60), False, False), ((1, 1), True, False), ((101, 110), True, False)],
)
def test_merged_rows_with_higher_level_row_between_conflict(sequence, mixes, conflicts):
    """The compaction merges rows numbered 1 and 100 into level 4. Rows of level 5 with equal numbers are older."""
    old, new = (entry(name, sequence=(n, n)) for name, n in (("old", 1), ("new", 100)))
    merged = entry("merged", level=4, sequence=(100, 100))
    other = entry("other", level=5, sequence=sequence)
    changes = Changes(CommitKind.COMPACT, (replace(old, kind=DELETE), replace(new, kind=DELETE), merged))
    assert bool(order_conflict(changes, [other, old, new], KEY, mixes=mixes)) == conflicts
