"""Make a program that fails smaller, and print it as a script."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace

from tests.random_sql.play import OVERWRITE_MODE, UNEXPECTED, WAYS, Failure
from tests.random_sql.program import Program, Step, on_tables

RANGE = re.compile(r"range\((\d+), (\d+)\)")
Run = Callable[[Program], Failure | None]


def shrink(program: Program, failure: Failure, run: Run, most_runs: int = 120) -> tuple[Program, Failure]:
    """Return a smaller program with a failure of the same kind, and the failure.

    Args:
        program: the program.
        failure: its failure.
        run: runs a program.
        most_runs: the most runs to spend.
    """
    best = replace(program, steps=program.steps[: failure.at + 1]), failure
    left = most_runs
    changed = True
    while changed:
        changed = False
        for smaller in _smaller(best[0]):
            if left == 0:
                return best
            left -= 1
            found = _failure_of(run, smaller)
            if found is not None and _same(found, failure):
                best, changed = (replace(smaller, steps=smaller.steps[: found.at + 1]), found), True
                break
    return best


def _failure_of(run: Run, program: Program) -> Failure | None:
    """Return the failure of a smaller program. `None`: no failure, or a program that is not possible.

    Without some of its options, a table of the program may be refused. What the model cannot do raises, too.
    """
    try:
        return run(program)
    except Exception:
        return None


def _same(one: Failure, other: Failure) -> bool:
    """Return True if two failures have the same kind and, of an error, the same class and condition."""
    if one.kind != other.kind:
        return False
    return one.kind != UNEXPECTED or one.detail.partition(":")[0] == other.detail.partition(":")[0]


def _smaller(program: Program) -> Iterator[Program]:
    """Yield programs with fewer steps, settings, tables, columns or rows: the largest reductions first."""
    steps = program.steps
    size = len(steps) // 2
    while size:
        for start in range(0, len(steps) - 1, size):
            yield replace(program, steps=[*steps[:start], *steps[min(start + size, len(steps) - 1) :]])
        size //= 2
    if program.settings:
        yield replace(program, settings={})
    if program.limits:
        yield replace(program, limits={})
    for name in program.settings:
        yield replace(program, settings={k: v for k, v in program.settings.items() if k != name})
    for name in program.limits:
        yield replace(program, limits={k: v for k, v in program.limits.items() if k != name})
    for table in program.tables:
        if len(program.tables) > 1:
            yield replace(program, tables=[one for one in program.tables if one is not table])
        for option in table.options:
            options = {k: v for k, v in table.options.items() if k != option}
            yield _with_table(program, table.name, options=options)
        for column, _ in table.columns:
            if column != "id":
                yield _without_column(program, table.name, column)
    for at, step in enumerate(steps):
        rows = step.parts.get("rows", [])
        for row in range(len(rows) if len(rows) > 1 else 0):
            yield _with_parts(program, at, rows=[*rows[:row], *rows[row + 1 :]])
        found = RANGE.search(step.parts.get("query", ""))
        if found and int(found[2]) - int(found[1]) > 1:
            low, high = int(found[1]), int(found[2])
            middle = (low + high) // 2
            for start, end in ((low, middle), (middle, high), (low, high - 1), (low + 1, high)):
                query = RANGE.sub(f"range({start}, {end})", step.parts["query"])
                yield _with_parts(program, at, query=query)
        for clause in range(len(step.parts.get("clauses", "")) if step.kind == "merge" else 0):
            clauses = step.parts["clauses"]
            yield _with_parts(program, at, clauses=[*clauses[:clause], *clauses[clause + 1 :]])


def _with_parts(program: Program, at: int, **parts: object) -> Program:
    step = program.steps[at]
    new = replace(step, parts=step.parts | parts)
    return replace(program, steps=[*program.steps[:at], new, *program.steps[at + 1 :]])


def _with_table(program: Program, name: str, **values: object) -> Program:
    return replace(program, tables=[replace(one, **values) if one.name == name else one for one in program.tables])


def _without_column(program: Program, name: str, column: str) -> Program:
    """Remove a column from CREATE TABLE and from the rows of every INSERT."""
    table = next(one for one in program.tables if one.name == name)
    groups = {k: [one for one in v if one != column] for k, v in table.groups.items() if k != column}
    changed = _with_table(
        program,
        name,
        groups={k: v for k, v in groups.items() if v},
        columns=[one for one in table.columns if one[0] != column],
        partitions=[one for one in table.partitions if one != column],
        keys=[one for one in table.keys if one != column],
        functions={k: v for k, v in table.functions.items() if k != column},
    )
    return replace(
        changed, steps=[_step_without(step, column) if step.table == name else step for step in changed.steps]
    )


def _step_without(step: Step, column: str) -> Step:
    parts = dict(step.parts)
    if step.kind == "insert" and "rows" in parts:
        kept = [at for at, one in enumerate(parts["columns"]) if one[0] != column]
        parts["columns"] = [parts["columns"][at] for at in kept]
        parts["rows"] = [[row[at] for at in kept] for row in parts["rows"]]
    elif step.kind in ("alter", "rollback"):
        parts["columns"] = [one for one in parts["columns"] if one[0] != column]
    return replace(step, parts=parts)


SCRIPT = '''"""{title}"""
import importlib
import tempfile

from pyspark.sql import SparkSession, functions

import paimon_spark

warehouse = tempfile.mkdtemp()
spark = SparkSession.builder.master("local[2]").config("spark.sql.session.timeZone", "UTC").getOrCreate()
paimon_spark.catalog(spark, "pm", warehouse=warehouse, default=True)
spark.sql("CREATE DATABASE d")
spark.sql("USE d")


def run(text):
    try:
        return spark.sql(text)
    except Exception as error:
        print(text, "\\n", str(error)[:500])


{lines}
'''


_METHODS = {
    "path": ".write.format('paimon').mode('append').save(f'{{warehouse}}/d.db/{table}')",
    "path overwrite": ".write.format('paimon').mode('overwrite').save(f'{{warehouse}}/d.db/{table}')",
    "frame": ".writeTo('{table}').append()",
    "frame overwrite": ".writeTo('{table}').overwrite(functions.lit(True))",
    "frame dynamic": ".writeTo('{table}').overwritePartitions()",
}
"""What follows the query of an INSERT, by its form."""


def script(program: Program, failure: Failure) -> str:
    """Return a script that runs the statements of a program on new tables, and prints the last result."""
    lines = _set_limits(program.limits)
    lines += [f"spark.conf.set({name!r}, {value!r})" for name, value in program.settings.items()]
    texts = [table.statement() for table in program.tables]
    lines += [f"run({on_tables(text)!r})" for text in texts]
    for step in program.steps[: failure.at + 1]:
        dynamic = step.parts.get("form") == "dynamic"
        lines += [f"spark.conf.set({OVERWRITE_MODE!r}, 'dynamic')"] * dynamic
        method = _METHODS.get(step.parts.get("form", ""), "").format(table=step.table)
        text = f"run({on_tables(step.statement())!r}){method}"
        lines += [text] * (step.kind != "query")
        lines += [f"spark.conf.unset({OVERWRITE_MODE!r})"] * dynamic
    text, _, way = failure.statement.partition("\n-- read ")
    if way in WAYS:
        lines += [f"# read {way}"]
        settings, limits = WAYS[way]
        lines += [f"spark.conf.set({name!r}, {value!r})" for name, value in settings.items()] + _set_limits(limits)
        if way.startswith("by path"):
            lines += [
                f"spark.read.format('paimon').load(f'{{warehouse}}/d.db/{table.name}')"
                f".createOrReplaceTempView('f_{table.name}')"
                for table in program.tables
            ]
        lines += [f"run({text!r}).show(100, False)"]
    else:
        lines += [f"# {line}" for line in failure.statement.splitlines()]
    found = "\n".join(f"# {line}" for line in failure.detail.splitlines())
    return SCRIPT.format(title=f"Program {program.seed}: {failure.kind}", lines="\n".join(lines)) + found + "\n"


def _set_limits(limits: dict[str, int]) -> list[str]:
    """Return lines of a script that set constants of modules."""
    names = {name: name.rpartition(".") for name in limits}
    return [
        f"setattr(importlib.import_module({module!r}), {constant!r}, {limits[name]})"
        for name, (module, _, constant) in names.items()
    ]
