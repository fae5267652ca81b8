"""The methods of `Table.branches`: further timelines over the same data files (behaviour 7.17)."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import NoReturn

from paimon_core.errors import AlreadyExistsError, InvalidInputError, NotFoundError, UnsupportedError, listed_names
from paimon_core.fileio.fileio import join
from paimon_core.iceberg.sync import sync_after_change
from paimon_core.operations.history.delete_tag import delete_files_of, delete_tags
from paimon_core.operations.history.merge_branch import merge_branch
from paimon_core.operations.history.table_tags import TableTags
from paimon_core.options.scan import SCAN_FALLBACK_BRANCH
from paimon_core.schema.continuity import replaced_version, unmarked
from paimon_core.schema.schemas import DROPPING, Schemas
from paimon_core.snapshot.branches import MAIN, branch_root, check_branch_name, list_branches, tag_of_branch
from paimon_core.snapshot.snapshots import Snapshots
from paimon_core.snapshot.tags import Tag, Tags
from paimon_core.store.current_schema import check_opened, check_same_table, current_schema
from paimon_core.store.drop import UNBORN, delete_unborn, drop_directory, empty_trash
from paimon_core.store.file_store import FileStore

_TRIES = 10
_DAY_MILLIS = 24 * 3_600_000


@dataclass(frozen=True, slots=True)
class TableBranches:
    """The branches of one table.

    A branch is a table with snapshots and schemas of its own. It shares the data files that it starts with.

    Examples:
        >>> from paimon_core import Table
        >>> table = Table.open("/tmp/warehouse/shop.db/items")
        >>> table.branches.create("trial", snapshot_id=2)
        >>> deleted = Table.open("/tmp/warehouse/shop.db/items$branch_trial").delete("id = 1")
        >>> table.branches.fast_forward("trial")
        >>> table.to_arrow().to_pylist()
        [{'id': 2, 'name': 'blue ink'}]
    """

    store: FileStore

    def list(self) -> list[str]:
        """Return the names of all branches except ``main``, sorted."""
        return list_branches(self.store.io, self.store.root)

    def create(
        self,
        name: str,
        tag: str | None = None,
        snapshot_id: int | None = None,
        *,
        ignore_if_exists: bool = False,
        dry_run: bool = False,
    ) -> None:
        """Create a branch, empty or with the rows of a tag or snapshot.

        Args:
            name: the name of the branch, not blank, not only digits, and not ``main``.
            tag: the tag to start from; `None`: the branch has no snapshot.
            snapshot_id: the snapshot to start from; `None`: see ``tag``. The snapshot gets the tag ``branch-<name>``,
                so that every engine keeps its files; the tag is deleted with the branch.
            ignore_if_exists: True to leave an existing branch as it is.
            dry_run: True to only check that this is possible.

        On a store that can rename, the branch appears atomically. On other stores a crash may leave a branch without
        its first schema, and another call with the same tag or snapshot completes it.

        Raises AlreadyExistsError for an existing branch and for one that was begun from another tag. Raises
        NotFoundError for a missing tag, InvalidInputError for an invalid name and for a tag together with a snapshot.
        """
        check_branch_name(name)
        if snapshot_id is not None and tag is not None:
            raise InvalidInputError("a branch starts from a tag or from a snapshot: pass either tag or snapshot_id")
        if self._is_whole(name):
            if ignore_if_exists:
                return
            raise self._exists(name)
        check_opened(self.store.schemas, self.store.schema, None)
        source = None if tag is None else self.store.tags.get(tag)
        if dry_run:
            if snapshot_id is not None:
                self.store.snapshots.get(snapshot_id)
            return
        if snapshot_id is not None:
            source = TableTags(self.store).create_lasting(tag_of_branch(name), snapshot_id)
        try:
            self._publish(name, branch_root(self.store.root, name), source)
        except BaseException:
            if snapshot_id is not None and source is not None and not self._is_whole(name):
                delete_tags(self.store, [source])
            raise
        if snapshot_id is not None:  # the tag may be gone if another call with this name failed
            TableTags(self.store).create_lasting(tag_of_branch(name), snapshot_id)

    def delete(self, name: str, *, dry_run: bool = False) -> None:
        """Delete a branch. Data files that only the branch has stay until orphan files are removed.

        ``dry_run``: True to only check that this is possible. Raises NotFoundError for a branch that does not exist,
        InvalidInputError for ``main`` and for the branch in the option ``scan.fallback-branch``.
        """
        check_same_table(self.store.schemas, self.store.schema)
        self.check_deletable(name)
        if dry_run:
            return
        main, own_tag = self._main(), self._own_tag(name)
        if own_tag is not None:  # first, because a call after a crash could not know whose tag it was
            main.tags.delete(own_tag.name)
            main.sync([main.tags.path(own_tag.name)])
        directory = branch_root(main.root, name)
        if not self.store.environment.drop_branch(main, name):
            empty_trash(main.io, _parent(directory))
            drop_directory(main.io, directory)
        if own_tag is not None:
            delete_files_of(main, own_tag.snapshot)

    def rename(self, name: str, target: str, *, dry_run: bool = False) -> None:
        """Rename a branch to ``target`` atomically. ``dry_run``: True to only check that this is possible.

        Raises NotFoundError for a branch that does not exist, AlreadyExistsError if the new name exists,
        UnsupportedError for a store without atomic renames of directories, such as an object store.
        """
        check_same_table(self.store.schemas, self.store.schema)
        self.check(name)
        check_branch_name(target)
        if target in self.list():
            raise AlreadyExistsError(f"branch {target!r} of {self.store.root} already exists: choose another name")
        if not dry_run and self.store.environment.rename_branch(self._main(), name, target):
            return
        if not self.store.io.renames_atomically:
            raise UnsupportedError(
                f"branch {name!r} of {self.store.root} cannot be renamed to {target!r}: the store cannot rename a "
                "directory atomically. Create a branch from a snapshot or a tag, and delete this one"
            )
        if dry_run:
            return
        self._rename_own_tag(name, target)
        root = self.store.root
        self._main().io.rename_directory(branch_root(root, name), branch_root(root, target))

    def fast_forward(self, name: str, *, dry_run: bool = False) -> None:
        """Fast-forward ``main`` to a branch, whose snapshots and tags replace ``main`` from its oldest snapshot on.

        Snapshots, schemas and tags of ``main`` from there on are lost. Older snapshots stay if they reach up to the
        branch's first snapshot and the branch has their schemas; older tags stay if the branch has their schemas. Not
        atomic: after a crash ``main`` is at an older snapshot, at a snapshot of the branch, or empty, and another call
        finishes the work. REQUIRES: no writer is active. ``dry_run``: True to only check that this is possible.

        Raises NotFoundError for a branch that does not exist, InvalidInputError for a branch without snapshots and for
        a branch whose creation was interrupted.
        """
        check_same_table(self.store.schemas, self.store.schema)
        self.check(name)
        branch, main = self._branch(name), self._main()
        snapshots = list(branch.snapshots.all())
        if not snapshots:
            raise InvalidInputError(
                f"{self.store.root} cannot be fast-forwarded to branch {name!r}: the branch has no snapshot"
            )
        if not self._is_whole(name):  # schemas that the branch lacks would be deleted in main
            raise InvalidInputError(
                f"{self.store.root} cannot be fast-forwarded to branch {name!r}, whose creation was interrupted: "
                "create the branch again"
            )
        main.io.check_can_commit()
        if dry_run or self.store.environment.fast_forward(main, name):
            return
        _make_plain(main)
        first, schemas = snapshots[0].id, branch.schemas.ids()
        _cut(main, first, _shared_schemas(main, branch))
        for number in schemas:
            main.io.write(main.schemas.path(number), _plain_schema(branch.schemas, number))
        main.sync(main.schemas.path(number) for number in schemas)
        for snapshot in snapshots:
            main.io.write(main.snapshots.path(snapshot.id), snapshot.to_json())
        main.sync(main.snapshots.path(snapshot.id) for snapshot in snapshots)
        for tag in branch.tags.list():
            main.tags.replace(tag)
        main.snapshots.write_hint("LATEST", snapshots[-1].id)
        main.snapshots.write_hint("EARLIEST", main.snapshots.ids()[0])
        newest = main.schemas.latest()
        sync_after_change(main if newest is None else main.with_schema(newest))

    # ---- inside

    def merge(self, name: str, target: str = MAIN, *, dry_run: bool = False) -> int:
        """Add the new files of branch ``name``, with their rows, to ``target``; return the number of files.

        For tables without a primary key, whose branches have only added rows since the snapshot that they share. The
        branches share the files afterwards. ``dry_run``: True to only check and return the number of files.

        Raises NotFoundError for a branch that does not exist, InvalidInputError if both are the same branch, and the
        errors of `merge_branch`.
        """
        for branch in {name, target} - {MAIN}:
            self.check(branch)
        if name == target:
            raise InvalidInputError(f"branch {name!r} of {self.store.root} cannot be merged into itself")
        return merge_branch(self._branch(name), self._branch(target), dry_run=dry_run)

    def _main(self) -> FileStore:
        return replace(self.store, branch=MAIN)

    def _branch(self, name: str) -> FileStore:
        return replace(self.store, branch=name)

    def check_deletable(self, name: str) -> None:
        """Raise InvalidInputError or NotFoundError, as `delete` does, for a branch that cannot be deleted."""
        self.check(name)
        if self.store.options.value(SCAN_FALLBACK_BRANCH) == name:
            raise InvalidInputError(
                f"option {SCAN_FALLBACK_BRANCH.key!r} of {self.store.root} is {name!r}: remove the option first"
            )

    def _is_whole(self, name: str) -> bool:
        """Return True if a branch exists and its creation is complete.

        Creation writes the table's first schema last; only a branch in use has snapshots without a tag in the branch.
        """
        if name not in self.list():
            return False
        branch = self._branch(name)
        tagged_ids = {tag.snapshot.id for tag in branch.tags.list()}
        return branch.schemas.ids()[:1] == self.store.schemas.ids()[:1] or not tagged_ids.issuperset(
            branch.snapshots.ids()
        )

    def _own_tag(self, branch: str, name: str | None = None) -> Tag | None:
        """Return the tag of the snapshot that a branch was created from, or `None`.

        ``name``: the branch name in the tag's name; `None`: the name of the branch.
        """
        tag = tag_of_branch(name or branch)
        main_tag, branch_tag = self._main().tags.find(tag), self._branch(branch).tags.find(tag)
        same = (
            main_tag is not None
            and branch_tag is not None
            and main_tag.snapshot.fingerprint == branch_tag.snapshot.fingerprint
        )
        return main_tag if same else None

    def _rename_own_tag(self, name: str, target: str) -> None:
        """Rename the tag of a branch's start to another branch's name; continue an interrupted call."""
        main, branch, own_tag = self._main(), self._branch(name), self._own_tag(name)
        if own_tag is not None:
            TableTags(main).create_lasting(tag_of_branch(target), own_tag.snapshot)
            branch.tags.replace(replace(own_tag, name=tag_of_branch(target)))
            main.tags.delete(own_tag.name)
        renamed, old = self._own_tag(name, target), branch.tags.find(tag_of_branch(name))
        if renamed is not None and old is not None and renamed.snapshot.fingerprint == old.snapshot.fingerprint:
            branch.tags.delete(old.name)

    def check(self, name: str) -> None:
        """Raise NotFoundError for a branch that does not exist, InvalidInputError for ``main``."""
        names = self.list()
        if name == MAIN:
            raise InvalidInputError(
                f"{MAIN!r} is the table {self.store.root} itself: name a branch; there are {names or 'none'}"
            )
        if name not in names:
            raise NotFoundError(
                f"branch {name!r} of {self.store.root} does not exist; there are {listed_names(name, names)}"
            )

    def _publish(self, name: str, directory: str, source: Tag | None) -> None:
        """Create the directory of a new branch, atomically if the store can rename, or let the catalog create it.

        Raises AlreadyExistsError if another call has created the branch.
        """
        main, io = self._main(), self._main().io
        if self.store.environment.create_branch(main, name, None if source is None else source.name):
            return
        empty_trash(io, _parent(directory))
        if not io.renames_atomically:
            if io.exists(join(directory, "schema", DROPPING)):
                drop_directory(io, directory)
            elif not self._is_begun(name, source):
                self._refuse_foreign_files(name)
            try:
                self._fill(self._main(), directory, source)  # after an error the next call continues
            finally:
                self._delete_if_dropped(directory)
            return
        delete_unborn(io, _parent(directory), self.store.now() - _DAY_MILLIS)
        built = join(_parent(directory), f"{UNBORN}{self.store.new_name()}")
        try:
            self._fill(self._main(), built, source)
            if name in self.list():
                if self._is_whole(name):
                    raise self._exists(name)
                drop_directory(io, directory)  # half a branch, as another engine may leave it
            try:
                io.rename_directory(built, directory)
            except FileExistsError:
                raise self._exists(name) from None
        except BaseException:
            drop_directory(io, built)
            raise

    def _delete_if_dropped(self, directory: str) -> None:
        """Delete the files of a new branch, and raise NotFoundError, if its table was dropped at the same time.

        The drop may have listed the files of the table before the branch had any.
        """
        try:
            check_opened(self.store.schemas, self.store.schema, None)
        except NotFoundError:
            drop_directory(self.store.io, directory)
            raise

    def _is_begun(self, name: str, source: Tag | None) -> bool:
        """Return True if the existing files of a branch are a part of what `_fill` writes for this source."""
        branch = self._branch(name)
        texts = {tag.to_json() for tag in branch.tags.list()}
        tags, ids = (set(), set()) if source is None else ({source.to_json()}, {source.snapshot.id})
        return texts <= tags and ids.issuperset(branch.snapshots.ids())

    def _refuse_foreign_files(self, name: str) -> NoReturn:
        """Raise AlreadyExistsError for a branch that another call has created, or has begun to create.

        Deleting the files of that branch could delete rows: nothing stops the other call before the deletion.
        """
        if self._is_whole(name):
            raise self._exists(name)
        raise AlreadyExistsError(
            f"branch {name!r} of {self.store.root} exists in part, from another tag or snapshot: its creation is "
            "running or was interrupted. Wait, or delete the branch, then create it again"
        )

    def _exists(self, name: str) -> AlreadyExistsError:
        return AlreadyExistsError(f"branch {name!r} of {self.store.root} already exists: choose another name")

    def _fill(self, main: FileStore, directory: str, source: Tag | None) -> None:
        """Copy the tag, its snapshot and the schemas (the first one last) into the directory of a new branch.

        The FileIO of ``main`` writes the files, because the branch's FileIO does not create a branch directory.
        """
        io, schemas = main.io, Schemas(main.io, directory)
        if source is not None:
            tags, snapshots = Tags(io, directory), Snapshots(io, directory)
            tags.replace(source)
            io.write(snapshots.path(source.snapshot.id), source.snapshot.to_json())
            main.sync([tags.path(source.name), snapshots.path(source.snapshot.id)])
            snapshots.write_hint("LATEST", source.snapshot.id)
            snapshots.write_hint("EARLIEST", source.snapshot.id)
        current = current_schema(self.store.schemas) or self.store.schema
        last = current.id if source is None else source.snapshot.schema_id
        for number in reversed(self.store.schemas.ids()):
            if number <= last:
                io.write(schemas.path(number), _plain_schema(self.store.schemas, number))
                main.sync([schemas.path(number)])


def _parent(directory: str) -> str:
    return directory.rpartition("/")[0]


def _plain_schema(schemas: Schemas, number: int) -> bytes:
    """Return a schema file's content without the key that marks it as waiting for rows: see `continuity.replacing`."""
    schema = schemas.get(number)
    if replaced_version(schema) is None:
        return schemas.io.read(schemas.path(number))
    return unmarked(schema).to_json()


