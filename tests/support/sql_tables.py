"""Random tables for games in SQL: columns, values as texts of SQL, rows, changes of the columns, and conditions.

A value is the text of an expression of its column's type, of a struct a dictionary of such values by the key of the
field. So a change of columns is a change of texts, and a copy of the rows needs no engine but Spark's own.
"""

import random
from dataclasses import dataclass, field
from typing import Any

TEXTS = ["''", "'a'", "'ab'", "'ä%_'", "'abc'", "'Abc'", "'zz\\n'", "' '"]
VALUES = {
    "BOOLEAN": ["true", "false"],
    "TINYINT": ["-128Y", "127Y", "0Y", "3Y"],
    "SMALLINT": ["-32768S", "32767S", "0S", "300S"],
    "INT": ["-2147483648", "2147483647", "0", "7", "-70000"],
    "BIGINT": ["-9223372036854775807L", "9223372036854775807L", "0L", "7L", "12345678901L"],
    "FLOAT": ["float('NaN')", "float('-0.0')", "float('0.0')", "float('Infinity')", "float('-Infinity')", "1.5f"],
    "DOUBLE": ["double('NaN')", "-0.0D", "0.0D", "double('Infinity')", "double('-Infinity')", "1.5D", "1e300D"],
    "DECIMAL(5, 2)": ["1.50BD", "-999.99BD", "0.00BD", "12.34BD"],
    "DECIMAL(18, 4)": ["-12345678901234.5678BD", "0.0001BD", "7BD"],
    "DECIMAL(38, 10)": ["1234567890123456789012345678.0123456789BD", "-7BD", "0.5BD"],
    "STRING": [*TEXTS, "repeat('long', 30)"],
    "VARCHAR(5)": TEXTS,
    "CHAR(3)": ["'abc'", "'ab '", "'äöü'"],
    "BINARY": ["X''", "X'00FF'", "X'61'", "X'FF'"],
    "DATE": ["DATE'0001-01-03'", "DATE'1582-10-10'", "DATE'1970-01-01'", "DATE'2026-02-28'", "DATE'9999-12-31'"],
    "TIMESTAMP": [
        "TIMESTAMP'1500-01-02 03:04:05.678901'",
        "TIMESTAMP'1969-12-31 23:59:59.999999'",
        "TIMESTAMP'2026-03-29 02:30:00'",
    ],
    "TIMESTAMP_NTZ": [
        "TIMESTAMP_NTZ'9999-12-31 23:59:59.999999'",
        "TIMESTAMP_NTZ'1969-12-31 23:59:59.999999'",
        "TIMESTAMP_NTZ'2026-03-29 02:30:00'",
    ],
    "ARRAY<STRING>": ["array()", "array('a', NULL)", "array(NULL)"],
    "ARRAY<STRUCT<a: INT, b: STRING>>": ["array(named_struct('a', 1, 'b', NULL), NULL)", "array()"],
    "MAP<STRING, INT>": ["map()", "map('k', 1)", "map('', NULL)"],
    "MAP<STRING, ARRAY<INT>>": ["map('k', array(1, NULL))", "map('k', NULL)"],
}
FAR = {
    "DATE": ["DATE'-0044-03-15'", "DATE'+12345-06-07'", "DATE'+999999-12-31'", "DATE'1500-02-28'"],
    "TIMESTAMP": ["TIMESTAMP'-0044-03-15 12:00:00.000001'", "TIMESTAMP'+12345-06-07 08:09:10'"],
    "TIMESTAMP_NTZ": ["TIMESTAMP_NTZ'-0044-03-15 12:00:00.000001'", "TIMESTAMP_NTZ'+12345-06-07 08:09:10'"],
}
"""Moments that Python's own classes cannot hold, or that older calendars date otherwise."""
IN_PARTITIONS = {
    "STRING": ["''", "'a b'", "'x=y/z'", "'ä%41'", "'c:d#?'", "'__HIVE_DEFAULT_PARTITION__'", "'01'", "'null'"],
    "INT": ["0", "-7", "2147483647"],
    "DATE": ["DATE'0001-01-03'", "DATE'2026-02-28'"],
    "BOOLEAN": ["true", "false"],
    "TINYINT": ["-128Y", "3Y"],
    "SMALLINT": ["-32768S", "300S"],
    "BIGINT": ["-9223372036854775807L", "12345678901L", "0L"],
    "DECIMAL(5, 2)": ["1.50BD", "-999.99BD", "0.00BD"],
    "DECIMAL(38, 10)": ["1234567890123456789012345678.0123456789BD", "0.5BD"],
    "VARCHAR(5)": ["''", "'a b'", "'ä/=%'"],
    "TIMESTAMP": ["TIMESTAMP'1969-12-31 23:59:59.999999'", "TIMESTAMP'2026-03-29 02:30:00'"],
    "TIMESTAMP_NTZ": ["TIMESTAMP_NTZ'1969-12-31 23:59:59.999999'", "TIMESTAMP_NTZ'2026-03-29 02:30:00'"],
}
OFTEN_IN_PARTITIONS = ["STRING", "STRING", "STRING", "INT", "INT", "DATE", "DATE", "BOOLEAN"]
WIDER = {
    "TINYINT": ["SMALLINT", "INT", "BIGINT", "DOUBLE"],
    "SMALLINT": ["INT", "BIGINT", "FLOAT"],
    "INT": ["BIGINT", "DOUBLE"],
    "BIGINT": ["DECIMAL(38, 10)"],
    "FLOAT": ["DOUBLE"],
    "DECIMAL(5, 2)": ["DECIMAL(18, 4)", "DECIMAL(38, 10)"],
    "VARCHAR(5)": ["STRING"],
    "CHAR(3)": ["STRING", "VARCHAR(5)"],
}
STRUCT = "STRUCT"


