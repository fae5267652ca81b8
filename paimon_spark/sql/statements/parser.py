"""Installation of the parser and the rules for row-level and Paimon-specific statements."""

from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from paimon_core.errors import UnsupportedError
from paimon_spark.internals import java_session, session_state
from paimon_spark.sql.bridge.catalogs import has_table, names_view
from paimon_spark.sql.bridge.conversions import java_array, row_arrays
from paimon_spark.sql.bridge.endpoints import StatementsEndpoint
from paimon_spark.sql.bridge.handler import handler_of
from paimon_spark.sql.bridge.jvm import SESSION_CATALOG, Jvm
from paimon_spark.sql.bridge.spark_errors import syntax_error
from paimon_spark.sql.reads.incremental import install_table_functions
from paimon_spark.sql.statements.drop_partitions import DropPartitionsStatement
from paimon_spark.sql.statements.functions import DescribeFunctionStatement, FunctionStatement
from paimon_spark.sql.statements.show_create import ShowCreateStatement
from paimon_spark.sql.statements.statement import FAMILIES, Statement
from paimon_spark.sql.statements.tokens import SyntaxMismatch, with_settings

_DOUBLE_QUOTED = "spark.sql.ansi.doubleQuotedIdentifiers"
_PLAIN_STRINGS = "spark.sql.parser.escapedStringLiterals"


def install_parser(jvm: Jvm) -> None:
    """Add the parser, the rules and the table functions to the session of `jvm`, and to later and cloned sessions.

    A second call changes nothing. Raises UnsupportedError if this version of Spark stores its parser or rules
    elsewhere.
    """
    bridge = jvm.bridge
    jvm.check()
    bridge.PaimonParser.handleWith(handler_of(jvm, StatementsHandler(jvm)))
    for family in FAMILIES:
        bridge.PaimonParser.register(*family.keywords)
    install_table_functions(jvm)
    try:
        bridge.PaimonExtensions.install(java_session(jvm.spark))
    except Py4JJavaError as error:
        raise UnsupportedError(
            f"Spark {jvm.spark.version} does not accept Paimon's SQL extensions: {error.java_exception}"
        ) from error


@dataclass
class StatementsHandler(StatementsEndpoint):
    """The handler of Paimon-specific statements, for ``PaimonParser.java``."""

    jvm: Jvm

    def parse(self, text: str) -> Any:
        """Return the title and the columns of a statement as a Java array; `None`: the text is for Spark's parser."""
        statement = self._statement(text)
        return (
            None
            if statement is None
            else java_array(self.jvm, "java.lang.Object", [statement.title, statement.columns])
        )

    def run(self, session: Any, text: str) -> Any:
        """Run a statement and return its rows as a Java array of arrays."""
        statement = self._statement(text)
        if statement is None:
            raise UnsupportedError(f"the table of this statement is no longer in a Paimon catalog: {text}")
        return row_arrays(self.jvm, statement.run(self.jvm, self.jvm.session(session)))

    def _statement(self, text: str) -> Statement | None:
        spark = self.jvm.active_session()
        names, strings = (str(spark.conf.get(key, "false")) == "true" for key in (_DOUBLE_QUOTED, _PLAIN_STRINGS))
        if names or strings:
            text = with_settings(text, double_quoted_names=names and _is_ansi(spark), plain_strings=strings)
        try:
            parsed = [family.parse(text) for family in FAMILIES]
        except SyntaxMismatch as error:
            raise syntax_error(self.jvm, text, error.line, error.column, error.near) from None
        ours = [statement for statement in parsed if statement is not None and _is_ours(self.jvm, spark, statement)]
        if ours and isinstance(ours[0], DropPartitionsStatement) and not ours[0].is_ours(self.jvm, spark):
            return None
        if ours and isinstance(ours[0], ShowCreateStatement) and names_view(self.jvm, spark, ours[0].table):
            return None  # Spark's own statement, for a view
        if ours and isinstance(ours[0], DescribeFunctionStatement) and not ours[0].is_stored(self.jvm, spark):
            return None
        return ours[0] if ours else None


def _is_ansi(spark: SparkSession) -> bool:
    return str(spark.conf.get("spark.sql.ansi.enabled", "true")) == "true"


def _is_ours(jvm: Jvm, spark: SparkSession, statement: Statement) -> bool:
    """Return True if the table of the statement is in a Paimon catalog, named or current."""
    manager = session_state(spark).catalogManager()
    first = next(iter(statement.table), "")
    named = len(statement.table) > 1 and bool(manager.isCatalogRegistered(first))
    catalog = first if named else str(manager.currentCatalog().name())
    if not jvm.bridge.Bridge.HANDLERS.containsKey(catalog):
        return False
    if isinstance(statement, FunctionStatement):
        return catalog != SESSION_CATALOG and not statement.is_of_session(jvm, spark)
    if catalog != SESSION_CATALOG or not statement.table:
        return True
    names = statement.table[1:] if named else statement.table
    namespace = names[:-1] or tuple(str(part) for part in manager.currentNamespace())
    return has_table(catalog, namespace, names[-1])
