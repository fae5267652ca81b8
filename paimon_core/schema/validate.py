"""What a schema must keep to, when it is made and when it changes."""

from collections.abc import Mapping

from paimon_core.schema.schema import Schema
from paimon_core.schema.table_schema import TableSchema


def create(schema: Schema, now_millis: int) -> TableSchema:
    """The first version of a table's schema."""
    raise NotImplementedError


def validate(schema: TableSchema) -> None:
    """Refuse a schema that breaks a rule."""


def check_dynamic(schema: TableSchema, options: Mapping[str, str | None]) -> None:
    """Refuse dynamic options that do not fit the table."""
