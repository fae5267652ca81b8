"""Tables made from lines of text, for text cases. The tables have metadata only: their data files do not exist.

The first line of a case says which table: `table append`, or `table keyed` (one bucket, primary key `k BIGINT`). The
other columns are `v INT`, `w INT` and `s STRING`. More words may follow: `partitioned` (by a STRING `p`, part of the
key), `moving` (partitioned by a `p` outside of the key), and options as `name=value`. Further lines are commits, each
of them one snapshot:

- `write -a +b(1-5) ~c`: the file a is deleted, b is added with the keys 1 to 5, c is a changelog file;
- `compact -a +b(1-5, level 1)`: the same by a compaction.

Attributes of a file, between commas:

| text | meaning |
|---|---|
| `1-5` | smallest and largest key; 0-9 unless given |
| `level 1`, `bucket 2` | 0 unless given |
| `of 4` | the number of buckets of the partition |
| `in y` | the partition; x unless given |
| `seq 3-7` | sequence numbers; by default the line number, or the numbers of the replaced files for a compacted file |
| `deletes 1` | rows of kind -D; `?`: unknown |
| `bytes 9` | the size |
| `rows 0-9`, `cols v+w` | row ids, and the columns that the file has |
"""

import re
from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa

from paimon_core.commit.table_commit import TableCommit
from paimon_core.manifest.commit_message import CommitMessage
from paimon_core.manifest.data_file import DataFileMeta, FileSource
from paimon_core.row.binary_row import EMPTY_ROW, serialize
from paimon_core.schema.schema import Schema
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.snapshot.started_from import StartedFrom
from paimon_core.store.create import create_table
from paimon_core.store.file_store import FileStore
from tests.support.faulty_io import MemoryIO
from tests.support.manifests import data_file

ROOT = "memory://w/t"
COLUMNS = pa.schema(
    [pa.field("k", pa.int64(), nullable=False), ("v", pa.int32()), ("w", pa.int32()), ("s", pa.string())]
)
PARTITIONED = COLUMNS.append(pa.field("p", pa.string(), nullable=False))

_FILE = re.compile(r"([-+~]?)([\w.]+)(?:\(([^)]*)\))?")
_COMPACT = {"-": "compact_before", "+": "compact_after", "~": "compact_changelog"}
_WRITE = {"-": "deleted_files", "+": "new_files", "~": "changelog_files"}


def text_files(line: str) -> Iterator[tuple[str, str, dict[str, str]]]:
    """Yield sign, name and attributes of each file of a line; the attribute `keys` is the one without a name."""
    for sign, name, attributes in _FILE.findall(line):
        words = [part.split() for part in attributes.split(",") if part]
        yield sign, name, {word[0] if len(word) > 1 else "keys": word[-1] for word in words}


def text_file(name: str, given: dict[str, str], sequence: tuple[int, int] = (0, 0)) -> DataFileMeta:
    """Return the metadata of a file with these attributes."""
    low, high = _range(given.get("keys", "0-9"))
    first, last = _range(given["rows"]) if "rows" in given else (None, None)
    file = data_file(
        name,
        low,
        high,
        level=int(given.get("level", 0)),
        sequence=_range(given["seq"]) if "seq" in given else sequence,
        delete_row_count=None if given.get("deletes") == "?" else int(given.get("deletes", 0)),
        file_source=FileSource.APPEND,
        first_row_id=first,
        write_cols=tuple(given["cols"].split("+")) if "cols" in given else None,
    )
    rows = file.row_count if first is None else last - first + 1
    return replace(file, file_size=int(given.get("bytes", 1000)), row_count=rows)


def _range(text: str) -> tuple[int, int]:
    low, _, high = text.partition("-")
    return int(low), int(high or low)


class TextTable:
    """A table, and the files that its commits have named so far."""

    def __init__(self, line: str) -> None:
        kind, *words = line.removeprefix("table ").split()
        options = dict(word.split("=", 1) for word in words if "=" in word)
        partitions = ("p",) if {"partitioned", "moving"} & {*words} else ()
        keys = ("k", *partitions) if "partitioned" in words else ("k",)
        if kind == "keyed" and "moving" not in words:
            options.setdefault("bucket", "1")
        schema = PARTITIONED if partitions else COLUMNS
        made = Schema(schema, keys if kind == "keyed" else (), partitions, options)
        io = MemoryIO()
        self.store = FileStore(io, ROOT, create_table(io, ROOT, made))
        self._committer = TableCommit(self.store)
        self._files: dict[str, tuple[tuple[bytes, int, int], DataFileMeta]] = {}
        self._line = 0

    def commit(self, line: str) -> Snapshot | None:
        """Commit a line; return its snapshot."""
        newest = self.store.snapshots.latest()
        return self._committer.commit(self.messages(line), started_from=StartedFrom.of(newest))

    def messages(self, line: str) -> list[CommitMessage]:
        """Return the messages of a line that begins with `write` or `compact`, one for each bucket."""
        verb, _, listed = line.partition(" ")
        self._line += 1
        buckets: dict[tuple[bytes, int, int], dict[str, list[DataFileMeta]]] = {}
        for sign, name, given in text_files(listed):
            if sign == "-" and not given:
                at, file = self._files[name]
            else:
                at = self.bucket(given)
                file = text_file(name, given, self._sequence(buckets.get(at, {}).get("compact_before", ())))
            if sign != "-":
                self._files[name] = at, file
            buckets.setdefault(at, {}).setdefault((_COMPACT if verb == "compact" else _WRITE)[sign], []).append(file)
        return [
            CommitMessage(*at, **{field: tuple(files) for field, files in fields.items()})
            for at, fields in buckets.items()
        ]

    def bucket(self, given: dict[str, str]) -> tuple[bytes, int, int]:
        """Return partition, bucket and bucket count that the attributes of a file give."""
        schema = self.store.schema
        partition = serialize((given.get("in", "x"),), schema.partition_arrow) if schema.partition_keys else EMPTY_ROW
        return partition, int(given.get("bucket", 0)), int(given.get("of", schema.bucket))

    def _sequence(self, replaced: list[DataFileMeta]) -> tuple[int, int]:
        if not replaced:
            return self._line, self._line
        return min(f.min_sequence_number for f in replaced), max(f.max_sequence_number for f in replaced)
