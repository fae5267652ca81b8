"""Verify, repair and advise on a table, and check its storage."""

from collections.abc import Mapping
from dataclasses import asdict

import click

from paimon_command import completions
from paimon_command.invocation import Invocation, command
from paimon_command.location import is_path, named_warehouse, open_table, storage_options
from paimon_command.output import Answer
from paimon_command.probes import Finding, probe
from paimon_command.warehouse import states_answer, table_group
from paimon_core.engine import SEVERE, Fault, FileIO, absolute, check_writable
from paimon_core.errors import PaimonError, hide_secrets


@command("verify", click.Option(["--deep"], is_flag=True, help="Read the rows, too."))
def verify(call: Invocation) -> Answer:
    """Look for everything in a table, in all branches, that contradicts the format. Exit code 1: faults were found."""
    table = call.table()
    with call.progress() as progress:
        report = table.verify(call["deep"], progress)
    faults = [_row(one) for one in report.faults]
    counts = {name: getattr(report, name) for name in ("branches", "snapshots", "files", "rows")}
    return Answer({"sound": report.sound, **counts, "faults": faults}, str(report), problem=not report.sound)


@command(
    "advice",
    click.Argument(["table"], required=False, metavar="[TABLE|DATABASE|WAREHOUSE]", shell_complete=completions.tables),
    table=False,
)
def advice(call: Invocation) -> Answer:
    """Advise how to make a table faster or smaller, with commands to run. Exit code 1: some advice is severe.

    For a database or a warehouse, print a line for each table: its live bytes, the bytes of its history, the age of its
    last commit, and the most urgent advice. A table that cannot be read is a problem, too. Default: the whole
    warehouse.
    """
    group = table_group(call["table"], call["warehouse"], call["option"])
    if group is not None:
        return states_answer(group.state(), call.output)
    health = call.table().health()
    rows = [asdict(one) for one in health.advice]
    return Answer(rows, str(health), problem=health.severity == SEVERE)


@command(
    "repair",
    click.Option(["--deep"], is_flag=True, help="Read the rows, too."),
    click.Option(
        ["--missing-files"], is_flag=True, help="Remove missing data files from the table: their rows are lost."
    ),
    dry_run=True,
)
def repair(call: Invocation) -> Answer:
    """Repair the faults that verify finds, without guessing. Exit code 1: some faults are left, with advice for each.

    Snapshots never change: a corrected snapshot follows the newest, and older snapshots keep their faults until expiry.
    """
    table = call.table()
    given = {name: call[name] for name in ("deep", "missing_files", "dry_run")}
    with call.progress() as progress:
        report = table.repair(progress=progress, **given)
    repaired = [_row(fault) for fault in report.repaired]
    remaining = [{**_row(one.fault), "advice": one.advice} for one in report.left]
    found = {"dry_run": report.dry_run, "repaired": repaired, "left": remaining}
    return Answer(found, str(report), problem=not report.sound)


_WITHIN = click.Argument(["within"], required=False, metavar="[TABLE|WAREHOUSE]", shell_complete=completions.tables)


@command("doctor", _WITHIN, table=False)
def doctor(call: Invocation) -> Answer:
    """Test the storage for the needs of a commit, and print the settings to change. Exit code 1: a test failed.

    It lists, reads a range, creates a file only if it is absent, and compares clocks. Its files are deleted again.
    Without an argument, it tries the directory of --warehouse.
    """
    within, findings = call["within"], list[Finding]()
    if within is None:
        catalog = call.catalog()
        if not catalog.in_directory:
            raise click.UsageError(
                f"{catalog.warehouse!r} is the name of a catalog on a server, which has no directory to test: name a "
                "table, or the directory of one"
            )
        within = catalog.warehouse
    elif not is_path(within):
        named = named_warehouse(call["warehouse"]) is not None
        within = call.catalog().location(within) if named else f"./{within}"
    root = absolute(within)
    io = FileIO.of(root, storage_options(call["option"], root))
    findings += probe(io, root)
    if all(one.fine for one in findings) and io.list(f"{root}/schema"):
        findings.append(_table(root, call["option"]))
    rows = [{"check": one.check, "fine": one.fine, "found": one.found, "advice": one.advice} for one in findings]
    return Answer(rows, _report(findings), problem=not all(one.fine for one in findings))


def _row(fault: Fault) -> dict[str, str]:
    return {"kind": fault.kind, "path": hide_secrets(fault.path), "message": hide_secrets(fault.message)}


def _table(root: str, given: Mapping[str, str]) -> Finding:
    """Return the finding about reading and writing the table in a directory."""
    try:
        schema = open_table(root, None, given).schema
        check_writable(schema)
    except PaimonError as error:
        return Finding("table", False, str(error), "another engine may read it; paimon-spark options explains options")
    return Finding("table", True, f"schema {schema.id}: this engine can read and write it")


def _report(findings: list[Finding]) -> str:
    lines = []
    for one in findings:
        if one.note:
            lines.append(f"note {one.found}")
        else:
            lines.append(f"{'ok  ' if one.fine else 'FAIL'} {one.check}: {one.found}")
        if one.advice:
            lines.append(f"     {one.advice}")
    return "\n".join(lines)
