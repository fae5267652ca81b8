"""Check that the file indexes of a data file are readable and find the values that the file holds."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_core.datafile.indexes import index_names, index_sizes, indexed_rows
from paimon_core.errors import CorruptedError
from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.manifest.partition_stats import internal_values
from paimon_core.options.scan import FILE_INDEX_READ_ENABLED
from paimon_core.predicate.expr import Leaf
from paimon_core.store.expired import is_missing
from paimon_core.store.file_store import FileStore

_PROBES = 8  # values of each column that are searched for
_FIRST_OF_BATCH = 2


@dataclass(slots=True)
class IndexContent:
    """The check of the indexes of one data file: `add` its batches in order; `faults` then yields the faults.

    The check searches for NULL and for a few values of each column, spread over the batches. An index of a map key is
    only read. ``store``: the store with the schema of the file; ``path``: the path of the data file.
    """

    store: FileStore
    path: str
    meta: DataFileMeta
    unreadable: str | None = None
    _columns: list[str] = field(default_factory=list)
    _probes: dict[str, list[tuple[int, Any]]] = field(default_factory=dict)  # position in the file, value
    _rows: int = 0

    def __post_init__(self) -> None:
        self.store = self.store.with_options({FILE_INDEX_READ_ENABLED.key: "true"})
        try:
            self._columns = list(index_sizes(self.store, self.path, self.meta)[1])
        except CorruptedError as error:
            self.unreadable = None if is_missing(error) else str(error)

    @property
    def path_of_index(self) -> str:
        """The path of the index file, or of the data file if the index is embedded in its metadata."""
        names = [] if self.meta.embedded_index is not None else index_names(self.meta)
        return f"{self.path.rpartition('/')[0]}/{names[0]}" if names else self.path

    def add(self, batch: pa.RecordBatch) -> None:
        """Choose values of a batch to search for."""
        read = set(batch.schema.names)
        for name in self._columns:
            if name not in read or pa.types.is_nested(batch.schema.field(name).type):
                continue
            column, probes = batch.column(name), self._probes.setdefault(name, [])
            positions = pc.indices_nonzero(column.is_valid()).to_numpy()[:_FIRST_OF_BATCH]
            positions = np.append(positions, pc.indices_nonzero(column.is_null()).to_numpy()[:1])
            positions = positions[: max(0, _PROBES - len(probes))]
            values = internal_values(column.take(pa.array(positions, pa.int64())))
            candidates = zip((positions + self._rows).tolist(), values, strict=True)
            probes += [(position, value) for position, value in candidates if value == value]  # NaN equals nothing
        self._rows += batch.num_rows

    def faults(self) -> Iterator[tuple[str, str]]:
        """Yield the message and the kind of each fault."""
        if self.unreadable is not None:
            yield self.unreadable, "unreadable-file-index"
        for name, probes in self._probes.items():
            for position, value in probes:
                test = Leaf("is null", name) if value is None else Leaf("=", name, (value,))
                try:
                    row_numbers = indexed_rows(self.store, self.path, self.meta, test)
                except CorruptedError as error:
                    yield str(error), "unreadable-file-index"
                    return
                if row_numbers is False or (row_numbers is not True and not row_numbers[position]):
                    message = f"its index of column {name} does not find {value!r}, the value in row {position}"
                    yield message, "wrong-file-index"
                    break
