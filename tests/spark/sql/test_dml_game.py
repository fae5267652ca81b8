"""A random game: DELETE, UPDATE and MERGE leave the rows that a model in Python has after the same statement."""

import random
from collections import Counter

import pytest

from paimon_spark.sql.writes import few_rows
from tests.spark.conftest import MODE
from tests.support.draws import rounds

pytestmark = [pytest.mark.spark, pytest.mark.skipif(MODE == "connect", reason="a catalog needs a classic session")]

APPEND = {
    "rewritten": "'bucket' = '-1'",
    "marked": "'deletion-vectors.enabled' = 'true'",
    "buckets": "'bucket' = '2', 'bucket-key' = 'k'",
    "tracked": "'row-tracking.enabled' = 'true'",
    "evolved": "'row-tracking.enabled' = 'true', 'data-evolution.enabled' = 'true'",
    "evolved and marked": (
        "'row-tracking.enabled' = 'true', 'data-evolution.enabled' = 'true', 'deletion-vectors.enabled' = 'true'"
    ),
}
KEYED = {
    "deduplicate": "'bucket' = '2'",
    "marked keys": "'bucket' = '2', 'deletion-vectors.enabled' = 'true'",
    "partial-update": "'bucket' = '1', 'merge-engine' = 'partial-update'",
    "sequence": "'bucket' = '1', 'sequence.field' = 'q'",
    "dynamic": "'bucket' = '-1'",
}
COLUMNS = {"k": "INT", "a": "INT", "b": "BIGINT", "s": "STRING", "q": "INT", "n": "", "p": "STRING"}
"""Key, numbers, a text, the sequence, which grows, a struct, the partition. ALTER TABLE adds e1, e2 and so on."""
FIELDS = {"x": "INT", "y": "STRING"}
"""Fields of the struct. ALTER TABLE adds numbers."""
TEXTS = (None, "", "a", "b", "NULL")
NUMBERS = (None, 0, 1, 2, 7, -1)


def literal(value):
    return "NULL" if value is None else repr(value)


def value_of(row, name):
    """The value of a column, or of a field of the struct by its path."""
    column, _, name = name.partition(".")
    return row[column] if not name or row[column] is None else row[column][name]


def with_values(row, values, fields):
    """The row with new values of columns and of fields of the struct, by their paths."""
    new = dict(row)
    for path, value in values.items():
        column, _, name = path.partition(".")
        new[column] = ((new[column] or dict.fromkeys(fields)) | {name: value}) if name else value
    return new


def plain(value):
    return tuple(value.values()) if isinstance(value, dict) else value


def compare(name, x, y):
    """A comparison of SQL: NULL compared with NULL is unknown."""
    if name == "<=>":
        return x == y
    if x is None or y is None:
        return None
    return {"=": x == y, "<>": x != y, "<": x < y, ">=": x >= y}[name]


def both(x, y):
    return False if x is False or y is False else None if x is None or y is None else True


def either(x, y):
    return True if x is True or y is True else None if x is None or y is None else False


def no(x):
    return None if x is None else not x


@pytest.fixture(autouse=True)
def most_changes(monkeypatch):
    """Sets how many changed rows the driver writes; for 2, masks replace the base run of tables of any size."""
    monkeypatch.setattr("paimon_core.scan.base_run.LEAST_BASE", 0)

    def set_most(most):
        monkeypatch.setattr(few_rows, "MOST_CHANGES", most)
        monkeypatch.setattr("paimon_core.scan.base_run.MOST_NEWER_ROWS", -1 if most == 2 else 100)

    return set_most


