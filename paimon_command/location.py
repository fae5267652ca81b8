"""Open the table that the argument TABLE and the options of a call name."""

from collections.abc import Mapping

import click

from paimon_core import Catalog, SystemTable, Table, open_catalog
from paimon_core.engine import AnyTable, open_any, read_only, scheme_of
from paimon_core.options import check_known, is_known


def is_path(text: str) -> bool:
    """Return True for a path or URL, False for a name in a warehouse."""
    return "/" in text or text.startswith(".")


def open_table(text: str, warehouse: str | None, given: Mapping[str, str]) -> Table:
    """Return a table; arguments and errors as for `open_any_table`. Raises UnsupportedError for a system table."""
    table = open_any_table(text, warehouse, given)
    if isinstance(table, SystemTable):
        raise read_only(table.location)
    return table


def open_any_table(text: str, warehouse: str | None, given: Mapping[str, str]) -> AnyTable:
    """Return a table or a system table by its path, or by its name in a warehouse.

    Args:
        text: a path or name such as ``/warehouse/db.db/t``, ``s3://bucket/t$files`` or ``db.t``.
        warehouse: the directory of the databases, for a name; `None` if it is not set.
        given: options of the table and of its storage.

    Raises UsageError for a name without a warehouse, NotFoundError for a missing table.
    """
    if is_path(text):
        options, storage = _by_kind(given, text)
        return open_any(text, storage, options)
    options, storage = _by_kind(given, warehouse)
    if warehouse is None:
        raise click.UsageError(
            f"{text!r} is a name, and names need --warehouse or the variable PAIMON_WAREHOUSE; a path has a slash, "
            f"such as './{text}'"
        )
    return open_catalog(warehouse, storage).any_table(text, options)


def catalog_of(warehouse: str | None, given: Mapping[str, str]) -> Catalog:
    """Return the catalog of a directory. Raises UsageError for `None`."""
    if warehouse is None:
        raise click.UsageError(
            "the warehouse is not set: pass a directory or --warehouse, or set the variable PAIMON_WAREHOUSE"
        )
    return open_catalog(warehouse, _by_kind(given, warehouse)[1])


def storage_options(given: Mapping[str, str], path: str) -> dict[str, str]:
    """Return the options that belong to the storage of a path."""
    return _by_kind(given, path)[1]


def _by_kind(given: Mapping[str, str], path: str | None) -> tuple[dict[str, str], dict[str, str]]:
    """Return the table options and the storage options; a local disk has no options, so unknown names are refused."""
    options = {key: value for key, value in given.items() if is_known(key)}
    storage = {key: value for key, value in given.items() if key not in options}
    if path is not None and scheme_of(path) == "file":
        check_known(storage, "the call")
    return options, storage
