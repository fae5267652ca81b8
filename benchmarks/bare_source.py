"""A Spark source and sink that have nothing to do: what remains is what Spark takes to pass rows to and from Python."""

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from benchmarks import rows

BATCH_ROWS = 32_768


class BareSource(DataSource):
    """``format("bare")``: ``rows`` rows in ``partitions`` parts, all columns of the benchmarks or ``columns``."""

    @classmethod
    def name(cls) -> str:
        """Return the name to use in ``format(...)``."""
        return "bare"

    def schema(self) -> StructType:
        """The columns of `benchmarks.rows`."""
        return from_arrow_schema(self._batch().schema)

    def reader(self, schema: StructType) -> DataSourceReader:
        """One batch, again and again."""
        return BareReader(self._batch(), int(self.options["rows"]), int(self.options["partitions"]))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        """Takes rows of any columns."""
        return BareWriter()

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:
        """Takes rows of any columns."""
        return BareStreamWriter()

    def _batch(self) -> pa.RecordBatch:
        columns = self.options.get("columns") or ",".join(rows.COLUMNS)
        return rows.make(BATCH_ROWS, "int", 0).select(columns.split(",")).combine_chunks().to_batches()[0]


class BareReader(DataSourceReader):
    """Hands out slices of one batch."""

    def __init__(self, batch: pa.RecordBatch, count: int, parts: int) -> None:
        self._batch, self._count, self._parts = batch, count, parts

    def partitions(self) -> list[InputPartition]:
        """The rows in equal parts, the first one with what is left over."""
        part, over = divmod(self._count, self._parts)
        return [InputPartition(part + (over if i == 0 else 0)) for i in range(self._parts)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the number of rows that the partition contains."""
        left = partition.value
        while left > 0:
            yield self._batch.slice(0, left)
            left -= self._batch.num_rows


class _Dropping:
    """Drops what comes."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Every batch is read to its end."""
        for _ in iterator:
            pass
        return WriterCommitMessage()


class BareWriter(_Dropping, DataSourceArrowWriter):
    """Drops the rows of a batch job."""


class BareStreamWriter(_Dropping, DataSourceStreamArrowWriter):
    """Drops the rows of a streaming query."""

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Nothing."""

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Nothing."""
