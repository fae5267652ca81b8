"""The options of a Spark session with catalogs, and its start, for ``serve`` and ``sql``."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from paimon_command.invocation import Invocation, pairs
from paimon_command.location import catalog_of, catalog_options, texts_of
from paimon_command.spark import connector
from paimon_core.engine import is_catalog_option, is_secret
from paimon_core.errors import InvalidInputError, PaimonError

SESSION_OPTIONS: tuple[click.Parameter, ...] = (
    click.Option(["--name"], default="paimon", show_default=True, help="The name of the catalog of --warehouse."),
    click.Option(
        ["--catalog"], multiple=True, callback=pairs, metavar="NAME=DIRECTORY", help="A further catalog. Repeatable."
    ),
    click.Option(["--master"], help="The Spark master, such as 'local[4]', 'spark://host:7077' or 'yarn'."),
    click.Option(
        ["--conf"], multiple=True, callback=pairs, metavar="KEY=VALUE", help="A setting of Spark. Repeatable."
    ),
    click.Option(
        ["--storage-file"],
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="A JSON file with options of the storage, such as s3.access-key.",
    ),
)
"""The options of a subcommand that starts a session."""


def check_session_options(call: Invocation) -> dict[str, str]:
    """Return the warehouses of the catalogs, by name: first ``--warehouse``, then each ``--catalog``.

    Raises UsageError for a secret on the command line, which everyone who lists processes would see, for two catalogs
    of one name, and without a warehouse.
    """
    for option in ("conf", "option"):
        for key in call[option]:
            if is_secret(key):
                raise click.UsageError(
                    f"--{option} {key} would show a secret in the list of processes: set it in "
                    "conf/spark-defaults.conf (SPARK_CONF_DIR), in --storage-file, or in --token-file"
                )
    if call["name"] in call["catalog"]:
        raise click.UsageError(f"two catalogs are called {call['name']!r}: choose other names with --name or --catalog")
    return {call["name"]: catalog_of(call["warehouse"], storage_of(call)).warehouse, **call["catalog"]}


def storage_of(call: Invocation) -> dict[str, str]:
    """Return the options of the storage and the catalog; see `texts_of` for the errors of ``--storage-file``."""
    file: Path | None = call["storage_file"]
    if file is None:
        return dict(call["option"])
    return {**texts_of(file, "--storage-file"), **call["option"]}


def start_session(call: Invocation, catalogs: Mapping[str, str], storage: Mapping[str, str]) -> Any:
    """Start a session, and install its catalogs; the first is the default.

    Args:
        call: the call of the command, with `SESSION_OPTIONS`.
        catalogs: the warehouses of the catalogs, by name.
        storage: options of the storage, and of the first catalog.

    Raises InvalidInputError with the reason if Spark does not start.
    """
    start, install = connector("paimon_spark.session_start"), connector("paimon_spark.sql.catalog")
    config = {"spark.app.name": f"paimon-spark {call.name}", "spark.api.mode": "classic", **call["conf"]}
    if call["master"]:
        config["spark.master"] = call["master"]
    try:
        spark = start.session(config=config)
    except PaimonError:
        raise
    except Exception as error:  # of py4j, of Java and of Spark
        reason = str(error).strip().partition("\n")[0]
        raise InvalidInputError(f"Spark does not start: {reason}") from error
    named = {key: value for key, value in storage.items() if is_catalog_option(key)}
    others = {key: value for key, value in storage.items() if key not in named}
    for number, (name, warehouse) in enumerate(catalogs.items()):
        options = None if number else catalog_options(named)
        install.catalog(spark, name, warehouse=warehouse, default=not number, storage_options=others, options=options)
    return spark
