"""A JDBC catalog in SQLite: databases, tables, their rows in the database, races and interrupted changes."""

import json
import multiprocessing
import pickle
import sqlite3
import time
import warnings

import pyarrow as pa
import pytest

from paimon_core import Schema, open_catalog
from paimon_core.catalog.jdbc import catalog as jdbc_module
from paimon_core.catalog.jdbc.database import CatalogError, Database
from paimon_core.catalog.jdbc.environment import JdbcEnvironment
from paimon_core.catalog.opening import open_at
from paimon_core.errors import (
    AlreadyExistsError,
    CommitUnknownError,
    InvalidInputError,
    NotFoundError,
    TableChangedError,
    UnsupportedError,
)
from paimon_core.schema.change import AddColumn, SetOption
from paimon_core.store.environment import NotLockedError

ROWS = pa.table({"id": pa.array([1, 2], pa.int32())})
SCHEMA = Schema(ROWS.schema)


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(jdbc_module, "_PATIENCE", 0.2)


def opened(tmp_path, **options):
    return open_catalog(
        str(tmp_path / "warehouse"),
        options={"metastore": "jdbc", "uri": f"jdbc:sqlite:{tmp_path / 'catalog.db'}", **options},
    )


@pytest.fixture
def catalog(tmp_path):
    catalog = opened(tmp_path)
    catalog.create_database("db")
    return catalog


def rows(tmp_path, query):
    with sqlite3.connect(tmp_path / "catalog.db") as connection:
        return sorted(connection.execute(query).fetchall())


def change(tmp_path, statement):
    with sqlite3.connect(tmp_path / "catalog.db") as connection:
        connection.execute(statement)


def test_tables_of_database_are_those_of_java(catalog, tmp_path):
    locking = opened(tmp_path, **{"lock.enabled": "true"})
    assert locking.list_databases() == ["db"]
    found = {
        name: [(row[1], row[2], bool(row[3]), row[5]) for row in rows_of(tmp_path, name)]
        for (name,) in rows(tmp_path, "SELECT name FROM sqlite_master WHERE type = 'table'")
    }
    names = [("catalog_key", 1), ("database_name", 2), ("table_name", 3)]
    key, value = ("property_key", "VARCHAR(255)", True), ("property_value", "VARCHAR(1000)", False, 0)
    columns = [(name, "VARCHAR(255)", True, place) for name, place in names]
    assert found == {
        "paimon_tables": columns,
        "paimon_database_properties": [*columns[:2], (*key, 3), value],
        "paimon_table_properties": [*columns, (*key, 4), value],
        "paimon_distributed_locks": [
            ("lock_id", "VARCHAR(255)", True, 1),
            ("acquired_at", "TIMESTAMP", True, 0),
            ("expire_time_seconds", "BIGINT", True, 0),
        ],
    }


def rows_of(tmp_path, table):
    with sqlite3.connect(tmp_path / "catalog.db") as connection:
        return connection.execute(f"PRAGMA table_info({table})").fetchall()


def test_databases(catalog, tmp_path):
    catalog.create_database("other", properties={"comment": "ours"})
    catalog.create_database("other", ignore_if_exists=True)
    with pytest.raises(AlreadyExistsError, match="'other' exists already"):
        catalog.create_database("other")
    assert catalog.list_databases() == ["db", "other"]
    assert catalog.database_properties("other") == {"comment": "ours"}
    query = "SELECT property_key, property_value FROM paimon_database_properties WHERE database_name = 'other'"
    stored = rows(tmp_path, query)
    assert stored == [("comment", "ours"), ("exists", "true"), ("location", f"{tmp_path}/warehouse/other.db")]
    catalog.alter_database("other", {"comment": None, "a": "1"})
    assert catalog.database_properties("other") == {"a": "1"}
    with pytest.raises(InvalidInputError, match="'location' of database 'other' cannot be changed"):
        catalog.alter_database("other", {"location": "/x"})
    with pytest.raises(InvalidInputError, match="write 'upper'"):
        catalog.create_database("Upper")
    catalog.create_table("other.t", SCHEMA)
    with pytest.raises(InvalidInputError, match="is not empty, it has t"):
        catalog.drop_database("other")
    catalog.drop_database("other", cascade=True)
    assert catalog.list_databases() == ["db"]
    assert not (tmp_path / "warehouse" / "other.db").exists()
    change(tmp_path, "INSERT INTO paimon_tables VALUES ('jdbc', 'implied', 't')")
    assert catalog.list_databases() == ["db", "implied"]
    with pytest.raises(NotFoundError, match=r"no database 'nope'.*there are: db, implied"):
        catalog.table("nope.t")


