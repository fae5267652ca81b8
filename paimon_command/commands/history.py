"""Tags, branches, rollback and consumers."""

import click

from paimon_command.invocation import Invocation, command
from paimon_command.output import Answer
from paimon_core import Tag
from paimon_core.engine import roll_back, target_of
from paimon_core.types.human_text import count

_DELETE = click.Option(["--delete"], is_flag=True, help="Delete it.")
_RENAME = click.Option(["--rename"], metavar="NEW", help="Rename it.")


def _one_of(call: Invocation, *names: str) -> str | None:
    """Return the name of the parameter that is set, or `None`. Raises UsageError for several."""
    options = [name for name in names if call[name] not in (None, False)]
    if len(options) > 1:
        flags = " and ".join(f"--{name.replace('_', '-')}" for name in options)
        raise click.UsageError(f"{flags} are mutually exclusive: give one of them")
    return options[0] if options else None


@command(
    "tag",
    click.Argument(["name"]),
    click.Option(["--snapshot"], type=int, help="The snapshot; default: the newest."),
    click.Option(["--timestamp"], help="The first snapshot at or after this time: text in local time, or epoch ms."),
    click.Option(["--watermark"], type=int, help="The first snapshot with at least this watermark."),
    click.Option(["--retained"], metavar="AGE", help="The age at which the tag expires, such as '7 d'."),
    click.Option(["--replace"], is_flag=True, help="Give a tag that exists another snapshot or age."),
    _RENAME,
    _DELETE,
    dry_run=True,
)
def tag(call: Invocation) -> Answer:
    """Give a snapshot a name under which it stays readable; or replace, rename or delete a tag."""
    table, name, dry = call.table(), call["name"], call["dry_run"]
    tags, action = table.tags, _one_of(call, "replace", "rename", "delete") or "create"
    selector = _one_of(call, "snapshot", "timestamp", "watermark")
    if selector is not None and (action in ("rename", "delete") or (action == "replace" and selector != "snapshot")):
        raise click.UsageError(f"--{selector} does not go with --{action}")
    retained, snapshot = call["retained"], call["snapshot"]
    if action == "delete":
        changed = tags.delete(name, dry_run=dry)
        return call.changed(f"tag {name!r} of snapshot {changed.snapshot.id}", "deleted", _facts(changed))
    if action == "rename":
        changed = tags.rename(name, call["rename"], dry_run=dry)
        return call.changed(f"tag {name!r}", f"renamed to {changed.name!r}", _facts(changed))
    if action == "replace":
        changed = tags.replace(name, snapshot, retained, dry_run=dry)
    else:
        moment = {"timestamp": call["timestamp"], "watermark": call["watermark"]}
        changed = tags.create(name, snapshot, retained, **moment, dry_run=dry)
    return call.changed(f"tag {name!r} of snapshot {changed.snapshot.id}", f"{action}d", _facts(changed))


def _facts(one: Tag) -> dict[str, object]:
    return {
        "tag": one.name,
        "snapshot": one.snapshot.id,
        "expires": None if one.expires is None else one.expires.isoformat(" ", "seconds"),
    }


