"""Idempotent commits and Java: it reads them like other commits, and its clean-up keeps their files."""

from pathlib import Path

import pytest

from paimon_core.commit.idempotent import IdempotentCommits
from tests.conformance.kinds import keyed
from tests.conformance.shared_table import created_by_java

pytestmark = pytest.mark.java
KIND = keyed("numbered", bucket="2")


def ours_of_rows(snapshot):
    """A batch may leave a second snapshot, of what its writer compacted."""
    return snapshot["user"] == "query" and snapshot["kind"] != "COMPACT"


def test_java_cleans_up_and_a_batch_is_known_again(judge, name, rng):
    table = created_by_java(judge, name, KIND)
    batches = [KIND.rows(rng, 10) for _ in range(3)]

    def batch(number):
        ours = table.ours()
        with ours.writer() as writer:
            writer.write(table.arrow([row for _, row in batches[number]]))
            messages = writer.prepare_commit()
            return IdempotentCommits(ours.store, "query", consecutive=True).commit(
                messages, number, started_from=writer.started_from
            )

    for number in range(2):
        batch(number)
        table.java("write", rows=KIND.rows(rng, 5))
    expected = table.agree_everywhere()
    made = {s["identifier"]: s["id"] for s in table.java("snapshots") if ours_of_rows(s)}
    assert list(made) == [0, 1]
    table.java("remove_orphan_files")
    assert batch(1) is None
    Path(table.path, "intent", "user-query", "landed-1").unlink()  # as if it had died before it noted that
    assert batch(1).id == made[1]
    assert table.agree() == expected
    table.java("remove_orphan_files")
    batch(2)
    table.agree_everywhere()
    assert [s["identifier"] for s in table.java("snapshots") if ours_of_rows(s)] == [0, 1, 2]
