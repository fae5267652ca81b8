"""Places that are no table, tables of another time, and files that are gone: each is said by name."""

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from paimon_core import FileSystemCatalog
from paimon_core.errors import (
    CorruptedError,
    InvalidInputError,
    NotFoundError,
    OutOfRangeError,
    PaimonError,
    UnsupportedError,
)
from paimon_core.table import Table
from tests.support.avro import read_avro, write_avro
from tests.support.tables import append_table, keyed_table, orders


def table_with_snapshots(path: Path, count: int = 3) -> Table:
    table = keyed_table(path / "t")
    for i in range(count):
        table.write(orders((i, "v", i)))
    return table


def edit_json(path: Path, **values) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def data_files(root: Path) -> list[Path]:
    return sorted(root.rglob("bucket-*/data-*"))


# ---- no table


def test_missing_path_is_refused(tmp_path):
    with pytest.raises(NotFoundError, match=r"no table at .*/nowhere.*schema"):
        Table.open(str(tmp_path / "nowhere"))


def test_directory_without_table(tmp_path):
    (tmp_path / "stuff").mkdir()
    (tmp_path / "stuff" / "a.parquet").write_bytes(b"PAR1")
    with pytest.raises(NotFoundError, match=r"no table at .*/stuff"):
        Table.open(str(tmp_path / "stuff"))


