"""The check of upserts whose rows lack columns of the table: those columns of the stored rows become NULL."""

from pyspark.sql.types import StructType

from paimon_core import Table
from paimon_core.errors import InvalidInputError, hide_secrets
from paimon_core.options import warn_once
from paimon_core.options.merge import MERGE_ENGINE
from paimon_spark.options import WriteRequest

MISSING_COLUMNS = "write.missing-columns"
"""The option for upserts whose rows lack columns: warn, null or fail."""


def check_missing_columns(table: Table, request: WriteRequest, schema: StructType) -> None:
    """Warn once per table of an upsert that sets columns to NULL because its rows lack them.

    Only tables with a primary key and merge engine ``deduplicate`` are affected: their rows are replaced as a whole.
    Rows with row kinds pass, because a delete needs only its key.

    Args:
        table: the table to write.
        request: the write; its ``missing_columns`` may forbid the upsert, or accept it without a warning.
        schema: the columns of the rows.

    Raises InvalidInputError if the request forbids it.
    """
    if request.missing_columns == "null" or not table.schema.primary_keys or request.row_kind_column is not None:
        return
    if table.schema.options.value(MERGE_ENGINE) != "deduplicate":
        return
    columns = {name.lower() for name in schema.names}
    missing = [f.name for f in table.schema.fields if f.name.lower() not in columns and f.default is None]
    if not missing:
        return
    shown = f"the rows lack the columns {', '.join(missing[:20])} of {hide_secrets(table.path)}, which become NULL"
    if request.missing_columns == "fail":
        raise InvalidInputError(
            f"{shown}: add the columns, or change only some columns with update, merge or 'merge-engine' = "
            "'partial-update'"
        )
    warn_once(
        f"{shown}, also in stored rows with the same key. To change only some columns use update, merge or "
        f"'merge-engine' = 'partial-update'; the option '{MISSING_COLUMNS}' = 'null' or 'fail' ends this warning"
    )
