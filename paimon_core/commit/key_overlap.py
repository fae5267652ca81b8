"""The keys that two commits have written to the same buckets of a table with a primary key."""

from collections.abc import Sequence

import pyarrow as pa

from paimon_core.commit.changes import Changes
from paimon_core.datafile.reader import read_file
from paimon_core.errors import CorruptedError
from paimon_core.manifest.bucket import BucketRef, group_by_bucket
from paimon_core.manifest.entry import ADD, ManifestEntry
from paimon_core.options.bucket import POSTPONED
from paimon_core.store.file_store import FileStore
from paimon_core.types.arrow import arrow_schema

_MOST_ROWS = 1 << 20
"""The most rows whose keys are compared: with more, any change of a bucket is a conflict."""


def no_key_in_common(store: FileStore, changes: Changes, others: Sequence[ManifestEntry]) -> bool:
    """Return True if it is sure that another commit has changed no row with a key of the changes.

    It is not sure for a commit that removes files, for postponed rows, for keys with floating-point columns, for files
    that have expired, and for very many rows.

    Args:
        store: of the table.
        changes: to commit.
        others: the delta of the other commit.
    """
    ours, theirs = group_by_bucket(changes.entries), group_by_bucket(others)
    common = [bucket for bucket in theirs if bucket in ours]
    compared = [entry for bucket in common for entry in (*ours[bucket], *theirs[bucket])]
    keys = store.schema.key_fields
    unsure = (
        any(entry.kind != ADD for entry in compared)
        or any(entry.bucket == POSTPONED for entry in (*changes.entries, *others))
        or any(pa.types.is_floating(field.type) for field in arrow_schema(keys))
        or not keys
        or sum(entry.file.row_count for entry in compared) > _MOST_ROWS
    )
    if unsure:
        return False
    try:
        return not any(_meet(_keys(store, b, ours[b]), _keys(store, b, theirs[b])) for b in common)
    except CorruptedError:  # the file of a commit that has expired
        return False


def _keys(store: FileStore, bucket: BucketRef, entries: Sequence[ManifestEntry]) -> pa.Table:
    fields = store.schema.key_fields
    batches = [batch for entry in entries for batch in read_file(store, bucket, entry.file, fields)]
    return pa.Table.from_batches(batches, arrow_schema(fields))


def _meet(one: pa.Table, other: pa.Table) -> bool:
    """Return True if the tables have a row in common."""
    names = one.column_names
    return bool(one.join(other, names, names, join_type="inner").num_rows)
