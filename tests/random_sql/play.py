"""Run a program on tables and on their model, and compare errors and rows."""

import importlib
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.functions import lit
from pyspark.sql.types import StringType, StructField, StructType

from paimon_core import Table
from paimon_core.errors import UnsupportedError
from paimon_core.snapshot.snapshot import CommitKind
from paimon_spark.sql.session_options import MASK_MEMORY, MASK_ROWS, NATIVE_READS
from tests.random_sql.copies import Copies
from tests.random_sql.model import Refused, SparkModel, Undefined, model_of
from tests.random_sql.program import MARK, Program, Step, on_tables

ROWS, UNEXPECTED, MISSING = "other rows", "an error", "no error"
_DRIVER = "paimon_spark.sql.reads.driver_rows"
_NO_DRIVER = {f"{_DRIVER}.MOST_ROWS": -1, f"{_DRIVER}._MOST_KEYS": 0}
_DIVIDED = {"paimon_spark.sql.reads.native.LEAST_BYTES": 1}
WAYS: dict[str, tuple[dict[str, str], dict[str, int]]] = {
    "as it is": ({}, {}),
    "through Python": ({NATIVE_READS: "false"}, {}),
    "masked": ({}, _NO_DRIVER),
    "masked by tasks": ({MASK_ROWS: "1"}, _NO_DRIVER),
    "without masks": ({MASK_ROWS: "0", MASK_MEMORY: "1b"}, _NO_DRIVER),
    "divided": ({MASK_ROWS: "0", MASK_MEMORY: "1b"}, _NO_DRIVER | _DIVIDED),
    "matching rows in the driver": ({}, {f"{_DRIVER}.LEAST_MATCH_BYTES": 1}),
    "by path": ({}, {}),
    "by path through Python": ({NATIVE_READS: "false"}, {}),
}
"""Ways to read a table: the settings and limits that choose each."""
OVERWRITE_MODE = "spark.sql.sources.partitionOverwriteMode"
NO_CONSTRAINTS = {"spark.sql.constraintPropagation.enabled": "false"}
"""Checkpoints keep the constraints of their plan, some of which name columns that the plan does not have."""
NO_ESTIMATES = {"spark.sql.cbo.enabled": "false"}
"""Spark cannot estimate the rows of some filters on checkpoints, and fails."""
OF_MODEL = NO_CONSTRAINTS | NO_ESTIMATES
NO_FOLDING = OF_MODEL | {"spark.sql.optimizer.excludedRules": "org.apache.spark.sql.catalyst.optimizer.ConstantFolding"}
"""Without it, a constant that overflows is an error even if no row gets it."""
OF_VALUES = {
    "ARITHMETIC_OVERFLOW",
    "BINARY_ARITHMETIC_OVERFLOW",
    "CAST_INVALID_INPUT",
    "CAST_OVERFLOW",
    "DIVIDE_BY_ZERO",
    "INVALID_ARRAY_INDEX",
    "NUMERIC_VALUE_OUT_OF_RANGE",
}
"""Errors that the value of a row causes."""
CHANGES_OF = "`{}$audit_log` WITH ('incremental-between' = '{},{}', 'incremental-between-scan-mode' = '{}')"
REFUSED = (
    "First rewrite the files",
    "REPLACE WHERE",
    "the condition of this overwrite",
    "cannot translate expression to source filter",
)
"""Messages with which statements are refused that a table of Spark would run (docs/reference/sql)."""


@dataclass
class Failure:
    """A difference between the tables and their model.

    Attributes:
        kind: `ROWS`, `UNEXPECTED` or `MISSING`.
        at: the index of the step.
        statement: its text.
        detail: the rows or the error.
    """

    kind: str
    at: int
    statement: str
    detail: str


@dataclass
class Counts:
    """The work of programs that ran."""

    programs: int = 0
    statements: int = 0
    queries: int = 0
    comparisons: int = 0
    errors: int = 0
    refused: int = 0
    undefined: int = 0
    copies: int = 0


