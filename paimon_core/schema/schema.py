"""The schema of a table to be created."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from paimon_core.errors import InvalidInputError
from paimon_core.types.arrow import fields_from_arrow
from paimon_core.types.datatype import DataField


@dataclass(frozen=True, slots=True)
class Schema:
    """The columns, keys and options of a table to be created.

    ``fields`` is an Arrow schema, or Paimon fields, which get new ids on creation.

    Examples:
        >>> import pyarrow as pa
        >>> from paimon_core import FileSystemCatalog, Schema
        >>> columns = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("amount", pa.float64())])
        >>> schema = Schema(columns, primary_keys=["id"], options={"bucket": "4"})
        >>> FileSystemCatalog("/tmp/warehouse").create_table("shop.orders", schema)
        Table('/tmp/warehouse/shop.db/orders', no snapshot, schema 0)
    """

    fields: pa.Schema | Sequence[DataField]
    primary_keys: Sequence[str] = ()
    partition_keys: Sequence[str] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    comment: str | None = None

    @staticmethod
    def require(schema: object) -> "Schema":
        """Return the schema. Raises InvalidInputError for another object, such as a schema of Arrow."""
        if not isinstance(schema, Schema):
            raise InvalidInputError(
                f"the schema is of type {type(schema).__name__}: pass paimon_core.Schema(columns, primary_keys=[...])"
            )
        return schema

    @property
    def data_fields(self) -> tuple[DataField, ...]:
        """The columns as Paimon fields."""
        if isinstance(self.fields, pa.Schema):
            return fields_from_arrow(self.fields)
        return tuple(self.fields)
