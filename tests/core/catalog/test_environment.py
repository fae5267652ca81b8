"""Every change of a table goes through the environment of its catalog."""

import ast
import pickle
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

import paimon_core
from paimon_core import FileSystemCatalog, Schema, Table
from paimon_core.catalog.catalog import TableEntry
from paimon_core.schema.change import AddColumn
from paimon_core.store.environment import CatalogEnvironment, NotLockedError

EVENTS: list[str] = []
REFUSE: list[str] = []
ROWS = pa.table({"id": [1, 2]})


class Recording(CatalogEnvironment):
    """Records each publication, and that it is locked."""

    @contextmanager
    def locked(self):
        if REFUSE:
            raise NotLockedError("another process has the lock")
        EVENTS.append("lock")
        yield
        EVENTS.append("unlock")

    def publish_snapshot(self, store, snapshot, entries):
        EVENTS.append(f"{snapshot.commit_kind} {len(entries)}")
        return super().publish_snapshot(store, snapshot, entries)

    def snapshot_published(self, store, snapshot, entries):
        EVENTS.append(f"published {snapshot.id}")

    def publish_schema(self, schemas, schema):
        EVENTS.append(f"schema {schema.id}")
        return super().publish_schema(schemas, schema)


class RecordingCatalog(FileSystemCatalog):
    """A catalog whose tables have `Recording`."""

    def _entry(self, name):
        return TableEntry(self.location(name), Recording())

    def _locate(self, name):
        return None if super()._locate(name) is None else self._entry(name)


@pytest.fixture
def catalog(tmp_path):
    catalog = RecordingCatalog(str(tmp_path))
    catalog.create_database("db")
    EVENTS.clear()
    REFUSE.clear()
    return catalog


def events() -> list[str]:
    found = [event for event in EVENTS if event not in ("lock", "unlock")]
    EVENTS.clear()
    return found


def test_commits_and_schemas_are_published_by_environment(catalog):
    table = catalog.create_table("db.t", Schema(ROWS.schema))
    assert EVENTS == ["schema 0", "lock", "unlock"]
    events()
    table.write(ROWS)
    assert EVENTS == ["APPEND 1", "lock", "unlock", "published 1"]
    events()
    pickle.loads(pickle.dumps(table)).delete("id = 1")
    catalog.table("db.t").alter([AddColumn("x", "INT")])
    catalog.table("db.t").truncate()
    assert events() == ["OVERWRITE 2", "published 2", "schema 1", "OVERWRITE 1", "published 3"]
    catalog.table("db.t").rollback_to(2)
    catalog.clone("db.t", catalog, "db.copy")
    assert events() == ["schema 0", "schema 1", "APPEND 1", "published 1"]


def test_staged_table_is_published_by_environment(catalog):
    staged = catalog.stage_table("db.t", Schema(ROWS.schema), replace_existing=True)
    staged.table.write(ROWS)
    events()
    staged.publish()
    assert events() == ["schema 0", "APPEND 1", "published 1"]


def test_without_lock_nothing_is_written(catalog, tmp_path):
    table = catalog.create_table("db.t", Schema(ROWS.schema))
    table.write(ROWS)
    files = {path for path in tmp_path.rglob("*") if path.is_file()}
    REFUSE.append("all")
    for change in (lambda: table.write(ROWS), lambda: table.alter([AddColumn("x", "INT")]), table.truncate):
        with pytest.raises(NotLockedError, match="another process"):
            change()
    assert {path for path in tmp_path.rglob("*") if path.is_file()} == files
    with pytest.raises(NotLockedError):
        catalog.create_table("db.other", Schema(ROWS.schema))
    assert catalog.list_tables("db") == ["t"]


def test_table_of_path_has_no_environment(catalog):
    table = catalog.create_table("db.t", Schema(ROWS.schema))
    events()
    Table.open(table.path).write(ROWS)
    assert not events()


MAKING = ("create_exclusive", "create_or_match", "chemas.commit", "stored.commit")
"""The ends of calls that make the file of a snapshot, a schema or a tag."""


def test_snapshots_and_schemas_are_created_only_by_environment():
    """No other module creates the file of a snapshot or a schema, or it must be listed here with its lock."""
    root = Path(paimon_core.__file__).parent
    found = {}
    for path in sorted(root.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                text = ast.unparse(node.func)
                if text.endswith(MAKING) and "fileio" not in path.parts:
                    found.setdefault(path.relative_to(root).as_posix(), set()).add(text)
    assert found == {
        "catalog/rest/environment.py": {"store.schemas.commit"},
        "catalog/jdbc/environment.py": {"schemas.commit"},
        "commit/intents.py": {"self.io.create_exclusive"},
        "operations/history/expire_snapshots.py": {"store.io.create_exclusive"},
        "operations/history/rollback.py": {"store.io.create_exclusive"},
        "schema/schemas.py": {"self.io.create_or_match"},
        "snapshot/tags.py": {"self.io.create_or_match"},
        "store/environment.py": {"store.io.create_exclusive", "schemas.commit"},
    }
