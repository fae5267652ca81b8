"""Draw random queries on the tables of a program."""

import random
import re
from typing import Any

from tests.random_sql.program import qualified
from tests.support.sql_tables import IN_PARTITIONS, VALUES, Column

ORDERS = ["ASC NULLS FIRST", "ASC NULLS LAST", "DESC NULLS FIRST", "DESC NULLS LAST"]
COMPARED = ("BOOLEAN", "STRING", "INT", "BIGINT", "DATE")
FUNCTIONS = {
    "STRING": ["upper({})", "length({})", "substr({}, 2)", "{} LIKE 'a%'", "split({}, 'b')", "CAST({} AS INT)"],
    "VARCHAR(5)": ["concat({}, 'x')", "length({})", "reverse({})"],
    "CHAR(3)": ["length({})", "concat({}, '|')", "{} = 'ab'"],
    "INT": ["{} + 1", "CAST({} AS TINYINT)", "{} * 2L", "abs({})", "CAST({} AS STRING)", "{} % 7", "1 / {}"],
    "BIGINT": ["{} + 1L", "CAST({} AS INT)", "CAST({} AS DOUBLE)"],
    "TINYINT": ["{} + 1Y", "-{}", "CAST({} AS BOOLEAN)"],
    "SMALLINT": ["{} - 1S", "shiftleft({}, 1)"],
    "FLOAT": ["{} * 2", "isnan({})", "CAST({} AS DOUBLE)"],
    "DOUBLE": ["{} + 0.5D", "CAST({} AS BIGINT)", "floor({})"],
    "DECIMAL(5, 2)": ["{} * {}", "round({}, 1)", "CAST({} AS INT)"],
    "DECIMAL(38, 10)": ["{} + 1", "CAST({} AS DECIMAL(5, 2))"],
    "DATE": ["date_add({}, 1)", "year({})", "CAST({} AS STRING)", "CAST({} AS TIMESTAMP_NTZ)", "trunc({}, 'MM')"],
    "TIMESTAMP": ["CAST({} AS STRING)", "hour({})", "date_trunc('DAY', {})", "CAST({} AS DATE)"],
    "TIMESTAMP_NTZ": ["CAST({} AS STRING)", "minute({})", "CAST({} AS DATE)", "CAST({} AS TIMESTAMP)"],
    "BINARY": ["hex({})", "length({})", "base64({})"],
    "BOOLEAN": ["NOT {}", "CAST({} AS INT)"],
}
WHOLE = {
    "ARRAY<STRING>": ["size({})", "{}[0]", "transform({}, x -> concat(x, 'y'))", "array_contains({}, 'a')"],
    "ARRAY<STRUCT<a: INT, b: STRING>>": ["{}.a", "size({})", "filter({}, x -> x.a > 0)", "get({}, 0).b"],
    "MAP<STRING, INT>": ["map_keys({})", "{}['k']", "size({})", "map_entries({})"],
    "MAP<STRING, ARRAY<INT>>": ["{}['k'][0]", "map_values({})"],
}


FILTERED = ("TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(5, 2)", "DECIMAL(18, 4)")
FILTERED += ("DECIMAL(38, 10)", "STRING", "VARCHAR(5)", "CHAR(3)", "BINARY", "DATE", "TIMESTAMP_NTZ")
"""Types whose literals filters of the engine have, apart from their notation."""
LINKED = (*FILTERED, "BOOLEAN", "TIMESTAMP")
"""Types of columns by which rows of two tables are compared."""
IN_FILTERS = [
    (re.compile(r"(-?\d+)[YSL]?"), r"\1"),
    (re.compile(r"(-?\d+(?:\.\d+)?)BD"), r"\1"),
    (re.compile(r"(-?\d+\.\d+)[fD]"), r"\1e0"),
    (re.compile(r"(?:float|double)\('(.*)'\)"), r"DOUBLE '\1'"),
    (re.compile(r"(DATE|X)('.*')"), r"\1\2"),
    (re.compile(r"TIMESTAMP_NTZ('.*')"), r"TIMESTAMP \1"),
    (re.compile(r"('[^\\]*')"), r"\1"),
]
"""Literals of Spark and of filters of the engine."""


def in_filter(literal: str) -> str | None:
    """Return a literal of Spark as a literal in a filter of the engine, or None."""
    return next((found.expand(new) for old, new in IN_FILTERS if (found := old.fullmatch(literal))), None)


