"""Tags: named snapshots that expiry keeps, in files ``tag/tag-<name>`` (format 10.1)."""

import builtins
import json
import threading
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from paimon_core.errors import CorruptedError, InvalidInputError, NotFoundError, listed_names
from paimon_core.fileio.fileio import UNKNOWN_MODIFIED, FileIO, FileStatus, join
from paimon_core.fileio.parallel import parallel_map
from paimon_core.snapshot.snapshot import Snapshot, load_object

_PREFIX = "tag-"
_CREATED = "tagCreateTime"
_RETAINED = "tagTimeRetained"


@dataclass(frozen=True, slots=True)
class Tag:
    """A name for a snapshot. Only a tag that expires has times; ``create_time`` is local, without a zone."""

    name: str
    snapshot: Snapshot
    create_time: datetime | None = None
    time_retained: timedelta | None = None

    @property
    def expires(self) -> datetime | None:
        """The local time from which the tag may be deleted; `None`: the tag does not expire."""
        if self.create_time is None or self.time_retained is None:
            return None
        return self.create_time + self.time_retained

    def to_json(self) -> bytes:
        """Return the content of the tag's file: the snapshot, and the times of a tag that expires."""
        if self.create_time is None or self.time_retained is None:
            return self.snapshot.to_json()
        record = json.loads(self.snapshot.to_json())
        created = self.create_time
        seconds = [created.year, created.month, created.day, created.hour, created.minute, created.second]
        record[_CREATED] = [*seconds, created.microsecond * 1000]
        record[_RETAINED] = self.time_retained.total_seconds()
        return json.dumps(record, indent=2, separators=(",", " : "), ensure_ascii=False).encode()


@dataclass(frozen=True, slots=True)
class Tags:
    """The tags below ``root``, the directory of a table or branch."""

    io: FileIO
    root: str = field(repr=False)

    def path(self, name: str) -> str:
        """Return the path of a tag's file."""
        return join(self._directory, _PREFIX + name)

    def check_name(self, name: str) -> None:
        """Raise InvalidInputError for a name that a new tag cannot have: no text, blank, or with a slash."""
        if not isinstance(name, str) or not name.strip() or "/" in name:
            raise InvalidInputError(f"{name!r} cannot name a tag of {self.root}: a name is not blank, and has no '/'")

    def create(self, tag: Tag) -> bool:
        """Create a tag. Return False, and change nothing, if a tag has the name."""
        self.check_name(tag.name)
        return self.io.create_or_match(self.path(tag.name), tag.to_json())

    def replace(self, tag: Tag) -> None:
        """Create a tag, or replace the tag of this name."""
        self.check_name(tag.name)
        self.io.write(self.path(tag.name), tag.to_json())

    def delete(self, name: str) -> None:
        """Delete a tag's file, but none of the files that the tag names. Deleting a missing tag is not an error."""
        self.io.delete(self.path(name))

    def names(self) -> list[str]:
        """Return all tag names, sorted."""
        return sorted(self.modified())

    def modified(self) -> dict[str, int]:
        """Return the time (epoch ms) when the file of each tag was written, by name."""
        return {name: file.modified_ms for name, file in self._files().items()}

    def find(self, name: str) -> Tag | None:
        """Return a tag; `None`: no tag has this name."""
        if not name or "/" in name:
            return None
        path = self.path(name)
        try:
            data = self.io.read(path)
        except (FileNotFoundError, IsADirectoryError):
            return None
        return _parse(name, data, path)

    def get(self, name: str) -> Tag:
        """Return a tag. Raises NotFoundError with the existing names."""
        tag = self.find(name)
        if tag is None:
            raise NotFoundError(f"tag {name!r} of {self.root} does not exist; {self.summary(name)}")
        return tag

    def list(self) -> "list[Tag]":
        """Return all tags, sorted by snapshot id, then by name."""
        tags = [tag for tag in parallel_map(self.find, self.names()) if tag is not None]
        return sorted(tags, key=lambda tag: (tag.snapshot.id, tag.name))

    def remembered(self) -> "builtins.list[Tag]":
        """Return all tags as `list` does, but read only the files that this process has not read before.

        A file is known by its path, size and time. So a tag that was replaced within a tick of the store's clock may
        have its old state here. REQUIRES: the caller calls `list` before it deletes a tag, or files that tags may need.
        """
        files = self._files()
        keys = {name: (self.io.identity, file.path, file.size, file.modified_ms) for name, file in files.items()}
        tags = {name: tag for name, key in keys.items() if (tag := _remembered.get(key)) is not None}
        unknown = [name for name in files if name not in tags]
        for name, tag in zip(unknown, parallel_map(self.find, unknown), strict=True):
            if tag is not None:
                tags[name] = tag
                if files[name].modified_ms != UNKNOWN_MODIFIED:
                    _remember(keys[name], tag)
        return sorted(tags.values(), key=lambda tag: (tag.snapshot.id, tag.name))

    def summary(self, name: str) -> str:
        """Return at most 20 existing names, and the nearest to ``name``, as text for messages."""
        return f"there are {listed_names(name, self.names(), 'no tags')}"

    def _files(self) -> dict[str, FileStatus]:
        files = (f for f in self.io.list(self._directory) if not f.is_directory and f.name.startswith(_PREFIX))
        return {f.name.removeprefix(_PREFIX): f for f in files}

    @property
    def _directory(self) -> str:
        return join(self.root, "tag")


_Key = tuple[str, str, int, int]
_remembered: dict[_Key, Tag] = {}
"""By identity of the FileIO, path, size and time of a file: the tags that were read, oldest reads first."""
_MOST_REMEMBERED = 4096  # of about two kilobytes
_lock = threading.Lock()


def _remember(key: _Key, tag: Tag) -> None:
    with _lock:
        if len(_remembered) >= _MOST_REMEMBERED:
            del _remembered[next(iter(_remembered))]
        _remembered[key] = tag


def _parse(name: str, data: bytes, path: str) -> Tag:
    record = load_object(data, path)
    created, retained = record.pop(_CREATED, None), record.pop(_RETAINED, None)
    snapshot = Snapshot.from_record(record, path)
    try:
        return Tag(name, snapshot, _moment(created), _duration(retained))
    except (TypeError, ValueError, OverflowError) as error:
        raise CorruptedError(
            f"{path}: cannot read {_CREATED}={created!r}, {_RETAINED}={retained!r}: {error}"
        ) from error


def _moment(value: Any) -> datetime | None:
    """Parse ``[year, month, day, hour, minute, second, nanos]``, trailing zeros optional, or ISO text."""
    if value is None:
        return None
    if isinstance(value, str):
        return datetime.fromisoformat(value)
    year, month, day, hour, minute, second, nanos = [int(part) for part in value] + [0] * (7 - len(value))
    return datetime(year, month, day, hour, minute, second, nanos // 1000)


def _duration(value: Any) -> timedelta | None:
    return None if value is None else timedelta(seconds=float(value))