def _make_plain(main: FileStore) -> None:
    """Write the schemas of a table without the key of `_plain_schema`, so that the table exists without a snapshot.

    Raises InvalidInputError if the newest schema waits for rows.
    """
    schemas, current = main.schemas, current_schema(main.schemas)
    waiting = [number for number in schemas.ids() if replaced_version(schemas.get(number)) is not None]
    if waiting and (current is None or current.id != schemas.ids()[-1]):
        raise InvalidInputError(
            f"{main.root} cannot be fast-forwarded, because a REPLACE TABLE was interrupted: run it again, or roll the "
            "table back to its newest snapshot"
        )
    for number in waiting:
        main.io.write(schemas.path(number), _plain_schema(schemas, number))
    main.sync(schemas.path(number) for number in waiting)


def _shared_schemas(main: FileStore, branch: FileStore) -> set[int]:
    """Return the ids of the schemas that the table and the branch share; later schemas with equal ids differ."""
    both = set(main.schemas.ids()) & set(branch.schemas.ids())
    return {n for n in both if _plain_schema(main.schemas, n) == _plain_schema(branch.schemas, n)}


def _cut(main: FileStore, first: int, schemas: Collection[int]) -> None:
    """Delete the parts of ``main`` that a branch replaces.

    These are the snapshots, changelogs and tags from snapshot ``first`` on, all schemas except ``schemas``, and the
    tags of deleted schemas. Older snapshots and changelogs are also deleted if one of them has a deleted schema, or if
    they end before ``first - 1``, because no snapshot could follow them.
    """
    for tag in main.tags.list():
        if tag.snapshot.id >= first or tag.snapshot.schema_id not in schemas:
            main.tags.delete(tag.name)
    staying = [snapshot for snapshot in main.snapshots.all() if snapshot.id < first]
    older = [*(changelog for changelog in main.changelogs.all() if changelog.id < first), *staying]
    ends = not staying or staying[-1].id == first - 1
    follows = ends and all(one.schema_id in schemas for one in older)
    least = first if follows else 0
    main.changelogs.remove_after(least - 1)
    if staying and follows:
        main.snapshots.write_hint("LATEST", staying[-1].id)  # Java trusts a hint if no snapshot follows
    else:
        main.io.delete(main.snapshots.path(first).rpartition("/")[0] + "/LATEST")
    for _ in range(_TRIES):
        later = [number for number in main.snapshots.ids() if number >= least]
        for number in reversed(later):
            main.io.delete(main.snapshots.path(number))
        if not later:
            break
    for number in reversed(main.schemas.ids()):
        if number not in schemas:
            main.io.delete(main.schemas.path(number))