def test_tables_and_their_properties(catalog, tmp_path):
    schema = Schema(
        pa.schema([pa.field("k", pa.int32(), nullable=False), ("v", pa.string())]),
        primary_keys=["k"],
        options={"bucket": "2"},
    )
    table = catalog.create_table("db.t", schema)
    table.write(pa.table({"k": pa.array([1], pa.int32()), "v": ["a"]}))
    query = "SELECT property_key, property_value FROM paimon_table_properties WHERE table_name = '{}'"
    assert rows(tmp_path, query.format("t")) == [("bucket", "2"), ("bucket-key", "k"), ("primary-key", "k")]
    table.alter([SetOption("snapshot.num-retained.max", "20")])
    assert ("snapshot.num-retained.max", "20") in rows(tmp_path, query.format("t"))
    change(tmp_path, "INSERT INTO paimon_table_properties VALUES ('jdbc', 'db', 'u', 'left', 'over')")
    catalog.rename_table("db.t", "db.u")
    assert (catalog.list_tables("db"), rows(tmp_path, query.format("t"))) == (["u"], [])
    assert len(rows(tmp_path, query.format("u"))) == 4
    assert catalog.table("db.u").to_arrow().num_rows == 1
    catalog.create_table("db.t", SCHEMA)
    with pytest.raises(AlreadyExistsError, match=r"'db\.u' exists already"):
        catalog.rename_table("db.t", "db.u")
    with pytest.raises(AlreadyExistsError):
        catalog.create_table("db.t", SCHEMA)
    assert catalog.create_table("db.t", SCHEMA, ignore_if_exists=True).schema.id == 0
    catalog.drop_table("db.u")
    assert rows(tmp_path, query.format("u")) == []
    assert not (tmp_path / "warehouse" / "db.db" / "u").exists()
    with pytest.raises(NotFoundError, match=r"no table 'db\.u'.*has: t"):
        catalog.drop_table("db.u")
    with pytest.raises(InvalidInputError, match="write 'upper'"):
        catalog.create_table("db.Upper", SCHEMA)
    with pytest.raises(InvalidInputError, match="this value has 2000"):
        catalog.create_table("db.long", Schema(ROWS.schema, options={"user.text": "x" * 2000}))
    assert not (tmp_path / "warehouse" / "db.db" / "long").exists()


def test_without_properties(tmp_path):
    catalog = opened(tmp_path, **{"sync-all-properties": "false"})
    catalog.create_database("db")
    catalog.create_table("db.t", Schema(ROWS.schema, options={"bucket": "-1"})).alter([AddColumn("x", "INT")])
    assert rows(tmp_path, "SELECT * FROM paimon_table_properties") == []


def test_other_entrances_register(catalog, tmp_path):
    staged = catalog.stage_table("db.t", SCHEMA, replace_existing=True)
    assert not catalog.table_exists("db.t")
    staged.table.write(ROWS)
    staged.publish()
    assert catalog.table("db.t").to_arrow().num_rows == 2
    again = catalog.stage_table("db.t", SCHEMA, replace_existing=True)
    again.publish()
    assert catalog.table("db.t").to_arrow().num_rows == 0
    assert catalog.clone("db.t", catalog, "db.copy").schema.id == 1
    assert catalog.list_tables("db") == ["copy", "t"]
    branch = catalog.table("db.t")
    branch.branches.create("b")
    catalog.table("db.t$branch_b").alter([AddColumn("x", "INT")])
    assert catalog.list_tables("db") == ["copy", "t"]


def test_environment_travels_by_text_and_by_pickle(catalog, tmp_path):
    table = catalog.create_table("db.t", SCHEMA)
    environment = table.store.environment
    assert pickle.loads(pickle.dumps(environment)) == environment
    address = json.loads(json.dumps(environment.address()))
    assert open_at(address, table.path).store.environment == environment
    secret = opened(tmp_path, **{"jdbc.password": "s3cret"})
    assert "s3cret" not in repr(secret) + repr(secret.table("db.t").store) + repr(
        secret.table("db.t").store.environment
    )


