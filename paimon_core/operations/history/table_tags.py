"""The group `Table.tags`: names for snapshots, which expiry then keeps."""

import builtins
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from paimon_core.errors import AlreadyExistsError, InvalidInputError, NotFoundError, OutOfRangeError
from paimon_core.iceberg.listed import forget_expired
from paimon_core.operations.history.delete_tag import delete_files_of, delete_tags, is_in_timeline, success_file_of
from paimon_core.operations.partitions.success_file import write_success_file
from paimon_core.options.parse import duration
from paimon_core.options.snapshot import TAG_CREATE_SUCCESS_FILE, TAG_DEFAULT_TIME_RETAINED
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.snapshot.tags import Tag
from paimon_core.snapshot.time_travel import TimeTravel, epoch_millis
from paimon_core.store.file_store import FileStore

Age = timedelta | str | None


@dataclass(frozen=True, slots=True)
class TableTags:
    """The tags of one table or branch.

    A tag is a name for a snapshot: expiry keeps the snapshot and its files until the tag is deleted.

    Example:
        >>> from paimon_core import Table
        >>> table = Table.open("/tmp/warehouse/shop.db/items")
        >>> tag = table.tags.create("first", snapshot_id=1)
        >>> table.to_arrow(tag="first").column("name").to_pylist()
        ['pen', 'ink']
        >>> [tag.name for tag in table.tags.list()]
        ['first']
    """

    store: FileStore

    def list(self) -> list[Tag]:
        """Return all tags, sorted by snapshot id, then by name."""
        return self.store.tags.list()

    def get(self, name: str) -> Tag:
        """Return a tag. Raises NotFoundError with the existing names."""
        return self.store.tags.get(name)

    def create(
        self,
        name: str,
        snapshot_id: int | None = None,
        retained: Age = None,
        *,
        timestamp: datetime | str | int | None = None,
        watermark: int | None = None,
        ignore_if_exists: bool = False,
        dry_run: bool = False,
    ) -> Tag:
        """Create a tag and return it.

        Args:
            name: not blank, and not only digits.
            snapshot_id: the snapshot; `None`: the newest one.
            retained: the age at which `expire` deletes the tag, a timedelta or text such as "7 d"; `None`: the option
                ``tag.default-time-retained``, without which the tag stays.
            timestamp: instead of `snapshot_id`: the first snapshot at or after this moment.
            watermark: instead of both: the first snapshot with at least this watermark (epoch ms).
            ignore_if_exists: True: return the tag that exists.
            dry_run: check everything, create nothing, and return what would be created.

        Raises AlreadyExistsError if the tag names another snapshot, OutOfRangeError for a snapshot that does not exist,
        NotFoundError without any snapshot.
        """
        tags = self.store.tags
        tags.check_name(name)
        found = tags.find(name)
        if found is not None and ignore_if_exists:
            return found
        tag = self._new(name, self._snapshot(snapshot_id, timestamp, watermark), retained)
        same = found is not None and found.snapshot.fingerprint == tag.snapshot.fingerprint
        if dry_run and (found is None or same):
            return tag
        if same:
            tags.replace(tag)  # the tag may get another age
        elif found is not None or not tags.create(tag):
            existing = tags.get(name)
            raise AlreadyExistsError(
                f"tag {name!r} of {self.store.branch_root} exists already, for snapshot {existing.snapshot.id}: "
                "replace it, or choose another name"
            )
        return self._checked(tag)

    def create_automatic(self, name: str, snapshot: Snapshot) -> Tag:
        """Create a tag whose name may have only digits, or return the tag that exists.

        Raises OutOfRangeError if the snapshot expires meanwhile.
        """
        tag = self._new(name, snapshot, None)
        return self._checked(tag) if self.store.tags.create(tag, only_digits=True) else self.get(name)

    def create_lasting(self, name: str, snapshot: int | Snapshot) -> Tag:
        """Create a tag of a ``snapshot`` that no age ends, or find that it exists, and return it.

        Raises AlreadyExistsError and others as `create`.
        """
        found = self.store.snapshots.get(snapshot) if isinstance(snapshot, int) else snapshot
        tag = Tag(name, found)
        if not self.store.tags.create(tag) and self.get(name).to_json() != tag.to_json():
            raise AlreadyExistsError(f"tag {name!r} of {self.store.branch_root} exists already: delete it first")
        return self._checked(tag) if isinstance(snapshot, int) else tag

    def replace(self, name: str, snapshot_id: int | None = None, retained: Age = None, *, dry_run: bool = False) -> Tag:
        """Give a tag another snapshot or age, and return it. Arguments are those of `create`.

        Raises NotFoundError for a tag that does not exist.
        """
        old = self.get(name)
        tag = self._new(name, self._snapshot(snapshot_id), retained)
        if dry_run:
            return tag
        self.store.tags.replace(tag)
        self._checked(tag)
        if old.snapshot.fingerprint != tag.snapshot.fingerprint:
            delete_files_of(self.store, old.snapshot)
        return tag

    def rename(self, name: str, target: str, *, dry_run: bool = False) -> Tag:
        """Rename a tag to ``target`` and return it; `dry_run`: only check that it is possible.

        After a crash the tag may have both names; another call deletes the old one. Raises NotFoundError without the
        tag, AlreadyExistsError if the name is taken by another tag.
        """
        tags, renamed = self.store.tags, replace(self.get(name), name=target)
        tags.check_name(target)
        found = tags.find(target)
        both = found is not None and name != target and found.to_json() == renamed.to_json()
        taken = found is not None and not both
        if dry_run and not taken:
            return renamed
        if taken or not (both or tags.create(renamed)):
            raise AlreadyExistsError(f"tag {target!r} of {self.store.branch_root} exists already: choose another name")
        self.store.sync([self.store.tags.path(target)])
        self.store.tags.delete(name)
        forget_expired(self.store)
        return renamed

    def delete(self, name: str, *, dry_run: bool = False) -> Tag:
        """Delete a tag, and the files that only this tag needs; return the tag. `dry_run`: delete nothing.

        Raises NotFoundError for a tag that does not exist.
        """
        return self.delete_several([name], dry_run=dry_run)[0]

    def delete_several(self, names: Sequence[str], *, dry_run: bool = False) -> "builtins.list[Tag]":
        """Delete the tags of these `names`, and the files that only they need; return them. `dry_run`: delete nothing.

        One call for many tags whose snapshots have expired is much faster than a call of `delete` for each, because the
        metadata of all that remains are read once for each call. Raises NotFoundError (nothing changed) if any of the
        tags does not exist.
        """
        tags = [self.get(name) for name in dict.fromkeys(names)]
        if not dry_run:
            delete_tags(self.store, tags)
        return tags

    def expire(self, older_than: datetime | str | int | None = None) -> "builtins.list[str]":
        """Delete the tags that have reached their age, and return their names.

        Args:
            older_than: also delete every tag that was created before this moment, whether it has an age or not. A tag
                without an age was created when its file was written.
        """
        before = None if older_than is None else _local(epoch_millis(older_than))
        now, written, expired = self.store.now(), self.store.tags.modified(), []
        for tag in self.list() if written else ():
            created = tag.create_time or _local(min(written.get(tag.name, now), now))
            if (tag.expires is not None and _local(now) > tag.expires) or (before is not None and created < before):
                expired.append(tag)
        delete_tags(self.store, expired)
        return [tag.name for tag in expired]

    def _new(self, name: str, snapshot: Snapshot, retained: Age) -> Tag:
        age = _age(retained) if retained is not None else self.store.options.value(TAG_DEFAULT_TIME_RETAINED)
        return Tag(name, snapshot, None if age is None else _local(self.store.now()), age)

    def _snapshot(
        self, snapshot_id: int | None, timestamp: datetime | str | int | None = None, watermark: int | None = None
    ) -> Snapshot:
        snapshots = self.store.snapshots
        if sum(given is not None for given in (snapshot_id, timestamp, watermark)) > 1:
            raise InvalidInputError(
                "a tag is for a snapshot or for a moment: give one of snapshot_id, timestamp and watermark"
            )
        if snapshot_id is not None:
            return snapshots.get(snapshot_id)
        if watermark is not None:
            marked = TimeTravel(watermark=watermark).resolve(snapshots, self.store.tags)
            if marked is None:
                raise NotFoundError(f"{self.store.branch_root} has no snapshots to tag")
            return marked
        if timestamp is None:
            found = snapshots.latest()
            if found is None:
                raise NotFoundError(f"{self.store.branch_root} has no snapshots to tag")
            return found
        millis = epoch_millis(timestamp)
        for snapshot in snapshots.all():
            if snapshot.time_millis >= millis:
                return snapshot
        raise OutOfRangeError(f"no snapshot of {self.store.branch_root} was committed at or after {timestamp}")

    def _checked(self, tag: Tag) -> Tag:
        """Return the tag once it protects its snapshot: an expiry may have begun before the tag was there."""
        self.store.sync([self.store.tags.path(tag.name)])
        if not is_in_timeline(self.store, tag.snapshot):
            self.store.tags.delete(tag.name)
            raise OutOfRangeError(f"snapshot {tag.snapshot.id} of {self.store.branch_root} expired while it was tagged")
        if self.store.options.value(TAG_CREATE_SUCCESS_FILE):
            write_success_file(self.store, success_file_of(self.store, tag.name))
        forget_expired(self.store)
        return tag


def _age(retained: timedelta | str) -> timedelta:
    if isinstance(retained, timedelta) and retained < timedelta():
        raise InvalidInputError(f"the age of a tag must not be negative, found {retained!r}")
    try:
        return duration(retained) if isinstance(retained, str) else retained
    except ValueError as error:
        raise InvalidInputError(f"the age of a tag {error}, found {retained!r}") from error


def _local(millis: int) -> datetime:
    """Return a moment as local time without a zone, as tags store it."""
    return datetime.fromtimestamp(millis / 1000)