@contextmanager
def set_up(spark: SparkSession, settings: dict[str, str], limits: dict[str, int]) -> Iterator[None]:
    """Change settings of a session and constants of modules for a while."""
    with ExitStack() as stack:
        for name, value in limits.items():
            module, _, constant = name.rpartition(".")
            stack.enter_context(patch.object(importlib.import_module(module), constant, value))
        for name, value in settings.items():
            before = spark.conf.get(name, None)
            spark.conf.set(name, value)
            if before is None:
                stack.callback(spark.conf.unset, name)
            else:
                stack.callback(spark.conf.set, name, before)
        yield


@dataclass
class _State:
    """The columns of a table, its changelog producer, its newest snapshot, and how often it has each row, as text."""

    columns: list[tuple[str, str]]
    producer: str
    snapshot: int
    rows: Counter[str]


class Player:
    """One program in one database."""

    def __init__(self, spark: SparkSession, program: Program, counts: Counts) -> None:
        self.spark, self.program, self.counts = spark, program, counts
        self.paths: dict[str, str] = {}
        self.row_ids: dict[str, dict[int, int]] = {}
        self.states: dict[str, _State] = {}
        self.model = SparkModel(spark)
        self.copies = Copies(spark, program.seed)

    def run(self) -> Failure | None:
        """Run the program in the current database, and return the first difference."""
        self.counts.programs += 1
        with set_up(self.spark, self.program.settings, self.program.limits):
            with set_up(self.spark, NO_CONSTRAINTS, {}):
                self.model = model_of(self.spark, self.program)
            try:
                for table in self.program.tables:
                    self.spark.sql(on_tables(table.statement()))
                    self.paths[table.name] = self._path(table.name)
                for at, step in enumerate(self.program.steps):
                    failure = self._query(at, step) if step.kind == "query" else self._change(at, step)
                    if failure is not None:
                        return failure
            finally:
                self.copies.close()
                self.model.drop()
        return None

    def _path(self, name: str) -> str:
        rows = self.spark.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()
        return next(row[1] for row in rows if row[0] == "Location").removeprefix("file:")

    def _change(self, at: int, step: Step) -> Failure | None:
        """Run a statement on the model and on the table, and compare the rows of the table."""
        self.counts.statements += 1
        text = on_tables(step.statement())
        before = self.model.saved()
        expected = None
        try:
            settings = {OVERWRITE_MODE: "dynamic"} if step.parts.get("form") == "dynamic" else {}
            with set_up(self.spark, OF_MODEL, {}):
                self.model.run(step)
        except Undefined:
            self.model.restore(before)
            self.counts.undefined += 1
            return None
        except Exception as error:
            self.model.restore(before)
            expected = error
            if not isinstance(error, Refused) and condition(error) == type(error).__name__:
                raise  # not an error of the statement: the model failed
        try:
            with set_up(self.spark, settings, {}):
                self._run(step, text)
        except Exception as error:
            if expected is None and is_refusal(error):
                self.model.restore(before)
                self.counts.refused += 1
                return self._stored(at, step)
            if expected is None:
                return Failure(UNEXPECTED, at, text, described(error))
            self.counts.errors += 1
        else:
            if expected is not None and not self._needs_no_error(step, before):
                return Failure(MISSING, at, text, f"the model: {described(expected)}")
        return self._stored(at, step)

    def _needs_no_error(self, step: Step, before: Any) -> bool:
        """Return True if a statement fails in the model only because Spark computes a constant that no row gets."""
        try:
            with set_up(self.spark, NO_FOLDING, {}):
                self.model.run(step)
        except Exception:
            self.model.restore(before)
            return False
        return True

    def _run(self, step: Step, text: str) -> None:
        form = step.parts.get("form", "")
        frame = self.spark.sql(text)
        if form in ("path", "path overwrite"):
            mode = "overwrite" if "overwrite" in form else "append"
            frame.write.format("paimon").mode(mode).save(self.paths[step.table])
        elif form == "frame":
            frame.writeTo(step.table).append()
        elif form == "frame overwrite":
            frame.writeTo(step.table).overwrite(lit(True))
        elif form == "frame dynamic":
            frame.writeTo(step.table).overwritePartitions()
        else:
            frame.collect()

    def _stored(self, at: int, step: Step) -> Failure | None:
        """Compare the rows of the changed table, read as a query reads them or by the engine."""
        text = f"SELECT * FROM {{{step.table}}}"
        rng = random.Random(f"{self.program.seed} {at}")
        failure = self._compare(at, text, [rng.choice(list(WAYS))], zeros=False)
        failure = failure or self._row_ids(at, step) or self._changes(at, step)
        if failure is not None or rng.random() < 0.5:
            return failure
        return self._by_engine(at, step.table, None, text)

    def _row_ids(self, at: int, step: Step) -> Failure | None:
        """Compare the row ids of a table with row tracking with those before the statement.

        Ids are unique. UPDATE, maintenance and changes of columns keep the id of each row, and DELETE of each row that
        stays. `id` is a column that no statement changes.
        """
        table = self.model.tables[step.table]
        if table.options.get("row-tracking.enabled") != "true":
            return None
        query = f"SELECT `id`, _ROW_ID FROM {step.table}"
        rows = self.spark.sql(query).collect()
        after = {row[1]: row[0] for row in rows}
        before = self.row_ids.get(step.table, {})
        self.row_ids[step.table] = after
        kept = {"update": before == after, "call": before == after, "alter": before == after}
        kept |= {"delete": after.items() <= before.items(), "drop": after.items() <= before.items()}
        if None in after or len(after) < len(rows) or not kept.get(step.kind, True):
            detail = f"ids by _ROW_ID before: {before}\nafter: {[tuple(row) for row in rows]}"
            return Failure(ROWS, at, f"{query}\n-- after {step.statement()[:300]}", detail)
        return None

    def _changes(self, at: int, step: Step) -> Failure | None:
        """Compare the changes since the statement before with the rows before and after.

        They are the difference of two snapshots or, if each commit looks up what it changes, the changelog. Some
        statements replace files instead, so that they have no changelog.
        """
        table = Table.open(self.paths[step.table])
        snapshot = table.snapshot()
        columns = self.model.rows[step.table].columns
        is_char = "char(" in self.model.rows[step.table].frame.schema.simpleString()  # see _by_engine
        if snapshot is None or self.program.has_orc or is_char:
            return None
        listed = ", ".join(f"`{name}`" for name, _ in columns)
        texts = self.spark.sql(self.model.text(f"SELECT CAST(struct({listed}) AS STRING) FROM {{{step.table}}}"))
        producer = table.store.traits.changelog_producer
        state = _State(columns, producer, snapshot.id, Counter(row[0] for row in texts.collect()))
        before = self.states.get(step.table)
        self.states[step.table] = state
        if failure := self._copied(at, step, table, state):
            return failure
        ids = {one.id for one in table.snapshots()}
        if before is None or (before.columns, before.producer) != (columns, producer):
            return None
        if before.snapshot not in ids or before.snapshot >= snapshot.id:
            return None
        kinds = [one.commit_kind for one in table.snapshots() if one.id > before.snapshot]
        modes = ["diff"] + ["changelog"] * (_looks_up(table) and CommitKind.OVERWRITE not in kinds)
        for mode in modes:
            self.counts.comparisons += 1
            said = f"Table.open({step.table}).changes({before.snapshot}, {snapshot.id}, {mode!r})"
            try:
                changes = table.changes(before.snapshot, snapshot.id, mode)
            except UnsupportedError as error:
                if not table.schema.primary_keys:  # the files do not always show which rows are new
                    return None
                return Failure(UNEXPECTED, at, said, described(error))
            pairs = self._texts_of(changes, step.table, listed)
            rows = before.rows.copy()
            for kind, row in pairs:
                rows[row] += 1 if kind in ("+I", "+U") else -1
            if any(rows[row] != state.rows[row] for row in rows | state.rows):
                detail = "\n".join(f"{rows[row] - state.rows[row]:+} {row}" for row in sorted(rows | state.rows))
                return Failure(ROWS, at, f"{said}\n-- after {step.statement()[:300]}", detail)
            if pairs and (failure := self._changes_by_sql(at, step, (before.snapshot, snapshot.id, mode), listed)):
                return failure
        return None

    def _copied(self, at: int, step: Step, table: Table, state: _State) -> Failure | None:
        """Compare a copy that streams have written with the rows of the table."""
        if table.schema.primary_keys and not _looks_up(table):  # no changelog, or one without old rows
            return None
        said = f"-- a stream copies {step.table} after {step.statement()[:300]}"
        try:
            rows = self.copies.follow(table, state.columns, state.rows)
        except Exception as error:
            return Failure(UNEXPECTED, at, said, described(error))
        if rows is None:
            return None
        self.counts.comparisons += 1
        self.counts.copies += 1
        detail = f"only the copy: {rows - state.rows}\nonly the table: {state.rows - rows}"
        return None if rows == state.rows else Failure(ROWS, at, said, detail)

    def _changes_by_sql(self, at: int, step: Step, changes: tuple[int, int, str], listed: str) -> Failure | None:
        """Compare the changes that SQL shows in the rows of a filter with the changes in the view of `_texts_of`."""
        rng = random.Random(f"changes {self.program.seed} {at}")
        ids, one = rng.sample(range(20), 3), rng.choice([name for name, _ in self.model.rows[step.table].columns])
        conditions = ["true", f"`id` IN ({ids[0]}, {ids[1]}, {ids[2]})", f"`id` > {ids[0]}"]
        where = rng.choice([*conditions, f"`{one}` IS NULL", f"`{one}` IS NOT NULL"])
        query = f"SELECT rowkind, CAST(struct({listed}) AS STRING) FROM {{}} WHERE {where}"
        said = query.format(CHANGES_OF.format(step.table, *changes))
        self.counts.comparisons += 1
        found = Counter(tuple(row) for row in self.spark.sql(said).collect())
        shown = f"changes WHERE NOT (rowkind = '-U' AND '{changes[2]}' = 'diff')"  # $audit_log omits them
        expected = Counter(tuple(row) for row in self.spark.sql(query.format(f"(SELECT * FROM {shown})")).collect())
        if found == expected:
            return None
        detail = f"only SQL: {found - expected}\nonly the view: {expected - found}"
        return Failure(ROWS, at, f"{said}\n-- after {step.statement()[:300]}", detail)

    def _texts_of(self, changes: pa.Table, name: str, listed: str) -> list[tuple[str, str]]:
        """Return the kind and the row as text of each change."""
        if not changes.num_rows:  # PySpark creates no DataFrame of an empty table with nested timestamps
            return []
        schema = StructType([StructField("rowkind", StringType()), *self.model.rows[name].frame.schema])
        self.spark.createDataFrame(_without_offsets(changes), schema=schema).createOrReplaceTempView("changes")
        return [
            tuple(row)
            for row in self.spark.sql(f"SELECT rowkind, CAST(struct({listed}) AS STRING) FROM changes").collect()
        ]

    def _by_engine(self, at: int, name: str, own_filter: str | None, text: str) -> Failure | None:
        """Compare the rows that the engine reads without Spark with the rows of a query on the model."""
        schema = self.model.rows[name].frame.schema
        if "char(" in schema.simpleString():  # PySpark creates no such rows from Arrow data
            return None
        self.counts.comparisons += 1
        table = Table.open(self.paths[name]).to_arrow(filter=own_filter)
        one: list[str] = []
        if table.num_rows:  # PySpark creates no DataFrame of an empty table with nested timestamps
            self.spark.createDataFrame(_without_offsets(table), schema=schema).createOrReplaceTempView("stored")
            one = self._rows("SELECT * FROM stored")
        other = self._rows(self.model.text(text))
        said = f"Table.open({name}).to_arrow(filter={own_filter!r})"
        return None if one == other else Failure(ROWS, at, said, difference(one, other))

    def _query(self, at: int, step: Step) -> Failure | None:
        text = step.parts["text"]
        self.counts.queries += 1
        rng = random.Random(f"{self.program.seed} {text}")
        ways = [way for way in WAYS if "by path" not in way or "@" not in text]
        failure = self._compare(at, text, rng.sample(ways, 3), zeros=step.parts["zeros"])
        if failure is not None or "filter" not in step.parts:
            return failure
        return self._by_engine(at, step.parts["table"], step.parts["filter"], text)

    def _compare(self, at: int, text: str, ways: list[str], *, zeros: bool) -> Failure | None:
        zeros = zeros or self.program.has_orc
        with set_up(self.spark, NO_ESTIMATES, {}):
            expected, error = self._answer(self.model.text(text), zeros)
        for way in ways:
            self.counts.comparisons += 1
            settings, limits = WAYS[way]
            with set_up(self.spark, settings, limits):
                own = self._by_path(text) if way.startswith("by path") else on_tables(text)
                found, own_error = self._answer(own, zeros)
            said = f"{own}\n-- read {way}"
            if error is None and own_error is not None:
                return Failure(UNEXPECTED, at, said, described(own_error))
            if error is not None and own_error is None:
                return Failure(MISSING, at, said, f"the model: {described(error)}")
            if error is not None and own_error is not None and not are_alike(error, own_error):
                return Failure(UNEXPECTED, at, said, f"{described(own_error)}\nthe model: {described(error)}")
            if error is None and found != expected:
                return Failure(ROWS, at, said, difference(found or [], expected or []))
        self.counts.errors += error is not None
        return None

    def _by_path(self, text: str) -> str:
        for name, path in self.paths.items():
            if f"{{{name}}}" in text:
                self.spark.read.format("paimon").load(path).createOrReplaceTempView(f"f_{name}")
        return MARK.sub(r"f_\1", text)

    def _answer(self, text: str, zeros: bool) -> tuple[list[str] | None, Exception | None]:
        try:
            return self._rows(text, zeros=zeros), None
        except Exception as error:
            return None, error

    def _rows(self, text: str, *, zeros: bool = False) -> list[str]:
        """Return the rows of a query as texts, in a fixed order. `zeros`: zeros of both signs are one."""
        as_texts = f"SELECT CAST(struct(*) AS STRING) FROM ({text})"
        try:
            found = self.spark.sql(as_texts if self.program.far else text).collect()
        except (ValueError, OverflowError):  # Python has no such dates and timestamps: a program may compute them
            found = self.spark.sql(as_texts).collect()
        rows = sorted(repr(tuple(row)) for row in found)
        return [row.replace("-0.0", "0.0") for row in rows] if zeros else rows


