"""Parquet files of every row that a table stores, with a flag for the rows that a merge keeps.

Spark reads them with its own source and a filter on the flag. No reader that decodes the files of the table can be
faster, so this bounds what masks can reach.
"""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from paimon_core import Table

KEPT = "kept"
"""The column that is true for rows that a merge keeps."""
_SEQUENCE = "_SEQUENCE_NUMBER"


def write(table: Table, folder: Path) -> list[str]:
    """Write a file for each data file of a table without partitions and deletes, in the same order of rows.

    Row groups have the rows of the data files. Keys must be integers. Return the paths.
    """
    keys = table.schema.primary_keys
    folder.mkdir(parents=True)
    written = []
    for split in table.scan().plan().splits:
        sources = [Path(table.path) / f"bucket-{split.bucket}" / file.file_name for file in split.files]
        found = [pq.read_table(source, columns=[*keys, _SEQUENCE]) for source in sources]
        kept = _kept([np.concatenate([part[name].to_numpy() for part in found]) for name in [*keys, _SEQUENCE]])
        ends = np.cumsum([part.num_rows for part in found])
        for source, flags in zip(sources, np.split(kept, ends[:-1]), strict=True):
            file = pq.ParquetFile(source)
            rows = file.read([field.name for field in table.schema.fields]).append_column(KEPT, pa.array(flags))
            target = str(folder / source.name)
            group = max(1, file.metadata.row_group(0).num_rows)
            pq.write_table(rows, target, row_group_size=group, compression="zstd", compression_level=1)
            written.append(target)
    return written


def _kept(columns: list[np.ndarray]) -> np.ndarray:
    """Return which rows are the newest of their key; the last column orders the rows of a key."""
    order = np.lexsort(columns[::-1])
    newest = np.zeros(len(order), bool)
    newest[-1:] = True
    for column in columns[:-1]:
        ordered = column[order]
        newest[:-1] |= ordered[1:] != ordered[:-1]
    kept = np.empty(len(order), bool)
    kept[order] = newest
    return kept
