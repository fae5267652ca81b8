"""Idempotent writes from ``foreachBatch``."""

from collections.abc import Callable
from functools import partial

from pyspark.sql import DataFrame

from paimon_core.engine import IdempotentCommits
from paimon_core.errors import InvalidInputError, NotFoundError
from paimon_spark.options import WriteRequest, write_request


def upsert_batch(path: str, app_id: str, **options: str) -> Callable[[DataFrame, int], None]:
    """Return a function for ``writeStream.foreachBatch(...)`` that adds each batch to the table exactly once.

    Output mode update works too: a table with a primary key upserts the changed rows.

    Args:
        path: the directory of the table.
        app_id: the commit user under which the table counts the batches; use one per checkpoint. A query with a new
            checkpoint starts at batch 0 again, and gets InvalidInputError. Over Connect, Spark does not report the
            query of a batch: if the table has only batch 0 of `app_id`, batch 0 of another checkpoint counts as a
            repetition and is not written.
        options: write options.
    """
    write_options = {**options, "path": path, "txnAppId": app_id}
    return partial(_upsert, write_options, write_request({**write_options, "txnVersion": "0"}, ()))


def _upsert(options: dict[str, str], request: WriteRequest, batch: DataFrame, batch_id: int) -> None:
    _check_follows(request, batch_id)
    batch.write.format("paimon").options(**options, txnVersion=str(batch_id)).mode("append").save()


def _check_follows(request: WriteRequest, batch_id: int) -> None:
    """Raise InvalidInputError if the table already has a later batch of this name."""
    user = request.commit_user or ""
    try:
        table = request.address.open()
    except NotFoundError:
        return  # the write creates it
    last = IdempotentCommits(table.store, user).last()
    if last is not None and batch_id < last:
        raise InvalidInputError(
            f"this is batch {batch_id} of {user!r}, but the table at {table.path} already has batch {last}: if the "
            "query has a new checkpointLocation, use another app_id"
        )
