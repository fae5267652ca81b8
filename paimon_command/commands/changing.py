"""Create, change, rename and drop databases and tables, and import rows of files."""

import re
import sys
from collections.abc import Iterator, Sequence

import click
import pyarrow as pa

from paimon_command import completions
from paimon_command.invocation import Invocation, command, pairs, split
from paimon_command.location import storage_options
from paimon_command.output import Answer
from paimon_core import (
    AddColumn,
    Catalog,
    DataField,
    DropColumn,
    RemoveOption,
    RenameColumn,
    Schema,
    SetOption,
    Snapshot,
    UpdateComment,
    UpdateTableComment,
    UpdateType,
)
from paimon_core.engine import (
    IMPORTED_FORMATS,
    FileIO,
    Operation,
    RowsOfFiles,
    SchemaChange,
    TextForm,
    absolute,
    apply_changes,
    new_schema,
    parse_type,
    rows_of_files,
    scheme_of,
    split_parts,
)
from paimon_core.errors import AlreadyExistsError, InvalidInputError, NotFoundError
from paimon_core.types.human_text import count

_COLUMN = re.compile(r"(`(?:[^`]|``)+`|[^\s`]+)\s+(.+)", re.DOTALL)
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


def _create_database(call: Invocation, catalog: Catalog, name: str) -> Answer:
    catalog.location(f"{name}.t")  # refuses a name that no database can have
    exists = name in catalog.list_databases()
    if exists and not call["if_not_exists"]:
        raise AlreadyExistsError(f"database {name!r} exists already in {catalog.warehouse}")
    if exists:
        return Answer({"created": False}, f"database {name} exists already")
    if not call["dry_run"]:
        comment = {} if call["comment"] is None else {"comment": call["comment"]}
        catalog.create_database(name, call["if_not_exists"], {**call["properties"], **comment})
    return call.changed(f"database {name}", "created", {"created": True})


def _create_table(call: Invocation, catalog: Catalog, schema: Schema) -> Answer:
    name = call["name"]
    exists = _exists(catalog, name)
    if exists and not call["if_not_exists"]:
        raise AlreadyExistsError(f"table {name!r} exists already in {catalog.warehouse}")
    if exists:
        return Answer({"created": False}, f"table {name} exists already")
    if call["dry_run"]:
        new_schema(schema, 0)
    else:
        catalog.create_table(name, schema, ignore_if_exists=call["if_not_exists"])
    return call.changed(f"table {name}", "created", {"created": True})


def _exists(catalog: Catalog, name: str) -> bool:
    """Return True if a table exists. Raises NotFoundError if its database does not exist."""
    database = split_parts(name)[0]
    if database not in catalog.list_databases():
        raise NotFoundError(f"no database {database!r} in {catalog.warehouse}: paimon-spark create {database}")
    return catalog.table_exists(name)


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
    return call.changed(f"table {call['table']}", f"changed: schema {after.id}", {"schema_id": after.id})


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
    elif not _exists(catalog, old):
        raise NotFoundError(f"no table {old!r} in {catalog.warehouse}")
    elif _exists(catalog, new):
        raise AlreadyExistsError(f"table {new!r} exists already in {catalog.warehouse}")
    return call.changed(f"table {old}", f"renamed to {new}", {"to": new})


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
        return Answer({"dropped": []}, f"{kind} {name} does not exist")
    if not call["dry_run"]:
        _confirm(
            call, f"Drop {kind} {name}" + (f" and {count(len(tables), 'table')}" if is_database and tables else "")
        )
        if is_database:
            catalog.drop_database(name, cascade=call["cascade"])
        else:
            catalog.drop_table(name)
    return call.changed(f"{kind} {name}", "dropped", {"dropped": tables})


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
    if call["create"] and _exists(catalog, name):
        raise AlreadyExistsError(f"table {name!r} exists already in {catalog.warehouse}: leave --create out")
    table = None if call["create"] else catalog.table(name)
    rows = _rows(call, None if table is None else table.schema.fields)
    numbers: list[int] = []
    reader = _counted(rows.reader(), numbers)
    if call["dry_run"]:
        if table is None:
            new_schema(_imported_schema(call, rows), 0)
        for _ in reader:
            pass
        return _imported(call, rows, sum(numbers), None)
    if table is None:
        snapshot = _created(catalog, name, _imported_schema(call, rows), reader)
    else:
        snapshot = table.overwrite(reader) if call["overwrite"] else table.write(reader)
    return _imported(call, rows, sum(numbers), None if snapshot is None else snapshot.id)


def _created(catalog: Catalog, name: str, schema: Schema, reader: pa.RecordBatchReader) -> Snapshot | None:
    """Create a table with rows, both or nothing; return its snapshot."""
    staged = catalog.stage_table(name, schema, replace_existing=False)
    try:
        staged.table.write(reader)
        return staged.publish(Operation.CREATE).snapshot()
    except BaseException:
        staged.discard()
        raise


def _counted(reader: pa.RecordBatchReader, numbers: list[int]) -> pa.RecordBatchReader:
    """Return the rows, and append the number of rows of each batch to a list."""

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in reader:
            numbers.append(batch.num_rows)
            yield batch

    return pa.RecordBatchReader.from_batches(reader.schema, batches())


def _rows(call: Invocation, columns: Sequence[DataField] | None) -> RowsOfFiles:
    """Return the rows of the files, with the columns of the table if there is one."""
    paths = [absolute(path) for path in call["files"]]
    if len({scheme_of(path) for path in paths}) > 1:
        raise click.UsageError("the files are in several stores: import the files of one store at a time")
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
    match = _COLUMN.fullmatch(text.strip())
    if match is None:
        raise click.UsageError(f"{text!r} is not 'NAME TYPE', such as 'id BIGINT NOT NULL'")
    name, kind = match.groups()
    return DataField(-1, name[1:-1].replace("``", "`") if name.startswith("`") else name, parse_type(kind))
