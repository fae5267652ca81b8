"""Expire partitions: drop the partitions that are older than ``partition.expiration-time`` (behaviour 7.15).

The age of a partition follows from the time in its values (``values-time``) or from its newest file (``update-time``).
An OVERWRITE, which streams ignore, drops the partition. With ``values-time`` this includes rows committed at the same
time, because they are just as old. With ``update-time`` a partition that receives a file at the same time stays.

After commits, the check is due once per ``partition.expiration-check-interval`` of the table, not of a writer: when the
newest snapshot is the first one of its interval. Thus a table with many short-lived writers is checked, too. Snapshots
of compactions do not count, because a commit may publish one together with its own; after a dedicated maintenance job
only they count. The intervals of different tables begin at different times.
"""

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from hashlib import blake2b
from itertools import islice
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
from paimon_core.snapshot.snapshot import BATCH_COMMIT_IDENTIFIER, CommitKind, Snapshot
from paimon_core.store.clock import earlier_clock
from paimon_core.store.file_store import FileStore
from paimon_core.store.layout import partition_text

_log = logging.getLogger(__name__)
_MILLI = timedelta(milliseconds=1)
_ATTEMPTS = 5
_MOST_READ = 100  # snapshots, for two of the kind that counts
VALUES_TIME, UPDATE_TIME = "values-time", "update-time"

PartitionName = dict[str, str]
"""The values of a partition as texts, by column name."""


@dataclass(frozen=True, slots=True)
class _Partition:
    """A live partition: its serialised key, its values (``None``: null), and its newest file's creation time."""

    key: bytes
    values: dict[str, str | None]
    newest: int


def expire_partitions(store: FileStore, *, dry_run: bool = False) -> list[PartitionName]:
    """Drop the partitions that are due by the table's options, and return them sorted by value.

    The earlier of the clocks of this machine and of the store counts. Drop at most the first
    ``partition.expiration-max-num`` partitions, ``partition.expiration-batch-size`` in each commit. A partition whose
    values are null or contain no time never expires by its values.

    Args:
        store: the table whose partitions expire.
        dry_run: True to drop nothing and return the partitions that would be dropped.

    Raises InvalidInputError for a table without partitions or without ``partition.expiration-time``, UnsupportedError
    for an unknown strategy or format, CommitConflictError if other commits change the partitions in every attempt.
    """
    age, strategy = store.options.value(PARTITION_EXPIRATION_TIME), _strategy(store)
    if not store.schema.partition_keys:
        raise InvalidInputError(f"{store.root} has no partitions that can expire")
    if age is None:
        raise InvalidInputError(
            f"the age at which partitions of {store.root} expire is not set: pass it, for example '30 d', or set the "
            f"option {PARTITION_EXPIRATION_TIME.key!r}"
        )
    by_values = strategy == VALUES_TIME
    before = _before_now(store.now(), age)
    snapshot, newest = _newest_files(store)
    due = _due(store, newest, before, by_values=by_values)
    if due and not dry_run and (earlier := _before_now(earlier_clock(store), age)) < before:
        before = earlier
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


def expire_partitions_after_commit(store: FileStore, newest: Snapshot, *, dedicated: bool = False) -> None:
    """Drop the partitions that are due, if the check is due (see the module). Never fails: an error is logged.

    ``newest``: the newest snapshot. ``dedicated``: True after a job that does not write rows.
    """
    try:
        if store.options.value(PARTITION_EXPIRATION_TIME) is None or not store.schema.partition_keys:
            return
        if _check_is_due(store, newest, dedicated=dedicated):
            expire_partitions(store)
    except Exception as error:
        _log.warning(
            "partitions of %s were not expired, a later commit tries again: %s",
            hide_secrets(store.root),
            hide_secrets(str(error)),
        )


