"""``CALL <catalog>.sys.<procedure>(...)`` and ``SHOW PROCEDURES``: procedures for Spark's catalog interface."""

from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from paimon_core import Catalog
from paimon_core.engine import SYSTEM_DATABASE, Parameter, Procedure, TableNotFoundError, find_procedure
from paimon_core.errors import NotFoundError, PaimonError
from paimon_spark.procedures.session_call import SessionCall
from paimon_spark.procedures.session_procedures import CALL_PROCEDURES
from paimon_spark.sql.bridge.conversions import java_array, row_arrays, struct_of_ddl
from paimon_spark.sql.bridge.endpoints import MissingProcedureEndpoint, ProcedureEndpoint
from paimon_spark.sql.bridge.handler import handler_of
from paimon_spark.sql.bridge.jvm import Jvm
from paimon_spark.sql.bridge.spark_errors import analysis_error, illegal
from paimon_spark.sql.session_options import PREFIX, session_options, table_options

_PARAMETER = "org.apache.spark.sql.connector.catalog.procedures.ProcedureParameter"
_IDENTIFIER = "org.apache.spark.sql.connector.catalog.Identifier"


def load_procedure(jvm: Jvm, catalog: Catalog, catalog_name: str, identifier: Any) -> Any:
    """Return a procedure as Spark's UnboundProcedure.

    For a procedure that does not exist, the `bind` of the returned object raises the error of `find_procedure`.
    """
    namespace, name = list(identifier.namespace()), identifier.name()
    try:
        if namespace != [SYSTEM_DATABASE]:
            full = ".".join([*namespace, name])
            raise NotFoundError(
                f"there is no procedure {full!r}: write CALL {catalog_name}.{SYSTEM_DATABASE}.{name}(...)"
            )
        procedure = find_procedure(name, CALL_PROCEDURES)
    except PaimonError as error:
        return jvm.bridge.PaimonProcedure(name, str(error), None, None, handler_of(jvm, MissingProcedure(error)))
    parameters = [_parameter(jvm, parameter) for parameter in procedure.parameters]
    return jvm.bridge.PaimonProcedure(
        procedure.name,
        f"{procedure.signature}: {procedure.effect}",
        java_array(jvm, _PARAMETER, parameters),
        struct_of_ddl(jvm, procedure.result),
        handler_of(jvm, ProcedureHandler(jvm, catalog, catalog_name, procedure)),
    )


def _parameter(jvm: Jvm, parameter: Parameter) -> Any:
    """Return a parameter as Spark's ProcedureParameter; an optional parameter is NULL by default."""
    kind = jvm.type("org.apache.spark.sql.types.DataType").fromDDL(parameter.type)
    builder = getattr(jvm.type(_PARAMETER), "in")(parameter.name, kind)
    return (builder if parameter.required else builder.defaultValue("NULL")).build()


def list_procedures(jvm: Jvm, namespace: Any) -> Any:
    """Return the identifiers of all procedures as a Java array; every namespace has the same procedures."""
    identifier, names = jvm.type(_IDENTIFIER), java_array(jvm, "java.lang.String", [SYSTEM_DATABASE])
    return java_array(jvm, _IDENTIFIER, [identifier.of(names, name) for name in sorted(CALL_PROCEDURES)])


@dataclass
class MissingProcedure(MissingProcedureEndpoint):
    """The handler of a procedure that does not exist, for ``PaimonProcedure.java``."""

    error: PaimonError

    def refuse(self) -> None:
        """Raise the error that explains why the procedure is missing."""
        raise self.error


@dataclass
class ProcedureHandler(ProcedureEndpoint):
    """The handler of a procedure, for ``PaimonProcedure.java``."""

    jvm: Jvm
    catalog: Catalog
    catalog_name: str
    procedure: Procedure

    def call(self, *values: Any) -> Any:
        """Run the procedure in the session that issued the statement; return its rows as a Java array of arrays."""
        arguments = dict(zip([parameter.name for parameter in self.procedure.parameters], values, strict=True))
        spark, settings = self.jvm.active_session(), self.jvm.settings(PREFIX)

        def options_of(database: str, table: str) -> dict[str, str]:
            return table_options(session_options(settings, self.catalog_name, database, table))

        call = SessionCall(
            self.catalog, self.catalog_name, self.procedure, arguments, spark=spark, options_of=options_of
        )
        try:
            rows = self.procedure.run(call)
        except TableNotFoundError as error:
            names = java_array(self.jvm, "java.lang.String", [error.identifier.database])
            table = str(error.identifier).partition(".")[2]
            identifier = self.jvm.type(_IDENTIFIER).of(names, table)
            raise analysis_error(self.jvm, "NoSuchTableException", identifier) from None
        except (PaimonError, PySparkException, Py4JError):
            raise
        except Exception as error:  # mostly a storage error, which says more than the traceback of py4j
            raise illegal(self.jvm, f"{self.procedure.name}: {type(error).__name__}: {error}") from error
        return row_arrays(self.jvm, rows)
