"""The table functions ``paimon_incremental_query``, ``..._between_timestamp`` and ``paimon_incremental_to_auto_tag``.

Between two snapshots they return the rows that commits inserted or updated, as the option ``incremental-between`` does.
Between two tags they return the rows of the second tag that the first one does not have.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from pyspark.sql import SparkSession

from paimon_core.catalog.identifier import split_parts
from paimon_core.errors import InvalidInputError, NotFoundError, OutOfRangeError, UnsupportedError
from paimon_core.snapshot.tags import Tag
from paimon_core.snapshot.time_travel import epoch_millis
from paimon_core.table import Table
from paimon_spark.sql.jvm import Jvm

BETWEEN = "incremental-between"
_AUTO_TAG = re.compile(r"\d{4}(-?)\d{2}\1\d{2}( \d{2})?")
_Ends = tuple[int, int] | tuple[str, str]
"""Two snapshots, or two tags: the changes after the first through the second."""


def install_table_functions(jvm: Jvm) -> None:
    """Let the parser's installation add the table functions to sessions."""
    names = jvm.array("java.lang.String", sorted(_FUNCTIONS))
    jvm.bridge.PaimonFunctions.answerWith(jvm.function(IncrementalFunction(jvm)), names)


@dataclass(frozen=True)
class IncrementalFunction:
    """The answer to what ``PaimonTableFunction`` asks."""

    jvm: Jvm

    def changes(self, name: str, arguments: Any) -> Any:
        """Return the table's name with the options of a read, or with two tags, as a Java array."""
        values, usage = list(arguments), _FUNCTIONS[name]
        shown = f"{name}({', '.join(usage.parameters)})"
        if len(values) != len(usage.parameters) or any(value is None for value in values):
            raise InvalidInputError(f"{name} got {len(values)} arguments, or a NULL: it is {shown}")
        if not isinstance(values[0], str):
            raise InvalidInputError(f"{name}: {values[0]!r} is no name of a table: it is {shown}")
        spark, parts = self.jvm.active_session(), split_parts(values[0])
        table: Table = self.jvm.table(spark, parts, name)
        try:
            ends = usage.ends(table, [str(value) for value in values[1:]], spark)
        except InvalidInputError as error:
            raise InvalidInputError(f"{name}: {error}") from None
        found = [self.jvm.list(parts), None, *ends]
        if isinstance(ends[0], int):
            options = {BETWEEN: f"{ends[0]},{ends[1]}", "read.ignore-deletes": "true"}
            found = [self.jvm.list(parts), self.jvm.map(options), None, None]
        return self.jvm.array("java.lang.Object", found)


def _query(table: Table, given: Sequence[str], spark: SparkSession) -> _Ends:
    """Return the snapshots or the tags of a call; a text of digits is a tag if there is one of this name."""
    names = [text.strip() for text in given]
    tags = [table.store.tags.find(name) for name in names]
    if tags[0] is not None and tags[1] is not None:
        return _between_tags(table, tags[0], tags[1])
    unknown = next((n for n, tag in zip(names, tags, strict=True) if tag is None and not n.isdecimal()), None)
    if unknown is not None:
        raise NotFoundError(
            f"{unknown!r} is neither a snapshot nor a tag of {table.path}: {table.store.tags.summary()}"
        )
    if not all(name.isdecimal() for name in names):
        raise InvalidInputError(
            f"{names[0]!r} and {names[1]!r} are a tag and a snapshot: give two tags or two snapshots"
        )
    first, last = map(int, names)
    known = table.store.snapshots.ids()
    low, high = (known[0] - 1, known[-1]) if known else (0, 0)
    if first > last:
        raise InvalidInputError(f"the first snapshot, {first}, is after the last one, {last}")
    if not low <= first <= last <= high:
        raise OutOfRangeError(
            f"{table.path} has no changes from {first} to {last}: there are those from {low} to {high}"
        )
    return first, last


def _between_times(table: Table, given: Sequence[str], spark: SparkSession) -> _Ends:
    """Return the newest snapshots at two times; times without a snapshot between them give no changes."""
    zone = ZoneInfo(str(spark.conf.get("spark.sql.session.timeZone")))
    start, end = (_millis(text, zone) for text in given)
    if start > end:
        raise InvalidInputError(f"the first time, {given[0]}, is after the second one, {given[1]}")
    snapshots = table.store.snapshots
    first, last = snapshots.at_or_before(start), snapshots.at_or_before(end)
    before = (snapshots.earliest_id() or 1) - 1
    if last is None:
        newest = snapshots.latest_id() or 0
        return newest, newest  # nothing is between a snapshot and itself
    return (before if first is None else first.id), last.id


def _millis(text: str, zone: ZoneInfo) -> int:
    """Return the epoch milliseconds of a number or of a time in the session's zone."""
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        return epoch_millis(text)
    if text.strip().isdecimal():  # eight digits are a date, too
        return int(text)
    return epoch_millis(moment if moment.tzinfo is not None else moment.replace(tzinfo=zone))


def _to_auto_tag(table: Table, given: Sequence[str], spark: SparkSession) -> _Ends:
    """Return the automatic tag before the given one, and this; without one of them there are no changes."""
    name = given[0].strip()
    shape = _AUTO_TAG.fullmatch(name)
    if shape is None:
        raise InvalidInputError(f"{name!r} is no name of an automatic tag, such as '2026-01-31' or '2026-01-31 12'")
    every = {tag.name: tag for tag in table.store.tags.list()}
    same = [(m, n) for n in sorted(every) if (m := _AUTO_TAG.fullmatch(n)) and m[1] == shape[1]]
    before = [n for m, n in same if n < name and (m[2] is None) == (shape[2] is None)]
    if name not in every or not before:
        newest = table.store.snapshots.latest_id() or 0
        return newest, newest
    return _between_tags(table, every[before[-1]], every[name])


def _between_tags(table: Table, first: Tag, last: Tag) -> _Ends:
    """Return the names of two tags. UnsupportedError if they have other columns, which cannot be compared."""
    columns = [
        [(f.id, f.name) for f in table.store.at_schema(tag.snapshot.schema_id).schema.fields] for tag in (first, last)
    ]
    if columns[0] != columns[1]:
        raise UnsupportedError(
            f"the columns of {table.path} changed between the tags {first.name!r} and {last.name!r}: compare the "
            "tables of both tags, VERSION AS OF, column by column"
        )
    return first.name, last.name


@dataclass(frozen=True)
class _Usage:
    parameters: tuple[str, ...]
    ends: Callable[[Table, Sequence[str], SparkSession], _Ends]


_FUNCTIONS = {
    "paimon_incremental_query": _Usage(("table", "start", "end"), _query),
    "paimon_incremental_between_timestamp": _Usage(("table", "start_time", "end_time"), _between_times),
    "paimon_incremental_to_auto_tag": _Usage(("table", "tag"), _to_auto_tag),
}
