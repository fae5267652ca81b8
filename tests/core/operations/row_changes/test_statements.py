"""UPDATE, MERGE and upserts without Spark, in every kind of table."""

import random
import time
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from paimon_core import CommitConflictError, InvalidInputError, RowChanges, Schema, Table, TableChangedError, col
from paimon_core.errors import UnsupportedError
from paimon_core.operations.row_changes.change_writer import ChangeWriter
from paimon_core.operations.row_changes.key_index import KeyIndex
from paimon_core.operations.row_changes.statement import SEVERAL
from paimon_core.schema.change import AddColumn
from paimon_core.types.datatype import DataField
from paimon_core.types.parse import parse_type
from tests.support.draws import rounds
from tests.support.tables import append_table, keyed_table, orders, rows_of

APPEND = {
    "rewritten": {},
    "marked": {"deletion-vectors.enabled": "true"},
    "buckets": {"bucket": "2", "bucket-key": "k"},
    "tracked": {"row-tracking.enabled": "true"},
    "evolved": {"row-tracking.enabled": "true", "data-evolution.enabled": "true"},
    "evolved and marked": {
        "row-tracking.enabled": "true",
        "data-evolution.enabled": "true",
        "deletion-vectors.enabled": "true",
    },
}
KEYED = {
    "deduplicate": {"bucket": "2"},
    "marked keys": {"bucket": "2", "deletion-vectors.enabled": "true"},
    "partial-update": {"bucket": "1", "merge-engine": "partial-update"},
    "dynamic": {"bucket": "-1"},
}
COLUMNS = pa.schema([pa.field("k", pa.int32(), False), ("a", pa.int32()), ("s", pa.string()), ("p", pa.string())])
SOURCE, TARGET = "source", "target"


def field(side, name):
    return pc.field(side, name)


def table_of(path, name, partitions=()):
    keys = ["k", *partitions] if name in KEYED else []
    options = {**APPEND, **KEYED}[name]
    columns = [f.with_nullable(False) if f.name in keys else f for f in COLUMNS]
    return Table.create(str(path), Schema(pa.schema(columns), keys, list(partitions), options))


def data(*rows):
    columns = list(zip(*rows, strict=True)) if rows else [[]] * 4
    return pa.table([pa.array(list(c), f.type) for c, f in zip(columns, COLUMNS, strict=True)], COLUMNS.names)


def row(k, a, s="x", p="y"):
    return {"k": k, "a": a, "s": s, "p": p}


def stored_rows(table):
    return sorted(table.to_arrow().to_pylist(), key=lambda r: (r["k"], str(r["p"]), str(r["a"]), str(r["s"])))


