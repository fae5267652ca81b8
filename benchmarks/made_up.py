"""Tables with very many files and snapshots, made quickly: real metadata by the engine's own commits, and no rows."""

import hashlib
import os
import shutil
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa

from benchmarks.engine import Arena
from paimon_core import CommitMessage, FileSystemCatalog, Schema, Table
from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.manifest.entry import ADD, ManifestEntry
from paimon_core.row.binary_row import serialize

PARTITIONS = 100
COLUMNS = pa.schema(
    [pa.field("dt", pa.int32(), nullable=False), pa.field("id", pa.int64(), nullable=False), ("v", pa.string())]
)
_HINTS = frozenset({"EARLIEST", "LATEST"})


def partitioned(arena: Arena, name: str, **options: str) -> Table:
    """Create ``default.name``, a table of one bucket in each partition ``dt``."""
    catalog = FileSystemCatalog(str(arena.warehouse))
    catalog.create_database("default", ignore_if_exists=True)
    wish = Schema(
        COLUMNS,
        primary_keys=["dt", "id"],
        partition_keys=["dt"],
        options={"bucket": "1", "write-only": "true", **options},
    )
    return catalog.create_table(f"default.{name}", wish)


@dataclass(frozen=True, slots=True)
class Maker:
    """A maker of files that a table's metadata name: each is like a real file of a row, with its own name and key.

    A name contains a UUID, which compresses as badly as the names of real files.
    """

    table: Table
    like: DataFileMeta

    @classmethod
    def of(cls, table: Table) -> "Maker":
        """Return the maker of a table, which gets a data file that no snapshot names."""
        writer = table.writer()
        writer.write(pa.table([[0], [0], ["value"]], schema=COLUMNS))
        return cls(table, writer.prepare_commit()[0].new_files[0])

    def file(self, partition: int, number: int) -> DataFileMeta:
        """Return the metadata of a file at level 5; files of one level share no keys."""
        digest = hashlib.blake2b(b"%d/%d" % (partition, number), digest_size=16).digest()
        name, key = f"data-{uuid.UUID(bytes=digest, version=4)}-0.parquet", self._key(number)
        stats = replace(self.like.key_stats, min_values=key, max_values=key)
        return replace(self.like, file_name=name, min_key=key, max_key=key, key_stats=stats, level=5)

    def added(self, partition: int, count: int) -> CommitMessage:
        """Return the message of a writer that has added the first ``count`` files of a partition."""
        return CommitMessage(
            self._partition(partition), 0, 1, new_files=tuple(self.file(partition, i) for i in range(count))
        )

    def entries(self, partitions: int, count: int) -> Iterator[ManifestEntry]:
        """Yield the entries of ``count`` files of each partition, without the first file of the first partition."""
        for partition in range(partitions):
            key = self._partition(partition)
            for number in range(partition == 0, count):
                yield ManifestEntry(ADD, key, 0, 1, self.file(partition, number))

    def replaced(self, partition: int, first: int, count: int, by: int) -> CommitMessage:
        """Return the message of a compaction of files from ``first`` on into the same number from ``by`` on."""
        before, after = (tuple(self.file(partition, start + i) for i in range(count)) for start in (first, by))
        return CommitMessage(self._partition(partition), 0, 1, compact_before=before, compact_after=after)

    def touch(self, partition: int, numbers: range, suffix: str = "") -> None:
        """Create these files of a partition, without content."""
        place = Path(self.table.path) / f"dt={partition}" / "bucket-0"
        place.mkdir(parents=True, exist_ok=True)
        for number in numbers:
            path = place / (self.file(partition, number).file_name + suffix)
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY))

    def _key(self, number: int) -> bytes:
        return serialize((number,), self.table.schema.key_arrow)

    def _partition(self, partition: int) -> bytes:
        return serialize((partition,), self.table.schema.partition_arrow)


def table_of_files(arena: Arena, name: str, count: int, *, touch: bool = False) -> Table:
    """Create a table that says it has ``count`` files over 100 partitions; ``touch``: the files exist, without content.

    Every partition is one commit, as a daily load is.
    """
    table = partitioned(arena, name)
    maker = Maker.of(table)
    for partition in range(PARTITIONS):
        if touch:
            maker.touch(partition, range(count // PARTITIONS))
        table.committer().commit([maker.added(partition, count // PARTITIONS)])
    return table


def table_of_manifests(arena: Arena, name: str, files: int, partitions: int = PARTITIONS) -> Table:
    """Create a table that says it has ``files`` files, in the order of its partitions, in one snapshot.

    Its manifests are written directly: a million files take less than a minute and the memory of one manifest.
    """
    table = partitioned(arena, name)
    maker = Maker.of(table)
    table.committer().commit([maker.added(0, 1)])
    snapshot, manifests = table.snapshot(), table.store.manifests
    assert snapshot is not None
    base, size = manifests.write_list(manifests.write(maker.entries(partitions, files // partitions)))
    count = files // partitions * partitions
    larger = replace(snapshot, base_manifest_list=base, base_manifest_list_size=size, total_record_count=count)
    Path(table.store.snapshots.path(snapshot.id)).write_bytes(larger.to_json())
    return table


def table_of_snapshots(arena: Arena, name: str, files: int, snapshots: int, each: int) -> Table:
    """Create a table of ``files`` files, then ``snapshots`` snapshots that replace ``each`` files each.

    All files that the snapshots delete exist, without content.
    """
    table = partitioned(arena, name, **{"commit.sync": "false"})
    maker, size = Maker.of(table), files // PARTITIONS
    rounds = -(-snapshots // PARTITIONS)
    for partition in range(PARTITIONS):
        maker.touch(partition, range(size + rounds * each))
    table.committer().commit([maker.added(partition, size) for partition in range(PARTITIONS)])
    for message in _compactions(maker, size, snapshots, each):
        table.committer().commit([message])
    return table


def _compactions(maker: Maker, size: int, snapshots: int, each: int) -> Iterator[CommitMessage]:
    for number in range(snapshots):
        turn, partition = divmod(number, PARTITIONS)
        yield maker.replaced(partition, turn * each, each, size + turn * each)


def copied(table: Table, name: str) -> Table:
    """Copy a table by hard links, whose files no engine changes; hints are copied, because they are written again."""
    place = Path(table.path).with_name(name)
    shutil.rmtree(place, ignore_errors=True)

    def copy(source: str, target: str) -> None:
        (shutil.copyfile if os.path.basename(source) in _HINTS else os.link)(source, target)

    shutil.copytree(table.path, place, copy_function=copy)
    return Table.open(str(place))
