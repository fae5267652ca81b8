"""Writes from ``foreachBatch`` that are done once."""

from collections.abc import Callable
from functools import partial

from pyspark.sql import DataFrame

from paimon_core.commit.idempotent import IdempotentCommits
from paimon_core.errors import InvalidInputError, NotFoundError
from paimon_spark.options import WriteRequest, write_request


def upsert_batch(path: str, app_id: str, **options: str) -> Callable[[DataFrame, int], None]:
    """For ``writeStream.foreachBatch(...)``: adds each batch to the table at `path`, and each of them once.

    Output mode update is served as well: into a table with a primary key changed rows are upserted. `app_id` is the
    name under which the batches are counted in the table. It belongs to one checkpoint: InvalidInputError where
    batches start anew, as they do with a new checkpoint. Over Connect Spark does not tell a batch which query it is of:
    there, where the table has batch 0 of `app_id` and no other, that of another checkpoint is taken for its repetition.
    `options` are those of a write.
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
        return  # the write makes it
    last = IdempotentCommits(table.store, user).last()
    if last is not None and batch_id < last:
        raise InvalidInputError(
            f"this is batch {batch_id} of {user!r}, but the table at {place.path} has its batches up to {last}: was "
            "the query started with a new checkpointLocation? Then give it another app_id, for its batches are others"
        )
