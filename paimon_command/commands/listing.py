"""List a warehouse and describe a table."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import Any

import click

from paimon_command import completions
from paimon_command.invocation import Invocation, command
from paimon_command.location import catalog_of, directory_catalog, is_path, named_warehouse
from paimon_command.output import Answer, Output, facts_text, shown
from paimon_command.warehouse import TableGroup, check_has_database, states_answer, table_group
from paimon_core import Snapshot, Table, TableSchema
from paimon_core.engine import SEVERE, shown_options
from paimon_core.errors import PaimonError, hide_secrets
from paimon_core.types.human_text import age, moment, size

_STDOUT = "-"
_NO_TABLES = "(no tables)"


_WITHIN = click.Argument(
    ["within"], required=False, metavar="[WAREHOUSE|DATABASE]", shell_complete=completions.databases
)


_LONG = click.Option(["--long", "-l"], is_flag=True, help="Add rows, size, history, files, last commit and advice.")


@command("ls", _WITHIN, _LONG, table=False)
def ls(call: Invocation) -> Answer:
    """List the databases of a warehouse with their tables, or the tables of one database.

    With --long, the exit code is 1 if a table has severe advice or cannot be read.
    """
    within, database = call["within"], None
    if within is not None and (is_path(within) or named_warehouse(call["warehouse"]) is None):
        catalog = directory_catalog(within, call["option"])
    else:
        catalog, database = catalog_of(call["warehouse"], call["option"]), within
    without = check_has_database(catalog, call["option"]) if database is None else None
    if without is not None:
        return without
    if call["long"]:
        return states_answer(catalog.state(database), call.output)
    pairs: list[tuple[str, str | None]] = []
    for name in catalog.list_databases() if database is None else [database]:
        pairs += [(name, table) for table in catalog.list_tables(name)] or [(name, None)]
    return Answer([{"database": database, "table": table} for database, table in pairs], nulls={"table": _NO_TABLES})


@command(
    "show",
    click.Argument(["table"], required=False, metavar="[TABLE|DATABASE|WAREHOUSE]", shell_complete=completions.tables),
    click.Option(
        ["--html"],
        is_flag=False,
        flag_value=_STDOUT,
        metavar="[FILE]",
        help="Write the page of notebooks, to this file or else to the standard output.",
    ),
    click.Option(["--rows"], type=int, default=0, help="Show this number of rows on the page; default: none."),
    table=False,
)
def show(call: Invocation) -> Answer | None:
    """Show what a table is: keys, options, newest snapshot, files, tags and branches; or draw it, as HTML.

    For a database or a warehouse, show the state of each table, as ls --long does. Default: the whole warehouse.
    """
    if call["rows"] and call["html"] is None:
        raise click.UsageError("--rows needs --html; 'paimon-spark read' shows rows")
    group = table_group(call["table"], call["warehouse"], call["option"])
    if group is not None:
        if call["rows"]:
            raise click.UsageError("--rows needs one table")
        return _shown_group(group, call)
    table = call.table()
    if call["html"] is not None:
        page = table.page(call["rows"])
        return _drawn(page.html(), page.errors, call["html"], call.output)
    schema, snapshot = table.schema, table.snapshot()
    facts: dict[str, Any] = {
        "path": hide_secrets(str(table.location)),
        "comment": schema.comment or None,
        "columns": len(schema.fields),
        "schema_id": schema.id,
        "primary_keys": list(schema.primary_keys),
        "partition_keys": list(schema.partition_keys),
        "options": shown_options(schema.options),
        **_newest(table, snapshot),
        "tags": [tag.name for tag in table.tags.list()],
        "branches": table.branches.list(),
        "consumers": table.consumers.list(),
    }
    return Answer(facts) if call.output.as_json else Answer(facts, _for_people(call, table, facts))


def _for_people(call: Invocation, table: Table, facts: Mapping[str, Any]) -> str:
    """Return the facts with readable times and sizes, and a line about severe advice."""
    texts = {name: value for name, value in facts.items() if name != "comment" or value is not None}
    names = {"committed_ms": "committed", "bytes": "size"}
    texts = {names.get(name, name): value for name, value in texts.items()}
    if "committed" in texts:
        texts["committed"] = f"{moment(texts['committed'])} ({age(table.store.now() - texts['committed'])})"
        texts["size"] = size(texts["size"])
    return "\n".join([facts_text(texts), *_severe(call, table)])


def _severe(call: Invocation, table: Table) -> list[str]:
    """Return a line if a table has severe advice, or if its advice cannot be computed."""
    see = f"see paimon-spark advice {quote(call['table'])}"
    try:
        severe = sum(advice.severity == SEVERE for advice in table.advice())
    except (PaimonError, OSError) as error:
        return [f"advice: unknown ({shown(hide_secrets(str(error)))}), {see}"]
    return [f"advice: {severe} severe, {see}"] if severe else []


def _shown_group(group: TableGroup, call: Invocation) -> Answer | None:
    state = group.state()
    if call["html"] is None:
        return states_answer(state, call.output)
    errors = [f"{one.database}.{one.table}: {one.error}" for one in state.tables if one.error is not None]
    return _drawn(state.html(), errors, call["html"], call.output)


def _drawn(text: str, errors: Sequence[str], file: str, output: Output) -> Answer | None:
    """Write a page. A part that cannot be read is an error on the page, and exit code 1.

    Args:
        text: the HTML document.
        errors: the errors on the page.
        file: the file to write, or `_STDOUT`.
        output: the output of the command.
    """
    if file == _STDOUT and output.as_json:
        raise click.UsageError("--html writes to the standard output, as --json does: give --html a file")
    if file == _STDOUT:
        click.echo(text)
        for error in errors:
            click.echo(f"Error: {shown(error)}", err=True)
        if errors:
            raise SystemExit(1)
        return None
    Path(file).write_text(text, encoding="utf-8")
    return Answer(
        {"file": file, "bytes": len(text.encode()), **({"errors": list(errors)} if errors else {})},
        problem=bool(errors),
    )


def _newest(table: Table, snapshot: Snapshot | None) -> dict[str, Any]:
    """Return the facts of the newest snapshot from metadata."""
    if snapshot is None:
        return {"snapshot": None}
    splits = table.scan().plan().splits
    return {
        "snapshot": snapshot.id,
        "oldest_snapshot": table.store.snapshots.earliest_id(),
        "committed_ms": snapshot.time_millis,
        "commit_kind": snapshot.commit_kind,
        "stored_rows": snapshot.total_record_count,
        "files": len({file.file_name for split in splits for file in split.files}),
        "bytes": sum(split.size for split in splits),
    }


@command("schema", click.Option(["--id", "schema_id"], type=int, help="A version of the schema; default: the newest."))
def schema(call: Invocation) -> Answer:
    """Show the columns of a table; with --json the whole schema as its file has it."""
    found = call.any_table().schema if call["schema_id"] is None else call.table().store.schemas.get(call["schema_id"])
    if call.output.as_json:
        stored = json.loads(found.to_json())
        return Answer({**stored, "options": shown_options(stored.get("options", {}))})
    return Answer(_columns(found))


def _columns(schema: TableSchema) -> list[dict[str, object]]:
    """Return a row for each column."""
    roles = {
        f.name: ", ".join(
            role
            for role, names in (("primary key", schema.primary_keys), ("partition", schema.partition_keys))
            if f.name in names
        )
        for f in schema.fields
    }
    return [
        {
            "id": field.id,
            "name": field.name,
            "type": str(field.type),
            "role": roles[field.name],
            "default": field.default or "",
            "comment": field.description or "",
        }
        for field in schema.fields
    ]
