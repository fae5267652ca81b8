"""The health of a table: its measures, and what the checks find in them."""

import numpy as np

from paimon_core.advice.buckets import bucket_table
from paimon_core.advice.facts import DEFAULT_LIMITS, Facts, Limits
from paimon_core.advice.registry import CHECKS
from paimon_core.advice.report import SEVERITIES, TableHealth
from paimon_core.errors import OutOfRangeError
from paimon_core.store.expired import raise_if_expired
from paimon_core.store.file_store import FileStore

_ATTEMPTS = 3


def health(store: FileStore, limits: Limits = DEFAULT_LIMITS) -> TableHealth:
    """Return the measures of the newest snapshot of a table, and advice; nothing is changed.

    Metadata are read, and no data file. Memory: some 200 bytes for each live file. Raises CorruptedError for damaged
    metadata, which `verify` explains; OutOfRangeError if snapshots expire faster than their manifests are read.
    """
    return _attempted(store, limits, _ATTEMPTS)


def _attempted(store: FileStore, limits: Limits, attempts: int) -> TableHealth:
    try:
        return _health(store, limits)
    except OutOfRangeError:
        if attempts == 1:
            raise
        return _attempted(store, limits, attempts - 1)


def _health(store: FileStore, limits: Limits) -> TableHealth:
    snapshot = store.snapshots.latest()
    newest = None if snapshot is None else snapshot.id
    facts = Facts(store, snapshot, limits)
    with raise_if_expired(store, newest):
        found = [advice for check in CHECKS for advice in check.advice(facts)]
        numbers = np.array([bucket.bucket for bucket in facts.files.buckets], np.int64)
        buckets = bucket_table(facts.buckets, facts.partition_names(), numbers)
    found.sort(key=lambda advice: SEVERITIES.index(advice.severity))
    return TableHealth(newest, buckets, tuple(found))
