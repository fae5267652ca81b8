"""The health of a table: its measures, and the findings of the checks."""

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from paimon_core.errors import OutOfRangeError
from paimon_core.inspect.advice.buckets import bucket_table
from paimon_core.inspect.advice.check_registry import CHECKS
from paimon_core.inspect.advice.history_bytes import history_bytes
from paimon_core.inspect.advice.report import SEVERITIES, Advice, TableHealth, TableOverview
from paimon_core.inspect.advice.table_facts import DEFAULT_LIMITS, Facts, Limits
from paimon_core.store.expired import raise_if_expired
from paimon_core.store.file_store import FileStore

T = TypeVar("T")
_ATTEMPTS = 3
_MOST_DIRECTORIES = 200  # of a table that are listed for an overview


def health(store: FileStore, limits: Limits = DEFAULT_LIMITS) -> TableHealth:
    """Return the measures of the newest snapshot of a table, and advice, without changing anything.

    Only metadata is read. Memory: about 200 bytes for each live file. Raises CorruptedError for damaged metadata, which
    `verify` explains; OutOfRangeError if snapshots expire faster than their manifests are read.
    """
    return _attempted(lambda: _health(_newest(store), limits), _ATTEMPTS)


def advise(store: FileStore, limits: Limits = DEFAULT_LIMITS) -> tuple[Advice, ...]:
    """Return the advice of `health` without its table of measures, which costs more than the checks."""
    return _attempted(lambda: _advice(_facts(_newest(store), limits)), _ATTEMPTS)


def overview(store: FileStore, threads: int | None = None) -> TableOverview:
    """Return the size of a table and its advice. Cost and errors: see `health`, without its table of measures.

    Also lists the directories of buckets, up to 200 directories; ``threads``: the number of listings at a time, `None`:
    the default number of threads. REQUIRES: the main branch.
    """
    return _attempted(lambda: _overview(_facts(_newest(store), DEFAULT_LIMITS), threads), _ATTEMPTS)


def _overview(facts: Facts, threads: int | None) -> TableOverview:
    advice = _advice(facts)
    with raise_if_expired(facts.store, facts.snapshot):
        files = facts.files
    total = int(files.size.sum()) + files.postponed_bytes
    history = history_bytes(facts.store, files.names, _MOST_DIRECTORIES, threads)
    return TableOverview(facts.snapshot, len(files) + files.postponed_files, total, advice, history)


def _attempted(work: Callable[[], T], attempts: int) -> T:
    try:
        return work()
    except OutOfRangeError:
        if attempts == 1:
            raise
        return _attempted(work, attempts - 1)


def _newest(store: FileStore) -> FileStore:
    """Return the table with the newest version of its schema, keeping its dynamic options."""
    newest = store.schemas.latest()
    if newest is None or newest.id <= store.schema.id:
        return store
    options, stored = store.options, store.schemas.get(store.schema.id).options
    dynamic = {key: options.get(key) for key in {**stored, **options} if options.get(key) != stored.get(key)}
    return store.with_schema(newest).with_options(dynamic)


def _facts(store: FileStore, limits: Limits) -> Facts:
    return Facts(store, store.snapshots.latest(), limits)


def _advice(facts: Facts) -> tuple[Advice, ...]:
    with raise_if_expired(facts.store, facts.snapshot):
        advices = [advice for check in CHECKS for advice in check.advice(facts)]
    return tuple(sorted(advices, key=lambda advice: SEVERITIES.index(advice.severity)))


def _health(store: FileStore, limits: Limits) -> TableHealth:
    facts = _facts(store, limits)
    newest = None if facts.snapshot is None else facts.snapshot.id
    advice = _advice(facts)
    with raise_if_expired(store, newest):
        numbers = np.array([bucket.bucket for bucket in facts.files.buckets], np.int64)
        buckets = bucket_table(facts.buckets, facts.partition_names(), numbers)
    return TableHealth(newest, buckets, advice)
