"""The columns of files of other tools, compared with each other and with the columns of a table."""

from collections.abc import Sequence

from paimon_core.errors import InvalidInputError, nearest_name
from paimon_core.format.file_description import FileDescription
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
"""The largest precisions of a type that are stored in one way."""


def common_fields(files: Sequence[FileDescription]) -> tuple[DataField, ...]:
    """Return the columns that all files have.

    Raises InvalidInputError naming file and column if the files differ. The order of the columns may differ.
    """
    first = files[0]
    _check_unique(first)
    for file in files[1:]:
        _check_unique(file)
        for a, b in ((first, file), (file, first)):
            known = {field.name for field in b.fields}
            lacking = [field.name for field in a.fields if field.name not in known]
            if lacking:
                raise InvalidInputError(
                    f"{b.path} has no column {lacking[0]!r}, which {a.path} has: files with other columns do not "
                    "become one table by themselves; create the table with all columns, then use add_files"
                )
        own = {field.name: field.type for field in file.fields}
        for field in first.fields:
            found = _difference(field.type, own[field.name], field.name)
            if found is not None:
                name, one, other = found
                raise InvalidInputError(
                    f"column {name!r} is {one} in {first.path} and {other} in {file.path}: all files of a table must "
                    "agree; add the others to a table of their own"
                )
    return first.fields


def check_fits(file: FileDescription, columns: Sequence[DataField], partition_keys: Sequence[str], table: str) -> None:
    """Raise InvalidInputError naming file and column unless a table reads the file right, by the names of its columns.

    A column that the file lacks is NULL, if the column may be. REQUIRES: the values of partition columns are checked by
    `check_partition_columns`.

    Args:
        file: the file.
        columns: of the table.
        partition_keys: the columns whose values the path gives.
        table: the path of the table, for messages.
    """
    _check_unique(file)
    wanted = {field.name: field for field in columns}
    for field in file.fields:
        if field.name not in wanted:
            near = nearest_name(field.name, wanted)
            hint = f"; is it {near!r}? Names are compared exactly" if near else ""
            raise InvalidInputError(f"{file.path} has a column {field.name!r}, which the table {table} lacks{hint}")
    stored = {field.name: field.type for field in file.fields}
    for name, field in wanted.items():
        if name in partition_keys:
            continue
        if name not in stored:
            if not field.type.nullable:
                raise InvalidInputError(f"{file.path} has no column {name!r}, which is {field.type} in {table}")
            continue
        wrong = _unreadable(stored[name], field.type, name, file.format)
        if wrong is not None:
            part, found, expected = wrong
            raise InvalidInputError(
                f"column {part!r} of {file.path} is {found}, and {expected} in the table {table}: types must agree"
            )
        if not field.type.nullable and file.holds_nulls(name):
            raise InvalidInputError(
                f"column {name!r} of {file.path} may hold NULL, and is {field.type} in the table {table}"
            )


def _check_unique(file: FileDescription) -> None:
    names = [field.name for field in file.fields]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InvalidInputError(f"{file.path} has several columns {twice[0]!r}")


def _difference(one: DataType, other: DataType, name: str) -> tuple[str, DataType, DataType] | None:
    """Return where two types differ, and how; nullability is ignored. `None`: they are equal."""
    if isinstance(one, RowType) and isinstance(other, RowType):
        if [f.name for f in one.fields] != [f.name for f in other.fields]:
            return name, one, other
        pairs = [(a.type, b.type, f"{name}.{a.name}") for a, b in zip(one.fields, other.fields, strict=True)]
    elif isinstance(one, ArrayType) and isinstance(other, ArrayType):
        pairs = [(one.element, other.element, f"{name}.element")]
    elif isinstance(one, MapType) and isinstance(other, MapType):
        pairs = [(one.key, other.key, f"{name}.key"), (one.value, other.value, f"{name}.value")]
    else:
        return None if with_nullable(one, True) == with_nullable(other, True) else (name, one, other)
    return next((found for pair in pairs if (found := _difference(*pair)) is not None), None)


def _unreadable(
    stored: DataType, wanted: DataType, name: str, format: str, *, nested: bool = False
) -> tuple[str, DataType, DataType] | None:
    """Return the part of a column that cannot be read as the table's, stored and wanted; `None`: all can be read."""
    if nested and not wanted.nullable:
        return name, stored, wanted
    if isinstance(stored, RowType) and isinstance(wanted, RowType):
        if [f.name for f in stored.fields] != [f.name for f in wanted.fields]:
            return name, stored, wanted
        pairs = [(a.type, b.type, f"{name}.{b.name}") for a, b in zip(stored.fields, wanted.fields, strict=True)]
    elif isinstance(stored, ArrayType) and isinstance(wanted, ArrayType):
        pairs = [(stored.element, wanted.element, f"{name}.element")]
    elif isinstance(stored, MapType) and isinstance(wanted, MapType):
        key = with_nullable(wanted.key, True)  # the keys of a map are never NULL
        pairs = [(stored.key, key, f"{name}.key"), (stored.value, wanted.value, f"{name}.value")]
    elif isinstance(stored, AtomicType) and isinstance(wanted, AtomicType) and _reads(stored, wanted, format):
        return None
    else:
        return name, stored, wanted
    found = (_unreadable(a, b, part, format, nested=True) for a, b, part in pairs)
    return next((one for one in found if one is not None), None)


def _reads(stored: AtomicType, wanted: AtomicType, format: str) -> bool:
    """Return True if values stored as one type are read right as another one."""
    if with_nullable(stored, True) == with_nullable(wanted, True):
        return True
    if format == "parquet" and stored.root == "VARBINARY" and wanted.root == "VARCHAR":
        return wanted.length == MAX_LENGTH  # text that its writer did not mark as such
    if stored.root != wanted.root:
        return False
    if stored.root in _CLASSES:
        classes = _CLASSES[stored.root]
        return _class(stored, classes) == _class(wanted, classes)
    return stored.root == "VARCHAR" and (stored.length or 0) <= (wanted.length or 0)


def _class(type_: AtomicType, classes: tuple[int, ...]) -> int:
    return next(limit for limit in classes if (type_.precision or 0) <= limit)
