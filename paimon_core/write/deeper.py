"""Keys that deeper levels hold already, for engines whose first row stays: what is compacted above leaves them out.

Readers of such tables take the rows of each level as they are, without merging levels. So the deeper files are read
beside a compaction, keys only, and a row that loses to one of theirs is left out.
"""

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from paimon_core.lsm.sorted_run import SortedRun
from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.read.sections import ReadFile, file_reader
from paimon_core.store.file_store import FileStore
from paimon_core.types.arrow import arrow_schema
from paimon_core.types.system_fields import SEQUENCE_NUMBER, VALUE_KIND

_MARK = "_DEEPER"


class Deeper:
    """Files below the output of a compaction of one bucket; only their keys, numbers and kinds are read."""

    def __init__(self, store: FileStore, partition: bytes, bucket: int, files: Sequence[DataFileMeta]) -> None:
        schema = store.schema
        keys = tuple(schema.field(name) for name in schema.trimmed_primary_keys)
        self._schema = arrow_schema((*schema.fields, SEQUENCE_NUMBER, VALUE_KIND))
        self._names = {file.file_name for file in files}
        self._keys_of = file_reader(store, partition, bucket, (*keys, SEQUENCE_NUMBER, VALUE_KIND))

    def holds(self, file: DataFileMeta) -> bool:
        """Whether this is one of the files below."""
        return file.file_name in self._names

    def only(self, section: Sequence[SortedRun]) -> bool:
        """Whether a section has files from below and no others."""
        return all(self.holds(file) for run in section for file in run.files)

    def beside(self, read: ReadFile) -> ReadFile:
        """Reads the files from below as well, and marks where each row comes from."""

        def marked(file: DataFileMeta, together: int) -> Iterator[pa.RecordBatch]:
            deeper = self.holds(file)
            for batch in (self._keys_of if deeper else read)(file, together):
                rows = self._widened(batch) if deeper else batch
                mark = pa.repeat(pa.scalar(deeper), batch.num_rows)
                yield pa.RecordBatch.from_arrays([*rows.columns, mark], names=[*rows.schema.names, _MARK])

        return marked

    def taken_out(self, rows: pa.Table) -> pa.Table:
        """The rows that are to be written: those not from below, which are there already."""
        return rows.filter(pc.invert(rows.column(_MARK))).drop_columns([_MARK])

    def _widened(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        there = set(batch.schema.names)
        columns = [batch.column(f.name) if f.name in there else pa.nulls(batch.num_rows, f.type) for f in self._schema]
        return pa.RecordBatch.from_arrays(columns, names=self._schema.names)
