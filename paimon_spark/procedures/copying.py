"""The procedure that copies the newest rows of a table into a new one."""

from typing import Any

from paimon_core import Schema
from paimon_core.engine import DONE, Call, Rows, procedure
from paimon_spark.bucket_shuffle import clustered
from paimon_spark.options import catalog_option
from paimon_spark.procedures.session_call import SessionCall


@procedure("copy(source_table STRING, target_table STRING, [where STRING])")
def copy(call: Call) -> Rows:
    """Create a table with the columns and options of another, and copy the newest rows that match `where`."""
    assert isinstance(call, SessionCall)
    source = call.table("source_table")
    schema = source.schema
    stored = source.store.schemas.get(schema.id)
    storage = {key: str(value) for key, value in call.catalog.storage_options.items()}
    read = {**storage, **catalog_option(source), "path": source.path, "branch": source.store.branch}
    rows = call.spark.read.format("paimon").options(**read).load()
    where = call.text("where")
    if where is not None:
        rows = rows.where(where)
    target = call.catalog.create_table(
        call.identifier("target_table"),
        Schema(stored.fields, stored.primary_keys, stored.partition_keys, dict(stored.options), stored.comment),
    )
    write: dict[str, Any] = {**storage, **catalog_option(target), "path": target.path}
    try:
        rows.transform(clustered(**write)).write.format("paimon").mode("append").options(**write).save()
    except BaseException:
        call.catalog.drop_table(call.identifier("target_table"), ignore_if_not_exists=True)
        raise
    return DONE
