"""Procedures for tags."""

from paimon_core.operations.history.automatic_tags import trigger
from paimon_core.procedures.procedure import DONE, Call, Rows, procedure


@procedure("create_tag(table STRING, tag STRING, [snapshot BIGINT], [time_retained STRING])")
def create_tag(call: Call) -> Rows:
    """Create a tag on a snapshot, by default the newest; the snapshot stays readable under this name."""
    call.table().tags.create(call["tag"], call["snapshot"], call.text("time_retained"))
    return DONE


@procedure(
    "create_tag_from_timestamp(table STRING, tag STRING, timestamp BIGINT, [time_retained STRING])",
    "tagName STRING, snapshot BIGINT, commit_time BIGINT, watermark STRING",
)
def create_tag_from_timestamp(call: Call) -> Rows:
    """Create a tag on the first snapshot at or after a time (epoch milliseconds)."""
    tag = call.table().tags.create(call["tag"], retained=call.text("time_retained"), timestamp=call["timestamp"])
    watermark = None if tag.snapshot.watermark is None else str(tag.snapshot.watermark)
    return [(tag.name, tag.snapshot.id, tag.snapshot.time_millis, watermark)]


@procedure("replace_tag(table STRING, tag STRING, [snapshot BIGINT], [time_retained STRING])")
def replace_tag(call: Call) -> Rows:
    """Change the snapshot or the retention time of an existing tag."""
    call.table().tags.replace(call["tag"], call["snapshot"], call.text("time_retained"))
    return DONE


@procedure("rename_tag(table STRING, tag STRING, target_tag STRING)")
def rename_tag(call: Call) -> Rows:
    """Rename a tag."""
    call.table().tags.rename(call["tag"], call["target_tag"])
    return DONE


@procedure("delete_tag(table STRING, tag STRING)")
def delete_tag(call: Call) -> Rows:
    """Delete tags, separated by commas, and the files that only they need."""
    call.table().tags.delete_several([name.strip() for name in call["tag"].split(",")])
    return DONE


@procedure("expire_tags(table STRING, [older_than STRING])", "expired_tags STRING")
def expire_tags(call: Call) -> Rows:
    """Delete the tags whose retention time has passed, and every tag created before a time."""
    expired = call.table().tags.expire(call.millis("older_than"))
    return [(name,) for name in expired or ["No expired tags."]]


@procedure("trigger_tag_automatic_creation(table STRING)")
def trigger_tag_automatic_creation(call: Call) -> Rows:
    """Create the tags that are due according to the option 'tag.automatic-creation', as a commit does."""
    trigger(call.table().store)
    return DONE
