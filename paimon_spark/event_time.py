"""The watermark of a DataFrame; Spark stores its delay in the metadata of the column that ``withWatermark`` names."""

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import StructType, TimestampNTZType, TimestampType

_DELAY = "spark.watermarkDelayMs"


@dataclass(frozen=True)
class EventTime:
    """A column of event times, and the time by which a row may be late (milliseconds)."""

    column: str
    delay_millis: int

    @staticmethod
    def of(schema: StructType) -> "EventTime | None":
        """Return the column of event times; `None`: there is none, or there are several."""
        found = [f for f in schema if _DELAY in f.metadata and isinstance(f.dataType, TimestampType | TimestampNTZType)]
        return EventTime(found[0].name, int(found[0].metadata[_DELAY])) if len(found) == 1 else None

    def watermark(self, rows: pa.RecordBatch) -> int | None:
        """Return the watermark (epoch ms) after these rows: no older row is expected. `None`: no row has a time."""
        newest = pc.max(pc.cast(rows.column(self.column), pa.timestamp("us"))).value
        return None if newest is None else newest // 1000 - self.delay_millis


def later(one: int | None, other: int | None) -> int | None:
    """Return the later of two watermarks; `None`: no watermark."""
    return max((w for w in (one, other) if w is not None), default=None)
