"""The kinds of rows that a caller may write: Arrow tables, batches and readers, and frames that become tables."""

from typing import Any, TypeAlias

import pyarrow as pa

from paimon_core.errors import InvalidInputError

Data: TypeAlias = pa.Table | pa.RecordBatch | pa.RecordBatchReader
Rows: TypeAlias = Any
"""`Data`, a pandas DataFrame, or a frame of another library that has ``__arrow_c_stream__``."""


def arrow_data(rows: Rows) -> Data:
    """Return rows as Arrow data; a frame becomes a table, which needs memory for all rows.

    In a pandas DataFrame NaN, NaT and None are NULL, as everywhere in pandas; an index with names becomes columns.
    Raises InvalidInputError for values that are no rows, and for frames that Arrow cannot hold.
    """
    if isinstance(rows, (pa.Table, pa.RecordBatch, pa.RecordBatchReader)):
        return rows
    try:
        if type(rows).__module__.split(".")[0] == "pandas" and hasattr(rows, "columns"):
            named = all(name is not None for name in rows.index.names)
            return pa.Table.from_pandas(rows, preserve_index=named).replace_schema_metadata()
        if hasattr(rows, "__arrow_c_stream__"):
            return pa.table(rows)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, ValueError) as error:
        raise InvalidInputError(f"the frame cannot become an Arrow table: {error}") from error
    raise InvalidInputError(
        f"rows are a pyarrow Table, RecordBatch or RecordBatchReader, or a DataFrame, not {type(rows).__name__}: "
        "pa.Table.from_pylist() takes a list of dicts"
    )
