"""Create, change, rename and drop databases and tables, and import rows of files."""

import sys
from collections.abc import Iterator
from typing import Any

import click
import pyarrow as pa

from paimon_command import completions
from paimon_command.invocation import Invocation, command, pairs, split
from paimon_command.location import storage_options
from paimon_command.output import Answer
from paimon_core import (
    AddColumn,
    DataField,
    DropColumn,
    FileSystemCatalog,
    RemoveOption,
    RenameColumn,
    Schema,
    SetOption,
    UpdateComment,
    UpdateTableComment,
    UpdateType,
)
from paimon_core.engine import (
    IMPORTED_FORMATS,
    FileIO,
    RowsOfFiles,
    SchemaChange,
    TextForm,
    absolute,
    apply_changes,
    new_schema,
    parse_type,
    rows_of_files,
    split_parts,
)
from paimon_core.errors import AlreadyExistsError, InvalidInputError, NotFoundError
from paimon_core.types.human_text import count

_NAME = click.Argument(["name"], metavar="DATABASE|TABLE", shell_complete=completions.tables)
_COLUMNS = click.Option(
    ["--column", "-c", "column"],
    multiple=True,
    metavar="'NAME TYPE'",
    help="A column, such as 'id BIGINT NOT NULL' or 'tags ARRAY<STRING>'. Repeatable.",
)
_KEY = click.Option(
    ["--primary-key"], metavar="A,B", callback=lambda c, p, v: split(v), help="The columns of the primary key."
)
_PARTITIONS = click.Option(
    ["--partition-by"], metavar="A,B", callback=lambda c, p, v: split(v), help="The partition columns."
)
_SET = click.Option(
    ["--set", "properties"],
    multiple=True,
    callback=pairs,
    metavar="KEY=VALUE",
    help="An option of the table, or a property of the database. Repeatable.",
)
_COMMENT = click.Option(["--comment"], help="A comment.")


@command(
    "create",
    _NAME,
    _COLUMNS,
    _KEY,
    _PARTITIONS,
    _SET,
    _COMMENT,
    click.Option(["--if-not-exists"], is_flag=True, help="Do nothing if it exists."),
    table=False,
    dry_run=True,
)
def create(call: Invocation) -> Answer:
    """Create a database, such as shop, or a table, such as shop.orders."""
    catalog, name = call.catalog(), call["name"]
    if _is_database(name):
        given = [option for option in ("column", "primary_key", "partition_by") if call[option]]
        if given:
            raise click.UsageError(f"{name!r} is a database, which has no --{given[0].replace('_', '-')}")
        return _create_database(call, catalog, name)
    if not call["column"]:
        raise click.UsageError("a table needs columns: --column 'id BIGINT NOT NULL' --column 'name STRING'")
    keys = call["primary_key"] or (), call["partition_by"] or ()
    columns = [_column(text) for text in call["column"]]
    return _create_table(call, catalog, Schema(columns, *keys, call["properties"], call["comment"]))


def _create_database(call: Invocation, catalog: FileSystemCatalog, name: str) -> Answer:
    comment = {} if call["comment"] is None else {"comment": call["comment"]}
    exists = name in catalog.list_databases()
    if exists and not call["if_not_exists"]:
        raise AlreadyExistsError(f"database {name!r} exists already in {catalog.warehouse}")
    if not exists and not call["dry_run"]:
        catalog.create_database(name, True, {**call["properties"], **comment})
    return _done(call, f"database {name}", "exists already" if exists else "created", created=not exists)


def _create_table(call: Invocation, catalog: FileSystemCatalog, schema: Schema) -> Answer:
    name = call["name"]
    exists = catalog.table_exists(name)
    if exists and not call["if_not_exists"]:
        raise AlreadyExistsError(f"table {name!r} exists already in {catalog.warehouse}")
    new_schema(schema, 0)
    if not exists and not call["dry_run"]:
        catalog.create_table(name, schema, ignore_if_exists=call["if_not_exists"])
    return _done(call, f"table {name}", "exists already" if exists else "created", created=not exists)