def _looks_up(table: Table) -> bool:
    """Return True if each commit looks up what it changes, and writes a changelog."""
    options = table.schema.options
    return options.get("changelog-producer") == "lookup" and options.get("write-only", "false") == "false"


def _without_offsets(table: pa.Table) -> pa.Table:
    """Return a table whose arrays begin where their buffers begin: PySpark refuses some others."""
    with pa.BufferOutputStream() as sink:
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table.combine_chunks())
        return pa.ipc.open_stream(sink.getvalue()).read_all()


def condition(error: Exception) -> str:
    """Return the name of an error of Spark, or the class of another error."""
    ask = getattr(error, "getCondition", None)
    return (ask() if ask else None) or type(error).__name__


def are_alike(error: Exception, other: Exception) -> bool:
    """Return True if both errors are the same one, or each is about a value: rows are read in any order."""
    kinds = {condition(error), condition(other)}
    return len(kinds) == 1 or {kind.partition(".")[0] for kind in kinds} <= OF_VALUES


def described(error: Exception) -> str:
    return f"{type(error).__name__} {condition(error)}: {str(error)[:1500]}"


def is_refusal(error: Exception) -> bool:
    """Return True if a statement is refused for a documented reason."""
    return any(text in str(error) for text in REFUSED)


def difference(found: list[str], expected: list[str]) -> str:
    """Return the rows that differ, as text."""
    missing, extra = list(expected), []
    for row in found:
        if row in missing:
            missing.remove(row)
        else:
            extra.append(row)
    return "\n".join([*(f"missing  {row}" for row in missing), *(f"too many {row}" for row in extra)])
