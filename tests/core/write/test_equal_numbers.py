"""Writers that start from one snapshot give rows of one key equal numbers: the later commit wins everywhere."""

from itertools import permutations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon_core.commit.commit_messages import commit_messages
from paimon_core.commit.publisher import Publisher
from paimon_core.table import Table
from tests.core.write.test_bucket_compaction import table_in_memory
from tests.support.compaction import only_levels
from tests.support.draws import draws
from tests.support.tables import orders, rows_of

Row = tuple[str, int]
"""A kind and a key."""


def commit_at_once(table: Table, writes: list[list[Row]], order: list[int]) -> None:
    """Write with one writer per list from one snapshot, then commit in this order. ``v`` is ``writer.row``."""
    writers = [table.writer() for _ in writes]
    messages = []
    for number, (writer, rows) in enumerate(zip(writers, writes, strict=True)):
        if rows:
            writer.write(
                orders(*((key, f"{number}.{i}", number) for i, (_, key) in enumerate(rows))), [kind for kind, _ in rows]
            )
        messages.append(writer.prepare_commit())
    for number in order:
        table.committer().commit(messages[number], started_from=writers[number].started_from)
        writers[number].close()


def winners(writes: list[list[Row]], order: list[int]) -> dict[int, str]:
    """Return each key's value in the row with the largest number, or the latest commit among equal numbers."""
    newest: dict[int, tuple[int, int, str, str]] = {}
    for place, number in enumerate(order):
        for i, (kind, key) in enumerate(writes[number]):
            newest[key] = max(newest.get(key, (-1, -1, "", "")), (i, place, kind, f"{number}.{i}"))
    return {key: value for key, (_, _, kind, value) in sorted(newest.items()) if kind == "+I"}


def shown(table: Table) -> dict[int, str]:
    """Every key with its value, as a read has it; ``get`` must agree."""
    actual = {row["id"]: row["v"] for row in rows_of(table.to_arrow())}
    got = table.get(pa.table({"id": pa.array(range(9), pa.int64())}))
    assert {row["id"]: row["v"] for row in got.to_pylist()} == actual
    return actual


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
def test_later_commit_wins_before_and_after_compaction(options, order):
    table = table_in_memory(**{"write-only": "true", **options})
    table.write(orders((1, "old", 0), (8, "old", 0)))
    writes = [[("+I", 1), ("+I", 3)], [("+I", 1), ("+I", 2)], [("-D", 1), ("+I", 2), ("+I", 1)][: 2 + (order[0] == 0)]]
    commit_at_once(table, writes, list(order))
    expected = {**winners(writes, list(order)), 8: "old"}
    assert shown(table) == expected
    table.compact(full=True)
    assert shown(table) == expected


WRITES = st.lists(st.tuples(st.sampled_from(["+I", "+I", "-D"]), st.integers(0, 8)), max_size=5)


@draws(25)
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
        if (
            options["write-only"] == "false"
        ):  # a delete may be forgotten before the next commit (tests/model does those)
            writes = [[("+I", key) for _, key in rows] for rows in writes]
        order = data.draw(st.permutations(range(len(writes))))
        before = {**shown(table)} if table.snapshot() else {}
        commit_at_once(table, writes, order)
        touched = {key for rows in writes for _, key in rows}
        expected = {**{k: v for k, v in before.items() if k not in touched}, **winners(writes, order)}
        assert shown(table) == dict(sorted(expected.items()))
        if data.draw(st.booleans()):
            table.compact(full=data.draw(st.booleans()))
            assert shown(table) == dict(sorted(expected.items()))


BELOW = [
    pytest.param({"changelog-producer": "lookup"}, id="lookup"),
    pytest.param({"force-lookup": "true"}, id="looked up"),
    pytest.param({"deletion-vectors.enabled": "true"}, id="marked"),
    pytest.param({"changelog-producer": "lookup", "merge-engine": "first-row"}, id="first row"),
]


