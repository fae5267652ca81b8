"""The watermark of a DataFrame. Spark stores its delay in the metadata of the column given to ``withWatermark``."""

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import StructType, TimestampNTZType, TimestampType

_DELAY = "spark.watermarkDelayMs"


@dataclass(frozen=True)
class EventTime:
    """The event time column, and how late a row may arrive (milliseconds)."""

    column: str
    delay_millis: int

    @staticmethod
    def of(schema: StructType) -> "EventTime | None":
        """Return the event time column; `None` unless the schema has exactly one."""
        columns = [
            f for f in schema if _DELAY in f.metadata and isinstance(f.dataType, TimestampType | TimestampNTZType)
        ]
        return EventTime(columns[0].name, int(columns[0].metadata[_DELAY])) if len(columns) == 1 else None

    def watermark(self, rows: pa.RecordBatch) -> int | None:
        """Return the watermark (epoch ms) after these rows; `None`: all event times are NULL."""
        newest = pc.max(pc.cast(rows.column(self.column), pa.timestamp("us"))).value
        return None if newest is None else newest // 1000 - self.delay_millis


def later(first: int | None, second: int | None) -> int | None:
    """Return the later of two watermarks; `None`: no watermark."""
    return max((w for w in (first, second) if w is not None), default=None)