def test_options_of_spark_and_of_other_kinds(tmp_path, catalog):
    prefix = "spark.sql.catalog.paimon"
    block = {
        prefix: "org.apache.paimon.spark.SparkCatalog",
        f"{prefix}.metastore": "jdbc",
        f"{prefix}.uri": f"jdbc:sqlite:{tmp_path / 'catalog.db'}",
        f"{prefix}.warehouse": str(tmp_path / "warehouse"),
        f"{prefix}.catalog-key": "jdbc",
    }
    assert open_catalog(options=block).list_databases() == ["db"]
    assert open_catalog(options={**block, f"{prefix}.catalog-key": "other"}).list_databases() == []
    with pytest.raises(InvalidInputError, match="given twice"):
        open_catalog(options={**block, "metastore": "filesystem"})
    with pytest.raises(InvalidInputError, match="needs a warehouse"):
        open_catalog(options={"metastore": "jdbc", "uri": "jdbc:sqlite:/x"})
    with pytest.raises(InvalidInputError, match="needs the option 'uri'"):
        open_catalog(str(tmp_path), options={"metastore": "jdbc"})
    with pytest.raises(UnsupportedError, match="'uri'"):
        open_catalog(str(tmp_path), options={"uri": "thrift://x"})
    with pytest.raises(UnsupportedError, match="'token'"):
        opened(tmp_path, token="x")
    with pytest.raises(InvalidInputError, match=r"'lock-acquire-timeout'.*'soon'"):
        opened(tmp_path, **{"lock-acquire-timeout": "soon"})


# ---- the lock


def test_lock_is_held_and_released(tmp_path):
    catalog = opened(tmp_path, **{"lock.enabled": "true"})
    catalog.create_database("db")
    table = catalog.create_table("db.t", SCHEMA)
    with table.store.environment.locked():
        held = rows(tmp_path, "SELECT lock_id, expire_time_seconds FROM paimon_distributed_locks")
        assert held == [("jdbc.db.t", 480)]
        other = opened(tmp_path, **{"lock.enabled": "true", "lock-acquire-timeout": "100 ms"}).table("db.t")
        with pytest.raises(NotLockedError, match=r"'jdbc\.db\.t' was not free"):
            other.write(ROWS)
        with pytest.raises(NotLockedError):
            other.alter([AddColumn("x", "INT")])
    other.write(ROWS)
    table.alter([AddColumn("x", "INT")])
    with pytest.raises(RuntimeError), table.store.environment.locked():
        raise RuntimeError
    assert rows(tmp_path, "SELECT * FROM paimon_distributed_locks") == []


def test_lock_of_dead_process_is_taken_over(tmp_path):
    catalog = opened(tmp_path, **{"lock.enabled": "true", "lock-check-max-sleep": "100 ms"})
    catalog.create_database("db")
    table = catalog.create_table("db.t", SCHEMA)
    change(tmp_path, "INSERT INTO paimon_distributed_locks VALUES ('jdbc.db.t', datetime('now', '-9 seconds'), 10)")
    started = time.monotonic()
    table.write(ROWS)
    assert 0.5 < time.monotonic() - started < 10
    assert rows(tmp_path, "SELECT * FROM paimon_distributed_locks") == []


def test_failed_release_does_not_hide_commit(tmp_path, caplog):
    catalog = opened(tmp_path, **{"lock.enabled": "true", "lock-acquire-timeout": "1 s"})
    catalog.create_database("db")
    table = catalog.create_table("db.t", SCHEMA)
    change(
        tmp_path,
        "CREATE TRIGGER t BEFORE DELETE ON paimon_distributed_locks BEGIN SELECT RAISE(ABORT, 'down'); END",
    )
    assert table.write(ROWS).id == 1
    assert "lock jdbc.db.t is not released, and expires after 1 s" in caplog.text


def test_missing_directory_of_database_is_named(tmp_path):
    options = {"metastore": "jdbc", "uri": f"jdbc:sqlite:{tmp_path}/missing/catalog.db"}
    with pytest.raises(CatalogError, match="unable to open database file; its directory must exist"):
        open_catalog(str(tmp_path / "warehouse"), options=options).create_database("db")


# ---- races and interruptions


