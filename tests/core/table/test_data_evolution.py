"""Columns replaced for some rows, with concurrent appends, schema changes, compactions and replacements."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon_core.commit.publisher import Publisher
from paimon_core.errors import CommitConflictError, InvalidInputError
from paimon_core.operations.jobs.task import PlanRequest
from paimon_core.operations.row_changes.data_evolution import plan_row_ranges, run
from paimon_core.schema.change import AddColumn
from paimon_core.schema.schema import Schema
from paimon_core.table import Table
from paimon_core.types.parse import parse_type
from tests.support.draws import draws
from tests.support.tables import append_table, files_below, orders, rows_of

EVOLVING = {"row-tracking.enabled": "true", "data-evolution.enabled": "true"}


def values(**columns):
    return pa.table({("_ROW_ID" if name == "row" else name): column for name, column in columns.items()})


def by_id(table, columns=("id", "v", "n")):
    return {r["_ROW_ID"]: tuple(r[c] for c in columns) for r in table.to_arrow([*columns, "_ROW_ID"]).to_pylist()}


@pytest.fixture
def table(tmp_path):
    made = append_table(tmp_path / "t", **EVOLVING)
    made.write(orders((1, "a", 1), (2, "b", 2), (3, "c", 3)))
    made.write(orders((4, "d", 4), (5, "e", 5)))
    return made


def test_only_files_of_rows_named_get_new_column(table):
    before = files_below(table.path)
    made = table.update_columns(values(row=[2, 0], v=["C", "A"]))
    assert by_id(table) == {0: (1, "A", 1), 1: (2, "b", 2), 2: (3, "C", 3), 3: (4, "d", 4), 4: (5, "e", 5)}
    assert len([f for f in files_below(table.path) - before if "bucket" in f]) == 1
    assert by_id(table, ("id", "_SEQUENCE_NUMBER"))[3] == (4, 2)
    assert by_id(table, ("id", "_SEQUENCE_NUMBER"))[1] == (2, made.id)
    assert by_id(table, ("v",)) == {0: ("A",), 1: ("b",), 2: ("C",), 3: ("d",), 4: ("e",)}


def test_older_value_is_not_found(table):
    table.update_columns(values(row=[0], v=["z"], n=pa.array([9], pa.int32())))
    for text, actual in (
        ("v = 'a'", []),
        ("n = 1", []),
        ("v = 'z'", [1]),
        ("n = 9 and id = 1", [1]),
        ("n > 3", [1, 4, 5]),
    ):
        assert sorted(table.to_arrow(["id"], filter=text).column(0).to_pylist()) == actual, text
    assert table.to_arrow(limit=2).num_rows == 2


def test_newest_values_leave_out_files_of_whole_row_ranges(tmp_path):
    table = append_table(tmp_path / "t", **EVOLVING)
    for k in range(3):
        table.write(orders(*((10 * k + i, f"v{k}", 10 * k + i) for i in range(10))))
    table.update_columns(values(row=list(range(10)), v=["new"] * 10))
    table.update_columns(values(row=[10], v=["new"]))
    table = table.alter([AddColumn("w", parse_type("INT"))])
    table.update_columns(values(row=[20], w=pa.array([7], pa.int32())))
    for text, files, rows in (
        ("v = 'v0'", 2, 0),
        ("v = 'w'", 0, 0),
        ("v = 'new'", 4, 11),
        ("v = 'v1'", 2, 9),
        ("n = 15", 2, 1),
        ("n = 5 and v = 'new'", 2, 1),
        ("v = 'new' and n = 25", 0, 0),
        ("n = 25 or n = 5", 4, 2),
        ("w = 7 and v = 'v2'", 2, 1),
        ("w = 8", 4, 0),
    ):
        found = table.scan(filter=text).plan().files, table.to_arrow(["id"], filter=text).num_rows
        assert found == (files, rows), text


def test_compaction_joins_columns_and_keeps_ids(table):
    table.update_columns(values(row=[0, 4], v=["A", "E"]))
    before = by_id(table)
    table.compact(full=True)
    (split,) = table.scan().plan().splits
    assert (len(split.files), split.raw_convertible, split.files[0].write_cols) == (1, True, None)
    assert by_id(table) == before
    table.write(orders((6, "f", 6)))
    table.update_columns(values(row=[1, 5], n=pa.array([20, 60], pa.int32())))
    assert by_id(table) == before | {1: (2, "b", 20), 5: (6, "f", 60)}
    assert table.compact() is None
    with pytest.raises(InvalidInputError, match="ids"):
        table.compact(order_by=["v"])


def test_column_that_was_added_later(table):
    table = table.alter([AddColumn("w", parse_type("DOUBLE"))])
    table.update_columns(values(row=[3], w=[1.5]))
    assert by_id(table, ("id", "w")) == {0: (1, None), 1: (2, None), 2: (3, None), 3: (4, 1.5), 4: (5, None)}
    table.compact(full=True)
    assert by_id(table, ("id", "w"))[3] == (4, 1.5)


def test_partitions_and_nested_values(tmp_path):
    schema = pa.schema([("p", pa.string()), ("l", pa.list_(pa.int32())), ("r", pa.struct([("x", pa.string())]))])
    table = Table.create(str(tmp_path / "t"), Schema(schema, partition_keys=["p"], options=EVOLVING))
    table.write(
        pa.table({"p": ["a", "b", "a"], "l": [[1], None, [2, 3]], "r": [{"x": "u"}, {"x": None}, None]}, schema)
    )
    ids = {tuple(row["l"] or ()): row["_ROW_ID"] for row in table.to_arrow(["l", "_ROW_ID"]).to_pylist()}
    table.update_columns(values(row=[ids[()], ids[2, 3]], l=pa.array([[7], None], pa.list_(pa.int32()))))
    rows = [(r["p"], r["l"], r["r"]) for r in rows_of(table.to_arrow(filter="p = 'a'"), ("p",))]
    assert sorted(rows, key=str) == [("a", None, None), ("a", [1], {"x": "u"})]
    with pytest.raises(InvalidInputError, match="partition"):
        table.update_columns(values(row=[0], p=["x"]))


@pytest.mark.parametrize(
    ("given_values", "said"),
    [
        (values(row=[9], v=["x"]), "no row with _ROW_ID 9"),
        (values(row=[-1], v=["x"]), "no row with _ROW_ID -1"),
        (values(v=["x"]), "takes _ROW_ID"),
        (values(row=[1]), "takes _ROW_ID"),
        (values(row=[1, 1], v=["x", "y"]), "without repetition"),
        (values(row=pa.array([None], pa.int64()), v=["x"]), "without NULL"),
        (values(row=["1"], v=["x"]), "whole numbers"),
        (values(row=[1], z=["x"]), "columns of the table"),
        (values(row=[1], n=["x"]), "'n'"),
        (values(row=[1], id=pa.array([None], pa.int64())), "'id', which is NOT NULL"),
    ],
)
def test_wrong_replacements_are_refused_and_leave_no_file(table, given_values, said):
    before = files_below(table.path)
    with pytest.raises(InvalidInputError, match=said):
        table.update_columns(given_values)
    assert files_below(table.path) == before


def test_no_rows_no_commit(table):
    assert table.update_columns(values(row=pa.array([], pa.int64()), v=pa.array([], pa.string()))) is None


def test_other_tables_have_no_columns_to_replace(tmp_path):
    made = append_table(tmp_path / "t", **{"row-tracking.enabled": "true"})
    with pytest.raises(InvalidInputError, match=r"data-evolution\.enabled"):
        made.update_columns(values(row=[0], v=["x"]))


# ---- others at the same time


def interrupted(table, monkeypatch, between):
    """An update of v whose commit comes after ``between``."""
    publish = Publisher.publish

    def late(self, *arguments):
        monkeypatch.setattr(Publisher, "publish", publish)
        between()
        return self.publish(*arguments)

    monkeypatch.setattr(Publisher, "publish", late)
    return table.update_columns(values(row=[1], v=["mine"]))


@pytest.mark.parametrize("what", ["same column", "compaction", "overwrite"])
def test_changes_of_same_rows_by_others_are_conflict(table, monkeypatch, what):
    others = {
        "same column": lambda: table.update_columns(values(row=[0], v=["theirs"])),
        "compaction": lambda: table.compact(full=True),
        "overwrite": lambda: table.overwrite(orders((9, "z", 9))),
    }
    with pytest.raises(CommitConflictError, match="another commit"):
        interrupted(table, monkeypatch, others[what])
    assert "mine" not in table.to_arrow(["v"]).column(0).to_pylist()
    table.update_columns(values(row=[table.to_arrow(["_ROW_ID"]).column(0)[0].as_py()], v=["again"]))
    assert "again" in table.to_arrow(["v"]).column(0).to_pylist()


def test_other_columns_and_new_rows_do_not_disturb(table, monkeypatch):
    def between():
        table.update_columns(values(row=[1], n=pa.array([77], pa.int32())))
        table.write(orders((6, "f", 6)))

    interrupted(table, monkeypatch, between)
    assert by_id(table)[1] == (2, "mine", 77)


def test_compaction_that_missed_new_columns_is_left_out(table):
    (task,) = plan_row_ranges(table.store, PlanRequest(full=True))
    message = run(table.store, task)
    table.update_columns(values(row=[1], v=["new"]))
    assert table.committer().compact([message])[0] is None
    assert by_id(table)[1] == (2, "new", 2)


steps = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.integers(1, 4)),
        st.tuples(
            st.sampled_from(["v", "n", "both"]), st.lists(st.integers(0, 30), min_size=1, max_size=5, unique=True)
        ),
        st.tuples(st.just("compact"), st.booleans()),
    ),
    min_size=1,
    max_size=9,
)


@draws(25)
@given(steps)
def test_random_histories_agree_with_dictionary(tmp_path_factory, history):
    table = append_table(tmp_path_factory.mktemp("w") / "t", **EVOLVING)
    model = {}
    for number, (step, how) in enumerate(history):
        if step == "write":
            table.write(orders(*((number, f"w{number}", i) for i in range(how))))
            model |= {len(model) + i: (number, f"w{number}", i) for i in range(how)}
        elif step == "compact":
            table.compact(full=how)
        elif rows := [r for r in how if r in model]:
            text, numbers = [f"{step}{number}"] * len(rows), pa.array([number] * len(rows), pa.int32())
            new = {"v": {"v": text}, "n": {"n": numbers}, "both": {"n": numbers, "v": text}}[step]
            table.update_columns(values(row=rows, **new))
            for r in rows:
                key, v, n = model[r]
                model[r] = (key, f"{step}{number}" if "v" in new else v, number if "n" in new else n)
    assert by_id(table) == model
