"""Expiry of partitions: those that are older than ``partition.expiration-time`` are dropped (behaviour 7.15).

The age of a partition is that of the time in its values (``values-time``) or of its newest file (``update-time``). It
is dropped by an OVERWRITE, which streams ignore. By values all rows of the partition are dropped, also those committed
meanwhile, for they are as old. By files, a partition that gets a file meanwhile stays.

After commits the check is due once per ``partition.expiration-check-interval`` of the table, not of a writer: if the
newest snapshot is the first one of its interval. So a table with many short writers is checked, too. The intervals of
different tables begin at different times.
"""

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from hashlib import blake2b
from typing import Any

from paimon_core.commit.overwrite_partitions import replace_files
from paimon_core.commit.publisher import Publisher
from paimon_core.commit.retry import retry_on_conflict
from paimon_core.datafile.writer import local_millis
from paimon_core.errors import InvalidInputError, UnsupportedError, hide_secrets
from paimon_core.operations.partitions.partition_time import time_parser, time_text
from paimon_core.options.bucket import (
    END_INPUT_CHECK_PARTITION_EXPIRE,
    PARTITION_DEFAULT_NAME,
    PARTITION_EXPIRATION_BATCH_SIZE,
    PARTITION_EXPIRATION_CHECK_INTERVAL,
    PARTITION_EXPIRATION_MAX_NUM,
    PARTITION_EXPIRATION_STRATEGY,
    PARTITION_EXPIRATION_TIME,
    PARTITION_TIMESTAMP_FORMATTER,
    PARTITION_TIMESTAMP_PATTERN,
)
from paimon_core.predicate.expr import Constant, Predicate
from paimon_core.scan.entries import live_entries, partitions_predicate
from paimon_core.snapshot.snapshot import BATCH_COMMIT_IDENTIFIER, Snapshot
from paimon_core.store.file_store import FileStore
from paimon_core.store.layout import partition_text

_log = logging.getLogger(__name__)
_MILLI = timedelta(milliseconds=1)
_ATTEMPTS = 5
VALUES_TIME, UPDATE_TIME = "values-time", "update-time"

PartitionName = dict[str, str]
"""The values of a partition as texts, by column."""


@dataclass(frozen=True, slots=True)
class _Partition:
    """A live partition: serialised, its values as texts (``None``: null), and when its newest file was made."""

    key: bytes
    values: dict[str, str | None]
    newest: int


def expire_partitions(store: FileStore, *, dry_run: bool = False) -> list[PartitionName]:
    """Drop the partitions that are due by the table's options, and return them, in the order of their values.

    At most ``partition.expiration-max-num`` partitions are dropped, the first ones, ``partition.expiration-batch-size``
    in each commit. A partition whose values are null or give no time never expires by its values.

    Args:
        store: of the table.
        dry_run: drop nothing, and return what would be dropped.

    Raises InvalidInputError for a table without partitions or without ``partition.expiration-time``, UnsupportedError
    for another strategy or format, CommitConflictError if others change the partitions in every attempt.
    """
    age, strategy = store.options.value(PARTITION_EXPIRATION_TIME), _strategy(store)
    if not store.schema.partition_keys:
        raise InvalidInputError(f"{store.root} has no partitions that can expire")
    if age is None:
        raise InvalidInputError(
            f"the age at which partitions of {store.root} expire is unknown: give it, such as '30 d', or set the "
            f"option {PARTITION_EXPIRATION_TIME.key!r}"
        )
    by_values = strategy == VALUES_TIME
    before = local_millis(store.now()) - age // _MILLI
    snapshot, newest = _newest_files(store)
    due = _due(store, newest, before, by_values=by_values)
    due = due[: store.options.value(PARTITION_EXPIRATION_MAX_NUM)]
    if snapshot is None or not due or dry_run:
        return [_name(store, partition) for partition in due]
    size = store.options.value(PARTITION_EXPIRATION_BATCH_SIZE) or len(due)
    dropped: list[_Partition] = []
    for start in range(0, len(due), size):
        batch = due[start : start + size]
        if by_values:
            _drop(store, batch, None)
            dropped += batch
        else:
            dropped += retry_on_conflict(lambda batch=batch: _drop_untouched(store, before, batch), _ATTEMPTS)  # type: ignore[misc]
    return [_name(store, partition) for partition in dropped]


def expire_partitions_after_commit(store: FileStore) -> None:
    """Drop the partitions that are due, if the check is due (see the module). Never fails: an error is logged."""
    try:
        if store.options.value(PARTITION_EXPIRATION_TIME) is None or not store.schema.partition_keys:
            return
        if _check_is_due(store):
            expire_partitions(store)
    except Exception as error:
        _log.warning(
            "partitions of %s were not expired, a later commit tries again: %s",
            hide_secrets(store.root),
            hide_secrets(str(error)),
        )


def _check_is_due(store: FileStore) -> bool:
    interval = store.options.value(PARTITION_EXPIRATION_CHECK_INTERVAL) // _MILLI
    newest = store.snapshots.latest()
    if newest is None:
        return False
    if not interval:
        return True
    if store.options.value(END_INPUT_CHECK_PARTITION_EXPIRE) and newest.commit_identifier == BATCH_COMMIT_IDENTIFIER:
        return True
    before = store.snapshots.find(newest.id - 1)
    offset = int.from_bytes(blake2b(store.branch_root.encode(), digest_size=8).digest(), "big") % interval
    return before is None or (before.time_millis + offset) // interval < (newest.time_millis + offset) // interval


