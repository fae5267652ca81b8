"""All subcommands. A new one is a line here."""

import click

from paimon_command.commands import (
    calling,
    checks,
    completion,
    listing,
    metadata,
    options,
    reading,
    rows,
    timeline,
    upkeep,
)

COMMANDS: tuple[click.Command, ...] = (
    listing.ls,
    listing.show,
    listing.schema,
    metadata.files,
    metadata.snapshots,
    metadata.tags,
    metadata.branches,
    metadata.partitions,
    reading.explain,
    upkeep.compact,
    upkeep.expire,
    upkeep.orphans,
    timeline.tag,
    timeline.branch,
    timeline.rollback,
    timeline.consumers,
    rows.delete,
    reading.read,
    reading.get,
    reading.tail,
    checks.verify,
    checks.advice,
    checks.repair,
    checks.doctor,
    options.options,
    calling.call,
    completion.completion,
)