@dataclass
class Column:
    """A column or a field of a struct; ``key`` survives a rename; ``fields``: the fields of a struct."""

    key: int
    name: str
    kind: str
    fields: list["Column"] = field(default_factory=list)

    @property
    def type(self) -> str:
        if self.kind != STRUCT:
            return self.kind
        return f"STRUCT<{', '.join(f'`{one.name}`: {one.type}' for one in self.fields)}>"


def text(column: Column, value: Any) -> str:
    """Return a value as an expression of its column's type."""
    if isinstance(value, dict):
        parts = (f"'{one.name}', {text(one, value.get(one.key))}" for one in column.fields)
        value = f"named_struct({', '.join(parts)})"
    return f"CAST({value or 'NULL'} AS {column.type})"


@dataclass
class RandomTable:
    """The columns and rows that a table must have; what changes them returns the statement for the table."""

    rng: random.Random
    kinds: list[str]
    most: int = 6
    columns: list[Column] = field(default_factory=list)
    rows: list[dict[int, Any]] = field(default_factory=list)
    partitions: int = 0
    made: int = 0
    far: bool = False

    def __post_init__(self) -> None:
        self.columns = [Column(0, "id", "INT")]
        self.made = 1
        for _ in range(self.rng.randrange(2, self.most)):
            self.columns.append(self.column())
        self.partitions = self.rng.choice([0, 0, 1, 2])
        for _ in range(self.partitions):
            kinds = [kind for kind in (*IN_PARTITIONS, *OFTEN_IN_PARTITIONS) if kind in self.kinds]
            self.columns.append(Column(self.made, f"p{self.made}", self.rng.choice(kinds)))
            self.made += 1
        self.names: list[str] = []

    def column(self, name: str | None = None, depth: int = 0) -> Column:
        """Return a new column."""
        key, self.made = self.made, self.made + 1
        kind = self.rng.choice([*self.kinds, *([STRUCT] * 3 if depth < 2 else [])])
        column = Column(key, name or f"c{key}", kind)
        if kind == STRUCT:
            column.fields = [self.column(depth=depth + 1) for _ in range(self.rng.randrange(1, 4))]
        return column

    @property
    def partition_columns(self) -> list[Column]:
        return [one for one in self.columns if one.name.startswith("p")]

    @property
    def free(self) -> list[Column]:
        """Columns that may change."""
        return [one for one in self.columns if one.name.startswith("c")]

    def value(self, column: Column) -> Any:
        """Return a value for a column; one in six is NULL."""
        if self.rng.random() < 0.17:
            return None
        if column.kind == STRUCT:
            return {one.key: self.value(one) for one in column.fields}
        domain = IN_PARTITIONS if column.name.startswith("p") else VALUES
        return f"CAST({self.rng.choice(self._values(domain, column))} AS {column.type})"

    def _values(self, domain: dict[str, list[str]], column: Column) -> list[str]:
        return domain[column.kind] + (FAR.get(column.kind, []) if self.far else [])

    def select(self, rows: list[dict[int, Any]]) -> str:
        """Return a query for rows of the table."""
        lines = [f"({', '.join(text(one, row.get(one.key)) for one in self.columns)})" for row in rows]
        names = ", ".join(f"`{one.name}`" for one in self.columns)
        if not lines:
            nulls = ", ".join(f"CAST(NULL AS {one.type}) AS `{one.name}`" for one in self.columns)
            return f"SELECT {nulls} WHERE 1 = 0"
        types = ", ".join(f"CAST(`{one.name}` AS {one.type}) AS `{one.name}`" for one in self.columns)
        return f"SELECT {types} FROM VALUES {', '.join(lines)} AS v({names})"

    def new_rows(self, ids: list[int]) -> list[dict[int, Any]]:
        """Return random rows with these ids."""
        return [{one.key: self.value(one) for one in self.columns[:]} | {0: str(number)} for number in ids]

    def evolve(self) -> str | None:
        """Change the columns and return the clauses of ALTER TABLE, or None if there is nothing to change."""
        change = self.rng.choice(["add", "add", "drop", "again", "rename", "widen", "nested", "order"])
        return getattr(self, f"_{change}")()

    def _add(self) -> str:
        name = self.rng.choice(self.names) if self.names and self.rng.random() < 0.5 else None
        if name is not None:
            self.names.remove(name)
        column = self.column(name)
        self.columns.append(column)
        place = self.rng.choice(["", " FIRST", " AFTER id"])
        if place:
            self.columns.remove(column)
            after = next(i for i, one in enumerate(self.columns) if one.name == "id") + 1
            self.columns.insert(0 if place == " FIRST" else after, column)
        return f"ADD COLUMN {column.name} {column.type}{place}"

    def _drop(self) -> str | None:
        if len(self.free) < 2:
            return None
        column = self.rng.choice(self.free)
        self.columns.remove(column)
        self.names.append(column.name)
        return f"DROP COLUMN {column.name}"

    def _again(self) -> str | None:
        return self._add() if self.names else self._drop()

    def _rename(self) -> str | None:
        if not self.free:
            return None
        column = self.rng.choice(self.free)
        old, column.name, self.made = column.name, f"c{self.made}", self.made + 1
        if self.rng.random() < 0.5:
            self.names.append(old)
        return f"RENAME COLUMN {old} TO {column.name}"

    def _widen(self) -> str | None:
        found = [
            (path, one)
            for top in self.free
            for path, one in ([(top.name, top)] + [(f"{top.name}.{sub.name}", sub) for sub in top.fields])
            if one.kind in WIDER
        ]
        if not found:
            return None
        path, column = self.rng.choice(found)
        column.kind = self.rng.choice(WIDER[column.kind])
        return f"ALTER COLUMN {path} TYPE {column.type}"

    def _nested(self) -> str | None:
        structs = [one for one in self.free if one.kind == STRUCT]
        if not structs:
            return self._add()
        column = self.rng.choice(structs)
        if len(column.fields) > 1 and self.rng.random() < 0.4:
            dropped = self.rng.choice(column.fields)
            column.fields.remove(dropped)
            return f"DROP COLUMN {column.name}.{dropped.name}"
        if self.rng.random() < 0.3:
            renamed = self.rng.choice(column.fields)
            old, renamed.name, self.made = renamed.name, f"c{self.made}", self.made + 1
            return f"RENAME COLUMN {column.name}.{old} TO {renamed.name}"
        added = self.column(depth=2)
        column.fields.append(added)
        return f"ADD COLUMN {column.name}.{added.name} {added.type}"

    def _order(self) -> str | None:
        if not self.free:
            return None
        column = self.rng.choice(self.free)
        self.columns.remove(column)
        if self.rng.random() < 0.5:
            self.columns.insert(0, column)
            return f"ALTER COLUMN {column.name} FIRST"
        self.columns.insert(next(i for i, one in enumerate(self.columns) if one.name == "id") + 1, column)
        return f"ALTER COLUMN {column.name} AFTER id"

    def leaves(self) -> list[tuple[str, Column]]:
        """Return expressions of single values, with their columns."""
        found: list[tuple[str, Column]] = []
        for top in self.columns:
            todo = [(f"`{top.name}`", top)]
            while todo:
                path, column = todo.pop()
                if column.kind == STRUCT:
                    todo += [(f"{path}.`{one.name}`", one) for one in column.fields]
                elif column.kind == "MAP<STRING, INT>":
                    found.append((f"{path}['k']", Column(-1, "c", "INT")))
                elif column.kind[:3] not in ("MAP", "ARR"):
                    found.append((path, column))
        return found

    def condition(self, depth: int = 0) -> str:
        """Return a random condition, which no row makes fail."""
        rng = self.rng
        if depth < 3 and rng.random() < 0.45:
            joined = f" {rng.choice(['AND', 'OR'])} ".join(self.condition(depth + 1) for _ in range(2))
            return f"NOT ({joined})" if rng.random() < 0.3 else f"({joined})"
        expression, column = rng.choice(self.leaves())
        if rng.random() < 0.1:
            top = rng.choice(self.columns)
            return f"`{top.name}` IS {rng.choice(['', 'NOT '])}NULL"
        others = [path for path, one in self.leaves() if one.kind == column.kind and path != expression]
        if others and rng.random() < 0.15:
            return f"{expression} {rng.choice(['=', '<', '<=>', '>=', '<>'])} {rng.choice(others)}"
        return self._comparison(expression, column)

    def _literal(self, column: Column) -> str:
        if column.name == "id":
            return str(self.rng.randrange(-1, 40))
        domain = IN_PARTITIONS if column.name.startswith("p") and self.rng.random() < 0.8 else VALUES
        return f"CAST({self.rng.choice(self._values(domain, column))} AS {column.type})"

    def _comparison(self, expression: str, column: Column) -> str:
        rng, literal = self.rng, self._literal
        kinds = ["compare"] * 4 + ["null", "in", "notin", "between", "safe", "function", "nullin"]
        kind = column.kind
        if kind == "BOOLEAN":
            return rng.choice([expression, f"NOT {expression}", f"{expression} <=> {literal(column)}"])
        if kind in ("STRING", "VARCHAR(5)", "CHAR(3)"):
            kinds += ["like", "like", "text"]
        elif kind == "DATE" or kind.startswith("TIMESTAMP"):
            kinds += ["moment", "moment"]
        elif kind != "BINARY":
            kinds += ["number"]
        ways = {
            "compare": lambda: f"{expression} {rng.choice(['=', '<>', '<', '<=', '>', '>='])} {literal(column)}",
            "null": lambda: f"{expression} IS {rng.choice(['', 'NOT '])}NULL",
            "safe": lambda: f"{expression} <=> {rng.choice([literal(column), 'NULL'])}",
            "in": lambda: f"{expression} IN ({literal(column)}, {literal(column)})",
            "nullin": lambda: f"{expression} {rng.choice(['', 'NOT '])}IN ({literal(column)}, NULL)",
            "notin": lambda: f"{expression} NOT IN ({literal(column)}, {literal(column)})",
            "between": lambda: f"{expression} BETWEEN {literal(column)} AND {literal(column)}",
            "function": lambda: f"coalesce({expression}, {literal(column)}) >= {literal(column)}",
            "like": lambda: f"{expression} {rng.choice(['', 'NOT '])}LIKE '{rng.choice(LIKE)}'",
            "text": lambda: rng.choice(TEXT_CONDITIONS).format(expression),
            "moment": lambda: rng.choice(MOMENT_CONDITIONS).format(expression),
            "number": lambda: rng.choice(NUMBER_CONDITIONS).format(expression),
        }
        return ways[rng.choice(kinds)]()


