"""New values of columns in UPDATE and MERGE: Python values, Arrow scalars, or expressions of pyarrow over the rows."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import acero

from paimon_core.errors import InvalidInputError
from paimon_core.predicate.compute import evaluate
from paimon_core.predicate.expr import Predicate
from paimon_core.schema.table_schema import TableSchema
from paimon_core.types.arrow import to_arrow
from paimon_core.types.coerce import coerce_array
from paimon_core.types.columns import Columns
from paimon_core.types.datatype import AtomicType, DataField

Values: TypeAlias = Mapping[str, Any]
"""The new value of each column: a Python value, a pyarrow scalar, or an expression such as ``pc.field("n") + 1``."""

Condition: TypeAlias = pc.Expression | Predicate
"""A condition on rows: an expression of pyarrow, or a bound predicate."""

_FAILURES = (pa.ArrowInvalid, pa.ArrowKeyError, pa.ArrowTypeError, pa.ArrowNotImplementedError)


def assigned(schema: TableSchema, values: Values) -> dict[str, Any]:
    """Return the new value of each column, under its name in the table, as a scalar or an expression.

    Raises InvalidInputError for an unknown column, for a column with two values, for no column, for something else than
    a mapping, and for a Python value that the column cannot store.
    """
    if not isinstance(values, Mapping):
        raise InvalidInputError(f"the new values are {values!r} ({type(values).__name__}): pass {{column: new value}}")
    found: dict[str, Any] = {}
    columns = Columns(schema.fields, "the table")
    for name, value in values.items():
        field = columns.find(name)
        if field.name in found:
            raise InvalidInputError(f"column {field.name!r} gets two new values: set it once")
        found[field.name] = value if isinstance(value, pc.Expression) else _scalar(value, field)
    if not found:
        raise InvalidInputError("no column gets a new value: pass {column: new value}")
    return found


def _scalar(value: Any, field: DataField) -> pa.Scalar:
    if not isinstance(value, pa.Scalar):
        target = to_arrow(field.type)
        nested = not isinstance(field.type, AtomicType) or (isinstance(value, float) and pa.types.is_floating(target))
        try:
            value = pa.scalar(value, target if nested else None)
        except (*_FAILURES, TypeError, ValueError, OverflowError) as error:
            raise InvalidInputError(
                f"column {field.name!r}: {value!r} ({type(value).__name__}) cannot be stored as {field.type}: {error}"
            ) from error
    return stored(pa.array([value], value.type), field)[0]


def stored(values: Any, field: DataField) -> pa.Array:
    """Return new values in the type of a column. A DOUBLE is rounded to a FLOAT, as SQL does.

    Raises InvalidInputError for a value that the column cannot store, and for NULL in a NOT NULL column.
    """
    if pa.types.is_float64(values.type) and to_arrow(field.type) == pa.float32():
        values = values.cast(pa.float32())
    array = coerce_array(values, field.type, field.name)
    if array.null_count and not field.type.nullable:
        raise InvalidInputError(f"cannot write NULL to column {field.name!r}, which is NOT NULL")
    return array


def evaluated(values: Mapping[str, Any], rows: pa.RecordBatch, fields: Sequence[DataField]) -> dict[str, pa.Array]:
    """Return the new values of the rows, by column, in the types of the columns.

    Args:
        values: scalars and expressions, as `assigned` returns them.
        rows: the rows over which expressions are evaluated.
        fields: the columns of the table.

    Raises InvalidInputError for an expression that pyarrow cannot evaluate, and for a value that the column cannot
    store.
    """
    kinds = {field.name: field for field in fields}
    expressions = {name: value for name, value in values.items() if isinstance(value, pc.Expression)}
    computed = _computed(expressions, rows, "the new value of column ")
    columns = {}
    for name, value in values.items():
        if name in computed:
            columns[name] = stored(computed[name], kinds[name])
        else:
            columns[name] = pa.repeat(value, rows.num_rows)
    return columns


def condition_mask(condition: Condition, rows: pa.RecordBatch) -> pa.BooleanArray:
    """Return a mask of the rows for which a condition is true; NULL becomes False.

    Raises InvalidInputError for an expression that pyarrow cannot evaluate, or that is not a condition.
    """
    if isinstance(condition, Predicate):
        return evaluate(condition, rows)
    array = _computed({"condition": condition}, rows, "the ")["condition"]
    if not pa.types.is_boolean(array.type) and not pa.types.is_null(array.type):
        raise InvalidInputError(f"the condition {condition} is of type {array.type}, not of type bool")
    return pc.fill_null(array.cast(pa.bool_()), False)


def _computed(expressions: Mapping[str, pc.Expression], rows: pa.RecordBatch, what: str) -> dict[str, pa.Array]:
    if not expressions:
        return {}
    source = acero.TableSourceNodeOptions(pa.Table.from_batches([rows]))
    project = acero.ProjectNodeOptions(list(expressions.values()), list(expressions))
    plan = [acero.Declaration("table_source", source), acero.Declaration("project", project)]
    try:
        table = acero.Declaration.from_sequence(plan).to_table(use_threads=False)
    except _FAILURES as error:
        names = list(expressions)
        failing = next((name for name in names if len(names) > 1 and _fails(expressions[name], rows)), names[0])
        columns = [f"{f.name}: {f.type}" for f in rows.schema]
        raise InvalidInputError(
            f"cannot evaluate {what}{failing}, {expressions[failing]}: {str(error).splitlines()[0]}; the rows have the "
            f"columns {', '.join(columns)}"
        ) from error
    return {name: table.column(name).combine_chunks() for name in expressions}


def _fails(expression: pc.Expression, rows: pa.RecordBatch) -> bool:
    try:
        _computed({"value": expression}, rows, "")
    except InvalidInputError:
        return True
    return False
