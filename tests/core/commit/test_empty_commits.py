"""Commits without changes: which of them make a snapshot."""

import pytest

from paimon_core.commit.idempotent import IdempotentCommits
from tests.support.tables import append_table, orders

FORCED, IGNORED, SHOWN = (
    {"commit.force-create-snapshot": "true"},
    {"snapshot.ignore-empty-commit": "true"},
    {"snapshot.ignore-empty-commit": "false"},
)


@pytest.mark.parametrize(
    ("options", "batch", "with_identifier", "numbered"),
    [
        ({}, False, True, False),
        (FORCED, True, True, True),
        (IGNORED, False, False, False),
        (SHOWN, True, True, True),
        (FORCED | IGNORED, False, False, False),
    ],
)
def test_the_options_say_whether_a_commit_without_changes_makes_a_snapshot(
    tmp_path, options, batch, with_identifier, numbered
):
    table = append_table(tmp_path / "t", **options)
    table.write(orders((1, "a", 1)))
    made = [
        table.write(orders()),
        table.committer("someone").commit([], 7),
        IdempotentCommits(table.store, "app").commit([], 1),
    ]
    assert [one is not None for one in made] == [batch, with_identifier, numbered]
    assert table.snapshot().id == 1 + sum(one is not None for one in made)
    assert table.to_arrow().num_rows == 1


def test_a_commit_with_rows_is_the_same_whatever_the_options_say(tmp_path):
    for n, options in enumerate((FORCED, IGNORED, SHOWN)):
        table = append_table(tmp_path / str(n), **options)
        assert table.write(orders((1, "a", 1))).id == 1