class Queries:
    """Draws queries on tables whose columns change."""

    def __init__(self, rng: random.Random, drafts: dict[str, Any], tags: dict[tuple[str, str], list[Column]]) -> None:
        self.rng, self.drafts, self.tags = rng, drafts, tags

    def draw(self) -> dict[str, Any]:
        """Return the text of a query, and True if zeros of both signs are one in its result."""
        if self.tags and self.rng.random() < 0.1:
            table, tag = self.rng.choice(list(self.tags))
            return {"text": f"SELECT * FROM {{{table}@{tag}}}", "zeros": False}
        draft = self.rng.choice(list(self.drafts.values()))
        kinds = (
            ["rows"] * 3
            + ["functions"] * 2
            + ["sorted", "grouped", "rollup", "window", "joined", "outer", "subqueries"]
        )
        kinds += ["sets", "distinct", "counted", "exploded", "extremes", "case"]
        kinds += ["linked", "linked", "shared", "scalars", "lateral", "ranked"]
        if self.rng.random() < 0.12:
            return self._filter(draft)
        text, zeros = getattr(self, f"_{self.rng.choice(kinds)}")(draft)
        return {"text": text, "zeros": zeros}

    def _filter(self, draft: Any) -> dict[str, Any]:
        """Return a query whose condition is a filter of the engine, too."""
        found = self._test(draft, 2)
        if found is None:
            return {"text": f"SELECT * FROM {self._name(draft)}", "zeros": False}
        condition, own = found
        text = f"SELECT * FROM {self._name(draft)} WHERE {condition}"
        return {"text": text, "zeros": False, "filter": own, "table": draft.definition.name}

    def _test(self, draft: Any, depth: int) -> tuple[str, str] | None:
        """Return a condition of Spark and the same condition as a filter of the engine, or None."""
        rng = self.rng
        if depth and rng.random() < 0.5:
            both = self._test(draft, depth - 1), self._test(draft, depth - 1)
            if both[0] is None or both[1] is None:
                return both[0] or both[1]
            word, negated = rng.choice(["AND", "OR"]), rng.choice(["", "", "NOT "])
            one, other = (f"{negated}({x} {word} {y})" for x, y in zip(*both, strict=True))
            return one, other
        leaves = [(path, one) for path, one in draft.leaves() if one.kind in FILTERED and "[" not in path]
        path, column = rng.choice(leaves)
        domain = IN_PARTITIONS if column.name.startswith("p") else VALUES
        values = [
            (f"CAST({v} AS {column.kind})", own) for v in domain[column.kind] if (own := in_filter(v)) is not None
        ]
        (x, own_x), (y, own_y) = rng.choice(values), rng.choice(values)
        if column.name == "id":
            x = own_x = str(rng.randrange(30))
        equal = [("{} = {}", 1), ("{} <> {}", 1), ("{} IN ({}, {})", 2), ("{} NOT IN ({}, {})", 2), ("{} <=> {}", 1)]
        order = [("{} < {}", 1), ("{} >= {}", 1), ("{} BETWEEN {} AND {}", 2)]
        null = [("{} IS NULL", 0), ("{} IS NOT NULL", 0), ("{} IN ({}, NULL)", 1), ("{} <=> NULL", 0)]
        form, count = rng.choice(equal + null + (order if column.kind != "CHAR(3)" else []))
        return form.format(path, *(x, y)[:count]), form.format(path, *(own_x, own_y)[:count])

    def _leaf(self, draft: Any) -> tuple[str, Column]:
        return self.rng.choice(draft.leaves())

    def _where(self, draft: Any, alias: str = "") -> str:
        if self.rng.random() < 0.25:
            return ""
        condition = draft.condition()
        return f" WHERE {qualified(condition, alias) if alias else condition}"

    def _group(self, draft: Any) -> str:
        names = [f"`{one.name}`" for one in draft.partition_columns]
        return self.rng.choice(
            [*names, *names, "`id`", *(path for path, one in draft.leaves() if one.kind in COMPARED)]
        )

    @staticmethod
    def _name(draft: Any) -> str:
        return f"{{{draft.definition.name}}}"

    def _rows(self, draft: Any) -> tuple[str, bool]:
        names = [f"`{one.name}`" for one in draft.columns]
        some = self.rng.choice(["*", ", ".join(self.rng.sample(names, self.rng.randrange(1, len(names) + 1)))])
        return f"SELECT {some} FROM {self._name(draft)}{self._where(draft)}", False

    def _functions(self, draft: Any) -> tuple[str, bool]:
        values = []
        for at in range(self.rng.randrange(1, 4)):
            path, column = self._leaf(draft)
            values.append(f"{self.rng.choice(FUNCTIONS.get(column.kind, ['{}'])).replace('{}', path)} AS x{at}")
        whole = [one for one in draft.columns if one.kind in WHOLE]
        if whole:
            one = self.rng.choice(whole)
            function = self.rng.choice(WHOLE[one.kind])
            values.append(f"{function.replace('{}', f'`{one.name}`')} AS y")
        return f"SELECT `id`, {', '.join(values)} FROM {self._name(draft)}", False

    def _sorted(self, draft: Any) -> tuple[str, bool]:
        path, order = self._leaf(draft)[0], self.rng.choice(ORDERS)
        limit = f"LIMIT {self.rng.randrange(1, 6)}" + self.rng.choice(["", " OFFSET 1"])
        columns = f"{path} {order}, `id` {self.rng.choice(ORDERS)}"
        return f"SELECT `id`, {path} AS x FROM {self._name(draft)}{self._where(draft)} ORDER BY {columns} {limit}", True

    def _grouped(self, draft: Any) -> tuple[str, bool]:
        group, (path, _) = self._group(draft), self._leaf(draft)
        having = self.rng.choice(["", " HAVING count(*) > 1", " HAVING max(`id`) > 3"])
        values = f"count(*) AS n, count({path}) AS m, count(DISTINCT {path}) AS d, min({path}) AS a, max({path}) AS z"
        return (
            f"SELECT {group} AS g, {values} FROM {self._name(draft)}{self._where(draft)} GROUP BY {group}{having}",
            True,
        )

    def _rollup(self, draft: Any) -> tuple[str, bool]:
        groups = list(dict.fromkeys([self._group(draft), self._group(draft)]))
        kind = self.rng.choice(["ROLLUP", "CUBE"])
        names = ", ".join(f"{group} AS g{at}" for at, group in enumerate(groups))
        where = self._where(draft)
        values = "count(*) AS n, sum(CAST(`id` AS BIGINT)) AS s, avg(`id`) AS a"
        return f"SELECT {names}, {values} FROM {self._name(draft)}{where} GROUP BY {kind}({', '.join(groups)})", True

    def _window(self, draft: Any) -> tuple[str, bool]:
        group, (path, _) = self._group(draft), self._leaf(draft)
        over = f"PARTITION BY {group} ORDER BY {path} {self.rng.choice(ORDERS)}, `id`"
        function = self.rng.choice(["rank()", "count(*)", "sum(CAST(`id` AS BIGINT))", "lag(`id`)", f"max({path})"])
        where = self._where(draft)
        return f"SELECT `id`, {path} AS x, {function} OVER ({over}) AS w FROM {self._name(draft)}{where}", True

    def _joined(self, draft: Any) -> tuple[str, bool]:
        other = self.rng.choice(list(self.drafts.values()))
        kind = self.rng.choice(["JOIN", "LEFT JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN"])
        path = qualified(self._leaf(draft)[0], "a")
        right = f", {qualified(self._leaf(other)[0], 'b')} AS y" if kind in ("JOIN", "LEFT JOIN") else ""
        on = f"a.`id` {self.rng.choice(['=', '=', '<=>'])} b.`id`"
        if self.rng.random() < 0.5:
            on += f" AND {qualified(other.condition(1), 'b')}"
        text = f"SELECT a.`id`, {path} AS x{right} FROM {self._name(draft)} a {kind} {self._name(other)} b ON {on}"
        return text + self._where(draft, "a"), False

    def _outer(self, draft: Any) -> tuple[str, bool]:
        other = self.rng.choice(list(self.drafts.values()))
        left, right = (qualified(self._leaf(one)[0], alias) for one, alias in ((draft, "a"), (other, "b")))
        kind = self.rng.choice(["FULL OUTER", "RIGHT"])
        text = (
            f"FROM {self._name(draft)} a {kind} JOIN {self._name(other)} b ON a.`id` = b.`id` + {self.rng.randrange(2)}"
        )
        return f"SELECT a.`id` AS i, {left} AS x, b.`id` AS j, {right} AS y {text}", False

    def _pair(self, draft: Any, other: Any) -> tuple[str, str]:
        """Return a value of each table, of the same type: mostly of columns that choose partitions."""
        pairs = [
            (path, path_of_other)
            for path, one in draft.leaves()
            for path_of_other, other_one in other.leaves()
            if one.kind == other_one.kind and one.kind in LINKED
        ]
        in_partitions = [pair for pair in pairs if any(path.startswith("`p") for path in pair)]
        return self.rng.choice(in_partitions if in_partitions and self.rng.random() < 0.6 else pairs)

    def _linked(self, draft: Any) -> tuple[str, bool]:
        """A join by any columns of one type: the rows of one table may choose partitions and files of the other."""
        other = self.rng.choice(list(self.drafts.values()))
        left, right = self._pair(draft, other)
        on = f"{qualified(left, 'a')} {self.rng.choice(['=', '=', '=', '<=>'])} {qualified(right, 'b')}"
        where = self._where(other, "b")
        hint = self.rng.choice(["", "", "/*+ BROADCAST(b) */ ", "/*+ MERGE(b) */ ", "/*+ SHUFFLE_HASH(b) */ "])
        inner = f"FROM {self._name(draft)} a JOIN (SELECT * FROM {self._name(other)} b{where}) b ON {on}"
        if self.rng.random() < 0.5:
            inner += self._where(draft, "a")
        values = "count(*) AS n, sum(CAST(a.`id` AS BIGINT)) AS x, sum(CAST(b.`id` AS BIGINT)) AS y, max(b.`id`) AS z"
        group = self.rng.choice(["", f" GROUP BY {qualified(left, 'a')}"])
        return f"SELECT {hint}{values} {inner}{group}", True

    def _shared(self, draft: Any) -> tuple[str, bool]:
        """Two uses of one query with other filters: a scan may be shared."""
        path = self._leaf(draft)[0]
        query = f"SELECT `id`, {path} AS x FROM {self._name(draft)}{self._where(draft)}"
        low, high = self.rng.randrange(10), self.rng.randrange(30)
        both = f"(SELECT * FROM w WHERE `id` >= {low}) a JOIN (SELECT * FROM w WHERE `id` < {high}) b"
        on = f"a.`id` = b.`id` + {self.rng.randrange(2)}"
        return f"WITH w AS ({query}) SELECT a.`id`, a.x, b.`id` AS j, b.x AS y FROM {both} ON {on}", False

    def _scalars(self, draft: Any) -> tuple[str, bool]:
        """Scalar subqueries that Spark may merge into one scan."""
        name = self._name(draft)
        counted = [f"(SELECT count(*) FROM {name}{self._where(draft)}) AS n{at}" for at in range(2)]
        path = self._leaf(draft)[0]
        counted += [f"(SELECT {self.rng.choice(['min', 'max', 'count'])}({path}) FROM {name}{self._where(draft)}) AS m"]
        counted += [f"(SELECT count(*) FROM {name}) AS a"] * self.rng.randrange(2)
        return f"SELECT {', '.join(counted)}", True

    def _lateral(self, draft: Any) -> tuple[str, bool]:
        other = self.rng.choice(list(self.drafts.values()))
        left, right = self._pair(draft, other)
        condition = f"{qualified(right, 'o')} = {qualified(left, 'a')} AND {qualified(other.condition(1), 'o')}"
        query = f"SELECT count(*) AS n, max(o.`id`) AS m FROM {self._name(other)} o WHERE {condition}"
        if self.rng.random() < 0.5:
            return (
                f"SELECT a.`id`, l.n, l.m FROM {self._name(draft)} a, LATERAL ({query}) l{self._where(draft, 'a')}",
                False,
            )
        query = query.replace("count(*) AS n, max(o.`id`) AS m", "max(o.`id`)")
        return f"SELECT a.`id`, ({query}) AS m FROM {self._name(draft)} a{self._where(draft, 'a')}", False

    def _ranked(self, draft: Any) -> tuple[str, bool]:
        """The first rows of each group."""
        group, (path, _) = self._group(draft), self._leaf(draft)
        over = f"PARTITION BY {group} ORDER BY {path} {self.rng.choice(ORDERS)}, `id` {self.rng.choice(ORDERS)}"
        rank = f"{self.rng.choice(['row_number()', 'rank()', 'dense_rank()'])} OVER ({over}) AS r"
        inner = f"SELECT `id`, {path} AS x, {rank} FROM {self._name(draft)}{self._where(draft)}"
        return f"SELECT * FROM ({inner}) WHERE r <= {self.rng.randrange(1, 3)}", True

    def subquery(self, draft: Any, alias: str) -> str:
        """Return a condition with a query on a table."""
        rng = self.rng
        other = rng.choice(list(self.drafts.values()))
        name, condition = self._name(other), qualified(other.condition(1), "o")
        either = qualified(draft.condition(2), alias)
        left, right = self._pair(draft, other)
        left, right = qualified(left, alias), qualified(right, "o")
        return rng.choice(
            [
                f"{left} IN (SELECT {right} FROM {name} o WHERE {condition})",
                f"{left} NOT IN (SELECT {right} FROM {name} o WHERE {condition})",
                f"EXISTS (SELECT 1 FROM {name} o WHERE {right} <=> {left} AND {condition})",
                f"NOT EXISTS (SELECT 1 FROM {name} o WHERE {right} = {left} AND o.`id` > {alias}.`id` AND {condition})",
                f"{left} = (SELECT max({right}) FROM {name} o WHERE {condition})",
                f"{alias}.`id` IN (SELECT o.`id` FROM {name} o WHERE {condition})",
                f"{alias}.`id` NOT IN (SELECT o.`id` + 1 FROM {name} o WHERE {condition})",
                f"EXISTS (SELECT 1 FROM {name} o WHERE o.`id` = {alias}.`id` + 1 AND {condition})",
                f"NOT EXISTS (SELECT 1 FROM {name} o WHERE o.`id` = {alias}.`id` AND {condition})",
                f"{alias}.`id` >= (SELECT max(o.`id`) - 2 FROM {name} o WHERE {condition})",
                f"({alias}.`id` IN (SELECT o.`id` FROM {name} o WHERE {condition}) OR {either})",
            ]
        )

    def _subqueries(self, draft: Any) -> tuple[str, bool]:
        path = qualified(self._leaf(draft)[0], "a")
        return f"SELECT a.`id`, {path} AS x FROM {self._name(draft)} a WHERE {self.subquery(draft, 'a')}", False

    def _sets(self, draft: Any) -> tuple[str, bool]:
        other = self.rng.choice(list(self.drafts.values()))
        kind = self.rng.choice(["UNION ALL", "UNION", "INTERSECT", "EXCEPT"])
        left, right = (f"SELECT `id` FROM {self._name(one)}{self._where(one)}" for one in (draft, other))
        return f"{left} {kind} {right}", False

    def _distinct(self, draft: Any) -> tuple[str, bool]:
        return f"SELECT DISTINCT {self._leaf(draft)[0]} AS x FROM {self._name(draft)}{self._where(draft)}", True

    def _counted(self, draft: Any) -> tuple[str, bool]:
        name = self._name(draft)
        inner = f"SELECT `id` FROM {name}{self._where(draft)} LIMIT {self.rng.randrange(5)}"
        return self.rng.choice(
            [f"SELECT count(*) FROM ({inner})", f"SELECT count(*) FROM {name}{self._where(draft)}"]
        ), False

    def _exploded(self, draft: Any) -> tuple[str, bool]:
        whole = [one for one in draft.columns if one.kind in WHOLE]
        if not whole:
            return self._rows(draft)
        name = f"`{self.rng.choice(whole).name}`"
        return f"SELECT `id`, explode_outer({name}) FROM {self._name(draft)}{self._where(draft)}", False

    def _extremes(self, draft: Any) -> tuple[str, bool]:
        path = self._leaf(draft)[0]
        parts = [f"a.`{one.name}`" for one in draft.partition_columns]
        where = self.rng.choice(["", f" WHERE {parts[0]} IS NOT NULL" if parts else "", self._where(draft, "a")])
        path = qualified(path, "a")
        return (
            f"SELECT count(*), count({path}), min({path}), max({path}), max(a.`id`) FROM {self._name(draft)} a{where}",
            True,
        )

    def _case(self, draft: Any) -> tuple[str, bool]:
        value = f"CASE WHEN {draft.condition(1)} THEN 'a' WHEN {draft.condition(2)} THEN 'b' END"
        return f"SELECT {value} AS x, count(*) AS n FROM {self._name(draft)}{self._where(draft)} GROUP BY 1", True
