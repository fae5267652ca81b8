"""Wider types: casts that lose nothing."""

from paimon_core.types.datatype import (
    INTEGER_ROOTS,
    TIME_ROOTS,
    ArrayType,
    AtomicType,
    DataType,
    MapType,
    RowType,
    with_nullable,
)

_DIGITS = dict(zip(INTEGER_ROOTS, (3, 5, 10, 19), strict=True))
_EXACT_DIGITS = {"FLOAT": 7, "DOUBLE": 15}  # SMALLINT fits into FLOAT, INT into DOUBLE


def holds(wide: AtomicType, narrow: AtomicType) -> bool:
    """Return True if a type holds every value of another type, apart from text lengths and fractional seconds."""
    if wide.root == "DECIMAL":
        scale = wide.scale or 0
        if narrow.root == "DECIMAL":
            other = narrow.scale or 0
            return scale >= other and (wide.precision or 0) - scale >= (narrow.precision or 0) - other
        return (wide.precision or 0) - scale >= _DIGITS.get(narrow.root, 100)
    if wide.root == narrow.root or _family(wide.root) == _family(narrow.root) != "":
        return True
    if wide.root in _DIGITS and narrow.root in _DIGITS:
        return _DIGITS[wide.root] > _DIGITS[narrow.root]
    if wide.root in _EXACT_DIGITS and narrow.root in _DIGITS:
        return _EXACT_DIGITS[wide.root] >= _DIGITS[narrow.root]
    return (wide.root, narrow.root) == ("DOUBLE", "FLOAT")


def _family(root: str) -> str:
    if root in ("CHAR", "VARCHAR"):
        return "text"
    return "bytes" if root in ("BINARY", "VARBINARY", "BLOB") else ""


def keeps_order(old: DataType, new: DataType) -> bool:
    """Return True if casts to the new type are exact, and change neither order nor equality."""
    if with_nullable(old, True) == with_nullable(new, True):
        return True
    match old, new:
        case AtomicType(), AtomicType():
            return (
                holds(new, old)
                and (old.length or 0) <= (new.length or 0)
                and (old.root not in TIME_ROOTS or (old.precision or 0) <= (new.precision or 0))
            )
        case RowType(), RowType():
            types = {field.id: field.type for field in old.fields}
            return all(keeps_order(types[field.id], field.type) for field in new.fields if field.id in types)
        case ArrayType(), ArrayType():
            return keeps_order(old.element, new.element)
        case MapType(), MapType():
            return keeps_order(old.key, new.key) and keeps_order(old.value, new.value)
    return False
