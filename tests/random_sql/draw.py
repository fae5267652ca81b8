"""Draw random programs from a seed. Rows and results are not known here, only columns."""

import copy
import random
import re

import pyspark

from tests.random_sql.program import FRAMES, Program, Step, TableDefinition, qualified
from tests.random_sql.projection import projection
from tests.random_sql.queries import Queries
from tests.support.sql_tables import FAR, STRUCT, VALUES, Column, RandomTable, text

SETTINGS = {
    "spark.sql.ansi.enabled": ["false"],
    "spark.sql.caseSensitive": ["true"],
    "spark.sql.session.timeZone": ["America/New_York", "Asia/Kolkata", "Pacific/Apia", "Europe/Berlin"],
    "spark.sql.adaptive.enabled": ["false"],
    "spark.sql.codegen.wholeStage": ["false"],
    "spark.sql.codegen.factoryMode": ["NO_CODEGEN"],
    "spark.sql.parquet.enableVectorizedReader": ["false"],
    "spark.sql.parquet.enableNestedColumnVectorizedReader": ["false"],
    "spark.sql.orc.enableVectorizedReader": ["false"],
    "spark.sql.parquet.filterPushdown": ["false"],
    "spark.sql.parquet.datetimeRebaseModeInRead": ["LEGACY"],
    "spark.sql.parquet.datetimeRebaseModeInWrite": ["LEGACY"],
    "spark.sql.parquet.int96RebaseModeInRead": ["LEGACY"],
    "spark.sql.parquet.int96RebaseModeInWrite": ["LEGACY"],
    "spark.sql.parquet.outputTimestampType": ["INT96", "TIMESTAMP_MILLIS"],
    "spark.sql.parquet.fieldId.read.enabled": ["true"],
    "spark.sql.parquet.aggregatePushdown": ["true"],
    "spark.sql.legacy.timeParserPolicy": ["LEGACY"],
    "spark.sql.storeAssignmentPolicy": ["STRICT"],
    "spark.sql.timestampType": ["TIMESTAMP_NTZ"],
    "spark.sql.files.maxPartitionBytes": ["512"],
    "spark.sql.optimizer.nestedSchemaPruning.enabled": ["false"],
    "spark.sql.readSideCharPadding": ["false"],
    "spark.sql.cbo.enabled": ["true"],
    "spark.sql.autoBroadcastJoinThreshold": ["-1"],
    "spark.sql.sources.v2.bucketing.enabled": ["true"],
    "spark.sql.legacy.castComplexTypesToString.enabled": ["true"],
    "spark.sql.optimizer.dynamicPartitionPruning.enabled": ["false"],
    "spark.sql.parquet.recordLevelFilter.enabled": ["true"],
    "spark.sql.parquet.columnarReaderBatchSize": ["7"],
    "spark.sql.columnVector.offheap.enabled": ["true"],
    "spark.sql.parquet.int96TimestampConversion": ["true"],
    "spark.sql.parquet.binaryAsString": ["true"],
    "spark.sql.parquet.inferTimestampNTZ.enabled": ["false"],
    "spark.sql.parquet.pushdown.inFilterThreshold": ["0"],
    "spark.sql.orc.filterPushdown": ["false"],
    "spark.sql.orc.columnarReaderBatchSize": ["7"],
    "spark.sql.sources.partitionColumnTypeInference.enabled": ["false"],
    "spark.sql.charAsVarchar": ["true"],
    "spark.sql.execution.arrow.maxRecordsPerBatch": ["3"],
    "spark.sql.execution.arrow.useLargeVarTypes": ["true"],
    "spark.sql.decimalOperations.allowPrecisionLoss": ["false"],
    "spark.sql.optimizer.inSetConversionThreshold": ["0"],
    "spark.sql.shuffle.partitions": ["1"],
    "spark.paimon.read.mask-memory": ["1b"],
    "spark.paimon.read.native": ["false"],
    "spark.paimon.write.native": ["false"],
    "spark.paimon.read.mask-rows": ["0"],
}
"""Settings of a session that a program changes, with the values other than the default."""
APPEND = [
    {"bucket": "-1"},
    {"deletion-vectors.enabled": "true"},
    {"bucket": "2", "bucket-key": "id"},
    {"row-tracking.enabled": "true"},
    {"row-tracking.enabled": "true", "deletion-vectors.enabled": "true"},
    {"row-tracking.enabled": "true", "data-evolution.enabled": "true"},
    {"row-tracking.enabled": "true", "data-evolution.enabled": "true", "deletion-vectors.enabled": "true"},
]
KEYED = [
    {"bucket": "1"},
    {"bucket": "5"},
    {"bucket": "2", "deletion-vectors.enabled": "true"},
    {"bucket": "-1"},
    {"bucket": "-1", "dynamic-bucket.target-row-num": "3"},
]
UNSEEN = [
    {"manifest.target-file-size": "1 kb", "manifest.merge-min-count": "2"},
    {"metadata.stats-dense-store": "false"},
    {"partition.legacy-name": "false"},
    {"snapshot.num-retained.min": "1", "snapshot.num-retained.max": "2"},
]
"""Options of tables that change files and snapshots, but no rows."""
ENGINES = ["", "", "", "deduplicate", "deduplicate", "deduplicate", "first-row", "partial-update", "aggregation"]
ORDERED = ("TINYINT", "SMALLINT", "INT", "BIGINT", "DECIMAL(5, 2)", "DECIMAL(18, 4)", "STRING", "DATE")
"""Types of columns for MIN, MAX and sequences."""
IN_KEYS = ("BOOLEAN", "TINYINT", "SMALLINT", "BIGINT", "DECIMAL(5, 2)", "DECIMAL(38, 10)", "STRING", "VARCHAR(5)")
IN_KEYS += ("BINARY", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ")
"""Types of the columns that, with `id`, are keys or choose a bucket: Spark compares zeros of floats otherwise."""
NUMBERS = ("TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE")
LITERAL = re.compile(r"^CAST\((.*) AS \w+(?:\([0-9, ]+\))?\)$")
UPPER = re.compile(r"`c(\d+)`")
TWICE = re.compile(r"CAST\(CAST\(((?:[^()]|\([^()]*\))*) AS (\w+(?:\([0-9, ]+\))?)\) AS \2\)")
"""A cast to a type in a cast to the same type."""
LIMITS = {
    "paimon_spark.sql.writes.few_rows.MOST_CHANGES": [-1, 2],
    "paimon_spark.frame_write.FEW_ROWS": [-1],
    "paimon_core.scan.base_run.LEAST_BASE": [0],
    "paimon_core.scan.base_run.MOST_NEWER_ROWS": [-1],
}
"""Limits inside the connector, above or below which other code reads or writes the rows."""
COMPACTION_TRIGGER = "num-sorted-run.compaction-trigger"
PROPERTIES = [
    ("write-only", "true"),
    ("write-only", "false"),
    ("metadata.stats-mode", "none"),
    ("metadata.stats-mode", "full"),
    ("target-file-size", "1 kb"),
    (COMPACTION_TRIGGER, "3"),
    ("file.compression", "none"),
    ("file-index.bitmap.columns", "id"),
    ("file-index.bloom-filter.columns", "id"),
]
"""Properties of tables that change files, but no rows."""
PRODUCERS = [("changelog-producer", "lookup"), ("changelog-producer", "none")]
"""Properties of tables with a primary key that change no rows, but may be refused."""
HAS_REPLACE_USING = tuple(int(part) for part in pyspark.__version__.split(".")[:2]) >= (4, 3)
NO_CODE = 0.5
"""The share of programs for which Spark compiles no code, which takes it most of its time with so few rows."""
TYPO = 0.04
"""The share of new values of a type or size that Spark refuses."""


class Draft(RandomTable):
    """The columns that a table has at one step of a program."""

    definition: TableDefinition
    updatable: bool
    deletable: bool

    def copy_of_columns(self) -> list[Column]:
        return copy.deepcopy(self.columns)

    @property
    def types(self) -> list[tuple[str, str]]:
        return [(one.name, one.type) for one in self.columns]

    @property
    def is_keyed(self) -> bool:
        return bool(self.definition.keys)

    @property
    def properties(self) -> list[tuple[str, str]]:
        """Properties that the table may get later. Some tables show rows only after the compaction of a write."""
        table = self.definition
        compacts = table.engine == "first-row" or (table.keys and "deletion-vectors.enabled" in table.options)
        properties = [one for one in PROPERTIES if not (compacts and one[0] in ("write-only", COMPACTION_TRIGGER))]
        return properties + PRODUCERS * 3 if self.is_keyed and not compacts else properties

    def cell(self, column: Column) -> str:
        """Return the text of a value of a new row; keys and sequences of groups are never NULL."""
        value = self.value(column)
        while value is None and column.name in (*self.definition.keys, *self.definition.groups):
            value = self.value(column)
        return TWICE.sub(r"CAST(\1 AS \2)", text(column, value))

    def cells(self, ids: list[int]) -> list[list[str]]:
        return [[str(i) if one.name == "id" else self.cell(one) for one in self.columns] for i in ids]


def literal(cell: str) -> str:
    """Return the literal in a value, for PARTITION (...)."""
    return LITERAL.sub(r"\1", cell)


USUAL = ["insert"] * 4 + ["alter"] * 2 + ["call", "tag"]
MAINTENANCE = ["insert"] + ["alter"] * 3 + ["call"] * 7 + ["tag"]


class Drawing:
    """The state of the drawing of one program."""

    def __init__(self, seed: str) -> None:
        self.seed, self.rng, self.ids = seed, random.Random(seed), 0
        self.settings = {name: self.rng.choice(v) for name, v in SETTINGS.items() if self.rng.random() < 0.08}
        if random.Random(f"code {seed}").random() < NO_CODE:
            self.settings["spark.sql.codegen.factoryMode"] = "NO_CODEGEN"
        self.limits = {name: self.rng.choice(v) for name, v in LIMITS.items() if self.rng.random() < 0.4}
        self.far = self.rng.random() < 0.15
        self.drafts: dict[str, Draft] = {}
        self.steps: list[Step] = []
        self.tags: dict[tuple[str, str], list[Column]] = {}
        for number in range(self.rng.choice([1, 2, 2])):
            self._table(f"t{number}")
        self.queries = Queries(self.rng, self.drafts, self.tags)

    def _table(self, name: str) -> None:
        rng = self.rng
        file_format = "parquet" if self.far else rng.choice(["parquet"] * 6 + ["orc", "avro"])
        # ORC cannot store drawn moments before 1970 with microseconds, nor blanks at the end of a CHAR.
        kinds = [kind for kind in VALUES if file_format == "parquet" or not kind.startswith(("TIMESTAMP", "CHAR"))]
        if self.far:
            kinds += [kind for kind in kinds if kind in FAR] * 4
        draft = Draft(rng, kinds, far=self.far)
        engine = rng.choice(ENGINES)
        options = dict(rng.choice(KEYED[:2] if engine not in ("", "deduplicate") else KEYED if engine else APPEND))
        keyed = self._key_column(draft, kinds)
        if options.get("bucket-key"):
            options["bucket-key"] = rng.choice(["id", ",".join(["id", *keyed]), *keyed])
        partitions = [one.name for one in draft.partition_columns]
        functions, sequence, keys = {}, "", []
        if engine:
            keys = ["id", *keyed, *partitions]
            if partitions and options["bucket"] == "-1" and rng.random() < 0.5:
                keys = ["id", *keyed]
            rng.shuffle(keys)
        if engine == "aggregation":
            functions = {one.name: self._function(one) for one in draft.free}
        if engine == "deduplicate" and rng.random() < 0.25:
            ordered = [one for one in draft.free if one.kind in ORDERED]
            sequence = ordered[0].name if ordered and options.get("bucket") != "-1" else ""
        groups = self._groups(draft) if engine == "partial-update" else {}
        grouped = {*groups, *(name for names in groups.values() for name in names)}
        for one in draft.free:
            if one.name == sequence or one.name in functions or one.name in grouped:
                one.name = "q" + one.name[1:]  # keeps its name, so that options keep naming it
        defaults = self._defaults(draft)
        functions = {"q" + column[1:]: function for column, function in functions.items()}
        groups = {"q" + one[1:]: ["q" + name[1:] for name in names] for one, names in groups.items()}
        sequence = sequence and "q" + sequence[1:]
        if file_format != "parquet":
            options["file.format"] = file_format
        if not engine or (engine != "first-row" and "deletion-vectors.enabled" not in options):
            options |= rng.choice([{}, {"write-only": "true"}, {COMPACTION_TRIGGER: "2"}])
        if keyed and engine and options["bucket"] == "5":
            options["bucket-key"] = rng.choice(["id", *keyed])
        if engine and "deletion-vectors.enabled" not in options and rng.random() < 0.2:
            producers = {"first-row": ["lookup"], "deduplicate": ["lookup", "full-compaction", "input"]}
            options["changelog-producer"] = rng.choice(producers.get(engine, ["lookup", "full-compaction"]))
        if rng.random() < 0.3:
            options |= rng.choice(UNSEEN)
        if rng.random() < 0.15:
            options["file-index.bloom-filter.columns"] = "id"
        if rng.random() < 0.1:
            options["metadata.stats-mode"] = rng.choice(["none", "counts", "full"])
        draft.definition = TableDefinition(
            name, draft.types, partitions, keys, engine, functions, sequence, options, defaults, groups
        )
        evolving = "data-evolution.enabled" in options
        draft.updatable = not sequence and engine in ("", "deduplicate")
        draft.deletable = draft.updatable and (not evolving or "deletion-vectors.enabled" in options)
        self.drafts[name] = draft

    def _groups(self, draft: Draft) -> dict[str, list[str]]:
        """Return the columns of sequence groups, by the columns with the sequences."""
        ordered = [one.name for one in draft.free if one.kind in ORDERED]
        if not ordered or self.rng.random() < 0.3:
            return {}
        sequences = self.rng.sample(ordered, min(len(ordered), self.rng.choice([1, 1, 2])))
        rest = [one.name for one in draft.free if one.name not in sequences]
        groups = {one: rest[at :: len(sequences) + self.rng.randrange(2)] for at, one in enumerate(sequences)}
        return {one: names for one, names in groups.items() if names}

    def _defaults(self, draft: Draft) -> dict[str, str]:
        """Return defaults of some columns, which keep their names and types."""
        chosen = [
            one for one in draft.free if one.kind in (*NUMBERS[:4], "DATE", "BOOLEAN") and self.rng.random() < 0.15
        ]
        for one in chosen:
            one.name = "d" + one.name[1:]
        return {one.name: literal(self.rng.choice(VALUES[one.kind])) for one in chosen}

    def _key_column(self, draft: Draft, kinds: list[str]) -> list[str]:
        """Add a column that keeps its name and type to some tables, and return its name."""
        rng = self.rng
        if rng.random() < 0.6:
            return []
        column = Column(draft.made, f"k{draft.made}", rng.choice([kind for kind in IN_KEYS if kind in kinds]))
        draft.made += 1
        draft.columns.insert(rng.randrange(len(draft.columns) + 1), column)
        return [column.name]

    def _function(self, column: Column) -> str:
        names = ["last_non_null_value", "last_value", "first_value", "first_non_null_value"]
        names += ["sum"] * 4 * (column.kind == "DECIMAL(18, 4)") + ["bool_and", "bool_or"] * 2 * (
            column.kind == "BOOLEAN"
        )
        return self.rng.choice(names + (["max", "min"] * 2 if column.kind in ORDERED else []))

    def program(self, statements: int, queries: int, usual: list[str]) -> Program:
        """Return a program. For the first arguments see `draw`; ``usual``: kinds of statements for every table."""
        for name in self.drafts:
            self._insert(self.drafts[name], "into")
        for _ in range(statements):
            draft = self.rng.choice(list(self.drafts.values()))
            kinds = [*usual]
            kinds += ["update", "update", "merge", "merge"] if draft.updatable else []
            kinds += ["delete", "delete"] if draft.deletable else []
            kinds += ["drop"] if draft.partition_columns or self.rng.random() < 0.1 else []
            kinds += ["rollback"] if any(name == draft.definition.name for name, _ in self.tags) else []
            getattr(self, f"_{self.rng.choice(kinds)}")(draft)
            self.steps += [Step("query", "", self._spelled(self.queries.draw())) for _ in range(queries)]
        tables = [draft.definition for draft in self.drafts.values()]
        return Program(self.seed, self.settings, self.limits, tables, self.steps, self.far)

    def _add(self, kind: str, draft: Draft, **parts: object) -> None:
        self.steps.append(Step(kind, draft.definition.name, self._spelled(parts)))

    def _spelled(self, parts: dict[str, object]) -> dict[str, object]:
        """Return parts whose columns are in other case, if the session ignores case."""
        if self.settings.get("spark.sql.caseSensitive") or self.rng.random() < 0.8:
            return parts
        return {k: UPPER.sub(r"`C\1`", v) if k in ("where", "text") else v for k, v in parts.items()}

    def _ids(self, draft: Draft) -> list[int]:
        count = self.rng.randrange(1, 9)
        if draft.is_keyed and self.ids and self.rng.random() < 0.7:
            return self.rng.sample(range(self.ids + 3), min(count, self.ids))
        if self.rng.random() < 0.05:
            return []
        self.ids += count
        return list(range(self.ids - count, self.ids))

    def _insert(self, draft: Draft, form: str | None = None) -> None:
        rng, table = self.rng, draft.definition
        forms = ["into", "into", "values", "columns", "by name", "select", "overwrite"]
        moves = table.keys and not {*table.partitions} <= {*table.keys}  # from partition to partition
        forms += ["dynamic", "static", "static"] if table.partitions and not moves else []
        forms += ["path", "path", "frame", "frame"] + ["path overwrite", "frame overwrite"] * (not table.sequence)
        forms += ["frame dynamic"] if table.partitions and not moves else []
        replaces = draft.updatable and "data-evolution.enabled" not in table.options
        forms += ["replace"] * replaces + ["using"] * (
            replaces and HAS_REPLACE_USING and table.options.get("bucket") != "-2"
        )
        form = form or rng.choice(forms)
        columns, ids = draft.types, self._ids(draft)
        if form == "values" and not ids:
            form = "into"
        parts: dict[str, object] = {"form": form, "columns": columns}
        if form in ("into", "path", "frame") and rng.random() < 0.15:
            parts["query"] = self._many(draft)
        elif form == "select" or (form in ("overwrite", "replace") and rng.random() < 0.4):
            parts["query"] = self._selected(draft)
            parts["form"] = "into" if form == "select" else form
        else:
            rows = draft.cells(ids)
            if form not in FRAMES:
                self._typo(draft, rows)
            parts["rows"] = rows
        if form in ("columns", "by name"):
            always = ("id", *table.keys, *table.groups)
            chosen = [i for i, one in enumerate(draft.columns) if one.name in always or rng.random() < 0.7]
            rng.shuffle(chosen)
            parts |= {"columns": [columns[i] for i in chosen], "rows": [[row[i] for i in chosen] for row in rows]}
        if form == "static":
            names = table.partitions[: rng.randrange(1, len(table.partitions) + 1)]
            kinds = {one.name: one for one in draft.columns}
            fixed = {n: draft.cell(kinds[n]) for n in names}
            fixed = {n: v for n, v in fixed.items() if "NULL" not in v}
            fixed = fixed or {names[0]: self._not_null(draft, kinds[names[0]])}
            rest = [i for i, one in enumerate(draft.columns) if one.name not in fixed]
            literals = {n: literal(v) for n, v in fixed.items()}
            parts |= {"columns": [columns[i] for i in rest], "rows": [[row[i] for i in rest] for row in rows]}
            parts["partition"] = literals
        if form == "using":
            names = [path for path, one in draft.leaves() if one.kind in ORDERED and "." not in path]
            parts["using"] = [name.strip("`") for name in rng.sample(names, min(len(names), rng.randrange(1, 3)))]
        if form == "replace":
            parts["where"] = self._replaced(draft, ids)
        if not (form == "static" and not parts["rows"]):
            self._add("insert", draft, **parts)

    def _replaced(self, draft: Draft, ids: list[int]) -> str:
        """Return a condition of REPLACE WHERE, which the new rows mostly match."""
        if not ids or self.rng.random() < 0.3:
            return draft.condition()
        some = ", ".join(map(str, [*ids, 3, 4]))
        low, high = min(ids), max(ids)
        conditions = [
            f"`id` IN ({some})",
            f"`id` BETWEEN {low} AND {high}",
            f"`id` >= {low} OR `id` = 2",
            f"NOT `id` > {high}",
        ]
        return self.rng.choice(conditions)

    def _many(self, draft: Draft) -> str:
        """Return a query for hundreds of rows, so that files have several pages and batches."""
        rng, first = self.rng, self.ids
        self.ids += rng.choice([300, 1500])
        values = []
        for one in draft.columns:
            cells = [draft.cell(one) for _ in range(rng.choice([1, 3, 7]))]
            chosen = f"element_at(array({', '.join(cells)}), CAST(id % {len(cells)} AS INT) + 1)"
            values.append(f"{'CAST(id AS INT)' if one.name == 'id' else chosen} AS `{one.name}`")
        return f"SELECT {', '.join(values)} FROM range({first}, {self.ids})"

    def _not_null(self, draft: Draft, column: Column) -> str:
        while "NULL" in (cell := draft.cell(column)):
            pass
        return cell

    def _typo(self, draft: Draft, rows: list[list[str]]) -> None:
        if rows and self.rng.random() < TYPO * 3:
            at = self.rng.randrange(len(draft.columns))
            self.rng.choice(rows)[at] = self.rng.choice(["'x'", "12345678901L", "1.25BD", "X'00'", "repeat('y', 9)"])

    def _selected(self, draft: Draft) -> str:
        """Return a query for the columns of the table."""
        rng = self.rng
        other = rng.choice(list(self.drafts.values()))
        name = other.definition.name
        shift = rng.choice(["", " + 100", " + 1", " % 3"])
        values = [self._from(draft, other, one) for one in draft.columns if one.name != "id"]
        values.insert([one.name for one in draft.columns].index("id"), f"a.`id`{shift} AS `id`")
        where = qualified(other.condition(), "a")
        return f"SELECT {', '.join(values)} FROM {{{name}}} a WHERE {where}"

    def _from(self, draft: Draft, other: Draft, column: Column) -> str:
        same = [one.name for one in other.columns if one.type == column.type and one.name != "id"]
        if draft is other and self.rng.random() < 0.7:
            same = [column.name]
        nullable = column.name not in draft.definition.keys
        if column.name in draft.definition.groups:
            same = []
        if same and (nullable or self.rng.random() < 0.5) and self.rng.random() < 0.8:
            return f"a.`{self.rng.choice(same)}` AS `{column.name}`"
        return f"{draft.cell(column)} AS `{column.name}`"

    def _where(self, draft: Draft) -> str:
        if self.rng.random() < 0.3:
            return self.queries.subquery(draft, "t")
        return qualified(draft.condition(), "t")

    def _delete(self, draft: Draft) -> None:
        self._add("delete", draft, where=self._where(draft))

    def _update(self, draft: Draft) -> None:
        values, structs = self._new_values(draft, None)
        if values:
            self._add("update", draft, where=self._where(draft), values=values, structs=structs)

    def _new_values(self, draft: Draft, aliased: str | None) -> tuple[dict[str, str], dict[str, list[str]]]:
        """Draw new values by paths, and the fields of the structs in part changed. `aliased`: the source, or None."""
        rng = self.rng
        fixed = draft.is_keyed or "data-evolution.enabled" in draft.definition.options
        targets = [one for one in draft.columns if one.name[0] in "cd"] + [*([] if fixed else draft.partition_columns)]
        values: dict[str, str] = {}
        structs: dict[str, list[str]] = {}
        for column in rng.sample(targets, min(len(targets), rng.randrange(1, 4))):
            path = f"`{column.name}`"
            if column.kind == STRUCT and rng.random() < 0.6:
                one = rng.choice(column.fields)
                structs[path] = [field.name for field in column.fields]
                values[f"{path}.`{one.name}`"] = self._new_value(draft, one, f"{path}.`{one.name}`", aliased)
            else:
                values[path] = self._new_value(draft, column, path, aliased)
        return values, structs

    def _new_value(self, draft: Draft, column: Column, path: str, aliased: str | None) -> str:
        rng, kind = self.rng, column.kind
        options = [text(column, draft.value(column))] * 2 + ["NULL"]
        others = [other for other, one in draft.leaves() if one.kind == kind and one.name != "id"]
        if others and kind != STRUCT:
            options += [f"t.{rng.choice(others)}"]
        if kind in NUMBERS:
            options += [f"t.{path} + 1", f"CAST(t.`id` AS {kind})", f"-t.{path}", "7"]
        if kind in ("STRING", "VARCHAR(5)"):
            options += [f"concat(t.{path}, '!')", f"upper(t.{path})", "CAST(t.`id` AS STRING)"]
        if kind == "DATE":
            options += [f"date_add(t.{path}, 1)"]
        if aliased:
            options += [f"{aliased}.{path}"] * 3
        if rng.random() < TYPO:
            options = ["'x'", "12345678901L", "repeat('y', 9)", "1.25BD"]
        return rng.choice(options)

    def _merge(self, draft: Draft) -> None:
        rng, table = self.rng, draft.definition
        if rng.random() < 0.3:
            query = self._selected(draft)
        else:
            names = ", ".join(f"`{one.name}`" for one in draft.columns)
            ids = [rng.randrange(max(1, self.ids + 3)) for _ in range(rng.randrange(1, 8))]
            ids = list(dict.fromkeys(ids)) if rng.random() < 0.8 else ids
            rows = ", ".join(f"({', '.join(row)})" for row in draft.cells(ids))
            query = f"SELECT * FROM VALUES {rows} AS v({names})"
        keys = table.keys or ["id", *(table.partitions if rng.random() < 0.3 else [])]
        on = " AND ".join(f"t.`{n}` {rng.choice(['=', '=', '<=>'])} s.`{n}`" for n in keys)
        if rng.random() < 0.2 and not table.keys:
            on += f" AND {qualified(draft.condition(2), rng.choice('st'))}"
        clauses, structs = [], {}
        for when in ("MATCHED", "NOT MATCHED", "NOT MATCHED BY SOURCE"):
            many = rng.choice([0, 1, 1, 2])
            for at in range(many):
                side = {"MATCHED": rng.choice("st"), "NOT MATCHED": "s", "NOT MATCHED BY SOURCE": "t"}[when]
                condition = qualified(draft.condition(1), side) if at < many - 1 or rng.random() < 0.5 else ""
                clause = self._clause(draft, when)
                structs |= clause.pop("structs", {})
                if clause["values"] or clause["action"] == "delete":
                    clauses.append({"when": when, "condition": condition, **clause})
        # Only the last clause of each kind may lack a condition.
        last = {clause["when"]: at for at, clause in enumerate(clauses)}
        for at, clause in enumerate(clauses):
            if at != last[clause["when"]] and not clause["condition"]:
                clause["condition"] = "1 = 1"
        if clauses:
            self._add("merge", draft, query=query, on=on, clauses=clauses, structs=structs)

    def _clause(self, draft: Draft, when: str) -> dict[str, object]:
        rng = self.rng
        if when == "NOT MATCHED":
            keys = ("id", *draft.definition.keys)
            chosen = [one for one in draft.columns if one.name in keys or rng.random() < 0.8]
            own = [one for one in chosen if one.name not in keys and rng.random() < 0.1]
            values = {one.name: draft.cell(one) if one in own else f"s.`{one.name}`" for one in chosen}
            if rng.random() < 0.4:
                return {"action": "insert", "values": {n: f"s.`{n}`" for n, _ in draft.types}, "star": True}
            return {"action": "insert", "values": values}
        if draft.deletable and rng.random() < 0.35:
            return {"action": "delete", "values": {}}
        table = draft.definition
        fixed = "data-evolution.enabled" in table.options or (table.keys and not {*table.partitions} <= {*table.keys})
        if when == "MATCHED" and not fixed and rng.random() < 0.25:
            return {"action": "update", "values": {f"`{n}`": f"s.`{n}`" for n, _ in draft.types}, "star": True}
        values, structs = self._new_values(draft, "s" if when == "MATCHED" else None)
        return {"action": "update", "values": values, "structs": structs}

    def _alter(self, draft: Draft) -> None:
        old = draft.copy_of_columns()
        clauses = draft.evolve()
        if clauses:
            self._add("alter", draft, clauses=clauses, columns=projection(old, draft.columns))

    def _call(self, draft: Draft) -> None:
        mark = f"{{{draft.definition.name}}}"
        texts = [f"CALL sys.compact(table => '{mark}')"] * 3
        texts += [f"CALL sys.expire_snapshots(table => '{mark}', retain_max => 1, retain_min => 1)"]
        texts += [f"CALL sys.compact(table => '{mark}', compact_strategy => 'minor')"]
        texts += [
            f"CALL sys.compact_manifest(table => '{mark}')",
            f"ANALYZE TABLE {mark} COMPUTE STATISTICS FOR ALL COLUMNS",
        ]
        texts += [
            f"ALTER TABLE {mark} SET TBLPROPERTIES ('{k}' = '{v}')" for k, v in self.rng.sample(draft.properties, 3)
        ]
        options = draft.definition.options
        if not draft.is_keyed and options.get("bucket", "-1") == "-1" and "data-evolution.enabled" not in options:
            texts += [f"CALL sys.compact(table => '{mark}', order_strategy => 'order', order_by => 'id')"]
        if options.get("bucket") in ("1", "2", "5"):
            texts += [f"CALL sys.rescale(table => '{mark}', bucket_num => {self.rng.randrange(1, 5)})"]
        if not any(kind.startswith(("TIMESTAMP", "CHAR")) for kind in draft.kinds):
            kind = self.rng.choice(["orc", "avro", "parquet"])
            texts += [f"ALTER TABLE {mark} SET TBLPROPERTIES ('file.format' = '{kind}')"]
        text = self.rng.choice(texts)
        if PRODUCERS[0][0] in text and self.rng.random() < 0.7:  # refused while rows wait for a compaction
            self._add("call", draft, text=f"CALL sys.compact(table => '{mark}', compact_strategy => 'full')")
        self._add("call", draft, text=text)

    def _drop(self, draft: Draft) -> None:
        """Drop whole partitions, or all rows."""
        rng, mark = self.rng, f"{{{draft.definition.name}}}"
        columns = draft.partition_columns
        if not columns or rng.random() < 0.15:
            self._add("drop", draft, text=f"TRUNCATE TABLE {mark}", where="true")
            return
        chosen = columns[: rng.randrange(1, len(columns) + 1)]
        values = {one.name: self._not_null(draft, one) for one in chosen}
        where = " AND ".join(f"t.`{n}` = {value}" for n, value in values.items())
        literals = ", ".join(f"{n} = {literal(value)}" for n, value in values.items())
        texts = [
            f"{verb} PARTITION ({literals})"
            for verb in (f"ALTER TABLE {mark} DROP IF EXISTS", f"TRUNCATE TABLE {mark}")
        ]
        if draft.deletable or "changelog-producer" not in draft.definition.options:  # a changelog needs each row
            texts += [f"DELETE FROM {mark} t WHERE {where}"]
        self._add("drop", draft, text=rng.choice(texts), where=where)

    def _tag(self, draft: Draft) -> None:
        """Tag the table after a commit, so that the tag has the newest columns."""
        name = f"v{len(self.steps)}"
        ids = [self.ids]
        self.ids += 1
        self._add("insert", draft, form="into", columns=draft.types, rows=draft.cells(ids))
        self._add("tag", draft, name=name)
        self.tags[draft.definition.name, name] = draft.copy_of_columns()

    def _rollback(self, draft: Draft) -> None:
        name = draft.definition.name
        tag = self.rng.choice([tag for table, tag in self.tags if table == name])
        self._add("rollback", draft, name=tag, columns=projection(self.tags[name, tag], draft.columns))
        for later in [key for key in self.tags if key[0] == name and int(key[1][1:]) > int(tag[1:])]:
            del self.tags[later]


def draw(seed: str, statements: int = 8, queries: int = 1, *, maintenance: bool = False) -> Program:
    """Draw a program.

    Args:
        seed: equal seeds draw equal programs.
        statements: the number of statements after the first INSERT into each table.
        queries: the number of queries after each statement.
        maintenance: True for more procedures and schema changes, and fewer changes of rows.
    """
    return Drawing(seed).program(statements, queries, USUAL if not maintenance else MAINTENANCE)
