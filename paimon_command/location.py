"""Open the table that the argument TABLE and the options of a call name."""

import json
import os
from collections.abc import Mapping
from pathlib import Path

import click

from paimon_core import Catalog, SystemTable, Table, open_catalog
from paimon_core.engine import AnyTable, is_catalog_option, open_any, read_only, scheme_of
from paimon_core.options import check_known, is_known

CATALOG_VARIABLE = "PAIMON_CATALOG_OPTIONS"
"""The variable with the path of a JSON file with options of the catalog, such as its password."""


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
        options, storage, catalog = _by_kind(given, text)
        if catalog:
            raise click.UsageError(f"option {next(iter(catalog))!r} is for a table by its name, not by its path")
        return open_any(text, storage, options)
    if named_warehouse(warehouse) is None:
        raise click.UsageError(
            f"{text!r} is a name, and names need --warehouse or the variable PAIMON_WAREHOUSE; a path has a slash, "
            f"such as './{text}'"
        )
    options = {key: value for key, value in given.items() if is_known(key)}
    return catalog_of(warehouse, given).any_table(text, options)


def catalog_of(warehouse: str | None, given: Mapping[str, str]) -> Catalog:
    """Return the catalog that ``--warehouse``, the options of the call and the file of `CATALOG_VARIABLE` choose.

    Args:
        warehouse: the directory of the databases, or the name of the catalog on a REST server; `None`: the option
            ``warehouse`` of the file.
        given: the options of the call.

    Raises UsageError without a warehouse.
    """
    if named_warehouse(warehouse) is None:
        raise click.UsageError(
            "the warehouse is not set: pass a directory or --warehouse, or set the variable PAIMON_WAREHOUSE"
        )
    _, storage, catalog = _by_kind(given, None)
    options = catalog_options(catalog)
    if options.get("metastore") != "rest":  # the warehouse is a directory, whose storage says which options it has
        _by_kind(given, warehouse)
    return open_catalog(warehouse, storage, options)


def directory_catalog(directory: str, given: Mapping[str, str]) -> Catalog:
    """Return the catalog of a directory that an argument names. The file of `CATALOG_VARIABLE` does not apply to it."""
    _, storage, catalog = _by_kind(given, directory)
    return open_catalog(directory, storage, catalog)


def named_warehouse(warehouse: str | None) -> str | None:
    """Return the warehouse of the option ``--warehouse``, else the warehouse in the file of `CATALOG_VARIABLE`."""
    return catalog_options({}).get("warehouse") if warehouse is None else warehouse


def storage_options(given: Mapping[str, str], path: str) -> dict[str, str]:
    """Return the options that belong to the storage of a path."""
    return _by_kind(given, path)[1]


def catalog_options(given: Mapping[str, str]) -> dict[str, str]:
    """Return the options of a catalog from the file of `CATALOG_VARIABLE`, overridden by the options of the call.

    Raises UsageError unless the file is a JSON object of texts.
    """
    file = os.environ.get(CATALOG_VARIABLE)
    return dict(given) if not file else {**texts_of(Path(file), f"the file of {CATALOG_VARIABLE}"), **given}


def texts_of(file: Path, shown: str) -> dict[str, str]:
    """Return the options in a JSON file. Raises UsageError unless it is a JSON object of texts.

    ``shown``: a name of the file for the message.
    """
    try:
        options = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise click.UsageError(f"{shown} {file} cannot be read: {error.strerror}") from error
    except ValueError:  # the error would show part of a secret
        options = None
    if not isinstance(options, dict) or not all(isinstance(value, str) for value in options.values()):
        raise click.UsageError(f'{shown} {file} is not a JSON object of texts, such as {{"s3.access-key": "..."}}')
    return options


def _by_kind(given: Mapping[str, str], path: str | None) -> tuple[dict[str, str], dict[str, str], dict[str, str]]:
    """Return the options of the table, of the storage and of the catalog.

    A local disk has no options, so unknown names are refused.
    """
    options = {key: value for key, value in given.items() if is_known(key)}
    catalog = {key: value for key, value in given.items() if key not in options and is_catalog_option(key)}
    storage = {key: value for key, value in given.items() if key not in options and key not in catalog}
    if path is not None and scheme_of(path) == "file":
        check_known(storage, "the call")
    return options, storage, catalog