@pytest.mark.parametrize("options", BELOW)
def test_compaction_conflicts_if_its_looked_up_rows_changed(options):
    """The compaction read files of higher levels that another commit has since replaced."""
    sizes = {"num-sorted-run.compaction-trigger": "2", "compaction.max-size-amplification-percent": "1000000"}
    table = table_in_memory(**sizes, **options)
    ballast = "".join(f"{n * 2654435761 % 2**32:08x}" for n in range(6000))
    table.write(orders((0, "old", 0), (7, "old", 0), (8, ballast, 0)))
    table.compact(full=True)
    other = table.writer()
    other.write(orders((0, "others", 1), (5, "others", 1), (6, "others", 1)))
    late = other.started_from, other.prepare_commit()
    table.write(orders(*((7, f"newer {n}", n) for n in range(9))))
    table.compact(full=True)
    with table.writer() as writer:  # it goes on from here, and compacts above the file that is there
        writer.write(orders((0, "mine", 0), (5, "mine", 0)))
        messages = writer.prepare_commit()
    (made,) = messages[0].compact_after
    assert 0 < made.level < only_levels(table).max_level
    table.committer().commit(late[1], started_from=late[0])  # rows with smaller sequence numbers than the writer's rows
    other.close()
    table.compact(full=True)
    before, publisher = len(table.snapshots()), Publisher(table.store)
    done = commit_messages(publisher, messages, started_from=writer.started_from)
    assert [s.commit_kind for s in table.snapshots()][before:] == ["APPEND"]
    assert len(done.rejected) == 1
    table.compact(full=True)
    first = options.get("merge-engine") == "first-row"
    expected = {0: "old" if first else "mine", 5: "others" if first else "mine", 6: "others"}
    expected |= {7: "old" if first else "newer 8", 8: ballast}
    assert shown(table) == expected
    if "changelog-producer" in options:
        held: dict[int, str] = {}
        for row in table.changes(0).to_pylist():
            if row["rowkind"] in ("+I", "+U"):
                held[row["id"]] = row["v"]
            else:
                assert held.pop(row["id"]) == row["v"]
        assert held == expected


@pytest.mark.parametrize("producer", ["none", "lookup", "full-compaction"])
def test_rows_not_consecutive_are_not_merged(producer):
    """The number of the other writer's row is between the numbers of the two rows that a compaction would merge."""
    options = {"merge-engine": "partial-update", "changelog-producer": producer, "write-buffer-size": "1 b"}
    table = table_in_memory(**options, **{"write-buffer-spillable": "false", "num-sorted-run.compaction-trigger": "2"})
    table.write(orders((1, "old", 0), (2, "old", 0)))
    table.compact(full=True)
    with table.writer() as one, table.writer() as other:
        one.write(orders((1, "new", 1)))
        other.write(orders((2, "new", 2)))
        other.write(orders((1, None, 2)))  # the second number: the first row has a smaller one
        ready = [(writer.started_from, writer.prepare_commit()) for writer in (one, other)]
    assert ready[1][1][0].compact_before
    for base, messages in ready:
        table.committer().commit(messages, started_from=base)
    expected = [{"id": 1, "v": "new", "n": 2}, {"id": 2, "v": "new", "n": 2}]
    assert rows_of(table.to_arrow()) == expected
    table.compact(full=True)
    assert rows_of(table.to_arrow()) == expected


ENGINES = {
    "partial-update": {},
    "aggregation": {"fields.default-aggregate-function": "last_non_null_value"},
}


@pytest.mark.parametrize("engine", ENGINES)
def test_compaction_takes_rows_between_those_it_merges(engine):
    """A writer that commits late brings a row older than the compacted one, and then a newer row of its key follows."""
    table = table_in_memory(**ENGINES[engine], **{"merge-engine": engine, "write-only": "true"})
    with table.writer() as late:
        late.write(orders((1, "late", 1)))
        messages = late.prepare_commit()
    table.write(orders(*((key, f"large {key * 7919 % 5000}", 2) for key in range(5000))))
    table.compact(full=True)
    table.committer().commit(messages)
    table.write(orders((1, None, 3)))
    expected = rows_of(table.to_arrow())
    assert expected[1] == {"id": 1, "v": "large 2919", "n": 3}
    eager = table.with_options({"write-only": "false", "num-sorted-run.compaction-trigger": "2"})
    eager.compact()
    assert rows_of(table.to_arrow()) == expected