def test_file_where_table_should_be(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(NotFoundError, match=r"no table at .*/file"):
        Table.open(str(tmp_path / "file"))


def test_missing_branch_tag_database_and_table_are_named(tmp_path):
    table = table_with_snapshots(tmp_path)
    with pytest.raises(NotFoundError, match="no branch 'dev'"):
        Table.open(table.path, branch="dev")
    with pytest.raises(NotFoundError, match="v9"):
        table.to_arrow(tag="v9")
    catalog = FileSystemCatalog(str(tmp_path / "warehouse"))
    with pytest.raises(NotFoundError, match="nodb"):
        catalog.list_tables("nodb")
    catalog.create_database("db")
    with pytest.raises(NotFoundError, match="notable"):
        catalog.table("db.notable")


def test_store_without_exclusive_creation_is_refused(tmp_path):
    with pytest.raises((UnsupportedError, NotFoundError)):
        Table.open("memory://nowhere/t").write(orders((1, "a", 1)))


# ---- newer versions of the format


def test_schema_of_newer_version_is_refused_by_name(tmp_path):
    table = table_with_snapshots(tmp_path)
    edit_json(Path(table.path) / "schema" / "schema-0", version=99)
    with pytest.raises(UnsupportedError, match=r"schema-0.*version 99"):
        Table.open(table.path)


def test_snapshot_of_newer_version_is_refused_by_name(tmp_path):
    table = table_with_snapshots(tmp_path)
    edit_json(Path(table.path) / "snapshot" / "snapshot-3", version=99)
    with pytest.raises(UnsupportedError, match=r"snapshot-3.*version 99"):
        table.to_arrow()
    with pytest.raises(UnsupportedError, match=r"snapshot-3.*version 99"):
        table.write(orders((9, "x", 9)))


@pytest.mark.parametrize("kind", ["manifest-list", "manifest"])
def test_manifest_of_newer_version_is_refused_by_name(tmp_path, kind):
    table = table_with_snapshots(tmp_path, 1)
    snapshot = table.snapshot()
    name = snapshot.delta_manifest_list
    if kind == "manifest":
        name = table.store.manifests.read_list(name)[0].file_name
    path = Path(table.path) / "manifest" / name
    schema, records = read_avro(path.read_bytes())
    newer = write_avro(schema, [{**record, "_VERSION": 3} for record in records])
    path.write_bytes(newer)
    with pytest.raises((UnsupportedError, CorruptedError), match=name):  # cut or newer, whichever is seen first
        table.to_arrow()
    with pytest.raises(UnsupportedError, match=rf"{name} has version 3"):
        table.store.manifests.read_list(name) if kind == "manifest-list" else table.store.manifests.read(name)


@pytest.mark.parametrize(
    "options",
    [
        {"pk-clustering-override": "true"},
        {"merge-engine": "made-up-in-2030"},
        {"query-auth.enabled": "true"},
    ],
)
def test_feature_not_known_yet_is_refused_on_read(tmp_path, options):
    table = table_with_snapshots(tmp_path, 1)
    path = Path(table.path) / "schema" / "schema-0"
    edit_json(path, options={**json.loads(path.read_text())["options"], **options})
    (key,) = options
    with pytest.raises((UnsupportedError, InvalidInputError), match=key):
        Table.open(table.path).to_arrow()


# ---- gone


def test_missing_data_file(tmp_path):
    table = table_with_snapshots(tmp_path)
    gone = data_files(Path(table.path))[0]
    gone.unlink()
    with pytest.raises(CorruptedError, match=rf"{gone.name} is missing"):
        table.to_arrow()


@pytest.mark.parametrize("kind", ["list", "manifest"])
def test_missing_manifest_is_an_error_that_names_it(tmp_path, kind):
    table = table_with_snapshots(tmp_path)
    name = table.snapshot().delta_manifest_list
    if kind == "manifest":
        name = table.store.manifests.read_list(name)[0].file_name
    (Path(table.path) / "manifest" / name).unlink()
    with pytest.raises(CorruptedError, match=rf"{name} is missing"):
        table.to_arrow()


def test_missing_schema_is_an_error_that_names_it(tmp_path):
    table = append_table(tmp_path / "t")
    table.write(orders((1, "a", 1)))
    from_old = table.alter([])
    (Path(table.path) / "schema" / "schema-0").unlink()
    with pytest.raises((CorruptedError, NotFoundError), match="schema-0"):
        Table.open(from_old.path).to_arrow()


def test_expired_snapshot_error_names_existing_snapshots(tmp_path):
    table = table_with_snapshots(tmp_path, 4)
    (Path(table.path) / "snapshot" / "snapshot-1").unlink()
    (Path(table.path) / "snapshot" / "snapshot-2").unlink()
    with pytest.raises(OutOfRangeError, match=r"snapshot 2 .*3 to 4"):
        table.to_arrow(snapshot_id=2)
    with pytest.raises(OutOfRangeError, match=r"snapshot 9 .*3 to 4"):
        table.to_arrow(snapshot_id=9)
    assert table.to_arrow(snapshot_id=3).num_rows == 3


def test_wrong_hints_change_nothing(tmp_path):
    table = table_with_snapshots(tmp_path, 3)
    for content in ("1", "77", "garbage", ""):
        for hint in ("LATEST", "EARLIEST"):
            (Path(table.path) / "snapshot" / hint).write_text(content)
        assert table.to_arrow().num_rows == 3
        assert table.snapshot().id == 3


def test_table_dropped_under_reader_and_writer(tmp_path):
    table = table_with_snapshots(tmp_path)
    plan, reader = table.scan().plan(), table.reader()
    shutil.rmtree(table.path)
    with pytest.raises(NotFoundError, match="dropped while it was read"):
        list(reader.to_batches(plan.splits[0]))
    with pytest.raises(NotFoundError, match="dropped or renamed after it was opened"):
        table.to_arrow()
    with pytest.raises(Exception, match="dropped"):
        table.write(orders((1, "a", 1)))


USES = {
    "rows": lambda table: table.to_arrow(),
    "filtered rows": lambda table: table.to_arrow(filter="n > 1"),
    "rows of a snapshot": lambda table: table.to_arrow(snapshot_id=1),
    "scan": lambda table: table.scan(),
    "one key": lambda table: table.get({"id": 1}),
    "changes": lambda table: table.changes(0),
    "differences": lambda table: table.changes(0, mode="diff"),
    "stream": lambda table: table.stream().plan(),
    "explanation": lambda table: table.explain(),
    "delete": lambda table: table.delete("id = 1"),
    "update": lambda table: table.update({"n": 2}, "id = 1"),
    "compaction": lambda table: table.compact(),
    "write": lambda table: table.write(orders((1, "a", 1))),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_table_created_again_with_other_columns(tmp_path, use):
    opened = keyed_table(tmp_path / "t", **{"file.format": "avro"})
    opened.write(orders((1, "a", 1)))
    opened.get({"id": 1})
    shutil.rmtree(opened.path)
    texts = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string()), ("n", pa.string())])
    again = keyed_table(tmp_path / "t", texts)
    again.write(pa.table({"id": [1], "v": ["b"], "n": ["2"]}, texts))
    with pytest.raises(PaimonError, match="dropped"):
        use(opened)
    assert again.to_arrow().to_pylist() == [{"id": 1, "v": "b", "n": "2"}]
