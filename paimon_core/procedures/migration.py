"""Procedures that import files of other tools and other tables into a catalog, and that copy tables."""

import logging

from paimon_core.catalog.identifier import Identifier
from paimon_core.catalog.opening import open_catalog
from paimon_core.errors import InvalidInputError, PaimonError, UnsupportedError, hide_secrets
from paimon_core.format import DESCRIBED_FORMATS
from paimon_core.migration.migrate import SourceTable
from paimon_core.procedures.procedure import DONE, Call, Rows, procedure
from paimon_core.schema.partition_spec import partition_spec, partition_values
from paimon_core.snapshot.time_travel import TimeTravelArguments

_log = logging.getLogger(__name__)
_TABLES = ("hive", "spark")
"""Kinds of sources that are tables of the session's own catalog."""


@procedure(
    "add_files(table STRING, path STRING, [partition STRING], [move BOOLEAN])",
    "files BIGINT, rows BIGINT, skipped BIGINT",
)
def add_files(call: Call) -> Rows:
    """Add the Parquet, ORC or Avro files below a path to a table without rewriting them; partition is 'p=1,q=a'."""
    table, text = call.table(), call.text("partition")
    partition = None
    if text is not None:
        try:
            spec = partition_spec(text)
        except ValueError as error:
            raise InvalidInputError(f"argument 'partition' of add_files: {text!r} {error}") from None
        partition = partition_values(table.schema, spec, "argument 'partition' of add_files", table.path)
    added = table.add_files(call["path"], partition, move=bool(call["move"]))
    call.refresh()
    return [(added.files, added.rows, added.skipped)]


@procedure(
    "migrate_table(source_type STRING, table STRING, [options STRING], [parallelism INT], [target_table STRING], "
    "[delete_origin BOOLEAN])"
)
def migrate_table(call: Call) -> Rows:
    """Create a table from a directory of files ('parquet', 'orc', 'avro') or a table of Spark's catalog ('spark')."""
    kind = _source_type(call)
    call.refuse("parallelism", "files are copied eight at a time")
    source: str | SourceTable = call["table"]
    format = kind if kind in DESCRIBED_FORMATS else None
    if format is None:
        source = call.source_table(call["table"])
        target = call.identifier("table" if call.text("target_table") is None else "target_table")
    else:
        if call.text("target_table") is None:
            raise InvalidInputError(f"migrate_table of {kind} files needs the argument 'target_table': the new table")
        target = call.identifier("target_table")
    move = bool(call["delete_origin"])
    if move and format is None:
        raise UnsupportedError(
            f"delete_origin is not supported for a table of Spark's own catalog: check the new table, then drop "
            f"{call['table']!r} there"
        )
    call.catalog.migrate(source, target, format, move=move, options=call.options())
    return DONE


@procedure(
    "migrate_database(source_type STRING, database STRING, [options STRING], [parallelism INT])", "result STRING"
)
def migrate_database(call: Call) -> Rows:
    """Create tables from all tables of a database of Spark's own catalog ('spark'), which stays unchanged."""
    kind = _source_type(call)
    call.refuse("parallelism", "files are copied eight at a time")
    database = call["database"]
    if kind in DESCRIBED_FORMATS:
        raise InvalidInputError(f"migrate_database takes the source types {', '.join(_TABLES)}, not {kind!r}")
    names = call.source_tables(database)
    call.catalog.create_database(database, ignore_if_exists=True)
    failed = [name for name in names if not _migrated(call, database, name)]
    migrated = len(names) - len(failed)
    which = f": {', '.join(failed)}" if failed else ""
    return [(f"migrate database is finished, success cnt: {migrated} , failed cnt: {len(failed)}{which}",)]


def _migrated(call: Call, database: str, name: str) -> bool:
    """Migrate a table of Spark's own catalog; on an error, log it and return False."""
    try:
        source = call.source_table(f"`{database}`.`{name}`")
        call.catalog.migrate(source, Identifier(database, name), options=call.options())
    except PaimonError as error:
        _log.warning("table %s.%s is not migrated: %s", database, name, hide_secrets(str(error)))
        return False
    return True


@procedure(
    "clone(table STRING, target_table STRING, [target_warehouse STRING], [snapshot BIGINT], [tag STRING])",
    "snapshot_id BIGINT, source_snapshot_id BIGINT",
)
def clone(call: Call) -> Rows:
    """Copy a table byte by byte, at its newest or another snapshot, or bring an existing copy up to date."""
    at: TimeTravelArguments = {"snapshot_id": call["snapshot"] or None, "tag": call.text("tag") or None}
    source, catalog = call.table(), call.catalog
    warehouse = call.text("target_warehouse")
    target = catalog if warehouse is None else open_catalog(warehouse, catalog.storage_options, catalog.options)
    name = call.identifier("target_table")
    copy = catalog.clone_table(source, target, name, **at)
    copied, snapshot = source.snapshot(**at), copy.snapshot()
    return [(None if snapshot is None else snapshot.id, None if copied is None else copied.id)]


def _source_type(call: Call) -> str:
    kind = str(call["source_type"]).lower()
    if kind not in (*DESCRIBED_FORMATS, *_TABLES):
        types = ", ".join((*DESCRIBED_FORMATS, *_TABLES))
        raise InvalidInputError(
            f"argument 'source_type' of {call.procedure.name} is {kind!r}: it must be one of {types}"
        )
    return kind