class Game:
    """A table and the rows that it must have, dictionaries."""

    def __init__(self, path, name, rng):
        self.name, self.rng, self.deletes = name, rng, name not in ("partial-update", "evolved")
        self.nulls = name != "partial-update"
        self.partitioned = rng.random() < 0.5
        self.table = table_of(path, name, ["p"] if self.partitioned else [])
        self.rows = [self.row(k) for k in range(12)]
        for part in (self.rows[:7], self.rows[7:]):
            self.table.write(pa.Table.from_pylist(part, self.table.arrow_schema))

    def row(self, k):
        rng = self.rng
        return row(k, rng.choice((None, 0, 1, 5, -3)), rng.choice((None, "", "a", "b")), rng.choice("xy"))

    def condition(self, side):
        """A condition on one side, as an expression and as a function of a row."""
        rng, number, text = self.rng, self.rng.choice((0, 1, 4, 8)), self.rng.choice(("a", "b"))
        return rng.choice(
            [
                (field(side, "k") >= number, lambda r: r["k"] >= number),
                (field(side, "a") == number, lambda r: r["a"] == number),
                (field(side, "s").is_null() | (field(side, "s") != text), lambda r: r["s"] != text),
                (pc.less(field(side, "a"), field(side, "k")), lambda r: r["a"] is not None and r["a"] < r["k"]),
            ]
        )

    def update(self):
        number, text, where = self.rng.choice((1, 5)), self.rng.choice(("new", "a")), self.rng.choice((0, 3, 9))
        add = pc.field("k") + number
        done = self.table.update({"a": add, "s": text}, where=f"k > {where} AND (p = 'x' OR s = 'a')")
        matching = [r["k"] > where and (r["p"] == "x" or r["s"] == "a") for r in self.rows]
        assert done.num_affected_rows == done.num_updated_rows == sum(matching)
        self.rows = [
            {**r, "a": r["k"] + number, "s": text} if m else r for r, m in zip(self.rows, matching, strict=True)
        ]

    def clauses(self):
        rng = self.rng
        for kind, sides in (("matched", (SOURCE, TARGET)), ("not_matched", (SOURCE,)), ("by_source", (TARGET,))):
            for last in (False, True)[rng.randrange(2) :]:
                side = rng.choice(sides)
                condition = None if last and rng.random() < 0.5 else (side, *self.condition(side))
                if kind == "not_matched":
                    yield kind, "insert", condition, rng.choice((True, False))
                else:
                    action = rng.choice(("update", "delete")) if self.deletes else "update"
                    yield kind, action, condition, rng.choice((1, 7))
                if condition is None:
                    break

    def merge(self):
        rng = self.rng
        source = [self.row(k) for k in (rng.randrange(20) for _ in range(rng.randrange(1, 9)))]
        if rng.random() < 0.7 or self.name in KEYED:
            source = list({r["k"]: r for r in source}.values())
        on = ["k", "p"] if self.partitioned else ["k"]
        clauses = list(self.clauses())
        builder = self.table.merge(pa.Table.from_pylist(source, COLUMNS), on)
        for kind, action, condition, detail in clauses:
            builder = self.with_clause(builder, kind, action, None if condition is None else condition[1], detail)
        expected = self.merged(source, on, clauses)
        if expected is None:
            with pytest.raises(InvalidInputError, match="several source rows match one row"):
                builder.execute()
            return
        self.rows, counts = expected
        done = builder.execute()
        assert (done.num_updated_rows, done.num_deleted_rows, done.num_inserted_rows) == counts

    @staticmethod
    def with_clause(builder, kind, action, condition, detail):
        if kind == "not_matched" and detail:
            return builder.when_not_matched_insert_all(condition)
        if kind == "not_matched":
            values = {"k": field(SOURCE, "k"), "a": field(SOURCE, "k") * 2, "p": field(SOURCE, "p")}
            return builder.when_not_matched_insert(condition, values)
        if kind == "matched":
            if action == "delete":
                return builder.when_matched_delete(condition)
            return builder.when_matched_update(
                condition, {"a": field(TARGET, "k") + detail, "s": field(SOURCE, "s")} if detail == 1 else {"s": "set"}
            )
        if action == "delete":
            return builder.when_not_matched_by_source_delete(condition)
        return builder.when_not_matched_by_source_update(condition, {"a": detail})

    def merged(self, source, on, clauses):
        key = lambda r: tuple(r[name] for name in on)  # noqa: E731
        matched_clauses = [c for c in clauses if c[0] == "matched"]
        repeats = not matched_clauses or (len(matched_clauses) == 1 and matched_clauses[0][1:3] == ("delete", None))
        rows, counts = [], [0, 0, 0]
        for old in self.rows:
            found = [s for s in source if key(s) == key(old)]
            if len(found) > 1 and not repeats:
                return None
            new_row = found[0] if found else None
            clause = self.first(clauses, "matched" if found else "by_source", {SOURCE: new_row, TARGET: old})
            if clause is None:
                rows.append(old)
            elif clause[1] == "delete":
                counts[1] += 1
            else:
                counts[0] += 1
                if not found:
                    rows.append({**old, "a": clause[3]})
                elif clause[3] == 1:
                    rows.append({**old, "a": old["k"] + 1, "s": new_row["s"]})
                else:
                    rows.append({**old, "s": "set"})
        existing = {key(old) for old in self.rows}
        for new_row in source:
            clause = self.first(clauses, "not_matched", {SOURCE: new_row})
            if key(new_row) not in existing and clause is not None:
                counts[2] += 1
                rows.append(new_row if clause[3] else {**new_row, "a": new_row["k"] * 2, "s": None})
        return rows, tuple(counts)

    @staticmethod
    def first(clauses, kind, sides):
        for clause in clauses:
            if clause[0] == kind and (clause[2] is None or clause[2][2](sides[clause[2][0]])):
                return clause
        return None

    def check(self):
        assert stored_rows(self.table) == sorted(
            self.rows, key=lambda r: (r["k"], str(r["p"]), str(r["a"]), str(r["s"]))
        )


