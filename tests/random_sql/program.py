"""Random programs as values: tables, statements and queries, without the rows that they lead to.

In a text, ``{t0}`` stands for the table and ``{t0@v1}`` for the table at the tag v1. So one text runs on the table of
the engine and on the model of the table.
"""

import re
from dataclasses import dataclass, field
from typing import Any

MARK = re.compile(r"\{(t\d+)(?:@(\w+))?\}")
FRAMES = ("path", "path overwrite", "frame", "frame overwrite", "frame dynamic")
"""Forms of INSERT that are methods of a DataFrame: they find columns by name."""
TOP_NAME = re.compile(r"(?<![.\w`])`(\w+)`")


@dataclass(frozen=True)
class TableDefinition:
    """A table as CREATE TABLE makes it.

    Attributes:
        name: t0 or t1.
        columns: the name and the type of each column.
        keys: the primary key, empty for an append table.
        engine: the merge engine; empty for an append table.
        functions: the aggregate functions of columns; others are ``last_non_null_value``.
        sequence: the column of ``sequence.field``, or empty.
        defaults: literals by column.
        groups: the columns of each sequence group of ``partial-update``, by the column with the sequence.
    """

    name: str
    columns: list[tuple[str, str]]
    partitions: list[str] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    engine: str = ""
    functions: dict[str, str] = field(default_factory=dict)
    sequence: str = ""
    options: dict[str, str] = field(default_factory=dict)
    defaults: dict[str, str] = field(default_factory=dict)
    groups: dict[str, list[str]] = field(default_factory=dict)

    def statement(self) -> str:
        columns = ", ".join(
            f"`{name}` {kind}{' NOT NULL' * (name in self.keys)}"
            + (f" DEFAULT {self.defaults[name]}" if name in self.defaults else "")
            for name, kind in self.columns
        )
        options = dict(self.options)
        if self.keys:
            options |= {"primary-key": ",".join(self.keys), "merge-engine": self.engine}
        if self.sequence:
            options["sequence.field"] = self.sequence
        options |= {f"fields.{name}.aggregate-function": function for name, function in self.functions.items()}
        options |= {f"fields.{name}.sequence-group": ",".join(columns) for name, columns in self.groups.items()}
        by = f" PARTITIONED BY ({', '.join(self.partitions)})" if self.partitions else ""
        properties = ", ".join(f"'{key}' = '{value}'" for key, value in options.items())
        return f"CREATE TABLE {{{self.name}}} ({columns}){by}" + (f" TBLPROPERTIES ({properties})" if options else "")


@dataclass(frozen=True)
class Step:
    """A statement or a query.

    Attributes:
        kind: insert, delete, update, merge, drop, alter, call, tag, rollback or query.
        table: the name of the table that it changes.
        parts: the texts from which the statement and its model are made, by kind.
    """

    kind: str
    table: str
    parts: dict[str, Any] = field(default_factory=dict)

    def statement(self) -> str:
        return _STATEMENTS[self.kind](self.table, self.parts)


@dataclass(frozen=True)
class Program:
    """A program.

    Attributes:
        seed: draws the program again.
        settings: settings of the session.
        limits: values of module constants of the connector, by their full names.
        far: True if some dates and timestamps are outside the range of Python's own classes.
    """

    seed: str
    settings: dict[str, str]
    limits: dict[str, int]
    tables: list[TableDefinition]
    steps: list[Step]
    far: bool = False

    @property
    def has_orc(self) -> bool:
        """True if a file may be of ORC: there, Spark gives all zeros of a batch of only zeros the sign of the first."""
        texts = [table.statement() for table in self.tables] + [step.statement() for step in self.steps]
        return any("'file.format' = 'orc'" in text for text in texts)


def on_tables(text: str) -> str:
    """Return a text with the tables of the current database."""
    return MARK.sub(lambda found: found[1] + (f" VERSION AS OF '{found[2]}'" if found[2] else ""), text)


def qualified(text: str, alias: str) -> str:
    """Put an alias in front of the columns of an expression, which are in backticks."""
    return TOP_NAME.sub(rf"{alias}.`\1`", text)


def source(parts: dict[str, Any]) -> str:
    """Return the query for the rows of an INSERT."""
    if "query" in parts:
        return parts["query"]
    names = ", ".join(f"`{name}`" for name, _ in parts["columns"])
    if not parts["rows"]:
        nulls = ", ".join(f"CAST(NULL AS {kind}) AS `{name}`" for name, kind in parts["columns"])
        return f"SELECT {nulls} WHERE 1 = 0"
    return f"SELECT * FROM VALUES {_rows(parts)} AS v({names})"


def _rows(parts: dict[str, Any]) -> str:
    return ", ".join("(" + ", ".join(row) + ")" for row in parts["rows"])


def _insert(table: str, parts: dict[str, Any]) -> str:
    form, query = parts["form"], source(parts)
    if form in FRAMES:
        return query
    if form == "values":
        query = f"VALUES {_rows(parts)}"
    names = f" ({', '.join(f'`{name}`' for name, _ in parts['columns'])})" if form in ("columns", "values") else ""
    if form in ("overwrite", "dynamic"):
        return f"INSERT OVERWRITE {{{table}}} {query}"
    if form == "static":
        partition = ", ".join(f"{name} = {value}" for name, value in parts["partition"].items())
        return f"INSERT OVERWRITE {{{table}}} PARTITION ({partition}) {query}"
    if form == "using":
        return f"INSERT INTO {{{table}}} REPLACE USING ({', '.join(parts['using'])}) {query}"
    if form == "replace":
        return f"INSERT INTO {{{table}}} REPLACE WHERE {parts['where']} {query}"
    return f"INSERT INTO {{{table}}}{names}{' BY NAME' * (form == 'by name')} {query}"


def _merge(table: str, parts: dict[str, Any]) -> str:
    clauses = []
    for clause in parts["clauses"]:
        when = f"WHEN {clause['when']}" + (f" AND {clause['condition']}" if clause["condition"] else "")
        if clause.get("star"):
            action = "INSERT *" if clause["action"] == "insert" else "UPDATE SET *"
        elif clause["action"] == "insert":
            names = ", ".join(f"`{name}`" for name in clause["values"])
            action = f"INSERT ({names}) VALUES ({', '.join(clause['values'].values())})"
        elif clause["action"] == "update":
            action = f"UPDATE SET {sets(clause['values'])}"
        else:
            action = "DELETE"
        clauses.append(f"{when} THEN {action}")
    return f"MERGE INTO {{{table}}} t USING ({parts['query']}) s ON {parts['on']} {' '.join(clauses)}"


def sets(values: dict[str, str]) -> str:
    """Return the text of SET for new values by their paths."""
    return ", ".join(f"t.{path} = {value}" for path, value in values.items())


_STATEMENTS = {
    "insert": _insert,
    "merge": _merge,
    "delete": lambda table, parts: f"DELETE FROM {{{table}}} t WHERE {parts['where']}",
    "update": lambda table, parts: f"UPDATE {{{table}}} t SET {sets(parts['values'])} WHERE {parts['where']}",
    "alter": lambda table, parts: f"ALTER TABLE {{{table}}} {parts['clauses']}",
    "tag": lambda table, parts: f"ALTER TABLE {{{table}}} CREATE TAG {parts['name']}",
    "rollback": lambda table, parts: f"CALL sys.rollback(table => '{{{table}}}', version => '{parts['name']}')",
    "drop": lambda _, parts: parts["text"],
    "call": lambda _, parts: parts["text"],
    "query": lambda _, parts: parts["text"],
}
