"""Record-level expiry: compactions drop expired rows.

A row of any kind is expired if `time + record-level.expire-time < now`, in whole seconds; a row without a time never
expires. A compaction drops expired rows before it merges. Reads of the table show every stored row.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from paimon_core.errors import InvalidInputError
from paimon_core.merge.normalized_keys import Column
from paimon_core.options.merge import RECORD_LEVEL_EXPIRE_TIME, RECORD_LEVEL_TIME_FIELD
from paimon_core.options.option import Options
from paimon_core.types.datatype import AtomicType, DataField

_MILLIS_FROM = 10**12  # a BIGINT this large counts milliseconds, not seconds
_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


@dataclass(frozen=True, slots=True)
class RecordLevelExpire:
    """The rule of expired rows: `column < cutoff`, in seconds since the epoch."""

    column: str
    cutoff: int

    @staticmethod
    def of(options: Options, fields: Sequence[DataField], now_millis: int) -> "RecordLevelExpire | None":
        """Return the rule that a table's options define; `None`: rows do not expire.

        Raises InvalidInputError for a missing column and for a column whose type is not a time.
        """
        age = options.value(RECORD_LEVEL_EXPIRE_TIME)
        if age is None:
            return None
        name = options.value(RECORD_LEVEL_TIME_FIELD)
        if name is None:
            raise InvalidInputError("option 'record-level.expire-time' needs 'record-level.time-field'")
        field = next((f for f in fields if f.name == name), None)
        if field is None:
            raise InvalidInputError(f"option 'record-level.time-field' names column {name!r}, which does not exist")
        roots = ("INT", "BIGINT", "TIMESTAMP", "TIMESTAMP_LTZ")
        if not isinstance(field.type, AtomicType) or field.type.root not in roots:
            raise InvalidInputError(
                f"option 'record-level.time-field' names {name!r} of type {field.type}: it must be one of "
                f"{', '.join(roots)}"
            )
        return RecordLevelExpire(name, now_millis // 1000 - int(age.total_seconds()))

    def without_expired(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows that are not expired; batches are never empty."""
        for batch in batches:
            past = pc.fill_null(pc.less(_seconds(batch.column(self.column)), self.cutoff), False)
            live = batch.filter(pc.invert(past)) if pc.any(past).as_py() else batch
            if live.num_rows:
                yield live

    def reaches(self, least: Any, kind: pa.DataType) -> bool:
        """Return True if a column with this smallest value holds an expired row.

        ``least``: an internal value; `None`: the column is all null. If the column mixes seconds and milliseconds, the
        smallest number is in seconds, because milliseconds are larger numbers.
        """
        return bool(pc.less(_seconds(pa.array([least], kind)), self.cutoff)[0].as_py())


def _seconds(times: Column) -> Column:
    """Return seconds since the epoch; fractions are cut off towards zero."""
    if pa.types.is_timestamp(times.type):
        return pc.divide(times.view(pa.int64()), _SECOND[times.type.unit])
    wide = times.cast(pa.int64())
    return pc.if_else(pc.greater_equal(wide, _MILLIS_FROM), pc.divide(wide, 1000), wide)