class NoNulls(Game):
    """A game for merge engine partial-update, which keeps old values in place of NULL."""

    def row(self, k):
        return {**super().row(k), "a": self.rng.choice((0, 1, 5)), "s": self.rng.choice(("", "a", "b"))}


@pytest.mark.drawn
@pytest.mark.cases(1)
@pytest.mark.parametrize("name", [*APPEND, *KEYED])
def test_statements_leave_the_rows_of_a_model(tmp_path, name):
    for seed in range(rounds(20, 2)):
        rng = random.Random(f"{name} {seed}")
        game = (NoNulls if name == "partial-update" else Game)(tmp_path / str(seed), name, rng)
        for _ in range(5):
            rng.choice((game.update, game.merge, game.merge))()
            game.check()
        assert not game.table.verify(deep=True).faults


def test_update_takes_values_scalars_and_expressions(tmp_path):
    table = append_table(tmp_path / "t")
    table.write(orders((1, "a", 1), (2, "b", None)))
    assert table.update({"v": pc.utf8_upper(pc.field("v")), "N": pa.scalar(7, pa.int8())}, "id = 1") == RowChanges(
        1, 0, 0, table.snapshot()
    )
    assert table.update({"n": pc.field("n") + 1, "v": None}).num_affected_rows == 2
    assert rows_of(table.to_arrow()) == [{"id": 1, "v": None, "n": 8}, {"id": 2, "v": None, "n": None}]
    assert table.snapshot().operation == "UPDATE"
    before = table.snapshot()
    assert table.update({"n": 1}, where="id > 5") == RowChanges()
    refused = {
        "beyond": ({"n": 1 << 40}, "cannot be stored as INT"),
        "text": ({"n": "one"}, "cannot be stored as INT"),
        "overflow": ({"n": pc.field("n") + (1 << 30) + (1 << 30)}, "cannot evaluate the new value of column n"),
        "null": ({"id": None}, "NOT NULL"),
        "unknown": ({"x": 1}, "column 'x' does not exist"),
        "unknown field": ({"n": 1, "v": pc.field("x")}, "new value of column v, x: No match for FieldRef"),
        "twice": ({"n": 1, "N": 2}, "two new values"),
        "none": ({}, "no column gets a new value"),
    }
    for values, message in refused.values():
        with pytest.raises(InvalidInputError, match=message):
            table.update(values)
    assert table.snapshot() == before


def test_update_of_nested_and_rounded_columns(tmp_path):
    schema = pa.schema(
        [("f", pa.float32()), ("l", pa.list_(pa.int32())), ("m", pa.map_(pa.string(), pa.int32())),
         ("r", pa.struct([("x", pa.int32())]))]
    )  # fmt: skip
    table = append_table(tmp_path / "t", schema)
    table.write(pa.table({"f": [1.0]}))
    table.update({"f": 0.1, "l": [1, None], "m": {"k": 2}, "r": {"x": 3}})
    assert table.to_arrow().to_pylist() == [
        {"f": pytest.approx(0.1, rel=1e-6), "l": [1, None], "m": [("k", 2)], "r": {"x": 3}}
    ]
    table.update({"f": pc.field("f") * 0.1})
    assert table.to_arrow(["f"]).to_pylist() == [{"f": pytest.approx(0.01, rel=1e-6)}]


