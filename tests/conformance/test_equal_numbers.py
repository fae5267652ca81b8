"""Rows of one key with equal sequence numbers: our compaction changes no read, and Java's only reads of these keys."""

import pytest

from paimon_core.datafile.reader import read_file
from paimon_core.scan.entries import live_entries
from paimon_core.types.system_fields import SEQUENCE_NUMBER
from tests.conformance.compare import same
from tests.conformance.shared_table import SharedTable

pytestmark = pytest.mark.java
FIELDS = [["k", "INT NOT NULL"], ["v", "STRING"]]
WRITES = [[1, 2, 3, 4, 5, 6], [2, 1, 3], [7, 1, 2, 8, 5], [1], [6, 9, 3]]
"""The keys each writer gives, in the order of the commits; equal places mean equal numbers."""


def tied(table) -> set[int]:
    """The keys that have one sequence number in several files."""
    fields = (table.schema.field("k"), SEQUENCE_NUMBER)
    seen: list[tuple[int, int]] = []
    for e in live_entries(table.store, table.snapshot()).live:
        for batch in read_file(table.store, e.bucket_ref, e.file, fields):
            seen += zip(*(column.to_pylist() for column in batch.columns), strict=True)
    return {key for key, number in seen if seen.count((key, number)) > 1}


def shown(table) -> dict[int, str]:
    return {row["k"]: row["v"] for row in table.to_arrow().to_pylist()}


@pytest.mark.parametrize("backwards", [False, True], ids=["as written", "backwards"])
@pytest.mark.parametrize("who", ["we", "java"])
def test_only_keys_with_equal_numbers_change_and_only_when_java_compacts(judge, name, who, backwards):
    shared = SharedTable(judge, name)
    shared.java("create_table", fields=FIELDS, primary_keys=["k"], options={"bucket": "1", "write-only": "true"})
    shared.we_write([["+I", {"k": k, "v": "old"}] for k in range(10)])
    table = shared.ours()
    messages = []
    for number, keys in enumerate(WRITES):
        with table.writer() as writer:
            writer.write(shared.arrow([{"k": k, "v": f"{number}.{i}"} for i, k in enumerate(keys)]))
            messages.append(writer.prepare_commit())
    for message in reversed(messages) if backwards else messages:
        table.committer().commit(message)
    may_change, before = tied(table), shown(table)
    assert may_change == {1, 3, 5}
    if who == "we":
        table.compact(full=True)
    else:
        shared.java("compact", kind="full")
    after = shown(shared.ours())
    changed = {key for key in before if after[key] != before[key]}
    assert after.keys() == before.keys()
    assert changed <= (may_change if who == "java" else set()), changed
    same(shared.our_rows(table.schema.fields), shared.java_rows(table.schema.fields), f"{name} compacted")
