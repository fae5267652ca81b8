"""Compare the columns of files of other tools with each other and with the columns of a table."""

from collections.abc import Sequence

from paimon_core.errors import InvalidInputError, nearest_name
from paimon_core.format.file_description import FileDescription
from paimon_core.types.columns import repeated_names
from paimon_core.types.datatype import (
    MAX_LENGTH,
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    MapType,
    RowType,
    with_nullable,
)

_CLASSES = {"TIMESTAMP": (3, 6, 9), "TIMESTAMP_LTZ": (3, 6, 9), "TIME": (3, 9)}
"""For each type, the largest precision of each physical representation."""


def common_fields(files: Sequence[FileDescription]) -> tuple[DataField, ...]:
    """Return the common columns of the files. The order of the columns may differ.

    Raises InvalidInputError, naming file and column, if the columns differ.
    """
    first = files[0]
    _check_unique(first)
    for file in files[1:]:
        _check_unique(file)
        for a, b in ((first, file), (file, first)):
            names = {field.name for field in b.fields}
            lacking = [field.name for field in a.fields if field.name not in names]
            if lacking:
                raise InvalidInputError(
                    f"{b.path} has no column {lacking[0]!r}, which {a.path} has: all files must have the same "
                    "columns. Create a table with all columns, then use add_files"
                )
        types = {field.name: field.type for field in file.fields}
        for field in first.fields:
            difference = _difference(field.type, types[field.name], field.name)
            if difference is not None:
                name, first_type, other_type = difference
                raise InvalidInputError(
                    f"column {name!r} is {first_type} in {first.path} and {other_type} in {file.path}: all files of a "
                    "table must agree; add the other files to a separate table"
                )
    return first.fields


def check_fits(file: FileDescription, columns: Sequence[DataField], partition_keys: Sequence[str], table: str) -> None:
    """Raise InvalidInputError, naming file and column, unless the table can read the file by column names.

    A nullable column that the file lacks reads as NULL. REQUIRES: `check_partition_columns` checks the values of
    partition columns.

    Args:
        file: the description of the file.
        columns: the columns of the table.
        partition_keys: the columns whose values are in the path.
        table: the path of the table, for messages.
    """
    _check_unique(file)
    columns_by_name = {field.name: field for field in columns}
    for field in file.fields:
        if field.name not in columns_by_name:
            near = nearest_name(field.name, columns_by_name)
            hint = f"; did you mean {near!r}? Names are case-sensitive" if near else ""
            raise InvalidInputError(f"{file.path} has a column {field.name!r}, which the table {table} lacks{hint}")
    stored = {field.name: field.type for field in file.fields}
    for name, field in columns_by_name.items():
        if name in partition_keys:
            continue
        if name not in stored:
            if not field.type.nullable:
                raise InvalidInputError(f"{file.path} has no column {name!r}, which is {field.type} in {table}")
            continue
        wrong = _unreadable(stored[name], field.type, name, file.format)
        if wrong is not None:
            part, actual, expected = wrong
            raise InvalidInputError(
                f"column {part!r} of {file.path} is {actual}, but {expected} in the table {table}: types must agree"
            )
        if not field.type.nullable and file.holds_nulls(name):
            raise InvalidInputError(
                f"column {name!r} of {file.path} may hold NULL, but is {field.type} in the table {table}"
            )


def _check_unique(file: FileDescription) -> None:
    if twice := repeated_names(field.name for field in file.fields):
        raise InvalidInputError(f"{file.path} has several columns {twice[0]!r}")


def _difference(first: DataType, second: DataType, name: str) -> tuple[str, DataType, DataType] | None:
    """Return the path and the two types of the first difference, ignoring nullability; `None` for equal types."""
    if isinstance(first, RowType) and isinstance(second, RowType):
        if [f.name for f in first.fields] != [f.name for f in second.fields]:
            return name, first, second
        pairs = [(a.type, b.type, f"{name}.{a.name}") for a, b in zip(first.fields, second.fields, strict=True)]
    elif isinstance(first, ArrayType) and isinstance(second, ArrayType):
        pairs = [(first.element, second.element, f"{name}.element")]
    elif isinstance(first, MapType) and isinstance(second, MapType):
        pairs = [(first.key, second.key, f"{name}.key"), (first.value, second.value, f"{name}.value")]
    else:
        return None if with_nullable(first, True) == with_nullable(second, True) else (name, first, second)
    return next((difference for pair in pairs if (difference := _difference(*pair)) is not None), None)


def _unreadable(
    stored: DataType, target: DataType, name: str, format: str, *, nested: bool = False
) -> tuple[str, DataType, DataType] | None:
    """Return the first unreadable part of a column: path, stored type, table type; `None` if all parts are readable."""
    if nested and not target.nullable:
        return name, stored, target
    if isinstance(stored, RowType) and isinstance(target, RowType):
        if [f.name for f in stored.fields] != [f.name for f in target.fields]:
            return name, stored, target
        pairs = [(a.type, b.type, f"{name}.{b.name}") for a, b in zip(stored.fields, target.fields, strict=True)]
    elif isinstance(stored, ArrayType) and isinstance(target, ArrayType):
        pairs = [(stored.element, target.element, f"{name}.element")]
    elif isinstance(stored, MapType) and isinstance(target, MapType):
        key = with_nullable(target.key, True)  # the keys of a map are never NULL
        pairs = [(stored.key, key, f"{name}.key"), (stored.value, target.value, f"{name}.value")]
    elif isinstance(stored, AtomicType) and isinstance(target, AtomicType) and _reads(stored, target, format):
        return None
    else:
        return name, stored, target
    problems = (_unreadable(a, b, part, format, nested=True) for a, b, part in pairs)
    return next((problem for problem in problems if problem is not None), None)


def _reads(stored: AtomicType, target: AtomicType, format: str) -> bool:
    """Return True if reading values of the stored type as the target type is correct."""
    if with_nullable(stored, True) == with_nullable(target, True):
        return True
    if format == "parquet" and stored.root == "VARBINARY" and target.root == "VARCHAR":
        return target.length == MAX_LENGTH  # a text that its writer did not annotate
    if stored.root != target.root:
        return False
    if stored.root in _CLASSES:
        classes = _CLASSES[stored.root]
        return _class(stored, classes) == _class(target, classes)
    return stored.root == "VARCHAR" and (stored.length or 0) <= (target.length or 0)


def _class(type_: AtomicType, classes: tuple[int, ...]) -> int:
    return next(limit for limit in classes if (type_.precision or 0) <= limit)