def test_updates_that_a_merge_would_hide_are_refused(tmp_path):
    tables = {
        "merge engine first-row": {"merge_engine": "first-row"},
        "merge engine aggregation": {"merge_engine": "aggregation"},
        "'bucket' = -2": {"bucket": "-2"},
        "cannot change (n, )?v: a sequence group": {"merge_engine": "partial-update", "fields.n.sequence-group": "v"},
    }
    for number, (message, options) in enumerate(tables.items()):
        table = keyed_table(tmp_path / str(number), **options)
        with pytest.raises(UnsupportedError, match=message):
            table.update({"v": "x"})
        with pytest.raises(UnsupportedError, match=f"upsert.*{message}"):
            table.upsert(orders((1, "x", 2)), on="id")
        merge = table.merge(orders((1, "x", 2)), on="id")
        with pytest.raises(UnsupportedError, match=f"MERGE INTO.*{message}"):
            merge.when_matched_update(set={"v": "x"}).execute()
    with pytest.raises(UnsupportedError, match="UPDATE cannot change id: columns of the key"):
        keyed_table(tmp_path / "key").update({"id": 2})
    evolved = append_table(tmp_path / "e", **{"row-tracking.enabled": "true"})
    assert evolved.update({"v": "x"}) == RowChanges()
    with pytest.raises(UnsupportedError, match="read-optimized view"):
        evolved.read_optimized().update({"v": "x"})


def test_partial_update_and_sequence_fields_keep_their_promises(tmp_path):
    partial = keyed_table(tmp_path / "p", merge_engine="partial-update")
    partial.write(orders((1, "a", 1)))
    with pytest.raises(InvalidInputError, match="column v cannot become NULL: partial-update would keep"):
        partial.update({"v": None})
    sequenced = keyed_table(tmp_path / "s", **{"sequence.field": "n"})
    sequenced.write(orders((1, "a", 5), (2, "b", None)))
    with pytest.raises(InvalidInputError, match="new value of sequence field n is older"):
        sequenced.update({"n": 4})
    assert sequenced.update({"n": 6, "v": "new"}).num_updated_rows == 2
    assert rows_of(sequenced.to_arrow()) == [{"id": k, "v": "new", "n": 6} for k in (1, 2)]


def test_wrong_merges_are_refused(tmp_path):
    table = keyed_table(tmp_path / "t")
    table.write(orders((1, "a", 1)))
    news = orders((1, "b", 2))
    before = table.snapshot()
    with pytest.raises(InvalidInputError, match="no clause"):
        table.merge(news, "id").execute()
    with pytest.raises(InvalidInputError, match=r"write pc.field\('source', 'v'\)"):
        table.merge(news, "id").when_matched_update(set={"v": "source.v"}).execute()
    with pytest.raises(InvalidInputError, match="a condition of MERGE is a text such as"):
        table.merge(news, "id").when_matched_delete(True)
    with pytest.raises(InvalidInputError, match="column of type STRING"):
        table.merge(news, "id").when_matched_delete("source.v = 1").execute()
    with pytest.raises(InvalidInputError, match="column 'target' does not exist"):
        table.merge(news, "id").when_not_matched_insert_all("target.n = 1").execute()
    with pytest.raises(InvalidInputError, match="column 'x' does not exist"):
        table.merge(news, ["x"])
    with pytest.raises(InvalidInputError, match="the source has no column 'w'"):
        table.merge(news, {"id": "w"})
    with pytest.raises(InvalidInputError, match="'on' names no column"):
        table.merge(news, [])
    with pytest.raises(InvalidInputError, match="the source has no column for v"):
        table.merge(news.drop(["v"]), "id").when_matched_update_all().execute()
    with pytest.raises(InvalidInputError, match="cannot change key id"):
        table.merge(pa.table({"id": [2], "v": ["a"], "n": [3]}), "v").when_matched_update_all().execute()
    with pytest.raises(InvalidInputError, match="of type string, not of type bool"):
        table.merge(news, "id").when_matched_delete(field(SOURCE, "v")).execute()
    with pytest.raises(InvalidInputError, match="No match for FieldRef"):
        table.merge(orders((9, "b", 2)), "id").when_not_matched_insert(field(TARGET, "n") == 1, {"id": 9}).execute()
    with pytest.raises(InvalidInputError, match="lacks the primary key columns"):
        table.merge(orders((9, "b", 2)), "id").when_not_matched_insert(values={"v": "x"}).execute()
    with pytest.raises(InvalidInputError) as several:
        table.merge(orders((1, "b", 2), (1, "c", 3)), "id").when_matched_update_all().execute()
    assert str(several.value) == SEVERAL
    assert table.snapshot() == before
    assert table.merge(orders((1, "b", 2), (1, "c", 3)), "id").when_matched_delete().execute().num_deleted_rows == 1


