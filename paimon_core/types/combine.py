"""Batches as one: what pyarrow cannot concatenate is copied first."""

import numpy as np
import pyarrow as pa


def combined(rows: pa.Table) -> pa.Table:
    """Return the rows with one chunk in each column.

    Spark 4.1 hands over maps of lists without any item in a form in which pyarrow reads their lists, but fails to
    concatenate them (ArrowIndexError); ``take`` makes arrays that it can concatenate.
    """
    try:
        return rows.combine_chunks()
    except pa.lib.ArrowIndexError:
        copied = [batch.take(pa.array(np.arange(batch.num_rows))) for batch in rows.to_batches()]
        return pa.Table.from_batches(copied, rows.schema).combine_chunks()