class Game:
    """A table ``t`` and the rows that it must have, dictionaries."""

    def __init__(self, sql, rng, kind, most_changes):
        self.sql, self.rng, self.kind, self.most_changes = sql, rng, kind, most_changes
        self.keyed, self.log, self.clock = kind in KEYED, [], 0
        self.rows, self.columns, self.fields = [], dict(COLUMNS), dict(FIELDS)
        options = (KEYED | APPEND)[kind]
        self.deletes = kind not in ("partial-update", "evolved")
        self.partitioned = rng.random() < 0.5
        if self.keyed:
            options += f", 'primary-key' = '{'k,p' if self.partitioned else 'k'}'"
        by = "PARTITIONED BY (p)" if self.partitioned else ""
        keys = {"k": self.keyed, "p": self.keyed and self.partitioned}
        columns = ", ".join(f"{name} {self.type(name)}{' NOT NULL' * keys.get(name, False)}" for name in self.columns)
        self.run(f"CREATE TABLE t ({columns}) {by} TBLPROPERTIES ({options})")
        for first in (0, 8):
            self.insert([self.row(k) for k in range(first, first + 8)])

    def run(self, statement):
        self.log.append(statement)
        return self.sql(statement)

    def row(self, k):
        rng = self.rng
        self.clock += 1
        fixed = {"k": k, "q": self.clock, "p": rng.choice(("x", "y", "") if self.keyed else ("x", "y", "", None))}
        return {name: fixed[name] if name in fixed else self.value(name) for name in self.columns}

    def value(self, name):
        rng = self.rng
        if name == "n":
            return None if rng.random() < 0.2 else {field: self.value(field) for field in self.fields}
        return rng.choice(TEXTS if name in "sy" else NUMBERS)

    def type(self, name):
        fields = ", ".join(f"{field}: {kind}" for field, kind in self.fields.items())
        return f"STRUCT<{fields}>" if name == "n" else self.columns[name]

    def literal(self, name, value):
        if isinstance(value, dict):
            fields = ", ".join(f"'{field}', {literal(item)}" for field, item in value.items())
            return f"CAST(named_struct({fields}) AS {self.type(name)})"
        return literal(value)

    def values(self, rows):
        lines = ", ".join(f"({', '.join(self.literal(name, row[name]) for name in self.columns)})" for row in rows)
        types = ", ".join(f"CAST({name} AS {self.type(name)}) {name}" for name in self.columns)
        return f"SELECT {types} FROM VALUES {lines} AS v({', '.join(self.columns)})"

    def alter(self):
        """Add a column, or a field of the struct; rows that there are have NULL in it."""
        rng, new = self.rng, f"e{len(self.columns) + len(self.fields)}"
        if rng.random() < 0.5:
            self.fields[new] = "INT"
            self.run(f"ALTER TABLE t ADD COLUMN n.{new} INT")
            for row in self.rows:
                row["n"] = row["n"] and {**row["n"], new: None}
            return
        after = rng.choice(list(self.columns))
        place, at = rng.choice(
            [("", len(self.columns)), (" FIRST", 0), (f" AFTER {after}", 1 + list(self.columns).index(after))]
        )
        self.run(f"ALTER TABLE t ADD COLUMN {new} INT{place}")
        names = list(self.columns)
        names.insert(at, new)
        self.columns = {name: self.columns.get(name, "INT") for name in names}
        for row in self.rows:
            row[new] = None

    def insert(self, rows):
        self.run(f"INSERT INTO t {self.values(rows)}")
        self.rows += rows

    def condition(self, alias, depth=0):
        """A condition on the rows of a table by its alias, as a text and as a function of a row: True, False, None."""
        rng = self.rng
        if depth < 2 and rng.random() < 0.4:
            (x, f), (y, g) = self.condition(alias, depth + 1), self.condition(alias, depth + 1)
            if rng.random() < 0.5:
                return f"({x} AND {y})", lambda row: both(f(row), g(row))
            return f"({x} OR {y})", lambda row: either(f(row), g(row))
        if rng.random() < 0.15:
            x, f = self.condition(alias, 2)
            return f"NOT ({x})", lambda row: no(f(row))
        return self._simple(alias)

    def _simple(self, alias):
        rng = self.rng
        name = rng.choice(("k", "a", "b", "s", "p", "k", *(f"n.{field}" for field in self.fields), *self.added))
        at = f"{alias}.{name}"
        domains = {"s": TEXTS, "n.y": TEXTS, "p": ("x", "y", "", None), "k": (*NUMBERS, *range(16))}
        domain = domains.get(name, NUMBERS)
        value, second = rng.choice(domain), rng.choice(domain)
        kind = rng.choice(("compare", "compare", "in", "null", "other", "cast"))
        if kind == "compare":
            sign = rng.choice(("=", "<>", "<", ">=", "<=>"))
            return f"{at} {sign} {literal(value)}", lambda row: compare(sign, value_of(row, name), value)
        if kind == "in":
            is_in = lambda row: either(*(compare("=", value_of(row, name), item) for item in (value, second)))  # noqa: E731
            if rng.random() < 0.5:
                return f"{at} IN ({literal(value)}, {literal(second)})", is_in
            return f"{at} NOT IN ({literal(value)}, {literal(second)})", lambda row: no(is_in(row))
        if kind == "null":
            return f"{at} IS NULL", lambda row: value_of(row, name) is None
        if kind == "cast" and name in "kab":
            return f"CAST({at} AS STRING) < '7'", lambda row: compare("<", text(row[name]), "7")
        return f"{alias}.a < {alias}.b", lambda row: compare("<", row["a"], row["b"])

    @property
    def added(self):
        """The names of added columns."""
        return [name for name in self.columns if name[0] == "e"]

    def assignment(self, source=None):
        """A column, the text of its new value, and a function of a row and the row of the source."""
        rng = self.rng
        name = rng.choice(
            (
                "a",
                "b",
                "s",
                "n",
                *(f"n.{field}" for field in self.fields),
                *self.added,
                *(("p",) if self.partitioned and self.kind in ("rewritten", "marked", "buckets", "tracked") else ()),
            )
        )
        if name == "n":
            options = [] if self.kind == "partial-update" else [("NULL", lambda row, _: None)]
            new = {field: self.value(field) for field in self.fields}
            options += [(self.literal("n", new), lambda row, _: new)]
            options += [("s.n", lambda row, s: s["n"])] if source and self.kind != "partial-update" else []
            return name, *rng.choice(options)
        if self.kind == "partial-update":
            return name, *(("7", lambda row, _: 7) if name[-1] not in "sy" else ("'new'", lambda row, _: "new"))
        if name in ("s", "p", "n.y"):
            options = [("'new'", lambda row, _: "new"), ("NULL", lambda row, _: None)]
            options += [(f"concat(t.{name}, '!')", lambda row, _: joined(value_of(row, name), "!"))]
            options += [("t.k", lambda row, _: text(row["k"]))]
            options += [(f"s.{name}", lambda row, s: value_of(s, name))] * 2 if source else []
        else:
            options = [("7", lambda row, _: 7), ("NULL", lambda row, _: None)]
            options += [("t.a + 1", lambda row, _: None if row["a"] is None else row["a"] + 1)]
            options += [("t.b", lambda row, _: row["b"])]
            options += [("s.a + t.k", lambda row, s: joined(s["a"], row["k"]))] * 2 if source else []
        return name, *rng.choice(options)

    def sets(self, source=None):
        """The text of SET, and a function of a row and the row of the source that returns the new row."""
        chosen = {}
        for _ in range(self.rng.randrange(1, 4)):
            name, value, function = self.assignment(source)
            if name == "n":
                chosen = {column: new for column, new in chosen.items() if column[:2] != "n."}
            if name[:2] != "n." or "n" not in chosen:
                chosen[name] = (value, function)
        self.clock += 1
        clock, fields = self.clock, list(self.fields)
        if self.kind == "sequence":
            chosen["q"] = (str(clock), lambda row, _: clock)
        return ", ".join(f"{name} = {value}" for name, (value, _) in chosen.items()), lambda row, s: with_values(
            row, {name: function(row, s) for name, (_, function) in chosen.items()}, fields
        )

    def subquery(self):
        """A condition with a sub-query on the table itself or others."""
        rng = self.rng
        condition, holds = self.condition("o")
        chosen = [row["k"] for row in self.rows if holds(row) is True]
        kind = rng.choice(("in", "not in", "exists", "max", "not exists"))
        if kind == "in":
            return f"t.k IN (SELECT o.k FROM t o WHERE {condition})", lambda row: row["k"] in chosen
        if kind == "not in":
            return f"t.k NOT IN (SELECT o.k FROM t o WHERE {condition})", lambda row: row["k"] not in chosen
        if kind == "max":
            most = max(chosen, default=None)
            return f"t.k = (SELECT max(o.k) FROM t o WHERE {condition})", lambda row: compare("=", row["k"], most)
        want = kind == "exists"
        return (
            f"{kind.upper()} (SELECT 1 FROM t o WHERE o.k = t.k + 1 AND {condition})",
            lambda row: (row["k"] + 1 in chosen) == want,
        )

    def chosen(self):
        return self.subquery() if self.rng.random() < 0.3 else self.condition("t")

    def delete(self):
        condition, holds = self.chosen()
        if not self.deletes:
            return
        self.counted(f"DELETE FROM t WHERE {condition}", sum(holds(row) is True for row in self.rows))
        self.rows = [row for row in self.rows if holds(row) is not True]

    def update(self):
        condition, holds = self.chosen()
        text, new = self.sets()
        done = [holds(row) is True for row in self.rows]
        self.counted(f"UPDATE t SET {text} WHERE {condition}", sum(done))
        self.rows = [new(row, None) if is_done else row for row, is_done in zip(self.rows, done, strict=True)]

    def counted(self, statement, count):
        result = self.run(statement)
        assert result[0][0] == count, f"{result}, expected {count}\n" + "\n".join(self.log)

    def merge(self):
        """MERGE with random clauses; several source rows for one row are refused by both."""
        rng = self.rng
        keys = [rng.choice((*range(20), *range(30, 36), None)) for _ in range(rng.randrange(1, 8))]
        if rng.random() < 0.8:
            keys = list(dict.fromkeys(keys))
        source = [self.row(k) for k in keys]
        on, matches = ON[2 if self.partitioned else 0] if self.keyed else rng.choice(ON)
        clauses = self.clauses()
        text = "\n".join(f"WHEN {kind}{f' AND {c[0]}' if c else ''} THEN {action[0]}" for kind, c, action in clauses)
        statement = f"MERGE INTO t USING ({self.values(source)}) s ON {on}\n{text}"
        after = self.merged(source, matches, clauses)
        if after is None:
            with pytest.raises(Exception, match="several source rows"):
                self.run(statement)
            return
        rows, counts = after
        if self.keyed and any(row["k"] is None for row in rows):
            with pytest.raises(Exception, match=r"(?i)null"):
                self.run(statement)
            return
        keys = [(row["k"], row["p"] if self.partitioned else 0) for row in rows]
        if self.keyed and len({*keys}) < len(keys):
            return  # which of two new rows of one key stays is not said
        result = self.run(statement)
        assert result == [counts], f"{result}, expected {counts}\n" + "\n".join(self.log)
        self.rows = rows

    def clauses(self):
        rng, clauses = self.rng, []
        for kind, alias in (("MATCHED", "st"), ("NOT MATCHED", "s"), ("NOT MATCHED BY SOURCE", "t")):
            many = rng.randrange(3)
            for at in range(many):
                condition = self.condition(rng.choice(alias)) if at < many - 1 or rng.random() < 0.6 else None
                if condition and "s" in alias and condition[0].find("s.") >= 0:
                    condition = (condition[0], lambda row, s, f=condition[1]: f(s))
                elif condition:
                    condition = (condition[0], lambda row, s, f=condition[1]: f(row))
                clauses.append((kind, condition, self.action(kind)))
        return clauses or [("NOT MATCHED", None, self.action("NOT MATCHED"))]

    def action(self, kind):
        if kind == "NOT MATCHED":
            return "INSERT *", "insert", lambda row, s: dict(s)
        if self.rng.random() < 0.4 and self.deletes:
            return "DELETE", "delete", None
        text, new = self.sets(source=kind == "MATCHED")
        return f"UPDATE SET {text}", "update", new

    def merged(self, source, matches, clauses):
        """The rows and counts after a MERGE, or None where several rows of the source would change one."""
        rows, counts, matched = [], Counter(), set()
        only_deleted = [action[1] for kind, c, action in clauses if kind == "MATCHED" and not c][:1] == ["delete"]
        only_deleted &= sum(kind == "MATCHED" for kind, _, _ in clauses) == 1
        for row in self.rows:
            matching = [i for i, s in enumerate(source) if matches(row, s) is True]
            matched.update(matching)
            has = any(kind == "MATCHED" for kind, _, _ in clauses)
            if len(matching) > 1 and has and not only_deleted:
                return None
            kind, s = ("MATCHED", source[matching[0]]) if matching else ("NOT MATCHED BY SOURCE", None)
            action = first(clauses, kind, row, s)
            counts[action[1] if action else ""] += 1
            if not action or action[1] == "update":
                rows.append(action[2](row, s) if action else row)
        for i, s in enumerate(source):
            action = first(clauses, "NOT MATCHED", None, s) if i not in matched else None
            if action:
                counts["insert"] += 1
                rows.append(dict(s))
        changed = (counts["update"], counts["delete"], counts["insert"])
        return rows, (sum(changed), *changed)

    def check(self):
        stored = Counter(self.sql("SELECT * FROM t"))
        expected = Counter(tuple(plain(row[name]) for name in self.columns) for row in self.rows)
        said = "\n".join(self.log)
        assert stored == expected, f"{said}\nwithout {expected - stored}\ntoo many {stored - expected}"

    def step(self):
        self.most_changes(self.rng.choice((-1, 2, 1 << 16)))
        kind = self.rng.choice(("delete", "update", "merge", "merge", "merge", "compact", "insert", "alter"))
        if kind == "compact":
            self.run("CALL sys.compact(table => 't')")
        elif kind == "insert":
            top = max([99, *(row["k"] for row in self.rows if row["k"] is not None)])
            self.insert([self.row(k) for k in range(top + 1, top + 4)])
        else:
            getattr(self, kind)()
        self.check()