def _check_is_due(store: FileStore, newest: Snapshot, *, dedicated: bool) -> bool:
    interval = store.options.value(PARTITION_EXPIRATION_CHECK_INTERVAL) // _MILLI
    if not interval:
        return True
    if store.options.value(END_INPUT_CHECK_PARTITION_EXPIRE) and newest.commit_identifier == BATCH_COMMIT_IDENTIFIER:
        return True
    offset = int.from_bytes(blake2b(store.branch_root.encode(), digest_size=8).digest(), "big") % interval
    times = islice(_times(store, newest, of_compactions=dedicated), 2)
    intervals = [(time + offset) // interval for time in times]
    return len(intervals) < 2 or intervals[1] < intervals[0]


def _times(store: FileStore, newest: Snapshot, *, of_compactions: bool) -> Iterator[int]:
    """Yield the times of the last snapshots of compactions, or of the last other snapshots, newest first."""
    snapshot: Snapshot | None = newest
    for number in range(newest.id - 1, newest.id - 1 - _MOST_READ, -1):
        if snapshot is None:
            return
        if (snapshot.commit_kind == CommitKind.COMPACT) == of_compactions:
            yield snapshot.time_millis
        snapshot = store.snapshots.find(number)


def _strategy(store: FileStore) -> str:
    strategy: str = store.options.value(PARTITION_EXPIRATION_STRATEGY).strip().lower().replace("_", "-")
    if strategy not in (VALUES_TIME, UPDATE_TIME):
        raise UnsupportedError(
            f"option {PARTITION_EXPIRATION_STRATEGY.key!r} of {store.root} is {strategy!r}: use {VALUES_TIME!r} or "
            f"{UPDATE_TIME!r}; a Java class cannot be loaded"
        )
    return strategy


def partitions_not_due(store: FileStore) -> Predicate | None:
    """Return a bound predicate for the partitions that are not due; `None` if no partition is due or can expire.

    Raises the errors of `expire_partitions` for an unknown strategy or format.
    """
    age = store.options.value(PARTITION_EXPIRATION_TIME)
    if age is None or not store.schema.partition_keys:
        return None
    before = _before_now(store.now(), age)
    _, newest = _newest_files(store)
    due = {partition.key for partition in _due(store, newest, before, by_values=_strategy(store) == VALUES_TIME)}
    staying = newest.keys() - due
    if not due:
        return None
    return partitions_predicate(store, staying, most=len(staying)) if staying else Constant(False)


def _before_now(now: int, age: timedelta) -> int:
    """Return the local time (ms) that is an age before an instant (epoch ms)."""
    return local_millis(now) - age // _MILLI


def _newest_files(store: FileStore) -> tuple[Snapshot | None, dict[bytes, int]]:
    """Return the newest snapshot, and the creation time (local ms) of the newest file of each of its partitions."""
    snapshot, newest = store.snapshots.latest(), dict[bytes, int]()
    for entry in live_entries(store, snapshot, with_stats=False).live if snapshot is not None else ():
        newest[entry.partition] = max(newest.get(entry.partition, 0), entry.file.creation_time or 0)
    return snapshot, newest


def _due(store: FileStore, newest: Mapping[bytes, int], before: int, *, by_values: bool) -> list[_Partition]:
    """Return the partitions older than a time (local milliseconds), sorted by value."""
    partitions = [_Partition(key, _values(store, key), created) for key, created in newest.items()]
    due = (
        _before(store, partitions, before)
        if by_values
        else [partition for partition in partitions if partition.newest < before]
    )
    return sorted(due, key=lambda partition: ",".join(map(str, partition.values.values())))


def _before(store: FileStore, partitions: Sequence[_Partition], before: int) -> list[_Partition]:
    """Return the partitions whose values contain a time before ``before`` (local milliseconds)."""
    parse = time_parser(store.options.value(PARTITION_TIMESTAMP_FORMATTER))
    pattern, old, without = store.options.value(PARTITION_TIMESTAMP_PATTERN), [], []
    for partition in partitions:
        texts = {column: text for column, text in partition.values.items() if text is not None}
        complete = len(texts) == len(partition.values)
        time = parse(time_text(pattern, texts)) if complete or (texts and pattern is None) else None
        if time is None:
            without.append(partition)
        elif time < before * 1000:
            old.append(partition)
    if without:
        _log.warning(
            "%d partitions of %s contain no time and never expire, the first is %s: set %r and %r, or %r = %r",
            len(without),
            hide_secrets(store.root),
            without[0].values,
            PARTITION_TIMESTAMP_PATTERN.key,
            PARTITION_TIMESTAMP_FORMATTER.key,
            PARTITION_EXPIRATION_STRATEGY.key,
            UPDATE_TIME,
        )
    return old


def _drop_untouched(store: FileStore, before: int, batch: Collection[_Partition]) -> list[_Partition]:
    """Drop the partitions of a batch that still have no newer file; return them."""
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
    replace_files(Publisher(store), (), where, read_at=read_at)


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
    """Return the table options for the arguments that are not `None`."""
    text = f"{age // _MILLI} ms" if isinstance(age, timedelta) else age
    options = {
        PARTITION_EXPIRATION_TIME.key: text,
        PARTITION_TIMESTAMP_FORMATTER.key: formatter,
        PARTITION_TIMESTAMP_PATTERN.key: pattern,
        PARTITION_EXPIRATION_STRATEGY.key: strategy,
        PARTITION_EXPIRATION_MAX_NUM.key: None if max_num is None else str(max_num),
    }
    return {key: value for key, value in options.items() if value is not None}
