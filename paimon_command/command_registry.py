"""All subcommands. To add one, add a line here."""

import click

from paimon_command.commands import (
    calling,
    checks,
    completion,
    history,
    listing,
    maintenance,
    metadata,
    options,
    reading,
    rows,
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
    maintenance.compact,
    maintenance.rescale,
    maintenance.expire,
    maintenance.orphans,
    history.tag,
    history.branch,
    history.rollback,
    history.consumers,
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
