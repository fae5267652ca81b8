"""A -D removes a record: later rows have no value of it, for any sequence of commits and compactions."""

import itertools

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.write.test_compaction_engines import new_table
from tests.support.draws import draws
from tests.support.tables import keyed_table, orders, rows_of

ENGINES = {
    "partial-update": {"partial-update.remove-record-on-delete": "true"},
    "aggregation": {
        "aggregation.remove-record-on-delete": "true",
        "fields.n.aggregate-function": "sum",
        "fields.v.aggregate-function": "first_value",
    },
}
PRODUCERS = ({"changelog-producer": "lookup"}, {"changelog-producer": "full-compaction"})
SETTINGS = ({}, *PRODUCERS, {"deletion-vectors.enabled": "true"}, {"write-buffer-spillable": "false"})
BALLAST = (99, "".join(f"{n * 2654435761 % 2**32:08x}" for n in range(4000)), 1)
"""A row so large that newer runs are compacted to levels between."""
HISTORY = [("+I", (1, "a", 10)), ("-D", (1, "a", 10)), ("+I", (1, None, 11))]


def write(table, changes):
    table.write(orders(*(row for _, row in changes)), [kind for kind, _ in changes])


def cuts(count):
    """Every way to cut a history of this length into commits, as positions of the cuts."""
    return [at for n in range(count) for at in itertools.combinations(range(1, count), n)]


@pytest.mark.parametrize("compact", ["never", "minor", "full"])
@pytest.mark.parametrize("at", cuts(len(HISTORY)), ids=str)
@pytest.mark.parametrize("engine", ENGINES)
def test_row_inserted_again_shows_no_removed_value(tmp_path, engine, at, compact):
    table = keyed_table(tmp_path / "t", bucket="1", **{"merge-engine": engine, **ENGINES[engine]})
    for begin, end in itertools.pairwise([0, *at, len(HISTORY)]):
        write(table, HISTORY[begin:end])
        if compact != "never":
            table.compact(full=compact == "full")
        assert rows_of(table.to_arrow()) == (
            [] if end == 2 else [{"id": 1, "v": HISTORY[end - 1][1][1], "n": HISTORY[end - 1][1][2]}]
        )


@pytest.mark.parametrize("engine", ENGINES)
def test_compaction_to_level_between_hides_no_removal(engine):
    options = {"num-sorted-run.compaction-trigger": "3", "num-levels": "4", "compaction.size-ratio": "100",
               "merge-engine": engine, **ENGINES[engine]}  # fmt: skip
    table = new_table(**options, **{"write-only": "true"})
    write(table, [("+I", BALLAST), HISTORY[0]])
    compacting = table.with_options({"write-only": "false"})
    compacting.compact(full=True)
    for change in HISTORY[1:]:
        write(table, [change])
    assert compacting.compact() is not None
    assert rows_of(table.to_arrow())[0] == {"id": 1, "v": None, "n": 11}


def model(engine, history):
    """The rows by id after the changes, one by one."""
    rows: dict[int, tuple] = {}
    for kind, (key, v, n) in history:
        if kind == "-U":
            continue
        if kind == "-D":
            rows.pop(key, None)
        elif key not in rows:
            rows[key] = (v, n)
        else:
            old_v, old_n = rows[key]
            if engine == "partial-update":
                rows[key] = (old_v if v is None else v, old_n if n is None else n)
            else:
                rows[key] = (old_v, old_n if n is None else n if old_n is None else old_n + n)
    return [{"id": key, "v": v, "n": n} for key, (v, n) in sorted(rows.items())]


ROW = st.tuples(st.integers(1, 3), st.none() | st.sampled_from("ab"), st.none() | st.integers(1, 3))
COMMIT = st.lists(st.tuples(st.sampled_from(["+I", "+I", "+U", "-D", "-U"]), ROW), min_size=1, max_size=5)


@draws(60)
@given(
    st.sampled_from(list(ENGINES)),
    st.sampled_from(SETTINGS),
    st.sampled_from(["2", "3", "5"]),
    st.sampled_from(["64 b", "64 mb"]),
    st.booleans(),
    st.lists(st.tuples(COMMIT, st.sampled_from(["", "", "minor", "full"])), max_size=7),
)
def test_no_cut_of_a_history_changes_its_result(engine, settings, trigger, buffer, ballast, commits):
    shape = {"num-sorted-run.compaction-trigger": trigger, "write-buffer-size": buffer, "num-levels": "4",
             "bucket": "1", "merge-engine": engine, **ENGINES[engine], **settings}  # fmt: skip
    table = new_table(**shape)
    written = []
    if ballast:
        written.append(("+I", BALLAST))
        write(table, written)
        table.compact(full=True)
    for changes, compact in commits:
        if engine == "aggregation":
            changes = [(kind.replace("-U", "-D"), row) for kind, row in changes]
        write(table, changes)
        written += changes
        if compact:
            table.compact(full=compact == "full")
        if "deletion-vectors.enabled" not in settings:
            assert rows_of(table.to_arrow()) == model(engine, written)
    table.compact(full=True)
    assert rows_of(table.to_arrow()) == model(engine, written)


def test_removed_values_stay_in_changes(tmp_path):
    """A -D without a later row keeps its values, which readers of changes need."""
    options = {"merge-engine": "partial-update", "changelog-producer": "lookup", **ENGINES["partial-update"]}
    table = keyed_table(tmp_path / "t", bucket="1", **options)
    for change in HISTORY:
        write(table, [change])
    actual = [tuple(row.values()) for row in pa.table(table.changes(0)).to_pylist()]
    assert actual == [("+I", 1, "a", 10), ("-D", 1, "a", 10), ("+I", 1, None, 11)]
