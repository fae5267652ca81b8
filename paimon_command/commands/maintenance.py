"""Maintenance of files and snapshots that does not change rows."""

from collections.abc import Mapping
from dataclasses import asdict

import click

from paimon_command.invocation import Invocation, command, split
from paimon_command.output import Answer
from paimon_core import CompactionRequest, Table, TableMaintenance
from paimon_core.engine import partition_spec, partition_values, plan_table
from paimon_core.errors import InvalidInputError
from paimon_core.options.parse import number_list

_OLDER_THAN = click.Option(["--older-than"], metavar="TIME", help="Before this time: text in local time, or epoch ms.")


@command(
    "compact",
    click.Option(["--full"], is_flag=True, help="Compact as far as possible; default: what the options call for."),
    click.Option(
        ["--partition"], multiple=True, metavar="A=1,B=2", help="Only this partition. Repeatable; default: all."
    ),
    click.Option(["--where"], metavar="FILTER", help="Only partitions that match a filter on partition columns."),
    click.Option(["--buckets"], metavar="0-99,150", help="Only these buckets; default: all."),
    click.Option(
        ["--order-by"], metavar="A,B", callback=lambda c, p, v: split(v), help="Sort the rows by these columns."
    ),
    click.Option(["--order-strategy"], type=click.Choice(["order", "zorder", "hilbert", "auto"]), help="How to sort."),
    dry_run=True,
    spark=True,
)
def compact(call: Invocation) -> Answer:
    """Compact files, in one commit that changes no row."""
    table = call.table()
    request = CompactionRequest(
        full=call["full"],
        order_by=call["order_by"],
        order_strategy=call["order_strategy"],
        partitions=_partitions(table, call["partition"]),
        filter=call["where"],
        buckets=_buckets(call["buckets"]),
    )
    if call["dry_run"]:
        if request.sorts:
            raise click.UsageError(
                "--dry-run shows a plan, but a sort can only be planned by reading the rows: use only one of them"
            )
        return _planned(table, request)
    with call.runner(table.path) as runner, call.progress() as progress:
        snapshot = TableMaintenance(table.maintenance.store, runner).run(request, progress=progress)
    if snapshot is None:
        return Answer({"snapshot": None}, "nothing to compact")
    return Answer({"snapshot": snapshot.id}, f"compacted in snapshot {snapshot.id}")


def _partitions(table: Table, texts: tuple[str, ...]) -> list[Mapping[str, object]] | None:
    what = "--partition"
    try:
        return [partition_values(table.schema, partition_spec(text), what, table.path) for text in texts] or None
    except InvalidInputError:
        raise
    except ValueError as error:
        raise click.UsageError(f"{what} {error}") from error


def _buckets(text: str | None) -> list[int] | None:
    """Return the numbers of a text such as '0-99,150'; `None` without a text."""
    try:
        return None if text is None else number_list(text)
    except ValueError as error:
        raise click.UsageError(f"--buckets {error}, not {text!r}") from error


def _planned(table: Table, request: CompactionRequest) -> Answer:
    """Return the tasks that a compaction would run."""
    tasks, postponed = plan_table(table.maintenance.store, request)
    size = sum(task.size for task in tasks)
    text = f"{len(tasks)} tasks would rewrite {size} bytes"
    if postponed:
        text += f"; {postponed} postponed files would get their buckets first, and are not in this plan"
    return Answer({"dry_run": True, "tasks": len(tasks), "bytes": size, "postponed_files": postponed}, text)


@command(
    "expire",
    _OLDER_THAN,
    click.Option(["--retain-max"], type=int, help="Keep no more than this number of snapshots."),
    click.Option(["--retain-min"], type=int, help="Keep at least this number of snapshots."),
    click.Option(["--max-deletes"], type=int, help="Remove no more than this number of snapshots."),
    dry_run=True,
)
def expire(call: Invocation) -> Answer:
    """Remove old snapshots and the files that only they need. Defaults are the options of the table."""
    expired = call.table().maintenance.expire_snapshots(
        call["older_than"],
        call["retain_max"],
        call["retain_min"],
        max_deletes=call["max_deletes"],
        dry_run=call["dry_run"],
    )
    would = "would be removed" if call["dry_run"] else "removed"
    counts = f"{len(expired.snapshots)} snapshots, {len(expired.changelogs)} changelogs and {expired.files} files"
    return Answer({**_dry(call), **asdict(expired)}, f"{counts} {would}")


@command(
    "orphans",
    _OLDER_THAN,
    click.Option(["--yes"], is_flag=True, help="Delete the files; without it they are only listed."),
    dry_run=True,
    spark=True,
)
def orphans(call: Invocation) -> Answer:
    """Find files that nothing refers to, by default of at least a day; with --yes delete them.

    With a shorter --older-than, no write may be running that began before it.
    """
    if call["yes"] and call["dry_run"]:
        raise click.UsageError("--yes deletes the files and --dry-run only lists them: leave one out")
    table, deletes = call.table(), call["yes"]
    with call.runner(table.path) as runner:
        verbs = TableMaintenance(table.maintenance.store, runner)
        found = verbs.remove_orphan_files(call["older_than"], dry_run=not deletes)
    what = f"{found.count} files of {found.bytes} bytes"
    end = "deleted" if deletes else "that nothing refers to" + ("; --yes deletes them" if found.count else "")
    text = "\n".join([*found.paths, f"{what} {end}"])
    return Answer({"deleted": deletes, "count": found.count, "bytes": found.bytes, "files": found.paths}, text)


def _dry(call: Invocation) -> dict[str, object]:
    return {"dry_run": True} if call["dry_run"] else {}