def test_null_keys_match_nothing_and_other_columns_can_be_keys(tmp_path):
    table = append_table(tmp_path / "t")
    table.write(orders((1, "a", 1), (2, None, 2), (3, "c", None)))
    source = pa.table({"name": ["a", None, "c"], "m": pa.array([1, 2, None], pa.int64()), "id": [10, 20, 30]})
    merge = table.merge(source, {"v": "name", "n": "m"}).when_matched_update(set={"id": field(SOURCE, "id")})
    done = merge.when_not_matched_insert(values={"id": field(SOURCE, "id"), "v": "new"}).execute()
    assert (done.num_updated_rows, done.num_inserted_rows, table.snapshot().operation) == (1, 2, "MERGE")
    assert rows_of(table.to_arrow()) == [
        {"id": 2, "v": None, "n": 2}, {"id": 3, "v": "c", "n": None}, {"id": 10, "v": "a", "n": 1},
        {"id": 20, "v": "new", "n": None}, {"id": 30, "v": "new", "n": None},
    ]  # fmt: skip


def test_conditions_are_filters_too(tmp_path):
    table = append_table(tmp_path / "t")
    table.write(orders(*((k, f"v{k}", k) for k in range(6))))
    news = pa.table({"id": range(3, 9), "n": [1, 2, 3, 4, 5, 6], "s": pa.array([*"aabb", None, "a"])})
    merge = table.merge(news, "id").when_matched_delete("source.s = 'a' AND Target.N > 3")
    merge = merge.when_matched_update(col("source.n") > 0, {"v": "new"})
    merge = merge.when_not_matched_insert("source.s IS NULL", {"id": field(SOURCE, "id")})
    done = merge.when_not_matched_by_source_update("target.v LIKE 'v0%'", {"n": 100}).execute()
    assert (done.num_updated_rows, done.num_deleted_rows, done.num_inserted_rows) == (3, 1, 1)
    assert {r["id"]: (r["v"], r["n"]) for r in table.to_arrow().to_pylist()} == {
        0: ("v0", 100), 1: ("v1", 1), 2: ("v2", 2), 3: ("new", 3), 5: ("new", 5), 7: (None, None),
    }  # fmt: skip


