"""Record-level expiry: rows past their time are left out when files are rewritten.

Law: a row goes while it is read to be compacted, before it is merged, whatever its kind, if its time and
``record-level.expire-time`` lie before now, in whole seconds; without a time it stays. Reads of the table show every
row that is stored.
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
    """Rows whose ``column`` lies before ``cutoff``, in seconds since the epoch, are past their time."""

    column: str
    cutoff: int

    @staticmethod
    def of(options: Options, fields: Sequence[DataField], now_millis: int) -> "RecordLevelExpire | None":
        """What a table's options ask for; None where rows do not expire. InvalidInputError for a column that cannot
        say a time."""
        age = options.value(RECORD_LEVEL_EXPIRE_TIME)
        if age is None:
            return None
        name = options.value(RECORD_LEVEL_TIME_FIELD)
        if name is None:
            raise InvalidInputError("option 'record-level.expire-time' needs 'record-level.time-field'")
        found = next((field for field in fields if field.name == name), None)
        if found is None:
            raise InvalidInputError(f"option 'record-level.time-field' names column {name!r}, which does not exist")
        roots = ("INT", "BIGINT", "TIMESTAMP", "TIMESTAMP_LTZ")
        if not isinstance(found.type, AtomicType) or found.type.root not in roots:
            raise InvalidInputError(
                f"option 'record-level.time-field' names {name!r} of type {found.type}: it must be one of "
                f"{', '.join(roots)}"
            )
        return RecordLevelExpire(name, now_millis // 1000 - int(age.total_seconds()))

    def kept(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows that are not past their time; batches that all are, are left out."""
        for batch in batches:
            past = pc.fill_null(pc.less(_seconds(batch.column(self.column)), self.cutoff), False)
            left = batch.filter(pc.invert(past)) if pc.any(past).as_py() else batch
            if left.num_rows:
                yield left

    def reaches(self, least: Any, kind: pa.DataType) -> bool:
        """Whether a column whose smallest value is this (internal value; None: no value) holds a row past its time.

        The least of integers that count seconds and milliseconds is judged as what it is: milliseconds are larger.
        """
        return bool(pc.less(_seconds(pa.array([least], kind)), self.cutoff)[0].as_py())


def _seconds(times: Column) -> Column:
    """Seconds since the epoch; parts of seconds are cut off towards zero."""
    if pa.types.is_timestamp(times.type):
        return pc.divide(times.view(pa.int64()), _SECOND[times.type.unit])
    wide = times.cast(pa.int64())
    return pc.if_else(pc.greater_equal(wide, _MILLIS_FROM), pc.divide(wide, 1000), wide)
