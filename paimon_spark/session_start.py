"""The start of a session that can use Paimon tables: `session` for a new one, `register` for an existing one."""

import os
import re
import shlex
import sys
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyspark
from pyspark.sql import SparkSession

from paimon_core.errors import InvalidInputError, UnsupportedError
from paimon_spark.datasource import PaimonDataSource
from paimon_spark.internals import builder_settings, has_context, quiet_raised_errors
from paimon_spark.session_checks import check_session
from paimon_spark.sql.catalog import NEEDS_CLASSIC
from paimon_spark.sql.catalog import catalog as install_catalog
from paimon_spark.sql.format import install_format
from paimon_spark.worker_python import DRIVER_PYTHON, WORKER_PYTHON

_LOG_LEVEL = "spark.log.level"
_QUIET = {"spark.ui.showConsoleProgress": "false", _LOG_LEVEL: "ERROR"}
"""Settings without progress bars and warnings; the user's settings override them."""
_PYTHON = "spark.pyspark.python"
_MASTER = "spark.master"
_REMOTE = "spark.remote"


def session(
    builder: SparkSession.Builder | None = None,
    *,
    warehouse: str | None = None,
    catalog: str = "paimon",
    storage_options: Mapping[str, object] | None = None,
    options: Mapping[str, str] | None = None,
    remote: str | None = None,
    config: Mapping[str, Any] | None = None,
) -> SparkSession:
    """Start a session that can use Paimon tables, or return the running session.

    On a local master, workers run the Python of this process, unless ``PYSPARK_PYTHON`` or ``spark.pyspark.python`` is
    set. A new session has no progress bars, and logs only errors that it does not raise. `config`, the builder and the
    configuration files of Spark may set ``spark.ui.showConsoleProgress`` and ``spark.log.level`` to other values.

    Args:
        builder: the builder of the session, which gets the settings of this call; `None`: ``SparkSession.builder``.
        warehouse: the directory of the databases of a catalog to install; `None`: no catalog.
        catalog: the name of the catalog.
        storage_options: options of the catalog's file system.
        options: ``table-default.<option>`` and other options of the catalog.
        remote: the URL of a Spark Connect server, such as ``sc://localhost``; `None`: the builder decides.
        config: settings of the session, such as ``{"spark.sql.shuffle.partitions": 8}``.

    Examples:
        >>> import paimon_spark
        >>> spark = paimon_spark.session(warehouse="/tmp/warehouse")
        >>> spark.sql("SELECT count(*) FROM paimon.shop.items").first()[0]
        2

    Raises UnsupportedError for a catalog over Spark Connect, MissingDependencyError if the running session's workers
    lack this package. Raises InvalidInputError if a setting names the catalog of the Java connector without its jar.
    """
    if builder is not None and not hasattr(builder, "getOrCreate"):
        raise InvalidInputError(
            f"session() takes a SparkSession.Builder, not {type(builder).__name__}: for a running session call "
            "paimon_spark.catalog(spark, 'paimon', warehouse='/warehouse')"
        )
    starter: Any = SparkSession.builder if builder is None else builder
    for key, value in {**(config or {}), **({} if remote is None else {_REMOTE: remote})}.items():
        starter.config(key, value)
    settings = {**file_settings(), **builder_settings(starter)}
    url = _connect_url(settings)
    if url is not None and warehouse is not None:
        raise UnsupportedError(NEEDS_CLASSIC)
    quiet = False
    if not has_context() and not (url or "").startswith("sc://"):
        if _runs_here(settings if url is None else {_MASTER: url}):
            _set_worker_python(settings)
        for key, value in _QUIET.items():
            if key not in settings:
                starter.config(key, value)
        quiet = _LOG_LEVEL not in settings
    spark: SparkSession = starter.getOrCreate()
    if quiet:
        quiet_raised_errors(spark)
    replaced = () if warehouse is None else (catalog,)
    check_session(spark, replaced)
    install_format(spark)
    if warehouse is not None:
        install_catalog(spark, catalog, warehouse=warehouse, storage_options=storage_options, options=options)
    return spark


def register(spark: SparkSession) -> None:
    """Register ``format("paimon")`` in `spark`, a session that does not discover it.

    Raises MissingDependencyError if the workers of a local session lack this package.
    """
    check_session(spark)
    spark.dataSource.register(PaimonDataSource)
    install_format(spark)


def _connect_url(settings: Mapping[str, str]) -> str | None:
    """Return the URL of the Connect server that a builder would use; `None`: the session is classic."""
    if _REMOTE in settings or "SPARK_REMOTE" in os.environ:
        return settings.get(_REMOTE, os.environ.get("SPARK_REMOTE"))
    mode = settings.get("spark.api.mode", os.environ.get("SPARK_API_MODE", "")).lower()
    if mode == "connect" or "SPARK_CONNECT_MODE_ENABLED" in os.environ:
        return settings.get(_MASTER, os.environ.get("MASTER", "local"))
    return None


def _runs_here(settings: Mapping[str, str]) -> bool:
    """Return True if workers run on this machine, and this process starts the JVM."""
    return settings.get(_MASTER, "local").startswith("local") and "PYSPARK_GATEWAY_PORT" not in os.environ


def _set_worker_python(settings: Mapping[str, str]) -> None:
    """Let workers run the Python of this process, unless the user has chosen another one.

    The JVM takes the interpreter from its environment. There the Python of the driver has precedence, and may be a
    program such as ``jupyter``.
    """
    if not sys.executable:
        return
    os.environ.setdefault(WORKER_PYTHON, settings.get(_PYTHON, sys.executable))
    if DRIVER_PYTHON in os.environ:
        os.environ[DRIVER_PYTHON] = sys.executable


def file_settings() -> dict[str, str]:
    """Return the settings that Spark reads at its start: of ``spark-defaults.conf``, and of ``PYSPARK_SUBMIT_ARGS``."""
    home = os.environ.get("SPARK_HOME", str(Path(pyspark.__file__).parent))
    arguments = shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", ""))
    pairs = list(pairwise(arguments))
    default = Path(os.environ.get("SPARK_CONF_DIR", f"{home}/conf")) / "spark-defaults.conf"
    path = Path(next((value for key, value in pairs if key == "--properties-file"), default))
    settings: dict[str, str] = {}
    if path.is_file():
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        matches = (re.match(r"\s*([^#!\s=:][^\s=:]*)[\s=:]+(.*\S)", line) for line in lines)
        settings = {match[1]: match[2] for match in matches if match}
    for key, value in pairs:
        if key == "--master":
            settings[_MASTER] = value
        elif key in ("--conf", "-c") and "=" in value:
            name, _, text = value.partition("=")
            settings[name] = text
    return settings
