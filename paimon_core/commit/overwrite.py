"""The live files that an overwrite removes."""

import math
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from paimon_core.datafile.deletion_vectors import vector_entries
from paimon_core.errors import InvalidInputError, listed_names
from paimon_core.manifest.bucket import BucketRef
from paimon_core.manifest.commit_message import CommitMessage
from paimon_core.predicate.expr import Predicate, conjunction, disjunction, is_value
from paimon_core.predicate.rewrite import bind
from paimon_core.scan.entries import PartitionFilter, live_entries
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.store.file_store import FileStore
from paimon_core.types.datatype import AtomicType, DataType

DYNAMIC = "dynamic"
Spec = Mapping[str, object]


def partition_predicate(store: FileStore, specs: Sequence[Spec]) -> Predicate:
    """Return a bound predicate for partitions given as {column: value}; a spec may name only some of the columns.

    Raises InvalidInputError for a column that is not a partition column, for an empty spec, for an empty list, and for
    something else than a list of specs.
    """
    keys = store.schema.partition_keys
    listed = not isinstance(specs, str | Mapping) and isinstance(specs, Sequence)
    if not listed or not all(isinstance(spec, Mapping) for spec in specs):
        raise InvalidInputError(f"partitions of {store.root} are given as {specs!r}: pass a list of {{column: value}}")
    if not specs:
        raise InvalidInputError("the list of partitions is empty: give at least one {column: value}")
    for spec in specs:
        unknown = sorted(set(spec) - set(keys))
        if unknown or not spec:
            raise InvalidInputError(
                f"{dict(spec)} is not a partition of {store.root}: its partition columns are "
                f"{listed_names(unknown[0] if unknown else '', keys)}"
            )
    kinds = {field.name: field.type for field in store.schema.partition_fields}
    each = [conjunction([_is(k, v, kinds[k]) for k, v in spec.items()]) for spec in specs]
    whole = disjunction([p for p in each if p is not None])
    assert whole is not None  # there is at least one spec, and none is empty
    return bind(whole, store.schema.partition_fields)


def _is(column: str, value: object, kind: DataType) -> Predicate:
    """Return the test for a partition value: 0.1 means the FLOAT that prints as 0.1, and 0 is not -0.0."""
    root = kind.root if isinstance(kind, AtomicType) else ""
    if root in ("FLOAT", "DOUBLE") and isinstance(value, int | float | np.floating) and not isinstance(value, bool):
        with np.errstate(over="ignore"):
            value = float(np.float32(value)) if root == "FLOAT" and math.isfinite(value) else float(value)
    return is_value(column, value)


def check_inside(
    store: FileStore, messages: Sequence[CommitMessage], inside: Collection[bytes], target: Spec | Predicate
) -> None:
    """Raise InvalidInputError unless all messages belong to the partitions being overwritten.

    Args:
        store: the table to overwrite.
        messages: the messages of the writers.
        inside: the partitions being overwritten, serialised.
        target: the user's {column: value} or predicate, for the error message.
    """
    text = f"the rows where {target}" if isinstance(target, Predicate) else f"partition {dict(target)}"
    for message in messages:
        if message.partition not in inside:
            raise InvalidInputError(
                f"an overwrite of {text} cannot write rows of "
                f"{store.partition_path(message.partition)}: leave them out, or overwrite that partition too"
            )


def indexed_buckets(
    store: FileStore, base: Snapshot | None, where: Predicate | None, only: Collection[bytes]
) -> frozenset[BucketRef]:
    """Return the buckets with index files in partitions that match ``where``, and are in ``only`` if it is not empty.

    A bucket may have an index but no data file: compaction drops the files if all rows are deleted.
    """
    if base is None or base.index_manifest is None:
        return frozenset()
    buckets = {e.bucket_ref for e in store.manifests.read_index(base.index_manifest)}
    inside = {bucket.partition for bucket in buckets}
    if where is not None:
        inside = PartitionFilter(where, store.schema.partition_arrow).matching(inside)
    return frozenset(b for b in buckets if b.partition in inside and (not only or b.partition in only))


def contents(store: FileStore, snapshot: Snapshot | None, where: Predicate | None) -> tuple[set[object], set[str]]:
    """Return the identities of a snapshot's files in partitions that match ``where``.

    Also return the names of the index files that hold their deletion vectors.
    """
    if snapshot is None:
        return set(), set()
    live = live_entries(store, snapshot, partition=where, with_stats=False).live
    inside = {e.partition for e in live}
    vector_files = {e.file_name for e in vector_entries(store, snapshot) if e.partition in inside}
    return {e.identity for e in live}, vector_files


def distinct_partitions(messages: Sequence[CommitMessage]) -> set[bytes]:
    """Return the partitions that get new files, serialised."""
    return {m.partition for m in messages if m.new_files}
