"""The watermark of a DataFrame. Spark hands it on in the metadata of the column that ``withWatermark`` names."""

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import StructType, TimestampNTZType, TimestampType

_DELAY = "spark.watermarkDelayMs"


@dataclass(frozen=True)
class EventTime:
    """A column of times, and how much later than others a row may come (ms)."""

    column: str
    delay_millis: int

    @staticmethod
    def of(schema: StructType) -> "EventTime | None":
        """The column of event times; None where there is none, or several of which none speaks for all rows."""
        found = [f for f in schema if _DELAY in f.metadata and isinstance(f.dataType, TimestampType | TimestampNTZType)]
        return EventTime(found[0].name, int(found[0].metadata[_DELAY])) if len(found) == 1 else None

    def watermark(self, rows: pa.RecordBatch) -> int | None:
        """No row of an earlier time than this (epoch ms) is awaited after these; None where none has a time."""
        newest = pc.max(pc.cast(rows.column(self.column), pa.timestamp("us"))).value
        return None if newest is None else newest // 1000 - self.delay_millis


def later(one: int | None, other: int | None) -> int | None:
    """The later of two watermarks, of which either may be missing."""
    return max((w for w in (one, other) if w is not None), default=None)