def _race(tmp_path, what, results, barrier):
    catalog = opened(tmp_path)
    for number in range(4):
        barrier.wait()
        try:
            if what == "create":
                catalog.create_table(f"db.t{number}", SCHEMA)
            elif what == "rename":
                catalog.rename_table(f"db.t{number}", f"db.r{number}_{multiprocessing.current_process().name[-1]}")
            else:
                catalog.drop_table(f"db.t{number}")
            results.put((number, "won"))
        except (AlreadyExistsError, NotFoundError, InvalidInputError, FileNotFoundError) as error:
            results.put((number, type(error).__name__))


@pytest.mark.parametrize("what", ["create", "rename", "drop"])
def test_one_process_wins(catalog, tmp_path, what):
    context = multiprocessing.get_context("fork")
    if what != "create":
        for number in range(4):
            catalog.create_table(f"db.t{number}", SCHEMA)
    results, barrier = context.Queue(), context.Barrier(2)
    processes = [context.Process(target=_race, args=(tmp_path, what, results, barrier), name=f"p{n}") for n in range(2)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        for process in processes:
            process.start()
    found = [results.get(timeout=60) for _ in range(8)]
    for process in processes:
        process.join(10)
    assert sorted(number for number, result in found if result == "won") == [0, 1, 2, 3]
    assert len(catalog.list_tables("db")) == (0 if what == "drop" else 4)
    for name in catalog.list_tables("db"):
        assert catalog.table(f"db.{name}").schema.id == 0


def test_interrupted_creation(catalog, tmp_path, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(JdbcEnvironment, "_list", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            catalog.create_table("db.t", SCHEMA)
    assert not catalog.table_exists("db.t")
    with pytest.raises(InvalidInputError, match="Drop the table to delete these files"):
        catalog.create_table("db.t", SCHEMA)
    catalog.drop_table("db.t")
    catalog.create_table("db.t", SCHEMA).write(ROWS)


def test_row_that_is_not_stored_leaves_no_schema(catalog, tmp_path):
    change(tmp_path, "CREATE TRIGGER t BEFORE INSERT ON paimon_tables BEGIN SELECT RAISE(ABORT, 'down'); END")
    with pytest.raises(CatalogError, match="down"):
        catalog.create_table("db.t", SCHEMA)
    change(tmp_path, "DROP TRIGGER t")
    catalog.create_table("db.t", SCHEMA)


def test_unanswered_creation_is_unknown(catalog, monkeypatch):
    def fails(*_):
        monkeypatch.setattr(Database, "has_table", fails)
        raise CatalogError("no answer")

    monkeypatch.setattr(Database, "insert_table", fails)
    with pytest.raises(CommitUnknownError, match="may be done"):
        catalog.create_table("db.t", SCHEMA)


def test_interrupted_drop_and_renames(catalog, tmp_path):
    catalog.create_table("db.t", SCHEMA).write(ROWS)
    change(tmp_path, "UPDATE paimon_tables SET table_name = 'u'")  # Java's rename, killed before it moves the directory
    assert catalog.list_tables("db") == ["u"]
    with pytest.raises(NotFoundError, match=r"the catalog lists 'db\.u', but its directory has no table"):
        catalog.table("db.u")
    catalog.drop_table("db.u")
    with pytest.raises(InvalidInputError, match="Drop the table"):
        catalog.create_table("db.t", SCHEMA)
    catalog.drop_table("db.t")
    catalog.create_table("db.t", SCHEMA).write(ROWS)
    (tmp_path / "warehouse/db.db/t").rename(tmp_path / "warehouse/db.db/u")  # our rename, killed before its commit
    catalog.rename_table("db.t", "db.u")
    assert catalog.table("db.u").to_arrow().num_rows == 2
    change(tmp_path, "DELETE FROM paimon_tables")  # a drop, killed before it deletes the files
    assert not catalog.table_exists("db.u")
    catalog.drop_table("db.u")
    assert not (tmp_path / "warehouse/db.db/u").exists()


def test_change_of_dropped_table_is_refused(catalog, tmp_path):
    table = catalog.create_table("db.t", SCHEMA)
    change(tmp_path, "DELETE FROM paimon_tables")
    with pytest.raises(TableChangedError, match="not in the catalog any more"):
        table.alter([AddColumn("x", "INT")])
    assert table.store.schemas.ids() == [0]


def test_database_that_does_not_answer(catalog, tmp_path):
    (tmp_path / "catalog.db").write_bytes(b"not a database" * 100)
    with pytest.raises(CatalogError, match=r"sqlite:.*catalog\.db failed: DatabaseError"):
        catalog.list_databases()