@command(
    "branch",
    click.Argument(["name"]),
    click.Option(["--tag"], help="The tag whose rows the new branch gets; default: a branch without rows."),
    click.Option(["--snapshot"], type=int, help="The snapshot whose rows the new branch gets."),
    click.Option(["--fast-forward"], is_flag=True, help="Make the table what the branch is."),
    click.Option(["--merge"], is_flag=True, help="Add the rows that the branch has got; without a primary key."),
    _RENAME,
    _DELETE,
    dry_run=True,
)
def branch(call: Invocation) -> Answer:
    """Create a branch, without rows or from a tag; or rename, delete, merge or fast-forward to one."""
    table, name, dry = call.table(), call["name"], call["dry_run"]
    branches, action = table.branches, _one_of(call, "rename", "delete", "fast_forward", "merge") or "create"
    selector = _one_of(call, "tag", "snapshot")
    if selector is not None and action != "create":
        raise click.UsageError(f"--{selector} does not go with --{action.replace('_', '-')}")
    facts: dict[str, object] = {"branch": call["rename"] or name}
    match action:
        case "create":
            branches.create(name, call["tag"], call["snapshot"], dry_run=dry)
            return call.changed(f"branch {name!r}", "created", facts)
        case "delete":
            branches.delete(name, dry_run=dry)
            return call.changed(f"branch {name!r}", "deleted", facts)
        case "rename":
            branches.rename(name, call["rename"], dry_run=dry)
            return call.changed(f"branch {name!r}", f"renamed to {call['rename']!r}", facts)
        case "merge":
            files = branches.merge(name, table.store.branch, dry_run=dry)
            return call.changed(f"branch {name!r}", f"merged, {count(files, 'file')}", {**facts, "files": files})
    branches.fast_forward(name, dry_run=dry)
    return call.changed(table.path, f"fast-forwarded to branch {name!r}", facts)


@command(
    "rollback",
    click.Argument(["version"], required=False, metavar="[SNAPSHOT|TAG]"),
    click.Option(["--timestamp"], help="The newest snapshot at or before this time: text in local time, or epoch ms."),
    click.Option(["--watermark"], type=int, help="The newest snapshot whose watermark is not above this number."),
    click.Option(["--keep-history"], is_flag=True, help="Write the old rows as a new snapshot; none is lost."),
    dry_run=True,
)
def rollback(call: Invocation) -> Answer:
    """Make an older snapshot or a tag the newest state.

    Newer snapshots and their tags are lost, unless --keep-history is given.
    """
    table = call.table()
    store = table.maintenance.store
    selector = _one_of(call, "version", "timestamp", "watermark")
    if selector is None:
        raise click.UsageError("rollback needs a target: a snapshot id, a tag, --timestamp or --watermark")
    target = target_of(store, call["version"], call["timestamp"], call["watermark"])
    if call["keep_history"]:
        now = None if call["dry_run"] else table.restore(target.id)
        done = f"restored to the rows of snapshot {target.id}, in a new snapshot"
        return call.changed(table.path, done, {"restored": target.id, "snapshot": None if now is None else now.id})
    lost = [number for number in store.snapshots.ids() if number > target.id]
    tags = [one.name for one in table.tags.list() if one.snapshot.id > target.id]
    if not call["dry_run"]:
        roll_back(store, target)
    facts = {"snapshot": target.id, "lost_snapshots": lost, "lost_tags": tags}
    lose = f"{count(len(lost), 'newer snapshot')} and {count(len(tags), 'tag')}"
    return call.changed(table.path, f"rolled back to snapshot {target.id}, without {lose}", facts)


@command(
    "consumers",
    click.Option(["--reset"], metavar="ID", help="Set the next snapshot of a consumer, with --to; without, delete it."),
    click.Option(
        ["--to"], type=int, metavar="SNAPSHOT", help="The first snapshot that the consumer has still to read."
    ),
    click.Option(["--clear"], metavar="REGEX", help="Delete the consumers whose ids match."),
    dry_run=True,
)
def consumers(call: Invocation) -> Answer:
    """List the positions of named streams; or change or delete them."""
    verbs, action, to = call.table().consumers, _one_of(call, "reset", "clear"), call["to"]
    if to is not None and action != "reset":
        raise click.UsageError("--to needs --reset")
    if action is None:
        rows = [{"consumer": one, "next_snapshot": number} for one, number in sorted(verbs.list().items())]
        return Answer(rows, None if rows else "no consumers")
    if action == "clear":
        ids = verbs.clear(call["clear"], dry_run=call["dry_run"])
        return call.changed(f"consumers {', '.join(ids) or 'none'}", "deleted", {"deleted": ids})
    verbs.reset(call["reset"], to, dry_run=call["dry_run"])
    what = "deleted" if to is None else f"set to snapshot {to}"
    return call.changed(f"consumer {call['reset']!r}", what, {"consumer": call["reset"], "next_snapshot": to})
