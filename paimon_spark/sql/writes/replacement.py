"""Overwrites that replace the rows that match the new rows: ``REPLACE USING``, ``REPLACE ON``, and their options."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import IntegralType, StructType

from paimon_core import Table
from paimon_core.engine import Predicate, bind, parse_predicate
from paimon_core.errors import InvalidInputError, UnsupportedError
from paimon_core.options.merge import SEQUENCE_FIELD
from paimon_core.types.columns import Columns, free_prefix
from paimon_core.types.system_fields import ROW_KIND
from paimon_spark.filter_text import with_session_quotes
from paimon_spark.option_names import PROPERTY
from paimon_spark.options import WriteRequest
from paimon_spark.row_level.rows import DELETED, INSERTED
from paimon_spark.row_level.supported_statements import check_delete, check_updates
from paimon_spark.row_level.target import Target, TargetRows
from paimon_spark.row_level.texts import NumberedRows, stored, text_of
from paimon_spark.row_level.write import RowStatement, change_rows
from paimon_spark.sql.writes.target_access import DriverAccess
from paimon_spark.types import spark_schema

WHERE, USING, ON = "replacewhere", "replaceusing", "replaceon"
"""Delta's options for the rows that an overwrite replaces, in lower case."""
_STATEMENT = "replace.statement"
"""The option in which ``InsertReplace.java`` passes the criterion of a SQL statement."""
_TARGET_ALIAS, _SOURCE_ALIAS = "targetalias", "sourcealias"
_OPTIONS = (WHERE, USING, ON, _STATEMENT, _TARGET_ALIAS, _SOURCE_ALIAS)
_SHOWN = {WHERE: "replaceWhere", USING: "replaceUsing", ON: "replaceOn", _STATEMENT: "REPLACE"}
_OPERATION = "INSERT with REPLACE USING or REPLACE ON"
_PREFIX = "__paimon_"
_NAME = re.compile(r"\s*`((?:[^`]|``)+)`\s*|\s*([^,`\s][^,]*)")
_NAMES = re.compile(rf"(?:{_NAME.pattern})(?:,(?:{_NAME.pattern}))*")


@dataclass(frozen=True)
class Replacement:
    """The rows that an overwrite replaces.

    One of ``where``, ``using`` and ``on`` is set: a condition on the rows, columns in which they equal a new row, or a
    condition on a row and a new row.
    """

    option: str
    where: str | None = None
    using: tuple[str, ...] = ()
    on: str | None = None
    target: str = "t"
    """The alias of the table in ``on``."""
    source: str | None = "s"
    """The alias of the new rows in ``on``; `None`: they have none."""
    names: tuple[str, ...] | None = None
    """The names of the new rows' columns in ``on``; `None`: the names of the table's columns."""


def chooses_rows(options: Mapping[str, str]) -> bool:
    """Return True if options of a write, in any case, choose the rows to replace."""
    return any(key.lower() in _SHOWN for key in options)


def pop_stated(options: dict[str, str], *, in_sql: bool = True) -> dict[str, str]:
    """Remove the options about rows to replace from options with names in lower case, and return them.

    `in_sql`: False for a write by path, which no SQL statement makes: its option of a statement is left, and refused.
    """
    return {key: options.pop(key) for key in _OPTIONS if key in options and (in_sql or key != _STATEMENT)}


def replacement_of(found: Mapping[str, str], table: Table) -> Replacement | None:
    """Return the meaning of options about rows to replace; `None`: no such option.

    Raises InvalidInputError for several of these options, or for an alias without `replaceOn`; UnsupportedError for
    columns of a statement whose types differ from the types of the table.
    """
    chosen = [key for key in (WHERE, USING, ON, _STATEMENT) if key in found]
    if len(chosen) > 1:
        shown = ", ".join(repr(_SHOWN[key]) for key in chosen)
        raise InvalidInputError(f"options {shown} each choose the rows to replace: set only one of them")
    alias = next((key for key in (_TARGET_ALIAS, _SOURCE_ALIAS) if key in found), None)
    if alias is not None and ON not in found:
        raise InvalidInputError(f"option {alias!r} is for 'replaceOn': leave it out, or set that option")
    if not chosen:
        return None
    key, text = chosen[0], found[chosen[0]]
    if key == WHERE:
        return Replacement(key, where=text)
    if key == USING:
        return _using(key, _names(text), table)
    if key == ON:
        return Replacement(key, on=text, target=found.get(_TARGET_ALIAS, "t"), source=found.get(_SOURCE_ALIAS, "s"))
    stated: dict[str, Any] = json.loads(text)
    return _using(key, stated["using"], table) if "using" in stated else _stated(key, stated, table)


