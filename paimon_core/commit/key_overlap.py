"""Compare the keys that two commits wrote to the same buckets of a table with a primary key."""

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
"""The maximum number of rows whose keys are compared. With more, any change of a bucket is a conflict."""


def no_key_in_common(store: FileStore, changes: Changes, other_entries: Sequence[ManifestEntry]) -> bool:
    """Return True if another commit certainly changed no row with a key of the changes.

    Return False in uncertain cases: a commit that removes files, postponed rows, keys with floating-point columns,
    expired files, or more than `_MOST_ROWS` rows.

    Args:
        store: the table to commit to.
        changes: the changes to commit.
        other_entries: the delta of the other commit.
    """
    ours, theirs = group_by_bucket(changes.entries), group_by_bucket(other_entries)
    common = [bucket for bucket in theirs if bucket in ours]
    compared = [entry for bucket in common for entry in (*ours[bucket], *theirs[bucket])]
    keys = store.schema.key_fields
    unsure = (
        any(entry.kind != ADD for entry in compared)
        or any(entry.bucket == POSTPONED for entry in (*changes.entries, *other_entries))
        or any(pa.types.is_floating(field.type) for field in arrow_schema(keys))
        or not keys
        or sum(entry.file.row_count for entry in compared) > _MOST_ROWS
    )
    if unsure:
        return False
    try:
        return not any(_share_a_row(_keys(store, b, ours[b]), _keys(store, b, theirs[b])) for b in common)
    except CorruptedError:  # the file of a commit that has expired
        return False


def _keys(store: FileStore, bucket: BucketRef, entries: Sequence[ManifestEntry]) -> pa.Table:
    fields = store.schema.key_fields
    batches = [batch for entry in entries for batch in read_file(store, bucket, entry.file, fields)]
    return pa.Table.from_batches(batches, arrow_schema(fields))


def _share_a_row(first: pa.Table, second: pa.Table) -> bool:
    """Return True if the tables have a row in common."""
    names = first.column_names
    return bool(first.join(second, names, names, join_type="inner").num_rows)
