"""Targets of whole tables: one file of a golden table is the input, and reads and maintenance must stay inside."""

import functools
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

from paimon_core.errors import PaimonError
from paimon_core.fileio.fileio import FileStatus
from paimon_core.schema.schemas import Schemas
from paimon_core.store.file_store import FileStore
from paimon_core.table import Table
from tests.fuzz.file_targets import validated
from tests.fuzz.goldens import HOME, files
from tests.fuzz.target import Escape, Target
from tests.support.faulty_io import MemoryIO


class Jail(MemoryIO):
    """Files in memory, all in the directory of one table. Any other path is an `Escape`."""

    def _checked(self, path: str) -> str:
        parts = path.removeprefix(HOME).split("/")
        if not path.startswith(HOME) or parts[0] or ".." in parts or "." in parts:
            raise Escape("outside of the table", path)
        return path

    def read(self, path: str) -> bytes:
        return super().read(self._checked(path))

    def write(self, path: str, data: bytes) -> None:
        super().write(self._checked(path), data)

    def create_exclusive(self, path: str, data: bytes) -> bool:
        return super().create_exclusive(self._checked(path), data)

    def exists(self, path: str) -> bool:
        return super().exists(self._checked(path))

    def list(self, directory: str) -> list[FileStatus]:
        return super().list(self._checked(directory))

    def delete(self, path: str) -> None:
        super().delete(self._checked(path))

    def delete_directory(self, path: str) -> None:
        super().delete_directory(self._checked(path))

    def copy_within(self, source: str, target: str, *, may_link: bool = False) -> bool:
        return super().copy_within(self._checked(source), self._checked(target), may_link=may_link)

    def rename_directory(self, source: str, target: str) -> None:
        super().rename_directory(self._checked(source), self._checked(target))

    def sync(self, paths: Iterable[str], root: str) -> None:
        for path in paths:
            self._checked(path)


def opened(name: str, changed: dict[str, bytes] | None = None) -> Table:
    """Return a golden table in memory, with other contents of some files. Raises the errors of its schema."""
    io = Jail({**files(name), **(changed or {})})
    schema = Schemas(io, HOME).latest()
    assert schema is not None
    return Table(FileStore(io, HOME, schema))


def _attempt(*uses: Any) -> None:
    for use in uses:
        with suppress(PaimonError):
            use()


def _drained(table: Table) -> None:
    for batch in table.to_batches():
        validated(batch)


def use(name: str, path: str, data: bytes) -> None:
    """Read and maintain a table whose file at ``path`` has other bytes."""
    table = opened(name, {path: data})
    key = next(iter(table.schema.names), "no_column")
    _attempt(
        lambda: _drained(table),
        lambda: table.to_arrow(filter=f"{key} = 2", limit=3),
        lambda: table.verify(deep=True),
        lambda: table.system_table("files").to_arrow(),
        lambda: table.tags.list() if hasattr(table.tags, "list") else None,
        lambda: table.changes(1, 2),
        lambda: table.advice(),
        lambda: table.maintenance.remove_orphan_files("2026-01-01 00:00:00", dry_run=True),
        lambda: table.maintenance.compact_manifests(),
        lambda: table.compact(full=True),
        lambda: table.maintenance.expire_snapshots(retain_max=1, older_than="2026-11-01 00:00:00"),
        lambda: table.maintenance.remove_orphan_files("2026-01-01 00:00:00"),
    )


def _newest(name: str, part: str) -> str:
    """Return the path of a file with this part that the newest snapshot needs, if one is known by its name."""
    found = [path for path in files(name) if part in path]
    return sorted(found, key=lambda path: (len(path), path))[-1]


def _target(name: str, part: str, shape: str) -> Target:
    path = _newest(name, part)
    title = part.strip("/").partition("/")[2] or part.strip("/")
    return Target(
        f"table-{name}-{title.strip('-').replace('/', '-') or 'file'}",
        shape,
        lambda: [files(name)[path]],
        functools.partial(use, name, path),
    )


TARGETS: Sequence[Target] = (
    _target("keyed_vectors", "/snapshot/snapshot-", "json"),
    _target("keyed_vectors", "/schema/schema-", "json"),
    _target("keyed_vectors", "/tag/tag-", "json"),
    _target("keyed_vectors", "/manifest/manifest-list-", "avro"),
    _target("keyed_vectors", "/manifest/index-manifest-", "avro"),
    _target("vectors", "/index/index-", "bytes"),
    _target("vectors", "/manifest/index-manifest-", "avro"),
    _target("dynamic", "/index/index-", "bytes"),
    _target("append_parquet", "/manifest/manifest-", "avro"),
    _target("append_avro", "/bucket-0/data-", "avro"),
    _target("keyed_orc", "/schema/schema-", "json"),
    _target("evolved", "/schema/schema-", "json"),
)
