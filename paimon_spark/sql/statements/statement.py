"""The interface of Paimon-specific statements, and their families."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pyspark.sql import SparkSession

from paimon_spark.sql.bridge.jvm import Jvm
from paimon_spark.sql.statements import tags
from paimon_spark.sql.statements.analyze import parse_analyze
from paimon_spark.sql.statements.copy_into import parse_copy
from paimon_spark.sql.statements.create_like import parse_like
from paimon_spark.sql.statements.drop_partitions import parse_drop_partitions
from paimon_spark.sql.statements.functions import (
    parse_create_function,
    parse_describe_function,
    parse_drop_function,
)
from paimon_spark.sql.statements.repair import parse_repair
from paimon_spark.sql.statements.show_create import parse_show_create
from paimon_spark.sql.statements.show_tables import parse_show_tables


class Statement(Protocol):
    """A parsed statement, which may run several times."""

    @property
    def title(self) -> str:
        """A line for EXPLAIN."""
        ...

    @property
    def columns(self) -> str:
        """The columns of the result, as DDL."""
        ...

    @property
    def table(self) -> tuple[str, ...]:
        """The parts of the table's name; empty: the statement names no table and belongs to the current catalog."""
        ...

    def run(self, jvm: Jvm, spark: SparkSession) -> Sequence[Sequence[Any]]:
        """Run the statement in a session and return its rows."""
        ...


@dataclass(frozen=True)
class Family:
    """Statements that start with the first of two words and contain the second.

    ``parse`` returns `None` for a text outside the family, and raises SyntaxMismatch for a text that starts like a
    statement of the family but continues differently.
    """

    keywords: tuple[str, str]
    parse: Callable[[str], Statement | None]


FAMILIES = (
    Family(("ALTER", "TAG"), tags.parse_alter),
    Family(("ALTER", "PARTITION"), parse_drop_partitions),
    Family(("MSCK", "REPAIR"), parse_repair),
    Family(("SHOW", "TAGS"), tags.parse_show),
    Family(("ANALYZE", "STATISTICS"), parse_analyze),
    Family(("COPY", "INTO"), parse_copy),
    Family(("CREATE", "LIKE"), parse_like),
    Family(("SHOW", "CREATE"), parse_show_create),
    Family(("SHOW", "EXTENDED"), parse_show_tables),
    Family(("CREATE", "FUNCTION"), parse_create_function),
    Family(("DROP", "FUNCTION"), parse_drop_function),
    Family(("DESC", "FUNCTION"), parse_describe_function),
)
