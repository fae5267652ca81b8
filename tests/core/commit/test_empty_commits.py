"""Commits without changes, and the options that make them publish a snapshot."""

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
def test_empty_commit_publishes_snapshot_as_options_define(tmp_path, options, batch, with_identifier, numbered):
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


def test_commit_with_rows_ignores_empty_commit_options(tmp_path):
    for n, options in enumerate((FORCED, IGNORED, SHOWN)):
        table = append_table(tmp_path / str(n), **options)
        assert table.write(orders((1, "a", 1))).id == 1