def _using(option: str, names: list[str], table: Table) -> Replacement:
    columns = Columns(table.schema.fields, table.path)
    fields = [columns.find(name) for name in names]
    return Replacement(option, using=tuple(field.name for field in fields))


def _names(text: str) -> list[str]:
    """Return the names in a list such as ``a, `b, c` ``. Raises InvalidInputError for any other text."""
    found = _NAMES.fullmatch(text)
    if found is None:
        raise InvalidInputError(
            f"option {_SHOWN[USING]!r} is {text!r}: give columns, with commas between them; put a name with a comma or "
            "a backtick in backticks, and double its backticks"
        )
    return [
        quoted.replace("``", "`") if quoted else plain.strip()
        for quoted, plain in ((match[1], match[2]) for match in _NAME.finditer(text) if match[0])
    ]


def _stated(option: str, stated: Mapping[str, Any], table: Table) -> Replacement:
    """Return the replacement of ``REPLACE ON``.

    Spark casts the new rows to the types of the table before the condition sees them, so their types must be the same.
    """
    given = StructType.fromJson(json.loads(stated["columns"]))
    target = spark_schema(table.store.in_microseconds().schema.fields)
    if len(given) != len(target):
        raise UnsupportedError(
            f"REPLACE ON needs a value for each of the {len(target)} columns of {table.path}, not {len(given)} values"
        )
    by_name = {field.name.lower(): field for field in given}
    source = [by_name.get(f.name.lower()) for f in target] if stated["by_name"] else list(given)
    for column, new in zip(target, source, strict=True):
        numbers = (
            new is not None and isinstance(new.dataType, IntegralType) and isinstance(column.dataType, IntegralType)
        )
        if new is None or not (new.dataType == column.dataType or numbers):
            kind = "missing" if new is None else new.dataType.simpleString()
            raise UnsupportedError(
                f"REPLACE ON compares new rows as the table stores them, but column {column.name!r} is "
                f"{column.dataType.simpleString()} and its new value is {kind}: cast it in the query"
            )
    names = tuple(new.name for new in source if new is not None)
    return Replacement(option, on=stated["on"], target=stated["target"], source=stated["source"], names=names)


def check_mode(found: Mapping[str, str], request: WriteRequest, *, overwrite: bool) -> None:
    """Raise InvalidInputError if a write has options about rows to replace, but does not otherwise replace all rows."""
    name = next((_SHOWN[key] for key in found if key in _SHOWN), None)
    if name is None:
        return
    if not overwrite:
        raise InvalidInputError(f"option {name!r} is for mode('overwrite')")
    if request.dynamic or request.partition is not None:
        raise InvalidInputError(
            f"options {name!r}, 'overwrite-partition' and 'partitionOverwriteMode' = 'dynamic' are mutually "
            "exclusive: set only one"
        )


def check_replacement(replacement: Replacement, request: WriteRequest, table: Table) -> None:
    """Raise UnsupportedError unless the table and the other options of the write accept the replacement of rows."""
    if replacement.where is not None:
        return
    name = _SHOWN[replacement.option]
    if request.version is not None or request.row_kind_column is not None:
        raise UnsupportedError(f"options 'txnVersion' and 'row-kind-column' cannot be combined with {name!r}")
    if request.merge_rules is not None:
        raise UnsupportedError(f"option 'write.merge-schema' cannot be combined with {name!r}: add the columns first")
    schema = table.schema
    check_delete(schema, _OPERATION)
    if not schema.primary_keys:
        return
    check_updates(schema, (), _OPERATION)
    engine, sequence = table.store.traits.engine_type.name, schema.options.value(SEQUENCE_FIELD)
    if engine != "deduplicate" or sequence:
        cause = f"'sequence.field' = {','.join(sequence)!r}" if sequence else f"merge engine {engine}"
        raise UnsupportedError(
            f"rows of a table with {cause} cannot be replaced: an old row may outrank a new one; "
            "DELETE the rows and INSERT"
        )


