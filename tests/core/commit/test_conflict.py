"""Conflicts of a commit with the commits before it: the cases of `conflict.txt`."""

from dataclasses import replace

from paimon_core.commit.changes import append_changes
from paimon_core.commit.compaction import has_compaction, still_valid
from paimon_core.commit.conflict_check import ConflictCheck
from paimon_core.errors import PaimonError
from tests.support.text_cases import text_cases
from tests.support.text_tables import ROOT, TextTable


def conflict(text: str) -> str:
    first, *lines, ours = text.splitlines()
    table, read_at, seen = TextTable(first), None, None
    for line in lines:
        newest = table.store.snapshots.latest()
        if line == "we read":
            read_at = newest.id
        elif line == "we begin":
            seen = newest.id
        else:
            assert table.commit(line) is not None, line
    base = table.store.snapshots.latest()
    messages = table.messages(ours.removeprefix("we "))
    if any(map(has_compaction, messages)):
        found = next((rejected.conflict for rejected in still_valid(table.store, base, messages)[1]), None)
    else:
        changes = replace(append_changes(messages), read_at=read_at)
        try:
            found = ConflictCheck(table.store).find(changes, base, seen)
        except PaimonError as error:
            return f"refused: {error}".replace(ROOT, "TABLE")
    return "ok" if found is None else found.reason


@text_cases(__file__, "conflict.txt")
def test_conflicts(case, check_case):
    check_case(case, conflict)
