"""Near names in Spark's errors for a missing table or database of an installed catalog."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import SparkSession

from paimon_core.engine import Identifier
from paimon_core.errors import NotFoundError

_MISSING = re.compile(r"\[(TABLE_OR_VIEW|SCHEMA)_NOT_FOUND\] The (?:table or view|schema) ((?:`[^`]*`\.?)+) cannot be")
_NEAR = re.compile(r"did you mean '([^']+)'\?$")


def near_name(text: str, catalogs: Mapping[str, Any]) -> str | None:
    """Return a sentence with the nearest name for an error about a missing table or database; `None`: no near name.

    Args:
        text: the text of the error.
        catalogs: the handlers of the installed catalogs, by name.

    Cost: one listing of the database.
    """
    match = _MISSING.match(text)
    spark = SparkSession.getActiveSession() if match else None
    if match is None or spark is None:
        return None
    parts = re.findall(r"`([^`]*)`", match[2])
    if parts[0] not in catalogs:
        parts = [str(spark.catalog.currentCatalog()), *parts]
    handler = catalogs.get(parts[0])
    if handler is None:
        return None
    names = parts[1:]
    if match[1] == "TABLE_OR_VIEW" and len(names) == 1:
        names = [str(spark.catalog.currentDatabase()), *names]
    near = _nearest(handler.catalog, names)
    return None if near is None else f"Did you mean {'.'.join([parts[0], *near])}?"


def _nearest(catalog: Any, names: Sequence[str]) -> list[str] | None:
    """Return the nearest name of a database, or of a database and a table. `None`: no name is near."""
    try:
        if len(names) == 1:
            catalog.list_tables(names[0])
        else:
            catalog.any_table(Identifier(names[0], names[1]))
    except NotFoundError as error:
        near = _NEAR.search(str(error))
        if near is None:
            return None
        return [near[1]] if str(error).startswith("no database") else [names[0], near[1]]
    return None
