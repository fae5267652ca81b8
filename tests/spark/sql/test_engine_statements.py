"""MERGE and UPDATE without Spark change the same rows as the SQL statements, and are refused with the same words."""

import random

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from paimon_core import InvalidInputError, Table
from paimon_core.engine import SEVERAL
from tests.spark.conftest import MODE
from tests.support.draws import rounds

pytestmark = [pytest.mark.spark, pytest.mark.skipif(MODE == "connect", reason="a catalog needs a classic session")]

KINDS = {
    "append": "'deletion-vectors.enabled' = 'true'",
    "keyed": "'primary-key' = 'k', 'bucket' = '2'",
    "tracked": "'row-tracking.enabled' = 'true'",
    "evolved": "'row-tracking.enabled' = 'true', 'data-evolution.enabled' = 'true'",
    "evolved and marked": "'row-tracking.enabled' = 'true', 'data-evolution.enabled' = 'true', "
    "'deletion-vectors.enabled' = 'true'",
}
MORE = ("tracked", "evolved", "evolved and marked")
SOURCE = pa.schema([("k", pa.int32()), ("a", pa.int64()), ("s", pa.string())])


def side(name, column):
    return pc.field({"s": "source", "t": "target"}[name], column)


def condition(rng, alias):
    number = rng.randrange(10)
    column = rng.choice("ka")
    return rng.choice(
        [
            (f"{alias}.{column} > {number}", side(alias, column) > number),
            (f"{alias}.s IS NULL", side(alias, "s").is_null()),
            (f"NOT ({alias}.s = 'a')", ~(side(alias, "s") == "a")),
            (f"{alias}.k < {alias}.a", pc.less(side(alias, "k"), side(alias, "a"))),
        ]
    )  # fmt: skip


def clauses(rng, deletes):
    """Random clauses, each as SQL and as a function that adds it to a builder."""
    chosen = []
    for kind, aliases in (("MATCHED", "st"), ("NOT MATCHED", "s"), ("NOT MATCHED BY SOURCE", "t")):
        for last in (False, True)[rng.randrange(3) :]:
            text, when = condition(rng, rng.choice(aliases))
            if last and rng.random() < 0.5:
                text, when = "", None
            head = f"WHEN {kind}{' AND ' + text if text else ''} THEN "
            if kind == "NOT MATCHED":
                chosen.append((head + "INSERT (k, a) VALUES (s.k, s.a + 1)", inserting(when)))
            elif deletes and rng.random() < 0.4:
                chosen.append((head + "DELETE", deleting(kind, when)))
            else:
                chosen.append((head + f"UPDATE SET a = t.a + {number(kind)}, s = 'set'", updating(kind, when)))
    return chosen


def number(kind):
    return "s.a" if kind == "MATCHED" else "7"


def inserting(when):
    values = {"k": side("s", "k"), "a": side("s", "a") + 1}
    return lambda builder: builder.when_not_matched_insert(when, values)


def deleting(kind, when):
    if kind == "MATCHED":
        return lambda builder: builder.when_matched_delete(when)
    return lambda builder: builder.when_not_matched_by_source_delete(when)


def updating(kind, when):
    if kind == "MATCHED":
        values = {"a": pc.add(side("t", "a"), side("s", "a")), "s": "set"}
        return lambda builder: builder.when_matched_update(when, values)
    return lambda builder: builder.when_not_matched_by_source_update(when, {"a": side("t", "a") + 7, "s": "set"})


def rows(rng, keys):
    return [(k, rng.choice((None, *range(10))), rng.choice((None, "a", "b"))) for k in keys]


def literals(chosen):
    plain = lambda value: "NULL" if value is None else repr(value)  # noqa: E731
    return ", ".join(f"({', '.join(map(plain, row))})" for row in chosen)


def opened(sql, name):
    return Table.open(next(row[1] for row in sql(f"DESCRIBE EXTENDED {name}") if row[0] == "Location"))


@pytest.mark.drawn
@pytest.mark.parametrize("kind", ["append", "keyed", *(pytest.param(k, marks=pytest.mark.more) for k in MORE)])
def test_merge_without_spark_changes_the_same_rows(sql, kind):
    tables = []
    for name in ("by_sql", "by_engine"):
        sql(f"CREATE TABLE {name} (k INT NOT NULL, a BIGINT, s STRING) TBLPROPERTIES ({KINDS[kind]})")
        tables.append(opened(sql, name))
    first = rows(random.Random(kind), range(12))
    for table in tables:
        table.write(pa.Table.from_pylist([dict(zip("kas", row, strict=True)) for row in first], table.arrow_schema))
    for seed in range(rounds(12, 2)):
        rng = random.Random(f"{kind} {seed}")
        keys = [rng.randrange(18) for _ in range(6)]
        source = rows(rng, dict.fromkeys(keys) if kind == "keyed" or seed % 3 else keys)
        chosen = clauses(rng, deletes=kind != "evolved") or [("WHEN MATCHED THEN DELETE", None)]
        if chosen[0][1] is None:
            continue
        statement = f"MERGE INTO by_sql t USING (SELECT * FROM VALUES {literals(source)} s(k, a, s)) s ON t.k = s.k "
        builder = tables[1].merge(pa.table([list(c) for c in zip(*source, strict=True)], schema=SOURCE), on="k")
        for _, add in chosen:
            builder = add(builder)
        statement += " ".join(text for text, _ in chosen)
        try:
            done = builder.execute()
        except InvalidInputError as error:
            refusal = str(error)
            with pytest.raises(Exception, match="several source rows") as by_sql:
                sql(statement)
            assert refusal == SEVERAL
            assert SEVERAL in str(by_sql.value)
            continue
        counts = (done.num_affected_rows, done.num_updated_rows, done.num_deleted_rows, done.num_inserted_rows)
        assert counts == sql(statement)[0], f"{seed}: {statement}"
        by_sql, by_engine = (
            sorted(map(str, table.to_arrow(["k", "a", "s"]).to_pylist())) for table in tables
        )  # fmt: skip
        assert by_sql == by_engine, f"{seed}: {statement}"


REFUSED = {
    "'primary-key' = 'k', 'bucket' = '1', 'merge-engine' = 'first-row'": "a = 1",
    "'primary-key' = 'k', 'bucket' = '-2'": "a = 1",
    "'primary-key' = 'k', 'bucket' = '1'": "k = 1",
    "'primary-key' = 'k', 'bucket' = '1', 'merge-engine' = 'partial-update', 'fields.a.sequence-group' = 's'": "a = 1",
}


def test_updates_are_refused_with_the_same_words(sql):
    for number, (options, assignment) in enumerate(REFUSED.items()):
        sql(f"CREATE TABLE t{number} (k INT NOT NULL, a BIGINT, s STRING) TBLPROPERTIES ({options})")
        column, _, value = assignment.partition(" = ")
        with pytest.raises(NotImplementedError) as refused:
            opened(sql, f"t{number}").update({column: int(value)})
        with pytest.raises(Exception) as by_sql:
            sql(f"UPDATE t{number} SET {assignment}")
        assert str(refused.value) in str(by_sql.value)