@command(
    "alter",
    _SET,
    click.Option(["--unset"], multiple=True, metavar="KEY", help="Remove an option or a property. Repeatable."),
    click.Option(["--add"], multiple=True, metavar="'NAME TYPE'", help="Add a column at the end. Repeatable."),
    click.Option(["--drop"], multiple=True, metavar="NAME", help="Drop a column. Repeatable."),
    click.Option(["--rename"], multiple=True, callback=pairs, metavar="OLD=NEW", help="Rename a column. Repeatable."),
    click.Option(
        ["--type"], multiple=True, callback=pairs, metavar="NAME=TYPE", help="Change the type of a column. Repeatable."
    ),
    click.Option(
        ["--column-comment"], multiple=True, callback=pairs, metavar="NAME=TEXT", help="Comment a column. Repeatable."
    ),
    _COMMENT,
    dry_run=True,
)
def alter(call: Invocation) -> Answer:
    """Change the options and the columns of a table, all in one step; data files stay as they are."""
    changes: list[SchemaChange] = [RenameColumn(old, new) for old, new in call["rename"].items()]
    changes += [UpdateType(name, kind) for name, kind in call["type"].items()]
    changes += [UpdateComment(name, text) for name, text in call["column_comment"].items()]
    changes += [DropColumn(name) for name in call["drop"]]
    for column in map(_column, call["add"]):
        changes.append(AddColumn(column.name, column.type, column.description, column.default))
    changes += [SetOption(key, value) for key, value in call["properties"].items()]
    changes += [RemoveOption(key) for key in call["unset"]]
    if call["comment"] is not None:
        changes.append(UpdateTableComment(call["comment"]))
    if not changes:
        raise click.UsageError("nothing to change: name a change, such as --set, --add or --rename")
    table = call.table()
    before = table.schema
    if call["dry_run"]:
        table.maintenance  # noqa: B018  refuses a view that cannot be written
        after = apply_changes(before, changes, table.snapshot() is not None)
    else:
        after = table.alter(changes).schema
    return _done(call, f"table {call['table']}", f"changed: schema {after.id}", schema_id=after.id)


@command(
    "rename",
    click.Argument(["name"], metavar="TABLE", shell_complete=completions.tables),
    click.Argument(["to"], metavar="NEW"),
    table=False,
    dry_run=True,
)
def rename(call: Invocation) -> Answer:
    """Rename a table, such as shop.orders to shop.old_orders; NEW may be in another database."""
    catalog, old, new = call.catalog(), call["name"], call["to"]
    for name in (old, new):
        if _is_database(name):
            raise click.UsageError(
                f"{name!r} is no table: name its database, as in shop.orders; databases keep their names"
            )
    if not call["dry_run"]:
        catalog.rename_table(old, new)
    elif not catalog.table_exists(old):
        raise NotFoundError(f"no table {old!r} in {catalog.warehouse}")
    elif catalog.table_exists(new):
        raise AlreadyExistsError(f"table {new!r} exists already in {catalog.warehouse}")
    return _done(call, f"table {old}", f"renamed to {new}", to=new)


@command(
    "drop",
    _NAME,
    click.Option(["--cascade"], is_flag=True, help="Drop the tables of the database, too."),
    click.Option(["--if-exists"], is_flag=True, help="Do nothing if it does not exist."),
    click.Option(["--yes", "-y"], is_flag=True, help="Do not ask."),
    table=False,
    dry_run=True,
)
def drop(call: Invocation) -> Answer:
    """Drop a database or a table with all its data and history. It asks first, unless --yes is set."""
    catalog, name = call.catalog(), call["name"]
    is_database = _is_database(name)
    kind = "database" if is_database else "table"
    tables = [name]
    if is_database:
        exists = name in catalog.list_databases()
        tables = [f"{name}.{table}" for table in catalog.list_tables(name)] if exists else []
        if tables and not call["cascade"]:
            raise InvalidInputError(f"database {name!r} has {count(len(tables), 'table')}: drop them, or use --cascade")
    else:
        exists = catalog.table_exists(name)
    if not exists:
        if not call["if_exists"]:
            raise NotFoundError(f"no {kind} {name!r} in {catalog.warehouse}")
        return _done(call, f"{kind} {name}", "does not exist", dropped=[])
    if not call["dry_run"]:
        _confirm(
            call, f"Drop {kind} {name}" + (f" and {count(len(tables), 'table')}" if is_database and tables else "")
        )
        if is_database:
            catalog.drop_database(name, cascade=call["cascade"])
        else:
            catalog.drop_table(name)
    return _done(call, f"{kind} {name}", "dropped", dropped=tables)


def _is_terminal() -> bool:
    return sys.stdin.isatty()


def _confirm(call: Invocation, what: str) -> None:
    """Ask on a terminal. Raises UsageError elsewhere without ``--yes``, and Abort for another answer than yes."""
    if call["yes"]:
        return
    if not _is_terminal():
        raise click.UsageError("a drop cannot be undone: confirm it with --yes")
    click.confirm(f"{what}? It cannot be undone", abort=True, err=True)


