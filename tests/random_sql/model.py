"""The model of a table: its rows in a temporary view, which Spark computes from the view before each statement.

No code of the engine takes part. Spark's own INSERT into a Parquet table of the same columns says how values are
converted or refused (`SparkModel.stored`), and joins of Spark replace rows by their keys.
"""

import functools
import operator
import os
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from paimon_spark.internals import analyzed_plan, session_state
from paimon_spark.sql.bridge.jvm import Jvm
from tests.random_sql.program import FRAMES, MARK, Program, Step, TableDefinition, source

CHAR_METADATA = "__CHAR_VARCHAR_TYPE_STRING"
"""The name under which Spark keeps the type CHAR of a column that it reads as a STRING."""
STAGE = f"spark_catalog.default.stage_{os.getpid()}"
"""The beginning of the names of Spark's own tables, unique to this process: others may use the same directory."""


class Refused(Exception):
    """The statement must fail, although Spark's own tables would accept it."""


class Undefined(Exception):
    """The statement has several correct results, so that the program leaves it out."""


@dataclass
class Rows:
    """The rows of a table with its columns, as names and types."""

    columns: list[tuple[str, str]]
    frame: DataFrame


@dataclass
class SparkModel:
    """The rows that each table of a program must have."""

    spark: SparkSession
    tables: dict[str, TableDefinition] = field(default_factory=dict)
    rows: dict[str, Rows] = field(default_factory=dict)
    tags: dict[tuple[str, str], Rows] = field(default_factory=dict)
    staged: dict[str, list[tuple[str, str]]] = field(default_factory=dict)

    def create(self, table: TableDefinition) -> None:
        self.tables[table.name] = table
        nulls = ", ".join(f"CAST(NULL AS {kind}) AS `{name}`" for name, kind in table.columns)
        self._set(table.name, table.columns, self.spark.sql(f"SELECT {nulls} WHERE 1 = 0"))

    def text(self, text: str) -> str:
        """Return a text with the views of the model as tables."""
        return MARK.sub(lambda found: f"m_{found[1]}" + (f"_{found[2]}" if found[2] else ""), text)

    def run(self, step: Step) -> None:
        """Apply a statement. Raises Spark's errors, `Refused` if it must fail, and `Undefined`."""
        getattr(self, f"_{step.kind}")(step.table, step.parts)

    def saved(self) -> tuple[dict[str, Rows], dict[str, DataFrame]]:
        """Return the state of the model."""
        return dict(self.rows), {name: self.spark.table(f"r_{name}") for name in self.rows}

    def restore(self, state: tuple[dict[str, Rows], dict[str, DataFrame]]) -> None:
        """Return to a state that `saved` returned."""
        self.rows = dict(state[0])
        for name, frame in state[1].items():
            frame.createOrReplaceTempView(f"r_{name}")
            self.rows[name].frame.createOrReplaceTempView(f"m_{name}")

    def drop(self) -> None:
        for name in self.staged:
            self.spark.sql(f"DROP TABLE IF EXISTS {STAGE}_{name}")

    def _set(self, name: str, columns: list[tuple[str, str]], frame: DataFrame) -> None:
        kept = "VARCHAR" if self.spark.conf.get("spark.sql.charAsVarchar") == "true" else "CHAR"
        metadata = {n: {CHAR_METADATA: k.replace("CHAR", kept).lower()} if k[:4] == "CHAR" else {} for n, k in columns}
        named = frame.select(*(F.col(f"`{n}`").alias(n, metadata=metadata[n]) for n, _ in columns))
        numbered = named.coalesce(1).withColumn("__rid", F.monotonically_increasing_id()).localCheckpoint()
        numbered.createOrReplaceTempView(f"r_{name}")
        rows = Rows(columns, numbered.drop("__rid"))
        rows.frame.createOrReplaceTempView(f"m_{name}")
        self.rows[name] = rows

    def stored(self, name: str, query: str, *, by_name: bool = False, names: list[str] | None = None) -> DataFrame:
        """Return the rows of a query as a table of Spark would store them, with its casts and its errors."""
        columns = self.rows[name].columns
        if self.staged.get(name) != columns:
            self.spark.sql(f"DROP TABLE IF EXISTS {STAGE}_{name}")
            text = ", ".join(f"`{n}` {kind}" for n, kind in columns)
            self.spark.sql(f"CREATE TABLE {STAGE}_{name} ({text}) USING parquet")
            self.staged[name] = list(columns)
        listed = f" ({', '.join(f'`{n}`' for n in names)})" if names else ""
        text = f"INSERT INTO {STAGE}_{name}{listed}{' BY NAME' * by_name} {self.text(query)}"
        jvm = Jvm(self.spark)
        skip = jvm.scala("org.apache.spark.sql.execution.CommandExecutionMode").SKIP()
        plan = analyzed_plan(self.spark, session_state(self.spark).sqlParser().parsePlan(text), skip)
        rows = jvm.scala("org.apache.spark.sql.classic.Dataset").ofRows(self.spark._jsparkSession, plan.query())
        return DataFrame(rows, self.spark).toDF(*(n for n, _ in columns))

    def _insert(self, name: str, parts: dict[str, Any]) -> None:
        form, query = parts["form"], source(parts)
        if form == "static":
            types = dict(self.rows[name].columns)
            extra = "".join(f", CAST({value} AS {types[n]}) AS `{n}`" for n, value in parts["partition"].items())
            query = f"SELECT *{extra} FROM ({query})"
        names = [n for n, _ in parts["columns"]] if form in ("columns", "values") else None
        new = (
            self.stored(name, query, by_name=form in ("by name", "static", *FRAMES), names=names)
            .coalesce(1)
            .localCheckpoint()
        )
        new = self._with_defaults(name, new)
        self._check_keys(name, new)
        old, keys = self.spark.table(f"r_{name}").drop("__rid"), self.tables[name].partitions
        if form in ("overwrite", "path overwrite", "frame overwrite"):
            old = old.limit(0)
        elif form in ("dynamic", "frame dynamic"):
            old = self._without(old, new, keys)
        elif form == "static":
            same = " AND ".join(f"`{n}` <=> CAST({value} AS {types[n]})" for n, value in parts["partition"].items())
            old = old.where(f"NOT ({same})")
        elif form == "using":
            old = self._without(old, new.dropna(subset=parts["using"]), parts["using"])
        elif form == "replace":
            if new.where(f"NOT coalesce({parts['where']}, false)").count():
                raise Refused("a new row does not match the condition of REPLACE WHERE")
            old = old.where(f"NOT coalesce({parts['where']}, false)")
        self._set(name, self.rows[name].columns, self._merged(name, old, new))

    def _with_defaults(self, name: str, new: DataFrame) -> DataFrame:
        """Return new rows with the default of each column instead of NULL."""
        defaults = self.tables[name].defaults
        filled = (
            f"coalesce(`{n}`, CAST({defaults[n]} AS {kind})) AS `{n}`" if n in defaults else f"`{n}`"
            for n, kind in self.rows[name].columns
        )
        return new.selectExpr(*filled) if defaults else new

    def _without(self, old: DataFrame, new: DataFrame, names: list[str]) -> DataFrame:
        """Return the old rows that equal no new row in these columns, with NULL as a value."""
        condition = F.lit(True)
        for n in names:
            condition &= F.col(f"o.`{n}`").eqNullSafe(F.col(f"n.`{n}`"))
        return old.alias("o").join(new.alias("n"), condition, "left_anti")

    def _check_keys(self, name: str, new: DataFrame) -> None:
        """Raise `Refused` for keys that are NULL, and `Undefined` for several rows of one key."""
        table = self.tables[name]
        if table.keys:
            texts = [F.col(f"`{n}`").cast("string") for n in table.keys]  # Python has no dates beyond the year 9999
            keys = [tuple(row) for row in new.select(*texts).collect()]
            if any(value is None for key in keys for value in key):
                raise Refused("a key is NULL")
            if len({*keys}) < len(keys):
                raise Undefined

    def _merged(self, name: str, old: DataFrame, new: DataFrame) -> DataFrame:
        """Return old and new rows, merged by the rule of the table's merge engine."""
        table, columns = self.tables[name], [n for n, _ in self.rows[name].columns]
        if not table.keys:
            return old.unionAll(new)
        if table.engine == "deduplicate" and not table.sequence:
            return self._without(old, new, table.keys).unionAll(new)
        if table.engine == "first-row":
            return old.unionAll(self._without(new, old, table.keys))
        condition = F.lit(True)
        for n in table.keys:
            condition &= F.col(f"o.`{n}`") == F.col(f"n.`{n}`")
        marked = old.withColumn("__here", F.lit(True)).alias("o")
        both = marked.join(new.withColumn("__new", F.lit(True)).alias("n"), condition, "full_outer")
        if table.sequence:
            one, other = F.col(f"o.`{table.sequence}`"), F.col(f"n.`{table.sequence}`")
            newer = F.col("__new") & (
                F.col("__here").isNull() | one.isNull() | (other.isNotNull() & F.coalesce(other >= one, F.lit(True)))
            )
            newer = F.coalesce(newer, F.lit(False))
            pairs = ((n, F.col(f"n.`{n}`"), F.col(f"o.`{n}`")) for n in columns)
            return both.select(*(F.when(newer, new_one).otherwise(old_one).alias(n) for n, new_one, old_one in pairs))
        sums = [n for n, function in table.functions.items() if function == "sum"]
        types = dict(self.rows[name].columns)
        too_large = [F.expr(f"o.`{n}` + n.`{n}` IS NOT NULL AND {_sum(n, types[n])} IS NULL") for n in sums]
        if too_large and both.where(functools.reduce(operator.or_, too_large)).count():
            raise Undefined
        return both.select(*(self._folded(table, n, types[n]).alias(n) for n in columns))

    def _folded(self, table: TableDefinition, n: str, kind: str) -> Any:
        """Return the value of a column from the old row ``o`` and the new row ``n`` of a key; one may be missing."""
        old, new = F.col(f"o.`{n}`"), F.col(f"n.`{n}`")
        for sequence, grouped in table.groups.items():
            if n in (sequence, *grouped):
                then, now = F.col(f"o.`{sequence}`"), F.col(f"n.`{sequence}`")
                newer = F.col("__new").isNotNull() & (F.col("__here").isNull() | F.coalesce(now >= then, F.lit(True)))
                return F.when(newer, new).otherwise(old)
        function = "last_non_null_value" if n in table.keys else table.functions.get(n, "last_non_null_value")
        either = F.coalesce(old, new)
        both = old.isNotNull() & new.isNotNull()
        total = F.expr(_sum(n, kind)) if function == "sum" else either
        return {
            "last_non_null_value": F.coalesce(new, old),
            "last_value": F.when(F.col("__new"), new).otherwise(old),
            "first_value": F.when(F.col("__here"), old).otherwise(new),
            "first_non_null_value": either,
            "max": F.when(both & (old > new), old).otherwise(F.coalesce(new, old)),
            "min": F.when(both & (old < new), old).otherwise(F.coalesce(new, old)),
            "sum": F.coalesce(total, either),
            "bool_and": F.when(both, old & new).otherwise(either),
            "bool_or": F.when(both, old | new).otherwise(either),
        }[function]

    def _delete(self, name: str, parts: dict[str, Any]) -> None:
        found = self.spark.sql(self.text(f"SELECT t.__rid FROM r_{name} t WHERE {parts['where']}"))
        self._replace(name, found, None)

    _drop = _delete

    def _replace(self, name: str, found: DataFrame, new: DataFrame | None) -> None:
        """Remove the rows with these numbers, and add rows."""
        rest = self.spark.table(f"r_{name}").join(found, "__rid", "left_anti").drop("__rid")
        columns = self.rows[name].columns
        rest = rest.select(*(f"`{n}`" for n, _ in columns))
        self._set(name, columns, rest if new is None else rest.unionAll(new))

    def _update(self, name: str, parts: dict[str, Any]) -> None:
        found = self.spark.sql(self.text(f"SELECT t.__rid FROM r_{name} t WHERE {parts['where']}"))
        values = ", ".join(self._values(name, parts["values"], parts["structs"]))
        new = self.stored(name, f"SELECT {values} FROM r_{name} t WHERE {parts['where']}")
        self._replace(name, found, new)

    @property
    def _is_strict(self) -> bool:
        return self.spark.conf.get("spark.sql.storeAssignmentPolicy") == "STRICT"

    def _values(self, name: str, values: dict[str, str], structs: dict[str, list[str]]) -> list[str]:
        """Return an expression for each column of an updated row ``t``.

        Args:
            name: the table.
            values: new values by their paths in backticks.
            structs: the names of fields of each struct that gets new fields, by its path.
        """
        expressions = []
        for n, kind in self.rows[name].columns:
            top = f"`{n}`"
            if values.get(top) == "NULL" and "CHAR" in kind[:7] and self._is_strict:
                raise Undefined  # Spark accepts it if its rule for lengths of texts is applied before the assignment
            if top in values:
                expressions.append(values[top])
            elif any(path.startswith(f"{top}.") for path in values):
                fields = (f"'{f}', {values.get(f'{top}.`{f}`', f't.{top}.`{f}`')}" for f in structs[top])
                expressions.append(f"named_struct({', '.join(fields)})")
            else:
                expressions.append(f"t.{top}")
        return expressions

    def _merge(self, name: str, parts: dict[str, Any]) -> None:
        rows = self.spark.sql(self.text(parts["query"])).coalesce(1)
        rows.withColumn("__sid", F.monotonically_increasing_id()).localCheckpoint().createOrReplaceTempView("m_source")
        on, clauses = parts["on"], parts["clauses"]
        matched = [c for c in clauses if c["when"] == "MATCHED"]
        only_deleted = len(matched) == 1 and matched[0]["action"] == "delete" and not matched[0]["condition"]
        several = f"SELECT t.__rid FROM r_{name} t JOIN m_source s ON {on} GROUP BY t.__rid HAVING count(*) > 1"
        if matched and not only_deleted and self.spark.sql(several).limit(1).count():
            raise Refused("several source rows")
        sides = {
            "MATCHED": f"r_{name} t JOIN m_source s ON {on}",
            "NOT MATCHED": f"m_source s LEFT ANTI JOIN r_{name} t ON {on}",
            "NOT MATCHED BY SOURCE": f"r_{name} t LEFT ANTI JOIN m_source s ON {on}",
        }
        found = self.spark.sql("SELECT 0L AS __rid WHERE 1 = 0")
        new: list[DataFrame] = []
        before: dict[str, list[str]] = {side: [] for side in sides}
        for clause in clauses:
            side, condition = clause["when"], clause["condition"] or "true"
            where = " AND ".join([*(f"NOT coalesce({c}, false)" for c in before[side]), f"({condition})"])
            before[side].append(f"({condition})")
            if clause["action"] == "insert":
                values = clause["values"]
                # a NULL without a type would be refused by the store assignment STRICT
                given = (f"{values.get(n, f'CAST(NULL AS {kind})')} AS `{n}`" for n, kind in self.rows[name].columns)
                added = self.stored(name, f"SELECT {', '.join(given)} FROM {sides[side]} WHERE {where}")
                new.append(self._with_defaults(name, added))
                continue
            found = found.unionAll(self.spark.sql(f"SELECT t.__rid FROM {sides[side]} WHERE {where}"))
            if clause["action"] == "update":
                values = ", ".join(self._values(name, clause["values"], parts["structs"]))
                new.append(self.stored(name, f"SELECT {values} FROM {sides[side]} WHERE {where}"))
        added = self.spark.table(f"m_{name}").limit(0)
        for frame in new:
            added = added.unionAll(frame)
        added = added.coalesce(1).localCheckpoint()
        if self.tables[name].keys:
            self._check_keys(name, added)
            if any(c["action"] == "insert" for c in clauses) and self._meets(name, added, found):
                raise Undefined
        self._replace(name, found.distinct(), added)

    def _meets(self, name: str, added: DataFrame, found: DataFrame) -> bool:
        """Return True if an inserted row has the key of a row that stays."""
        rest = self.spark.table(f"r_{name}").join(found, "__rid", "left_anti")
        keys = self.tables[name].keys
        return added.count() > self._without(added, rest, keys).count()

    def _alter(self, name: str, parts: dict[str, Any]) -> None:
        self._project(name, self.rows[name].frame, parts["columns"])

    def _project(self, name: str, frame: DataFrame, columns: list[tuple[str, str, str]]) -> None:
        expressions = (f"{expression} AS `{n}`" for n, _, expression in columns)
        self._set(name, [(n, kind) for n, kind, _ in columns], frame.selectExpr(*expressions))

    def _call(self, name: str, parts: dict[str, Any]) -> None:
        """Do nothing: procedures of maintenance change no rows."""

    def _tag(self, name: str, parts: dict[str, Any]) -> None:
        self.tags[name, parts["name"]] = rows = self.rows[name]
        rows.frame.createOrReplaceTempView(f"m_{name}_{parts['name']}")

    def _rollback(self, name: str, parts: dict[str, Any]) -> None:
        self._project(name, self.tags[name, parts["name"]].frame, parts["columns"])


def _sum(n: str, kind: str) -> str:
    """Return the text of the sum of an old and a new value, which is NULL if it does not fit its type."""
    return f"try_cast(o.`{n}` + n.`{n}` AS {kind})"


def model_of(spark: SparkSession, program: Program) -> SparkModel:
    """Return the model of a program's empty tables."""
    model = SparkModel(spark)
    for table in program.tables:
        model.create(table)
    return model
