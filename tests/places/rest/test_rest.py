"""The REST catalog against Paimon's own server: racing writers, lost answers, killed writers, DDL."""

import json
import random
import signal
import subprocess
import sys
import time

import pyarrow as pa
import pytest

from paimon_core import Schema, open_catalog
from paimon_core.errors import (
    AlreadyExistsError,
    InvalidInputError,
    NotFoundError,
    OutOfRangeError,
    PermissionDeniedError,
)
from paimon_core.schema.change import FIRST, AddColumn, DropColumn, RenameColumn, SetOption, UpdateType

pytestmark = pytest.mark.places

ROWS = pa.table({"k": pa.array([1, 2], pa.int64()), "v": ["a", "b"]})
KEYED = Schema(ROWS.schema, primary_keys=["k"], options={"bucket": "1"})
PLAIN = Schema(ROWS.schema, options={"commit.max-retries": "1000"})
WRITER = """
import json, sys
import pyarrow as pa
from paimon_core import open_catalog
options, name, writer, commits = json.loads(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
table = open_catalog(options=options).table(name)
print("ready", flush=True)
sys.stdin.readline()
for number in range(commits):
    table.write(pa.table({"k": pa.array([writer * 1_000_000 + number], pa.int64()), "v": [str(writer)]}))
    print("done", number, flush=True)
"""


def writer(server, name, number, commits):
    arguments = [json.dumps(server.options), name, str(number), str(commits)]
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


@pytest.mark.parametrize("writers", [3, pytest.param(8, marks=pytest.mark.slow)])
def test_racing_writers_lose_no_commit(server, catalog, writers):
    name = f"db.race{writers}"
    table = catalog.create_table(name, PLAIN)
    each = 60 // writers
    running = [writer(server, name, number, each) for number in range(writers)]
    for process in running:
        assert process.stdout.readline() == "ready\n"
    for process in running:
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in running:
        output, _ = process.communicate(timeout=300)
        assert (process.returncode, output.count("done")) == (0, each)
    assert sorted(table.to_arrow().column("k").to_pylist()) == sorted(
        number * 1_000_000 + commit for number in range(writers) for commit in range(each)
    )
    snapshots = table.snapshots()
    assert [snapshot.id for snapshot in snapshots] == list(range(1, writers * each + 1))
    assert table.verify().sound


def test_lost_answers_are_found(server, catalog):
    table = catalog.create_table("db.lost", KEYED)
    for number in range(1, 5):
        server.tell("lose")
        assert table.write(ROWS).id == number
    assert table.to_arrow().num_rows == 2
    assert table.verify().sound


def test_killed_writers_leave_a_whole_table(server, catalog):
    table = catalog.create_table("db.killed", PLAIN)
    acknowledged = 0
    for attempt in range(5):
        process = writer(server, "db.killed", attempt, 1000)
        process.stdout.readline()
        process.stdin.write("go\n")
        process.stdin.flush()
        process.stdout.readline()
        time.sleep(random.Random(attempt).uniform(0, 0.3))
        process.send_signal(signal.SIGKILL)
        acknowledged += 1 + process.communicate()[0].count("done")
    rows = table.to_arrow().num_rows
    assert acknowledged <= rows <= acknowledged + 5
    assert table.verify().sound
    assert table.write(ROWS) is not None


def test_databases_and_tables(server, catalog):
    catalog.create_database("other", properties={"owner": "ann"})
    with pytest.raises(AlreadyExistsError, match=r"database 'other' exists already in main"):
        catalog.create_database("other")
    catalog.alter_database("other", {"owner": None, "x": "y"})
    assert catalog.database_properties("other") == {"x": "y"}
    for number in range(5):
        catalog.create_table(f"other.t{number}", KEYED)
    with pytest.raises(AlreadyExistsError, match=r"table 'other\.t1' exists already in main"):
        catalog.create_table("other.t1", KEYED)
    assert list(catalog.api.client.pages("/v1/paimon/databases/other/tables", "tables", {"maxResults": "2"})) == [
        f"t{number}" for number in range(5)
    ]
    catalog.drop_table("other.t0")
    with pytest.raises(NotFoundError, match=r"no table 'other\.t0' in main"):
        catalog.table("other.t0")
    catalog.rename_table("other.t1", "other.u")
    assert catalog.list_tables("other") == ["t2", "t3", "t4", "u"]
    with pytest.raises(AlreadyExistsError):
        catalog.rename_table("other.t2", "other.t3")
    catalog.drop_database("other", cascade=True)
    assert catalog.list_databases() == ["db"]