def test_upsert_by_columns_of_choice(tmp_path):
    table = append_table(tmp_path / "t")
    table.write(orders((1, "a", 1), (2, "b", 2)))
    done = table.upsert(pa.RecordBatchReader.from_batches(orders().schema, orders((9, "b", 5)).to_batches()), on="v")
    assert (done.num_updated_rows, done.num_inserted_rows) == (1, 0)
    assert table.upsert(pa.table({"id": [3, 9], "n": [3, 6]}), on=["id"]).num_affected_rows == 2
    assert rows_of(table.to_arrow()) == [
        {"id": 1, "v": "a", "n": 1}, {"id": 3, "v": None, "n": 3}, {"id": 9, "v": "b", "n": 6},
    ]  # fmt: skip
    before = table.snapshot()
    with pytest.raises(InvalidInputError, match="several rows of the data have id = 1, n = 2"):
        table.upsert(pa.table({"id": [1, 2, 1], "n": [2, 2, 2]}), on=["id", "n"])
    with pytest.raises(InvalidInputError, match="column 'w' does not exist"):
        table.upsert(pa.table({"id": [1], "w": [2]}), on="id")
    assert table.upsert(pa.table({"id": [1]}), on="id") == RowChanges()
    assert table.snapshot() == before
    keyed = keyed_table(tmp_path / "k")
    keyed.write(orders((1, "a", 1)))
    with pytest.raises(InvalidInputError, match="upsert cannot change key id"):
        keyed.upsert(orders((2, "a", 1)), on="v")
    assert keyed.upsert(pa.table({"id": [1, 2], "v": ["b", "c"]}), on="id").num_affected_rows == 2
    assert rows_of(keyed.to_arrow()) == [{"id": 1, "v": "b", "n": 1}, {"id": 2, "v": "c", "n": None}]
    with pytest.raises(UnsupportedError, match=r"is not possible in Table\.upsert"):
        keyed.with_options({"write.merge-schema": "true"}).upsert(orders((1, "a", 1)), on="id")


@pytest.mark.parametrize("name", ["marked", "deduplicate", "evolved"])
def test_a_statement_starts_again_after_other_changes(tmp_path, monkeypatch, name):
    table = table_of(tmp_path / "t", name)
    table.write(data((1, 1, "x", "y"), (2, 2, "x", "y")))
    others = [lambda: Table.open(table.path).update({"a": 5}, where="k = 1")]
    commit = ChangeWriter.commit

    def meddling(writer):
        if others and writer.store is table.store:
            others.pop()()
        return commit(writer)

    monkeypatch.setattr(ChangeWriter, "commit", meddling)
    assert table.update({"a": pc.field("a") + 10}).num_updated_rows == 2
    assert stored_rows(table) == [row(1, 15), row(2, 12)]
    others.append(lambda: Table.open(table.path).update({"a": 6}, where="k = 2"))
    merge = table.merge(pa.table({"k": [1, 2], "a": [1, 1]}), "k")
    merge.when_matched_update(set={"a": pc.add(field(SOURCE, "a"), field(TARGET, "a"))}).execute()
    assert stored_rows(table) == [row(1, 16), row(2, 7)]
    others += [lambda: Table.open(table.path).update({"a": 0}, where="k = 2")] * 20
    with pytest.raises(CommitConflictError):
        table.update({"a": pc.field("a") + 10})
    assert len(others) == 10
    assert stored_rows(table) == [row(1, 16), row(2, 0)]
    assert not table.maintenance.remove_orphan_files(int(time.time() * 1000), dry_run=True).files
    assert not table.verify(deep=True).faults
    others.clear()
    Table.open(table.path).alter([AddColumn("new", "INT")]).update({"new": 1})
    with pytest.raises(TableChangedError, match="would lose the values of columns added since"):
        table.update({"a": 1})


@pytest.mark.parametrize("name", ["tracked", "evolved"])
def test_row_ids_stay(tmp_path, name):
    table = table_of(tmp_path / "t", name)
    table.write(data(*((k, k, "x", "y") for k in range(4))))
    table.update({"a": 7}, where="k IN (1, 3)")
    table.upsert(data((2, 20, "x", "y"), (9, 90, "x", "y")), on="k")
    ids = {r["k"]: r["_ROW_ID"] for r in table.to_arrow(["k", "_ROW_ID"]).to_pylist()}
    assert ids.pop(9) > 3
    assert ids == {k: k for k in range(4)}


