"""Maintenance of files and snapshots that does not change rows."""

import time
from collections.abc import Mapping
from dataclasses import asdict

import click

from paimon_command.completions import columns
from paimon_command.invocation import Invocation, command, split
from paimon_command.output import Answer
from paimon_core import CompactionRequest, RescaleRequest, RewriteResult, Table, TableMaintenance
from paimon_core.engine import outdated_files, partition_spec, partition_values, plan_table
from paimon_core.errors import InvalidInputError
from paimon_core.options.parse import number_list
from paimon_core.types.human_text import count, duration, size

_PARTITION = click.Option(
    ["--partition"], multiple=True, metavar="A=1,B=2", help="Only this partition. Repeatable; default: all."
)
_WHERE = click.Option(["--where"], metavar="FILTER", help="Only partitions that match a filter on partition columns.")
_OLDER_THAN = click.Option(["--older-than"], metavar="TIME", help="Before this time: text in local time, or epoch ms.")


@command(
    "compact",
    click.Option(["--full"], is_flag=True, help="Compact as far as possible; default: what the options call for."),
    _PARTITION,
    _WHERE,
    click.Option(["--buckets"], metavar="0-99,150", help="Only these buckets; default: all."),
    click.Option(
        ["--order-by"],
        metavar="A,B",
        callback=lambda c, p, v: split(v),
        shell_complete=columns,
        help="Sort the rows by these columns.",
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
        result = TableMaintenance(table.maintenance.store, runner).run(request, progress=progress)
    return _rewritten(result, "compacted", "nothing to compact")


@command(
    "rescale",
    click.Argument(["buckets"], type=click.IntRange(min=1), required=False),
    _PARTITION,
    _WHERE,
    dry_run=True,
    spark=True,
)
def rescale(call: Invocation) -> Answer:
    """Change the number of buckets and rewrite the partitions, each in one commit that changes no row.

    Without BUCKETS, rewrite the partitions that differ from the option 'bucket'.
    """
    table = call.table()
    partitions = _partitions(table, call["partition"])
    request = RescaleRequest(buckets=call["buckets"], partitions=partitions, filter=call["where"])
    maintenance = table.maintenance
    if call["dry_run"]:
        outdated = outdated_files(maintenance.store, request)
        files = [file for several in outdated.values() for file in several]
        total = sum(file.file_size for file in files)
        facts = {"dry_run": True, "partitions": len(outdated), "files": len(files), "bytes": total}
        return Answer(facts, f"{count(len(outdated), 'partition')} of {_files(len(files), total)} would be rewritten")
    with call.runner(table.path) as runner, call.progress() as progress:
        result = TableMaintenance(maintenance.store, runner).run(request, progress=progress)
    return _rewritten(result, "rescaled", "nothing to rescale")


def _rewritten(result: RewriteResult, done: str, nothing: str) -> Answer:
    """Return the answer of a compaction or a rescale.

    Args:
        result: the result of the operation.
        done: the operation in the past tense.
        nothing: the text if no file was rewritten.
    """
    rewritten = result.rewritten
    facts = {
        "snapshot": None if result.snapshot is None else result.snapshot.id,
        **({} if rewritten is None else asdict(rewritten)),
        "milliseconds": round(result.seconds * 1000),
    }
    if result.snapshot is None:
        return Answer(facts, nothing)
    text = f"{done} in snapshot {result.snapshot.id}"
    if rewritten is not None and rewritten.files_before:
        text += f": {_files(rewritten.files_before, rewritten.bytes_before)} became {rewritten.files_after:,}"
        text += f" of {size(rewritten.bytes_after)}" if rewritten.files_after else ""
    return Answer(facts, f"{text}, in {duration(result.seconds)}")


def _files(number: int, total: int) -> str:
    return f"{count(number, 'file')} of {size(total)}"


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
    total = sum(task.size for task in tasks)
    text = f"{count(len(tasks), 'task')} would rewrite {size(total)}"
    if postponed:
        files = count(postponed, "postponed file")
        text += f"; {files} would be routed to buckets first, and the plan leaves them out"
    return Answer({"dry_run": True, "tasks": len(tasks), "bytes": total, "postponed_files": postponed}, text)


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
    started = time.monotonic()
    expired = call.table().maintenance.expire_snapshots(
        call["older_than"],
        call["retain_max"],
        call["retain_min"],
        max_deletes=call["max_deletes"],
        dry_run=call["dry_run"],
    )
    timelines = f"{count(len(expired.snapshots), 'snapshot')}, {count(len(expired.changelogs), 'changelog')}"
    counts = f"{timelines} and {_files(expired.files, expired.bytes)}"
    if call["dry_run"]:
        return Answer({"dry_run": True, **asdict(expired)}, f"{counts} would be removed")
    seconds = time.monotonic() - started
    facts = {**asdict(expired), "milliseconds": round(seconds * 1000)}
    return Answer(facts, f"{counts} removed, in {duration(seconds)}")


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
    table, deletes, started = call.table(), call["yes"], time.monotonic()
    with call.runner(table.path) as runner:
        maintenance = TableMaintenance(table.maintenance.store, runner)
        orphan_files = maintenance.remove_orphan_files(call["older_than"], dry_run=not deletes)
    seconds = time.monotonic() - started
    if deletes:
        end = f"deleted, in {duration(seconds)}"
    else:
        end = "that nothing refers to" + ("; --yes deletes them" if orphan_files.count else "")
    text = "\n".join([*orphan_files.paths, f"{_files(orphan_files.count, orphan_files.bytes)} {end}"])
    facts = {"deleted": deletes, "count": orphan_files.count, "bytes": orphan_files.bytes}
    return Answer({**facts, "milliseconds": round(seconds * 1000), "files": orphan_files.paths}, text)
