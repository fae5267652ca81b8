"""Concatenation of tables, and of a table's chunks, including arrays that pyarrow cannot concatenate as they are."""

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa


def combined(rows: pa.Table) -> pa.Table:
    """Return the rows with one chunk in each column.

    Spark 4.1 passes maps of empty lists in a form that pyarrow can read but not concatenate (ArrowIndexError). ``take``
    copies them to arrays that it can concatenate.
    """
    try:
        return rows.combine_chunks()
    except pa.lib.ArrowIndexError:
        copied = [batch.take(pa.array(np.arange(batch.num_rows))) for batch in rows.to_batches()]
        return pa.Table.from_batches(copied, rows.schema).combine_chunks()


def gathered(tables: Iterable[pa.Table], size: int) -> Iterator[pa.Table]:
    """Yield the same rows in tables of at least ``size`` bytes, without copying rows. The last table may be smaller."""
    parts: list[pa.Table] = []
    part_bytes = 0
    for table in tables:
        parts.append(table)
        part_bytes += table.nbytes
        if part_bytes >= size:
            yield pa.concat_tables(parts)
            parts, part_bytes = [], 0
    if parts:
        yield pa.concat_tables(parts)