ON = [
    ("t.k = s.k", lambda t, s: compare("=", t["k"], s["k"])),
    ("t.k <=> s.k", lambda t, s: compare("<=>", t["k"], s["k"])),
    ("t.k = s.k AND t.p = s.p", lambda t, s: both(compare("=", t["k"], s["k"]), compare("=", t["p"], s["p"]))),
    ("t.k = s.k AND t.a < 3", lambda t, s: both(compare("=", t["k"], s["k"]), compare("<", t["a"], 3))),
    ("CAST(t.k AS STRING) = s.k", lambda t, s: compare("=", t["k"], s["k"])),
    ("t.s = s.s", lambda t, s: compare("=", t["s"], s["s"])),
]


def first(clauses, kind, row, s):
    """The action of the first clause whose condition is true."""
    for clause, condition, action in clauses:
        if clause == kind and (condition is None or condition[1](row, s) is True):
            return action
    return None


def text(value):
    return None if value is None else str(value)


def joined(x, y):
    return None if x is None or y is None else x + y


def play(sql, seed, most_changes, kind, steps=8):
    game = Game(sql, random.Random(seed), kind, most_changes)
    for _ in range(steps):
        game.step()
    return game


@pytest.mark.more
@pytest.mark.drawn
def test_statements_leave_the_rows_of_the_model(sql, seed, most_changes):
    play(sql, f"{seed} one", most_changes, "rewritten", steps=rounds(6, 1))


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*APPEND, *KEYED])
def test_many_statements_leave_the_rows_of_the_model(sql, seed, most_changes, kind):
    for number in range(rounds(15)):
        play(sql, f"{seed} {number} {kind}", most_changes, kind)
        sql("DROP TABLE t")
