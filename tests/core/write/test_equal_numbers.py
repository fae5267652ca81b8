"""Writers that start from one snapshot give rows of one key equal numbers: the later commit wins everywhere."""

from itertools import permutations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paimon_core.table import Table
from tests.core.write.test_compaction import table_in_memory
from tests.support.tables import orders, rows_of

Row = tuple[str, int]
"""A kind and a key."""


def commit_at_once(table: Table, writes: list[list[Row]], order: list[int]) -> None:
    """Write with as many writers from one snapshot; commit in this order. ``v`` tells the writer and the row."""
    writers = [table.writer() for _ in writes]
    messages = []
    for number, (writer, rows) in enumerate(zip(writers, writes, strict=True)):
        if rows:
            writer.write(
                orders(*((key, f"{number}.{i}", number) for i, (_, key) in enumerate(rows))), [kind for kind, _ in rows]
            )
        messages.append(writer.prepare_commit())
    for number in order:
        table.committer().commit(messages[number], base_id=writers[number].base_id)
        writers[number].close()


def winners(writes: list[list[Row]], order: list[int]) -> dict[int, str]:
    """Of each key the value of the row with the largest number, among equals that of the latest commit."""
    newest: dict[int, tuple[int, int, str, str]] = {}
    for place, number in enumerate(order):
        for i, (kind, key) in enumerate(writes[number]):
            newest[key] = max(newest.get(key, (-1, -1, "", "")), (i, place, kind, f"{number}.{i}"))
    return {key: value for key, (_, _, kind, value) in sorted(newest.items()) if kind == "+I"}


def shown(table: Table) -> dict[int, str]:
    """Every key with its value, as a read has it; ``get`` must agree."""
    found = {row["id"]: row["v"] for row in rows_of(table.to_arrow())}
    got = table.get(pa.table({"id": pa.array(range(9), pa.int64())}))
    assert {row["id"]: row["v"] for row in got.to_pylist()} == found
    return found


WAYS = {
    "plain": {},
    "manifests merged": {"manifest.full-compaction-threshold-size": "1 b", "manifest.target-file-size": "1 b"},
    "other file order": {"target-file-size": "1 b"},
    "many runs": {"sort-spill-threshold": "2"},
    "looks up": {"changelog-producer": "lookup"},
    "full changelog": {"changelog-producer": "full-compaction"},
}


@pytest.mark.parametrize("order", list(permutations(range(3))), ids=str)
@pytest.mark.parametrize("options", WAYS.values(), ids=WAYS)
def test_the_later_commit_wins_before_and_after_compaction(options, order):
    table = table_in_memory(**{"write-only": "true", **options})
    table.write(orders((1, "old", 0), (8, "old", 0)))
    writes = [[("+I", 1), ("+I", 3)], [("+I", 1), ("+I", 2)], [("-D", 1), ("+I", 2), ("+I", 1)][: 2 + (order[0] == 0)]]
    commit_at_once(table, writes, list(order))
    expected = {**winners(writes, list(order)), 8: "old"}
    assert shown(table) == expected
    table.compact(full=True)
    assert shown(table) == expected


WRITES = st.lists(st.tuples(st.sampled_from(["+I", "+I", "-D"]), st.integers(0, 8)), max_size=5)


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_no_compaction_changes_a_read(data):
    options = {
        "write-only": data.draw(st.sampled_from(["true", "false"])),
        "num-sorted-run.compaction-trigger": data.draw(st.sampled_from(["1", "2", "3"])),
        "target-file-size": data.draw(st.sampled_from(["1 b", "128 mb"])),
        "manifest.merge-min-count": data.draw(st.sampled_from(["2", "30"])),
        "manifest.full-compaction-threshold-size": data.draw(st.sampled_from(["1 b", "16 mb"])),
        "manifest.target-file-size": data.draw(st.sampled_from(["1 b", "3 kb", "8 mb"])),
        "compaction.max-size-amplification-percent": data.draw(st.sampled_from(["200", "1000000"])),
        **data.draw(st.sampled_from([{}, {"sort-spill-threshold": "2"}])),
    }
    if options["write-only"] == "true" and data.draw(st.booleans()):
        options["changelog-producer"] = "lookup"
    table = table_in_memory(**options)
    for _ in range(data.draw(st.integers(1, 3))):
        writes = data.draw(st.lists(WRITES, min_size=1, max_size=4))
        order = data.draw(st.permutations(range(len(writes))))
        before = {**shown(table)} if table.snapshot() else {}
        commit_at_once(table, writes, order)
        touched = {key for rows in writes for _, key in rows}
        expected = {**{k: v for k, v in before.items() if k not in touched}, **winners(writes, order)}
        assert shown(table) == dict(sorted(expected.items()))
        if data.draw(st.booleans()):
            table.compact(full=data.draw(st.booleans()))
            assert shown(table) == dict(sorted(expected.items()))
