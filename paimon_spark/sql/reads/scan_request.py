"""The request for a scan of one table; every kind of scan is built from it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql.types import StructType

from paimon_core.engine import Predicate
from paimon_core.errors import InvalidInputError
from paimon_spark.option_names import canonical
from paimon_spark.options import is_about_changes, pop_time_travel

_OPTION_OF = {"version": "scan.version", "timestamp": "scan.timestamp-millis"}


@dataclass(frozen=True)
class ScanRequest:
    """The columns, filter, limit, options and time travel of a scan."""

    columns: StructType
    """The columns in Spark's order, with structs pruned to the fields that the query needs; metadata columns by name.
    A query that needs no column, such as a count, reads the cheapest column of the table."""
    predicate: Predicate | None = None
    """A predicate that accepts every row the query needs, bound to the table with timestamps in microseconds
    (``FileStore.in_microseconds``). For a condition on partition columns only it is exact, and Spark does not evaluate
    the condition again."""
    limit: int | None = None
    """The number of rows that suffices, in any order; Spark drops surplus rows. `None`: all rows are needed."""
    options: Mapping[str, str] = field(default_factory=dict)
    """The read options, under the names that the user wrote."""
    when: Mapping[str, Any] = field(default_factory=dict)
    """Time travel arguments of ``Table.scan``: ``version``, or ``timestamp`` (epoch ms); empty: the newest snapshot."""

    @property
    def time_travel(self) -> Mapping[str, Any]:
        """The time travel argument of ``Table.scan``, from `when` or an option; empty: the newest snapshot.

        Raises InvalidInputError for two arguments, and for a `scan.mode` without the argument that it requires.
        """
        chosen = self._sorted_options[0]
        if chosen and self.when:
            raise InvalidInputError(
                f"{', '.join(chosen)}: an option and the statement both choose a snapshot: leave out one of them"
            )
        return self.when or chosen

    @property
    def other_options(self) -> Mapping[str, str]:
        """The options that do more than choose a snapshot."""
        return self._sorted_options[1]

    @property
    def _sorted_options(self) -> tuple[Mapping[str, Any], Mapping[str, str]]:
        named = canonical(self.options)
        if is_about_changes(named):
            return {}, named
        return pop_time_travel(named), named

    def source_options(self) -> dict[str, str]:
        """Return the options of the Python data source for the same snapshot, without the filter and the limit."""
        return {_OPTION_OF[key]: str(value) for key, value in self.when.items()} | dict(self.options)

    def with_filter_texts(self, options: Mapping[str, str]) -> dict[str, str]:
        """Return options of ``spark.read.format("paimon")``, with filter and limit of the query added as texts."""
        extended = dict(options)
        if self.predicate is not None:
            text = str(self.predicate)
            extended["filter"] = f"({extended['filter']}) AND ({text})" if "filter" in extended else text
        if self.limit is not None:
            extended["limit"] = str(self.limit)
        return extended
