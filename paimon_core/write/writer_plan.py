"""The decisions of a table's writer, made once from the table's options and the writer's role."""

from dataclasses import dataclass

from paimon_core.memory import MemoryShares
from paimon_core.options.lsm import FULL_COMPACTION_DELTA_COMMITS, WRITE_ONLY
from paimon_core.options.option import Options
from paimon_core.store.file_store import FileStore
from paimon_core.write.append_writer import ROW_GROUP_BYTES
from paimon_core.write.routing import ALL_KEYS, BucketMode, KeyShard, bucket_mode

ROUTE_BYTES = 32 << 20  # batches are collected to about this size before routing


@dataclass(frozen=True, slots=True)
class WriterRole:
    """The role of one writer among the writers of a job.

    Args:
        number: the number of the writer in its job, from 0.
        of: the number of writers. A writer numbers its rows ``number, number + of, ...`` above the table's sequence
            numbers, so rows of two writers never share a sequence number.
        exclusive: True if no other writer of the job writes to the same buckets. `None`: True if ``of`` is 1.
        shard: the keys whose rows all go to this writer. `None`: any writer may receive any key, unless it is the only
            writer.
    """

    number: int = 0
    of: int = 1
    exclusive: bool | None = None
    shard: KeyShard | None = None

    @property
    def is_exclusive(self) -> bool:
        """True if no other writer of the job writes to the same buckets."""
        return self.of == 1 if self.exclusive is None else self.exclusive

    @property
    def keys(self) -> KeyShard | None:
        """The keys whose rows all go to this writer. `None`: any writer may receive any key."""
        return self.shard if self.shard is not None else ALL_KEYS if self.of == 1 else None


ONLY_WRITER = WriterRole()


@dataclass(frozen=True, slots=True)
class WriterPlan:
    """The decisions of one writer about rows, buckets and changelogs."""

    mode: BucketMode
    role: WriterRole
    restores: bool
    """True if bucket writers continue from the files of their buckets. False: an overwrite, or no buckets."""
    reads_replaced: bool
    """True if the number of new keys is estimated from the keys that an overwrite replaces."""
    shares_base: bool
    """True if all writers of the job must route rows by one snapshot, through all their commits."""
    compacts: bool
    """True if the writer compacts its buckets, which requires an exclusive writer."""
    compaction_changelog: bool
    """True if compactions write the changelog of the table's changelog producer. An overwrite has no changelog."""
    input_changelog: bool
    """True if every written row is also written to changelog files."""
    one_bucket: bool
    """True if the table has a single bucket: an append table without partitions and buckets."""
    buffer_bytes: int
    """The limit in bytes for the buffered rows of all buckets."""
    gather_bytes: int
    """The size in bytes to which rows are collected before routing, approximately."""

    @staticmethod
    def of(store: FileStore, role: WriterRole, *, overwrite: bool) -> "WriterPlan":
        """Return the plan of a writer. ``overwrite``: True if the rows replace the table's rows."""
        mode, options = bucket_mode(store.schema), store.options
        in_buckets = mode is not BucketMode.BUCKET_UNAWARE
        one_bucket = not in_buckets and not store.schema.partition_keys
        buffer_bytes = MemoryShares.of(options).write_buffer
        return WriterPlan(
            mode,
            role,
            restores=in_buckets and not overwrite,
            reads_replaced=overwrite and mode is BucketMode.HASH_DYNAMIC,
            shares_base=role.keys is None and mode in (BucketMode.HASH_DYNAMIC, BucketMode.KEY_DYNAMIC),
            compacts=in_buckets and role.is_exclusive and not options.value(WRITE_ONLY),
            compaction_changelog=not overwrite,
            input_changelog=not overwrite and store.traits.changelog_producer == "input",
            one_bucket=one_bucket,
            buffer_bytes=buffer_bytes,
            gather_bytes=min(ROW_GROUP_BYTES if one_bucket else ROUTE_BYTES, max(1, buffer_bytes // 4)),
        )


def runs_full_compaction(options: Options, identifier: int | None) -> bool:
    """Return True if the commit with this identifier includes a full compaction: every n-th commit does.

    The option ``full-compaction.delta-commits`` sets n. ``identifier``: `None`: a batch job, which always includes one.
    """
    every = options.value(FULL_COMPACTION_DELTA_COMMITS)
    return every is not None and (identifier is None or identifier % every == 0)