LIKE = ["a%", "%b", "%b%", "ab", "a_", "%", "", "ä\\\\%\\\\_", "a%c", "_"]
TEXT_CONDITIONS = [
    "length({}) > 2",
    "upper({}) = 'ABC'",
    "{} || 'x' >= 'ab'",
    "substr({}, 1, 1) = 'a'",
    "startswith({}, 'a')",
    "contains({}, '%')",
    "endswith({}, '')",
    "try_cast({} AS INT) = 1",
    "trim({}) = 'ab'",
]
MOMENT_CONDITIONS = [
    "year({}) > 1969",
    "CAST({} AS DATE) = DATE'1969-12-31'",
    "CAST({} AS DATE) < DATE'1970-01-01'",
    "CAST({} AS DATE) >= DATE'2026-02-28'",
    "{} > TIMESTAMP'2000-01-01 00:00:00'",
    "{} <= TIMESTAMP_NTZ'1969-12-31 23:59:59.999999'",
    "month({}) IN (2, 3, 12)",
    "{} < '2000-01-01'",
    "CAST({} AS STRING) LIKE '2026%'",
]
NUMBER_CONDITIONS = [
    "CAST({} AS DOUBLE) > 1",
    "{} > 1.25",
    "{} < 7.5D",
    "{} = 0",
    "CAST({} AS STRING) = '0'",
    "{} IN (0, 7)",
    "NOT ({} <= 100000000000)",
    "-1 < {}",
]