def test_rows_that_match_since_another_statement_are_updated(tmp_path, monkeypatch):
    """Also if they are in other files than the rows that matched before."""
    table = append_table(tmp_path / "t")
    table.write(orders((1, "hit", 1)))
    table.write(orders((2, "no", 2)))
    others = [lambda: Table.open(table.path).update({"v": "hit"}, where="id = 2")]
    commit = ChangeWriter.commit

    def meddling(writer):
        if others and writer.store is table.store:
            others.pop()()
        return commit(writer)

    monkeypatch.setattr(ChangeWriter, "commit", meddling)
    assert table.update({"n": 9}, where="v = 'hit'").num_updated_rows == 2
    assert [r["n"] for r in table.to_arrow().to_pylist()] == [9, 9]


def test_only_files_that_can_match_are_read(tmp_path):
    table = append_table(tmp_path / "t")
    for start in range(0, 40, 10):
        table.write(orders(*((k, f"v{k}", k) for k in range(start, start + 10))))
    first = min(table.scan(filter="id < 5").plan().splits[0].files, key=lambda f: f.min_sequence_number)
    for path in (tmp_path / "t").rglob(first.file_name):
        path.write_bytes(b"unreadable")
    for many in (3, 2_000):  # values that a filter lists, and more than that
        news = pa.table({"id": range(35, 35 + many), "n": pa.array([7] * many, pa.int32())})
        done = table.upsert(news, on="id")
        assert done.num_updated_rows == min(many, 5)


CASES = {
    "DOUBLE": (pa.array([0.0, float("nan"), 1.5, None]), pa.array([-0.0, float("nan"), 2.5, None]), [0, 1, -1, -1]),
    "CHAR(4)": (pa.array(["a", "b "]), pa.array(["a   ", "b", " a"]), [0, 1, -1]),
    "DECIMAL(9, 2)": (pa.array([1, 20]), pa.array([Decimal(20), Decimal(3)], pa.decimal128(9, 2)), [1, -1]),
    "TIMESTAMP(9)": (pa.array([1, 2], pa.timestamp("ms")), pa.array([2_000_000, 1], pa.timestamp("ns")), [1, -1]),
    "BOOLEAN": (pa.array([False, True, None]), pa.array([True, None]), [1, -1]),
    "BYTES": (pa.array([b"x", b""]), pa.array([b"", b"y"]), [1, -1]),
    "DATE": (pa.array([3, 1], pa.date32()), pa.array([1, 2], pa.date32()), [1, -1]),
    "STRING": (pa.array(["z", "a"]).dictionary_encode(), pa.array(["a", "b"]), [1, -1]),
}


@pytest.mark.parametrize("kind", CASES)
def test_keys_are_equal_as_in_sql(kind):
    source, target, expected = CASES[kind]
    index = KeyIndex([DataField(0, "c", parse_type(kind))], [source])
    found = index.find([target])
    assert [int(index.first_rows[code]) if code >= 0 else -1 for code in found] == expected


def test_an_index_of_no_rows_and_of_columns_that_cannot_match():
    number, nested = DataField(0, "c", parse_type("INT")), DataField(1, "l", parse_type("ARRAY<INT>"))
    index = KeyIndex([number, number], [pa.array([None], pa.int32()), pa.array([1], pa.int32())])
    assert index.find([pa.array([1, 2], pa.int32())] * 2).tolist() == [-1, -1]
    assert str(index.predicate()) == "FALSE"
    with pytest.raises(UnsupportedError, match="cannot be matched by column 'l' of type ARRAY<INT>"):
        KeyIndex([nested], [pa.array([[1]])])
    with pytest.raises(InvalidInputError, match="cannot be stored as INT"):
        KeyIndex([number], [pa.array([1 << 40])])
