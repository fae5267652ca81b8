"""Writes from ``foreachBatch`` that take effect once."""

from collections.abc import Callable
from functools import partial

from pyspark.sql import DataFrame

from paimon_core.commit.idempotent import IdempotentCommits
from paimon_core.errors import InvalidInputError, NotFoundError
from paimon_spark.options import WriteRequest, write_request


def upsert_batch(path: str, app_id: str, **options: str) -> Callable[[DataFrame, int], None]:
    """Return a function for ``writeStream.foreachBatch(...)`` that adds each batch to the table exactly once.

    Output mode update works too: a table with a primary key upserts the changed rows.

    Args:
        path: directory of the table.
        app_id: the name under which the table counts the batches. It belongs to one checkpoint: a query with a new
            checkpoint starts at batch 0 again and gets InvalidInputError. Over Connect Spark does not say which query
            a batch belongs to. There, if the table has batch 0 of `app_id` and no other, batch 0 of another checkpoint
            is taken for its repetition and not written.
        options: those of a write.
    """
    given = {**options, "path": path, "txnAppId": app_id}
    request = write_request({**given, "txnVersion": "0"}, ())
    return partial(_upsert, given, request)


def _upsert(given: dict[str, str], request: WriteRequest, batch: DataFrame, batch_id: int) -> None:
    _check_follows(request, batch_id)
    batch.write.format("paimon").options(**given, txnVersion=str(batch_id)).mode("append").save()


def _check_follows(request: WriteRequest, batch_id: int) -> None:
    place, user = request.place, request.commit_user or ""
    try:
        table = place.open()
    except NotFoundError:
        return  # the write creates it
    last = IdempotentCommits(table.store, user).last()
    if last is not None and batch_id < last:
        raise InvalidInputError(
            f"this is batch {batch_id} of {user!r}, but the table at {place.path} has its batches up to {last}: was "
            "the query started with a new checkpointLocation? Then give it another app_id, for its batches are others"
        )
