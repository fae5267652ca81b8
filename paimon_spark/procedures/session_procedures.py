"""All procedures for CALL: the engine's procedures, and procedures that need a Spark session."""

from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession

from paimon_core import Catalog
from paimon_core.engine import PROCEDURES, Procedure, Rows, checked_values, find_procedure
from paimon_spark.procedures.copying import copy
from paimon_spark.procedures.session_call import SessionCall

CALL_PROCEDURES: Mapping[str, Procedure] = {**PROCEDURES, copy.name: copy}


def call_procedure(
    spark: SparkSession, catalog: Catalog, catalog_name: str, name: str, arguments: Mapping[str, Any]
) -> Rows:
    """Run a procedure and return its rows.

    Args:
        spark: the session that runs the procedure; its current database completes table names.
        catalog: the catalog of the tables.
        catalog_name: the name of the catalog in Spark.
        name: the name of the procedure.
        arguments: the arguments by parameter name; parameters without an argument are NULL.

    Raises InvalidInputError for an unknown argument, with the closest parameter name, and for a missing one. Also
    raises the errors of `find_procedure` and of the procedure.
    """
    procedure = find_procedure(name, CALL_PROCEDURES)
    values = checked_values(procedure, arguments)
    return procedure.run(SessionCall(catalog, catalog_name, procedure, values, spark=spark))
