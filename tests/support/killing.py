"""The format "killing": the format "paimon", whose sink kills a process at a call of its FileIO, once.

The option ``kill`` is ``<process>:<call>:<mark>``: ``task`` and ``commit`` are the Python processes that write a batch
and commit it, ``driver`` is the JVM, killed while the batch is committed. Calls are counted from 0 in each process;
with ``+`` behind the number the call is carried out first. The file ``mark`` is made by who kills, and saves others.
"""

import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from paimon_core.fileio.fileio import FileIO
from paimon_core.table import Table
from paimon_spark.datasource import PaimonDataSource
from paimon_spark.options import WriteRequest, stream_write_request
from paimon_spark.stream_writer import BatchWritten, PaimonStreamWriter
from paimon_spark.writer import table_to_write
from tests.support.faulty_io import FaultyIO

T = TypeVar("T")


class KillingDataSource(PaimonDataSource):
    """Writes streams only."""

    @classmethod
    def name(cls) -> str:
        return "killing"

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        options = {str(key): str(value) for key, value in self.options.items()}
        who, at, mark = options.pop("kill").split(":", 2)
        request = stream_write_request(options, schema.names)
        return _KillingWriter(table_to_write(request, schema), request, schema, overwrite, (who, at, mark))


class _KillingWriter(PaimonStreamWriter):
    def __init__(
        self, table: Table, request: WriteRequest, schema: StructType, overwrite: bool, kill: tuple[str, str, str]
    ) -> None:
        super().__init__(table, request, schema, overwrite)
        self._kill = kill

    def write(self, iterator: Iterator[pa.RecordBatch]) -> BatchWritten:
        self._arm("task")
        return super().write(iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        self._arm("commit", "driver")
        super().commit(messages, batchId)

    def _arm(self, *processes: str) -> None:
        who, at, mark = self._kill
        if who in processes and not Path(mark).exists():
            store = self._table.store
            io = _KillingIO(store.io, int(at.rstrip("+")), at.endswith("+"), who == "driver", mark)
            self._table = self._job.table = Table(replace(store, io=io))
            self._job._write = replace(self._job._write, store=self._table.store)


class _KillingIO(FaultyIO):
    def __init__(self, inner: FileIO, at: int, after: bool, driver: bool, mark: str) -> None:
        super().__init__(inner)
        self._kill_at, self._after, self._driver, self._mark = at, after, driver, mark

    def _call(self, verb: str, path: str, act: Callable[[], T], half: Callable[[], object] | None = None) -> T:
        with self._lock:
            number = len(self.log)
            self.log.append((verb, path))
        if number == self._kill_at:
            if self._after:
                act()
            self._strike()
        return act()

    def _strike(self) -> None:
        try:
            os.close(os.open(self._mark, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return
        if self._driver:
            os.kill(_jvm(os.getpid()), signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)


def _jvm(process: int) -> int:
    """The nearest ancestor that is a JVM."""
    while process > 1:
        fields: Any = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)
        if fields[0].endswith("(java"):
            return process
        process = int(fields[1].split()[1])
    raise RuntimeError("no JVM is above this process")
