"""The default of a column: the text in the schema as a value of the column's type."""

from functools import lru_cache
from typing import Final

import pyarrow as pa

from paimon_core.types.cast import cast_array
from paimon_core.types.datatype import AtomicType, DataField, with_nullable

_TEXT: Final = AtomicType("VARCHAR", True, 2147483647)


@lru_cache(maxsize=256)
def default_value(field: DataField) -> pa.Scalar:
    """Return the default of a column as a value of its type. REQUIRES: it has a default. Raises as `cast_array`."""
    return cast_array(pa.array([unquoted(field.default or "")], pa.string()), _TEXT, with_nullable(field.type, True))[0]


def unquoted(text: str) -> str:
    """Return a default without the quotes of a SQL literal, with which Paimon's connector for Spark stores it."""
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] == "'" else text
