"""Every merge engine, with inserts only: reads match a plain model at any time and with any compaction."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon_core.merge import MERGE_ENGINES
from paimon_core.schema.schema import Schema
from paimon_core.schema.schemas import Schemas
from paimon_core.store.create import create_table
from paimon_core.store.file_store import FileStore
from paimon_core.table import Table
from tests.support.compaction import check_levels, levels_of
from tests.support.draws import draws
from tests.support.faulty_io import MemoryIO
from tests.support.tables import ORDERS, orders

ROOT = "memory://w/t"
OPTIONS = {
    "deduplicate": {},
    "first-row": {},
    "partial-update": {},
    "aggregation": {"fields.n.aggregate-function": "sum", "fields.v.aggregate-function": "first_non_null_value"},
}


def merged(engine: str, old: tuple | None, new: tuple) -> tuple:
    if old is None or engine == "deduplicate":
        return new
    if engine == "first-row":
        return old
    if engine == "partial-update":
        return tuple(b if b is not None else a for a, b in zip(old, new, strict=True))
    (v, n), (w, m) = old, new
    return v if v is not None else w, m if n is None else n if m is None else n + m


ROW = st.tuples(st.integers(0, 25), st.none() | st.text("ab", max_size=2), st.none() | st.integers(-5, 5))
MOVES = st.one_of(st.lists(ROW, min_size=1, max_size=15), st.sampled_from(["full", "minor"]))


def new_table(**options: str) -> Table:
    io = MemoryIO()
    create_table(io, ROOT, Schema(ORDERS, primary_keys=["id"], options={"bucket": "1", **options}))
    schema = Schemas(io, ROOT).latest()
    assert schema is not None
    return Table(FileStore(io, ROOT, schema))


@pytest.mark.parametrize("engine", sorted(MERGE_ENGINES))
@draws(25)
@given(
    st.integers(1, 4).map(str),
    st.sampled_from(["1 b", "128 mb"]),
    st.sampled_from(["2", "3", "100"]),
    st.lists(MOVES, min_size=2, max_size=12),
)
def test_compaction_changes_no_read(engine, trigger, target, side_by_side, moves):
    options = {"num-sorted-run.compaction-trigger": trigger, "target-file-size": target}
    table = new_table(**{"merge-engine": engine, "sort-spill-threshold": side_by_side, **options, **OPTIONS[engine]})
    model: dict[int, tuple] = {}
    for move in moves:
        if isinstance(move, str):
            table.compact(full=move == "full")
        else:
            table.write(orders(*move))
            for key, *values in move:
                model[key] = merged(engine, model.get(key), tuple(values))
        assert {r["id"]: (r["v"], r["n"]) for r in table.to_arrow().to_pylist()} == model
        check_levels(table)
    if engine == "first-row":  # its readers take the rows of each level as they are
        stored = sum(f.row_count for levels in levels_of(table).values() for f in levels.all_files)
        assert stored == len(model)


def test_first_rows_are_visible_after_compaction():
    table = new_table(**{"merge-engine": "first-row", "write-only": "true"})
    table.write(orders((1, "a", 1)))
    assert table.to_arrow().num_rows == 0
    table.compact()
    table.write(orders((1, "b", 2), (2, "b", 2)))
    assert table.to_arrow().num_rows == 1
    table.compact()
    assert sorted(r["v"] for r in table.to_arrow().to_pylist()) == ["a", "b"]