def _strategy(store: FileStore) -> str:
    strategy: str = store.options.value(PARTITION_EXPIRATION_STRATEGY).strip().lower().replace("_", "-")
    if strategy not in (VALUES_TIME, UPDATE_TIME):
        raise UnsupportedError(
            f"option {PARTITION_EXPIRATION_STRATEGY.key!r} of {store.root} is {strategy!r}: there are "
            f"{VALUES_TIME!r} and {UPDATE_TIME!r}; a class is of another language"
        )
    return strategy


def partitions_not_due(store: FileStore) -> Predicate | None:
    """Return a bound predicate for the partitions that do not expire yet; `None`: none does, or none can.

    Raises as `expire_partitions` for another strategy or format.
    """
    age = store.options.value(PARTITION_EXPIRATION_TIME)
    if age is None or not store.schema.partition_keys:
        return None
    before = local_millis(store.now()) - age // _MILLI
    _, newest = _newest_files(store)
    due = {partition.key for partition in _due(store, newest, before, by_values=_strategy(store) == VALUES_TIME)}
    staying = newest.keys() - due
    if not due:
        return None
    return partitions_predicate(store, staying, most=len(staying)) if staying else Constant(False)


def _newest_files(store: FileStore) -> tuple[Snapshot | None, dict[bytes, int]]:
    """Return the newest snapshot, and when the newest file of each of its partitions was made (local milliseconds)."""
    snapshot, newest = store.snapshots.latest(), dict[bytes, int]()
    for entry in live_entries(store, snapshot, with_stats=False).live if snapshot is not None else ():
        newest[entry.partition] = max(newest.get(entry.partition, 0), entry.file.creation_time or 0)
    return snapshot, newest


def _due(store: FileStore, newest: Mapping[bytes, int], before: int, *, by_values: bool) -> list[_Partition]:
    """Return the partitions from before a moment (local milliseconds), in the order of their values."""
    partitions = [_Partition(key, _values(store, key), made) for key, made in newest.items()]
    found = _before(store, partitions, before) if by_values else [one for one in partitions if one.newest < before]
    return sorted(found, key=lambda one: ",".join(map(str, one.values.values())))


def _before(store: FileStore, partitions: Sequence[_Partition], before: int) -> list[_Partition]:
    """Return the partitions whose values give a time before a moment."""
    parse = time_parser(store.options.value(PARTITION_TIMESTAMP_FORMATTER))
    pattern, found, without = store.options.value(PARTITION_TIMESTAMP_PATTERN), [], []
    for partition in partitions:
        texts = {column: text for column, text in partition.values.items() if text is not None}
        complete = len(texts) == len(partition.values)
        time = parse(time_text(pattern, texts)) if complete or (texts and pattern is None) else None
        if time is None:
            without.append(partition)
        elif time < before * 1000:
            found.append(partition)
    if without:
        _log.warning(
            "%d partitions of %s have no time and never expire, the first is %s: set %r and %r, or %r = %r",
            len(without),
            hide_secrets(store.root),
            without[0].values,
            PARTITION_TIMESTAMP_PATTERN.key,
            PARTITION_TIMESTAMP_FORMATTER.key,
            PARTITION_EXPIRATION_STRATEGY.key,
            UPDATE_TIME,
        )
    return found


def _drop_untouched(store: FileStore, before: int, batch: Collection[_Partition]) -> list[_Partition]:
    """Drop the partitions of a batch that have no newer file still; return them."""
    snapshot, newest = _newest_files(store)
    due = _due(store, newest, before, by_values=False)
    keys = {partition.key for partition in batch}
    due = [partition for partition in due if partition.key in keys]
    if due and snapshot is not None:
        _drop(store, due, snapshot)
    return due


def _drop(store: FileStore, batch: Sequence[_Partition], read_at: Snapshot | None) -> None:
    where = partitions_predicate(store, {partition.key for partition in batch}, most=len(batch))
    assert where is not None
    replace_files(Publisher(store), where, read_at=read_at)


def _values(store: FileStore, key: bytes) -> dict[str, str | None]:
    """Return the values of a partition as texts."""
    pairs: Sequence[tuple[Any, Any]] = list(
        zip(store.schema.partition_fields, store.partition_values(key), strict=True)
    )
    return {field.name: None if value is None else partition_text(value, field, legacy=False) for field, value in pairs}


def _name(store: FileStore, partition: _Partition) -> PartitionName:
    default = store.options.value(PARTITION_DEFAULT_NAME)
    return {column: default if text is None else text for column, text in partition.values.items()}


def expiration_options(
    age: timedelta | str | None,
    formatter: str | None = None,
    pattern: str | None = None,
    strategy: str | None = None,
    max_num: int | None = None,
) -> Mapping[str, str]:
    """Return the options of the arguments that are given."""
    text = f"{age // _MILLI} ms" if isinstance(age, timedelta) else age
    given = {
        PARTITION_EXPIRATION_TIME.key: text,
        PARTITION_TIMESTAMP_FORMATTER.key: formatter,
        PARTITION_TIMESTAMP_PATTERN.key: pattern,
        PARTITION_EXPIRATION_STRATEGY.key: strategy,
        PARTITION_EXPIRATION_MAX_NUM.key: None if max_num is None else str(max_num),
    }
    return {key: value for key, value in given.items() if value is not None}
