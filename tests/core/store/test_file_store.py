import pickle
from dataclasses import replace
from pathlib import Path

import pytest

from paimon_core.errors import InvalidInputError, NotFoundError
from paimon_core.fileio.fileio import FileIO
from paimon_core.manifest.bucket import BucketRef
from paimon_core.options.option import Options
from paimon_core.row.binary_row import EMPTY_ROW, serialize
from paimon_core.schema.change import AddColumn, RenameColumn, apply
from paimon_core.schema.schema import Schema
from paimon_core.schema.schemas import Schemas
from paimon_core.store.create import create_table
from paimon_core.store.file_store import FileStore
from paimon_core.types.datatype import DataField
from paimon_core.types.parse import parse_type
from tests.support.manifests import data_file

FIELDS = [
    DataField(0, "k", parse_type("INT")),
    DataField(1, "dt", parse_type("DATE")),
    DataField(2, "v", parse_type("STRING")),
]


@pytest.fixture
def root(tmp_path):
    path = str(tmp_path / "t")
    expected = Schema(FIELDS, ["dt", "k"], ["dt"], {"bucket": "2", "sequence.field": "v"})
    create_table(FileIO.of(path), path, expected, lambda: 5)
    return path


def alter(root, *changes):
    schemas = Schemas(FileIO.of(root), root)
    current = schemas.latest()
    assert current is not None
    assert schemas.commit(apply(current, changes, has_snapshots=True))


def test_opened_store_has_schema_branch_and_defaults(root):
    store = FileStore.open(root)
    assert store.schema.primary_keys == ("dt", "k")
    assert (store.branch, store.branch_root, store.schema.time_millis) == ("main", root, 5)
    assert store.snapshots.latest() is None
    assert store.bucket_function == "default"


def test_store_is_equal_after_pickling(root):
    store = FileStore.open(root, options={"file.format": "orc"})
    store.schemas.get(0)
    again = pickle.loads(pickle.dumps(store))
    assert again == store
    assert again.options["file.format"] == "orc"
    assert again.schemas.get(0).options.get("file.format") is None
    assert again.new_name() != store.new_name()
    assert abs(again.now() - store.now()) < 60_000


def test_missing_table_is_not_opened(tmp_path, root):
    with pytest.raises(NotFoundError, match=r"no table at .*nowhere"):
        FileStore.open(str(tmp_path / "nowhere"))
    with pytest.raises(NotFoundError, match="no branch 'b'"):
        FileStore.open(root, branch="b")


def test_dynamic_options_are_checked_and_laid_over(root):
    store = FileStore.open(root, options={"file.format": "orc", "primary-key": "dt,k", "path": root})
    assert dict(store.options) == {"bucket": "2", "file.format": "orc", "sequence.field": "v"}
    assert dict(store.with_options({"file.format": None}).options) == {"bucket": "2", "sequence.field": "v"}
    with pytest.raises(InvalidInputError, match=r"'sequence\.field' cannot be changed for one read or write"):
        store.with_options({"sequence.field": None})
    with pytest.raises(InvalidInputError, match="merge-engine"):
        FileStore.open(root, options={"merge-engine": "aggregation"})
    with pytest.raises(InvalidInputError, match=r"file\.format"):
        store.with_options({"file.formatt": "orc"})
    assert store.with_options({}) is store


def test_paths_of_files(root):
    store = FileStore.open(root)
    partition = serialize([19723], store.schema.partition_arrow)
    assert store.partition_values(partition) == (19723,)
    assert store.bucket_path(BucketRef(partition, 1)) == f"{root}/dt=19723/bucket-1"
    assert store.bucket_path(BucketRef(partition, -2)) == f"{root}/dt=19723/bucket-postpone"
    path = f"{root}_iso"
    create_table(
        FileIO.of(path), path, Schema(FIELDS, partition_keys=["dt"], options={"partition.legacy-name": "false"})
    )
    iso = FileStore.open(path)
    assert iso.partition_path(partition) == "dt=2024-01-01"
    assert iso.partition_path(serialize([None], store.schema.partition_arrow)) == "dt=__DEFAULT_PARTITION__"


