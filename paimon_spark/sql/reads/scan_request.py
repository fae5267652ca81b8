"""The request of a scan of one table: the value from which every kind of scan is built."""

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
    """Columns, filters, limit, options and moment of a scan."""

    columns: StructType
    """The columns in the order of Spark, structs pruned to the fields that the query needs; metadata columns by name.
    A query that needs no column, such as a count, asks for the cheapest column of the table."""
    predicate: Predicate | None = None
    """True for every row that the query needs, and bound to the table with timestamps in microseconds
    (``FileStore.in_microseconds``). Of a condition on partition columns alone it is exact, and Spark does not evaluate
    such a condition again."""
    limit: int | None = None
    """This number of rows is enough, whichever rows they are; Spark cuts the rest. `None`: all rows are needed."""
    options: Mapping[str, str] = field(default_factory=dict)
    """The options of the read, by the names that the user wrote."""
    when: Mapping[str, Any] = field(default_factory=dict)
    """The moment, as ``Table.scan`` takes it: ``version`` or ``timestamp`` in milliseconds; empty: the newest."""

    @property
    def moment(self) -> Mapping[str, Any]:
        """The moment that `when` or an option names, as ``Table.scan`` takes it; empty: the newest.

        Raises InvalidInputError for two moments and for a `scan.mode` that needs one.
        """
        chosen = self._sorted_options[0]
        if chosen and self.when:
            raise InvalidInputError(
                f"{', '.join(chosen)}: an option and the statement each choose a moment: leave one of them out"
            )
        return self.when or chosen

    @property
    def other_options(self) -> Mapping[str, str]:
        """The options that do more than choose a moment."""
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
        """Return options of ``spark.read.format("paimon")`` with the filter and the limit of the query, as texts."""
        given = dict(options)
        if self.predicate is not None:
            text = str(self.predicate)
            given["filter"] = f"({given['filter']}) AND ({text})" if "filter" in given else text
        if self.limit is not None:
            given["limit"] = str(self.limit)
        return given