def where_predicate(frame: DataFrame, condition: str, table: Table) -> Predicate:
    """Return the condition of `replaceWhere`, bound to the columns of the table."""
    return bind(parse_predicate(with_session_quotes(frame.sparkSession, condition)), table.schema.fields)


def replace_matching(
    frame: DataFrame, table: Table, replacement: Replacement, request: WriteRequest, options: Mapping[str, str]
) -> None:
    """Delete the rows of a table that match a new row, and add the new rows, in one commit that checks its base.

    Args:
        frame: the new rows, with the columns of the table.
        table: the table to write.
        replacement: the rows to replace, by columns or by a condition.
        request: the options of the commit.
        options: the options that locate the table.

    The new rows are computed once, and kept by the executors until the commit. Raises the errors of `change_rows`.
    """
    target_schema = table.schema
    given = {name.lower(): name for name in frame.columns}
    wrong = sorted({f.name.lower() for f in target_schema.fields} ^ given.keys())
    if wrong:
        raise InvalidInputError(
            f"the new rows and {table.path} must have the same columns, but only one of them has {', '.join(wrong)}"
        )
    once = frame.select([F.col(_quoted(given[f.name.lower()])) for f in target_schema.fields]).localCheckpoint()
    commit = {"commit.user": request.commit_user} if request.commit_user else {}
    commit |= {f"{PROPERTY}{key}": value for key, value in request.properties.items()}
    target = Target(frame.sparkSession, table, options, commit=commit, access=DriverAccess())
    change_rows(target, RowStatement(_LOGGED, lambda rows: _changes(rows, once, table, replacement)))


_LOGGED = "MERGE INTO"
"""The operation to store in the snapshot: Paimon has no name for this one, which deletes and inserts."""


def _changes(target: TargetRows, source: DataFrame, table: Table, replacement: Replacement) -> DataFrame:
    """Return the matching rows as deletes, and the new rows as inserts."""
    fields = table.schema.fields
    numbered = NumberedRows.of(source)
    new = {f.name: stored(f"c{n}", numbered.type_of(f"c{n}"), f) for n, f in enumerate(fields)}
    types = dict(target.frame.dtypes)
    nothing = {name: f"CAST(NULL AS {types[name]})" for name in target.positions}
    inserted = numbered.selected({**new, **nothing, ROW_KIND.name: text_of(INSERTED)})
    prefix = free_prefix(_PREFIX, [*target.frame.columns, *(replacement.names or ())])
    rows = NumberedRows.of(_matching(target, inserted.select([_quoted(f.name) for f in fields]), replacement, prefix))
    at = {name: f"c{n}" for n, name in enumerate(rows.schema.names)}
    columns = {name: at[name] for name in (*target.columns, *target.positions)}
    deleted = rows.selected({**columns, ROW_KIND.name: text_of(DELETED)})
    if not target.positions:  # a new row replaces the row of its key by itself
        deleted = _without_keys_of(inserted, deleted, table.schema.primary_keys, prefix)
    return deleted.unionByName(inserted)


def _matching(target: TargetRows, source: DataFrame, replacement: Replacement, prefix: str) -> DataFrame:
    """Return the rows of the target that match a row of the source, each once."""
    if replacement.on is not None:
        named = source if replacement.names is None else source.toDF(*replacement.names)
        new = named if replacement.source is None else named.alias(replacement.source)
        return target.frame.alias(replacement.target).join(new, F.expr(replacement.on), "left_semi")
    names = {name: f"{prefix}{n}" for n, name in enumerate(replacement.using)}
    keys = source.select([F.col(_quoted(name)).alias(free) for name, free in names.items()])
    tests = [F.col(_quoted(name)) == F.col(free) for name, free in names.items()]
    condition = tests[0]
    for test in tests[1:]:
        condition = condition & test
    return target.frame.join(keys, condition, "left_semi")


def _without_keys_of(inserted: DataFrame, deleted: DataFrame, keys: Any, prefix: str) -> DataFrame:
    """Return the deleted rows whose key no new row has."""
    names = {name: f"{prefix}{n}" for n, name in enumerate(keys)}
    new = inserted.select([F.col(_quoted(name)).alias(free) for name, free in names.items()])
    condition = F.lit(True)
    for name, free in names.items():
        condition = condition & F.col(_quoted(name)).eqNullSafe(F.col(free))
    return deleted.join(new, condition, "left_anti")


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
