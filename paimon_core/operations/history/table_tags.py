"""The methods of `Table.tags`: names for snapshots, which expiry then keeps."""

import builtins
from collections.abc import Mapping, Sequence
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
from paimon_core.store.clock import earlier_clock
from paimon_core.store.current_schema import check_same_table
from paimon_core.store.file_store import FileStore

Age = timedelta | str | None


@dataclass(frozen=True, slots=True)
class TableTags:
    """The tags of one table or branch.

    A tag is a name for a snapshot: expiry keeps the snapshot and its files until the tag is deleted.

    Examples:
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
        """Return a tag. Raises NotFoundError, which lists the existing names."""
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
            name: the name of the tag, not blank. A number such as "20241205" takes precedence over a snapshot id.
            snapshot_id: the snapshot; `None`: the newest one.
            retained: the retention time after which `expire` deletes the tag, a timedelta or a text such as "7 d";
                `None`: the option ``tag.default-time-retained``, or no limit if that is not set.
            timestamp: tag the first snapshot at or after this time instead of `snapshot_id`.
            watermark: tag the first snapshot with at least this watermark (epoch ms) instead of `snapshot_id`.
            ignore_if_exists: True to return an existing tag of this name.
            dry_run: True to check everything, create nothing, and return the tag that would be created.

        Raises AlreadyExistsError if a tag of this name has another snapshot, OutOfRangeError for a snapshot that does
        not exist, NotFoundError for a table without snapshots.
        """
        check_same_table(self.store.schemas, self.store.schema)
        tags = self.store.tags
        tags.check_name(name)
        snapshot_tag = tags.find(name)
        if snapshot_tag is not None and ignore_if_exists:
            return snapshot_tag
        tag = self._new(name, self._snapshot(snapshot_id, timestamp, watermark), retained)
        same = snapshot_tag is not None and snapshot_tag.snapshot.fingerprint == tag.snapshot.fingerprint
        if dry_run and (snapshot_tag is None or same):
            return tag
        if same:
            tags.replace(tag)  # the retention time may change
        elif snapshot_tag is not None or not tags.create(tag):
            existing = tags.get(name)
            raise AlreadyExistsError(
                f"tag {name!r} of {self.store.branch_root} already exists, for snapshot {existing.snapshot.id}: "
                "replace it, or choose another name"
            )
        return self._checked(tag)

    def create_automatic(self, name: str, snapshot: Snapshot) -> Tag:
        """Create a tag, or return the existing tag.

        Raises OutOfRangeError if the snapshot expires at the same time.
        """
        tag = self._new(name, snapshot, None)
        return self._checked(tag) if self.store.tags.create(tag) else self.get(name)

    def create_lasting(self, name: str, snapshot: int | Snapshot) -> Tag:
        """Create a tag without a retention time, or find the same existing tag, and return it.

        Raises the errors of `create`.
        """
        target = self.store.snapshots.get(snapshot) if isinstance(snapshot, int) else snapshot
        tag = Tag(name, target)
        if not self.store.tags.create(tag) and self.get(name).to_json() != tag.to_json():
            raise AlreadyExistsError(f"tag {name!r} of {self.store.branch_root} already exists: delete it first")
        return self._checked(tag) if isinstance(snapshot, int) else tag

    def replace(self, name: str, snapshot_id: int | None = None, retained: Age = None, *, dry_run: bool = False) -> Tag:
        """Change the snapshot or the retention time of a tag, and return it. Arguments: see `create`.

        Raises NotFoundError for a tag that does not exist.
        """
        check_same_table(self.store.schemas, self.store.schema)
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
        """Rename a tag to ``target`` and return it; ``dry_run``: True to only check that this is possible.

        After a crash the tag may have both names; another call deletes the old one. Raises NotFoundError for a tag that
        does not exist, AlreadyExistsError if another tag has the new name.
        """
        check_same_table(self.store.schemas, self.store.schema)
        tags, renamed = self.store.tags, replace(self.get(name), name=target)
        tags.check_name(target)
        existing = tags.find(target)
        both = existing is not None and name != target and existing.to_json() == renamed.to_json()
        taken = existing is not None and not both
        if dry_run and not taken:
            return renamed
        if taken or not (both or tags.create(renamed)):
            raise AlreadyExistsError(f"tag {target!r} of {self.store.branch_root} already exists: choose another name")
        self.store.sync([self.store.tags.path(target)])
        self.store.tags.delete(name)
        forget_expired(self.store)
        return renamed

    def delete(self, name: str, *, dry_run: bool = False) -> Tag:
        """Delete a tag and the files that only this tag needs; return the tag. ``dry_run``: True to delete nothing.

        Raises NotFoundError for a tag that does not exist.
        """
        return self.delete_several([name], dry_run=dry_run)[0]

    def delete_several(self, names: Sequence[str], *, dry_run: bool = False) -> "builtins.list[Tag]":
        """Delete several tags and the files that only these tags need; return the tags.

        For many tags whose snapshots have expired, one call is much faster than a call of `delete` for each tag,
        because each call reads all remaining metadata once. Raises NotFoundError (nothing changed) if any of the tags
        does not exist. ``names``: the tags to delete; ``dry_run``: True to delete nothing.
        """
        check_same_table(self.store.schemas, self.store.schema)
        tags = [self.get(name) for name in dict.fromkeys(names)]
        if not dry_run:
            delete_tags(self.store, tags)
        return tags

    def expire(self, older_than: datetime | str | int | None = None) -> "builtins.list[str]":
        """Delete the tags whose retention time has passed, and return their names.

        The earlier of the clocks of this machine and of the store counts.

        Args:
            older_than: also delete every tag created before this time, with or without a retention time. The creation
                time of a tag without a retention time is the time of its file. `None`: no further tags.

        Raises InvalidInputError for a time outside of the years 1 to 9999.
        """
        check_same_table(self.store.schemas, self.store.schema)
        before = None if older_than is None else _before(epoch_millis(older_than))
        written, now = self.store.tags.modified(), self.store.now()
        tags = self.list() if written else []
        expired = _expired(tags, written, now, before)
        if expired and (earlier := earlier_clock(self.store)) < now:
            expired = _expired(tags, written, earlier, before)
        delete_tags(self.store, expired)
        return [tag.name for tag in expired]

    def _new(self, name: str, snapshot: Snapshot, retained: Age) -> Tag:
        age = _age(retained) if retained is not None else self.store.options.value(TAG_DEFAULT_TIME_RETAINED)
        return Tag(name, snapshot, None if age is None else _local(self.store.now()), age)

    def _snapshot(
        self, snapshot_id: int | None, timestamp: datetime | str | int | None = None, watermark: int | None = None
    ) -> Snapshot:
        snapshots = self.store.snapshots
        if sum(argument is not None for argument in (snapshot_id, timestamp, watermark)) > 1:
            raise InvalidInputError(
                "a tag is created for one snapshot: pass only one of snapshot_id, timestamp and watermark"
            )
        if snapshot_id is not None:
            return snapshots.get(snapshot_id)
        if watermark is not None:
            marked = TimeTravel(watermark=watermark).resolve(snapshots, self.store.tags)
            if marked is None:
                raise NotFoundError(f"{self.store.branch_root} has no snapshots to tag")
            return marked
        if timestamp is None:
            latest = snapshots.latest()
            if latest is None:
                raise NotFoundError(f"{self.store.branch_root} has no snapshots to tag")
            return latest
        millis = epoch_millis(timestamp)
        for snapshot in snapshots.all():
            if snapshot.time_millis >= millis:
                return snapshot
        raise OutOfRangeError(f"no snapshot of {self.store.branch_root} was committed at or after {timestamp}")

    def _checked(self, tag: Tag) -> Tag:
        """Return the tag if its snapshot still exists: an expiry may have begun before the tag was created."""
        self.store.sync([self.store.tags.path(tag.name)])
        if not is_in_timeline(self.store, tag.snapshot):
            self.store.tags.delete(tag.name)
            raise OutOfRangeError(
                f"snapshot {tag.snapshot.id} of {self.store.branch_root} expired while it was being tagged"
            )
        if self.store.options.value(TAG_CREATE_SUCCESS_FILE):
            write_success_file(self.store, success_file_of(self.store, tag.name))
        forget_expired(self.store)
        return tag


def _expired(
    tags: Sequence[Tag], written: Mapping[str, int], now: int, before: datetime | None
) -> "builtins.list[Tag]":
    """Return the tags that have expired at a time (epoch ms), and those created before a local time."""
    expired = []
    for tag in tags:
        created = tag.create_time or _local(min(written.get(tag.name, now), now))
        if (tag.expires is not None and _local(now) > tag.expires) or (before is not None and created < before):
            expired.append(tag)
    return expired


def _age(retained: timedelta | str) -> timedelta:
    if isinstance(retained, timedelta) and retained < timedelta():
        raise InvalidInputError(f"the retention time of a tag must not be negative, found {retained!r}")
    try:
        return duration(retained) if isinstance(retained, str) else retained
    except ValueError as error:
        raise InvalidInputError(f"the retention time of a tag {error}, found {retained!r}") from error


def _before(millis: int) -> datetime:
    try:
        return _local(millis)
    except (ValueError, OverflowError, OSError) as error:
        raise InvalidInputError(f"older_than is {millis} ms since 1970, outside of the years 1 to 9999") from error


def _local(millis: int) -> datetime:
    """Return a time (epoch ms) as local time without a zone, as tags store it."""
    return datetime.fromtimestamp(millis / 1000)
