"""All procedures of SQL: the actions of the engine, and those that only Spark can do."""

from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession

from paimon_core import FileSystemCatalog
from paimon_core.engine import PROCEDURES, Procedure, Rows, checked_values
from paimon_core.engine import find_procedure as find_action
from paimon_spark.procedures.copying import copy
from paimon_spark.procedures.session_call import SessionCall

CALL_PROCEDURES: Mapping[str, Procedure] = {**PROCEDURES, copy.name: copy}


def find_procedure(name: str) -> Procedure:
    """Return a procedure; raises as `paimon_core.procedures.procedure_registry.find_procedure`."""
    return find_action(name, CALL_PROCEDURES)


def call_procedure(
    spark: SparkSession, catalog: FileSystemCatalog, catalog_name: str, name: str, arguments: Mapping[str, Any]
) -> Rows:
    """Run a procedure and return its rows.

    Args:
        spark: the session that runs the work; its current database completes the names of tables.
        catalog: of the tables.
        catalog_name: its name in Spark.
        name: of the procedure.
        arguments: by the names of the parameters; others are NULL.

    Raises InvalidInputError with the nearest name for an unknown argument and for a missing one; `find_procedure` and
    each procedure say what else.
    """
    found = find_procedure(name)
    return found.run(SessionCall(catalog, catalog_name, found, checked_values(found, arguments), spark=spark))
