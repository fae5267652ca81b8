"""The summary of a data file's rows in its metadata: counts, keys, sequence numbers, statistics."""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from paimon_core.datafile.spec import KEY_STATS, DataFileSpec
from paimon_core.format.stats import ColumnBounds, StatsCollector, StatsMode, parse_mode
from paimon_core.manifest.stats import EMPTY_STATS, SimpleStats, stats_schema
from paimon_core.row.binary_row import EMPTY_ROW, serialize
from paimon_core.types.arrow import arrow_schema
from paimon_core.types.datatype import DataField
from paimon_core.types.row_kind import is_retract
from paimon_core.types.system_fields import ROW_SEQUENCE, VALUE_KIND


class RowSummary:
    """A summary of rows, which are added batch by batch in file order.

    ``rows``: number of rows so far; ``retracts``: number of these rows that delete. ``min_sequence`` and
    ``max_sequence`` are 0 if the rows store no sequence numbers.
    """

    def __init__(self, spec: DataFileSpec) -> None:
        self._spec = spec
        self._values = StatsCollector(spec.value_fields, spec.modes)
        self._keys = StatsCollector(spec.key_fields, [parse_mode(KEY_STATS)] * len(spec.key_fields))
        self._first: pa.Table | None = None
        self._last: pa.Table | None = None
        self.rows = self.retracts = self.min_sequence = self.max_sequence = 0

    def add(self, rows: pa.Table) -> None:
        """Add the next rows, with the columns that `DataFileSpec.sources` names."""
        spec = self._spec
        if spec.key_fields:
            self._track_keyed(rows, [f.name for f in spec.key_fields])
        elif spec.stores_tracking:
            self._track_sequence(rows)
        self._values.update(rows)
        self.rows += rows.num_rows

    @property
    def min_key(self) -> bytes:
        """The key of the first row; an empty row if there are no keys."""
        return _key_row(self._first, self._spec.key_fields)

    @property
    def max_key(self) -> bytes:
        """The key of the last row; an empty row if there are no keys."""
        return _key_row(self._last, self._spec.key_fields)

    @property
    def key_stats(self) -> SimpleStats:
        """The statistics of the key columns."""
        fields = self._spec.key_fields
        return simple_stats(self._keys.result(), fields, (), dense=False)[0] if fields else EMPTY_STATS

    @property
    def value_stats(self) -> tuple[SimpleStats, tuple[str, ...] | None]:
        """The statistics of the value columns, and the names of their columns; `None`: all columns."""
        spec = self._spec
        stats, columns = simple_stats(self._values.result(), spec.value_fields, spec.modes, dense=spec.dense)
        if columns is None and spec.stores_tracking:
            columns = tuple(f.name for f in spec.value_fields)
        return stats, columns

    def _track_sequence(self, rows: pa.Table) -> None:
        sequence = pc.fill_null(rows.column(ROW_SEQUENCE.name), 0).to_numpy()  # the commit numbers changed rows
        low, high = int(sequence.min()), int(sequence.max())
        self.min_sequence = min(low, self.min_sequence) if self.rows else low
        self.max_sequence = max(high, self.max_sequence) if self.rows else high

    def _track_keyed(self, rows: pa.Table, key_names: Sequence[str]) -> None:
        self._track_sequence(rows)
        if self._first is None:
            self._first = rows.select(key_names).slice(0, 1)
        self._last = rows.select(key_names).slice(rows.num_rows - 1, 1)
        self.retracts += int(is_retract(rows.column(VALUE_KIND.name).to_numpy()).sum())
        self._keys.update(rows.select(key_names))


def _key_row(row: pa.Table | None, fields: Sequence[DataField]) -> bytes:
    if row is None:
        return EMPTY_ROW
    values = tuple(_internal(row.column(f.name)) for f in fields)
    return serialize(values, arrow_schema(fields))


def _internal(column: pa.ChunkedArray) -> object:
    """Return the single value of a column as an internal value: times are integers."""
    kind = column.type
    if pa.types.is_date32(kind) or pa.types.is_time32(kind):
        return column.cast(pa.int32())[0].as_py()
    return (column.cast(pa.int64()) if pa.types.is_timestamp(kind) else column)[0].as_py()


def simple_stats(
    columns: Sequence[ColumnBounds], fields: Sequence[DataField], modes: Sequence[StatsMode], *, dense: bool
) -> tuple[SimpleStats, tuple[str, ...] | None]:
    """Return the stored statistics of a file, and the names of their columns; `None`: all ``fields``.

    Args:
        columns: the statistics of each field.
        fields: the columns of the file.
        modes: the statistics mode of each field; empty: all fields have statistics.
        dense: leave out columns with mode ``none``.
    """
    bounds = list(zip(fields, columns, strict=True))
    names = None
    if dense:
        chosen = [i for i, mode in enumerate(modes) if mode.kind != "none"]
        if len(chosen) < len(fields):
            bounds = [bounds[i] for i in chosen]
            names = tuple(fields[i].name for i in chosen)
            if not chosen:
                return EMPTY_STATS, ()
    elif modes and all(mode.kind == "none" for mode in modes):
        return EMPTY_STATS, ()  # readers fail if bounds are declared but missing
    schema = stats_schema([f for f, _ in bounds])
    return SimpleStats(
        serialize(tuple(b.min for _, b in bounds), schema),
        serialize(tuple(b.max for _, b in bounds), schema),
        tuple(b.null_count for _, b in bounds),
    ), names