@command(
    "import",
    click.Argument(["name"], metavar="TABLE", shell_complete=completions.tables),
    click.Argument(["files"], nargs=-1, required=True, metavar="FILE..."),
    click.Option(
        ["--format"], type=click.Choice(IMPORTED_FORMATS), help="Default: what the names of the files end with."
    ),
    click.Option(["--create"], is_flag=True, help="Create the table with the columns of the files."),
    click.Option(["--overwrite"], is_flag=True, help="Replace the rows of the table."),
    _KEY,
    _PARTITIONS,
    _SET,
    click.Option(["--delimiter"], default=",", show_default=True, help="The character between two fields of CSV."),
    click.Option(["--null"], default="", metavar="TEXT", help="The text of CSV for NULL, besides an empty field."),
    table=False,
    dry_run=True,
)
def import_(call: Invocation) -> Answer:
    """Write the rows of CSV, JSON, Parquet, Avro or ORC files into a table, in one commit.

    FILE is a file, or a directory with files; its directories column=value become columns. Columns match by name, and
    get the types of the table. JSON has an object on each line. Names that end with .gz are decompressed.
    """
    catalog, name = call.catalog(), call["name"]
    given = [option for option in ("primary_key", "partition_by", "properties") if call[option]]
    if given and not call["create"]:
        raise click.UsageError(f"--{given[0].replace('_', '-').replace('properties', 'set')} needs --create")
    if len(call["delimiter"]) != 1:
        raise click.UsageError(f"--delimiter is one character, not {call['delimiter']!r}")
    exists = catalog.table_exists(name)
    if call["create"] and exists:
        raise AlreadyExistsError(f"table {name!r} exists already in {catalog.warehouse}: leave --create out")
    table = None if call["create"] else catalog.table(name)
    rows = _rows(call, None if table is None else table.schema.arrow)
    if table is None:
        new_schema(_imported_schema(call, rows), 0)
    if call["dry_run"]:
        number = sum(batch.num_rows for batch in rows.reader())
        return _imported(call, rows, number, None)
    created = table is None
    if table is None:
        table = catalog.create_table(name, _imported_schema(call, rows))
    numbers: list[int] = []
    reader = _counted(rows.reader(), numbers)
    try:
        snapshot = table.overwrite(reader) if call["overwrite"] else table.write(reader)
    except BaseException:
        if created:
            catalog.drop_table(name)
        raise
    return _imported(call, rows, sum(numbers), None if snapshot is None else snapshot.id)


def _counted(reader: pa.RecordBatchReader, numbers: list[int]) -> pa.RecordBatchReader:
    """Return the rows, and append the number of rows of each batch to a list."""

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in reader:
            numbers.append(batch.num_rows)
            yield batch

    return pa.RecordBatchReader.from_batches(reader.schema, batches())


def _rows(call: Invocation, columns: Any) -> RowsOfFiles:
    """Return the rows of the files, with the columns of the table if there is one."""
    paths = [absolute(path) for path in call["files"]]
    io = FileIO.of(paths[0], storage_options(call["option"], paths[0]))
    return rows_of_files(io, paths, call["format"], columns, TextForm(call["delimiter"], call["null"]))


def _imported_schema(call: Invocation, rows: RowsOfFiles) -> Schema:
    keys = call["primary_key"] or ()
    fields = pa.schema([field.with_nullable(field.name not in keys) for field in rows.schema])
    return Schema(fields, keys, call["partition_by"] or (), call["properties"])


def _imported(call: Invocation, rows: RowsOfFiles, number: int, snapshot: int | None) -> Answer:
    facts = {"dry_run": call["dry_run"], "files": len(rows.files), "rows": number, "snapshot": snapshot}
    what = f"{count(number, 'row')} of {count(len(rows.files), 'file')}"
    if call["dry_run"]:
        return Answer({**facts, "columns": {f.name: str(f.type) for f in rows.schema}}, f"{what} would be imported")
    return Answer(facts, f"imported {what} in snapshot {snapshot}" if snapshot else "the files have no rows")


def _is_database(name: str) -> bool:
    return len(split_parts(name)) == 1


def _column(text: str) -> DataField:
    """Return the column of a text such as ``id BIGINT NOT NULL``. Raises UsageError without a type."""
    name, _, kind = text.strip().partition(" ")
    if not kind.strip():
        raise click.UsageError(f"{text!r} is not 'NAME TYPE', such as 'id BIGINT NOT NULL'")
    return DataField(-1, name.strip("`"), parse_type(kind.strip()))


def _done(call: Invocation, what: str, how: str, **facts: object) -> Answer:
    """Return the answer of a change, or of a change that would be made."""
    text = (
        f"{what} would be {how}" if call["dry_run"] and not how.startswith(("exists", "does not")) else f"{what} {how}"
    )
    return Answer({"dry_run": call["dry_run"], **facts}, text)