def test_unpartitioned_table_has_no_level_for_it(tmp_path):
    path = str(tmp_path / "u")
    create_table(FileIO.of(path), path, Schema(FIELDS))
    store = FileStore.open(path)
    assert store.partition_values(EMPTY_ROW) == ()
    assert store.bucket_path(BucketRef(EMPTY_ROW, 0)) == f"{path}/bucket-0"


def test_branch_has_its_own_schemas_and_shares_data(root):
    io = FileIO.of(root)
    schema = replace(FileStore.open(root).schema, comment="branched")
    Schemas(io, f"{root}/branch/branch-b").commit(schema)
    for store in (FileStore.open(root, branch="b"), FileStore.open(root, options={"branch": "b"})):
        assert (store.branch, store.branch_root) == ("b", f"{root}/branch/branch-b")
        assert store.schema.comment == "branched"
        partition = serialize([0], store.schema.partition_arrow)
        assert store.bucket_path(BucketRef(partition, 0)) == f"{root}/dt=0/bucket-0"
        assert "branch" not in store.options


def test_branch_is_named_once_and_not_changed(root):
    store = FileStore.open(root, branch="main", options={"branch": "main"})
    assert store.branch == "main"
    with pytest.raises(InvalidInputError, match="remove one"):
        FileStore.open(root, branch="a", options={"branch": "b"})
    with pytest.raises(NotFoundError, match="no branch 'b'"):
        FileStore.open(root, branch="main", options={"branch": "b"})
    with pytest.raises(InvalidInputError, match="open on branch 'main'"):
        store.with_options({"branch": "b"})


def test_relative_path_is_made_absolute_once(root, monkeypatch):
    monkeypatch.chdir(Path(root).parent)
    assert FileStore.open("t/").root == root


def test_table_as_of_older_schema(root):
    alter(root, RenameColumn("v", "vv"), AddColumn("n", "INT"))
    store = FileStore.open(root, options={"read.batch-size": "7"})
    then = store.at_schema(0)
    assert then.schema.names == ("k", "dt", "v")
    assert dict(then.options) == {"bucket": "2", "sequence.field": "v", "read.batch-size": "7"}
    assert store.at_schema(1) is store
    with pytest.raises(NotFoundError, match="schema-9"):
        store.at_schema(9)


def test_now_and_names_can_be_fixed(root):
    store = replace(FileStore.open(root), now=lambda: 1, new_name=lambda: "n")
    assert (store.now(), store.new_name()) == (1, "n")
    assert store.with_options({"file.format": "orc"}).new_name() == "n"


def test_equal_stores_are_equal(root):
    assert FileStore.open(root) == FileStore.open(root)
    alter(root, AddColumn("n", "INT"))
    assert FileStore.open(root).options == Options({"bucket": "2", "sequence.field": "v"})


@pytest.mark.parametrize("external", [False, True])
@pytest.mark.parametrize("options", [{}, {"data-file.path-directory": "a/b"}])
def test_paths_of_many_files_are_the_paths_of_each(tmp_path, options, external):
    more = {"external_path": f"{tmp_path}/other/f0"} if external else {}
    allowed = {"data-file.external-paths.allowed": str(tmp_path / "other")} if external else {}
    root = str(tmp_path / "t")
    create_table(FileIO.of(root), root, Schema(FIELDS, ["dt", "k"], ["dt"], {"bucket": "2", **options}), lambda: 5)
    store = FileStore.open(root, options=allowed)
    days = (None, 0, 20_000)
    buckets = [BucketRef(serialize((day,), store.schema.partition_arrow), bucket) for day in days for bucket in (0, 1)]
    metas = [data_file("f0", extra_files=("f0.index", "f0.blobref"), **more), data_file("f1")]
    files = [(bucket, meta) for meta in metas for bucket in buckets]
    paths = list(store.paths_of_files(files))
    assert paths == [store.file_paths(*file) for file in files]
    assert len({path for several in paths for path in several}) == (6 + 3 if external else 4 * 6)