def test_tags_branches_and_rollback(server, catalog):
    table = catalog.create_table("db.timeline", KEYED)
    for _ in range(3):
        table.write(ROWS)
    table.tags.create("one", 1)
    table.branches.create("b", tag="one")
    assert table.branches.list() == ["b"]
    branch = catalog.table("db.timeline$branch_b")
    assert branch.write(pa.table({"k": pa.array([9], pa.int64()), "v": ["z"]})).id == 2
    assert catalog.table("db.timeline").snapshot().id == 3
    assert catalog.table("db.timeline").rollback_to(2).id == 2
    with pytest.raises(OutOfRangeError):
        catalog.table("db.timeline").rollback_to(3)
    assert catalog.table("db.timeline").write(ROWS).id == 3
    table.branches.fast_forward("b")
    assert catalog.table("db.timeline").to_arrow().column("k").to_pylist() == [1, 2, 9]
    table.branches.delete("b")
    assert table.branches.list() == []


def test_denied_table(server, catalog):
    table = catalog.create_table("db.denied", KEYED)
    server.tell("deny db.denied")
    with pytest.raises(PermissionDeniedError, match="denies the permission"):
        catalog.table("db.denied")
    with pytest.raises(PermissionDeniedError):
        table.write(ROWS)
    assert table.snapshot() is None


def test_wrong_token(server):
    with pytest.raises(PermissionDeniedError, match="does not accept the credentials") as error:
        open_catalog(options={**server.options, "token": "wrong-secret"})
    assert "wrong-secret" not in str(error.value)


def test_external_table(catalog, tmp_path):
    path = str(tmp_path / "outside")
    table = catalog.create_table("db.outside", Schema(ROWS.schema, options={"path": path}))
    assert table.path == path
    table.write(ROWS)
    catalog.drop_table("db.outside")
    with pytest.raises(InvalidInputError, match="a table with other columns is"):
        catalog.create_table("db.outside", Schema(pa.schema([("x", pa.int32())]), options={"path": path}))
    again = catalog.create_table("db.outside", Schema(ROWS.schema, options={"path": path}))
    assert again.to_arrow().num_rows == 2


def test_partitions_of_the_server(catalog):
    options = {"metastore.partitioned-table": "true"}
    table = catalog.create_table("db.parts", Schema(ROWS.schema, partition_keys=["v"], options=options))
    table.write(ROWS)
    table.write(ROWS)
    table.drop_partitions([{"v": "b"}])
    (partition,) = catalog.list_partitions("db.parts")
    assert (partition.spec, partition.record_count, partition.file_count) == ({"v": "a"}, 2, 2)


def test_schema_changes(catalog):
    table = catalog.create_table("db.changes", KEYED)
    table.write(ROWS)
    changed = table.alter(
        [
            AddColumn("w", "INT", "of w", "5", FIRST),
            AddColumn("n", "ROW<a INT, b ARRAY<STRING>>"),
            RenameColumn("v", "u"),
            SetOption("snapshot.num-retained.min", "3"),
        ]
    )
    changed = changed.alter([AddColumn(["n", "c"], "DATE"), UpdateType("w", "BIGINT"), DropColumn("u")])
    assert [(f.name, str(f.type)) for f in changed.schema.fields] == [
        ("w", "BIGINT"),
        ("k", "BIGINT NOT NULL"),
        ("n", "ROW<`a` INT, `b` ARRAY<STRING>, `c` DATE>"),
    ]
    assert changed.to_arrow().to_pylist() == [{"w": None, "k": 1, "n": None}, {"w": None, "k": 2, "n": None}]
