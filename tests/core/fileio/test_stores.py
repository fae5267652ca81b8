"""The registry of stores: the facts of each scheme, and a store that one line adds."""

import fsspec
import pyarrow as pa
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from paimon_core import FileSystemCatalog, Schema, Table
from paimon_core.errors import UnsupportedError
from paimon_core.fileio import stores
from paimon_core.fileio.fileio import FileIO
from paimon_core.fileio.store import Store
from paimon_core.fileio.stores import STORES, canonical_scheme, committing_stores, is_storage_option, options_for
from paimon_core.store.external_paths import NO_TRUST, check_external, is_inside

SCHEMA = Schema(pa.schema([pa.field("k", pa.int64(), False)]), primary_keys=["k"], options={"bucket": "1"})


class FakeFileSystem(MemoryFileSystem):
    """An object store in memory, with files of its own, that takes the argument ``key``."""

    protocol = ("fake", "fakes")
    store: dict = {}  # noqa: RUF012 - as in the base class
    pseudo_dirs = [""]  # noqa: RUF012
    cachable = False
    keys: list[str] = []  # noqa: RUF012

    def __init__(self, key="", **arguments):
        super().__init__(**arguments)
        self.keys.append(key)

    @classmethod
    def _strip_protocol(cls, path):
        return "/" + path.partition("://")[2].strip("/") if "://" in path else path.rstrip("/")


def put_if_absent(filesystem, path, data):
    if filesystem.exists(path):
        return False
    filesystem.pipe_file(path, data)
    return True


FAKE = Store(
    title="Fake",
    schemes=("fake", "fakes"),
    same_files=True,
    options=("fake.",),
    own_options=True,
    arguments=lambda options: {key.removeprefix("fake."): value for key, value in options.items()},
    put_if_absent=put_if_absent,
    one_client=True,
    flat=True,
    object_store=True,
)


@pytest.fixture
def fake(monkeypatch):
    fsspec.register_implementation("fake", FakeFileSystem, clobber=True)
    fsspec.register_implementation("fakes", FakeFileSystem, clobber=True)
    monkeypatch.setattr(FakeFileSystem, "store", {})
    monkeypatch.setattr(FakeFileSystem, "keys", [])
    monkeypatch.setattr(stores, "STORES", (*STORES, FAKE))


def test_store_of_one_line_takes_tables(fake):
    catalog = FileSystemCatalog("fake://bucket/warehouse", {"fake.key": "secret"})
    catalog.create_database("d")
    table = catalog.create_table("d.t", SCHEMA)
    table.write(pa.table({"k": [1, 2]}))
    table.maintenance.compact(full=True)
    again = Table.open("fakes://bucket/warehouse/d.db/t", {"fake.key": "secret", "s3.access-key": "of another"})
    assert again.to_arrow()["k"].to_pylist() == [1, 2]
    assert set(FakeFileSystem.keys) == {"secret"}
    assert all(name.startswith("/bucket/warehouse/d.db") for name in FakeFileSystem.store)


def test_store_of_one_line_is_known_to_options_paths_and_messages(fake, tmp_path):
    assert is_storage_option("fake.key")
    assert options_for(stores.store_of("memory://r"), {"fake.key": "k", "other": 1}) == {"other": 1}
    assert is_inside("fakes://b/t/f", ("fake://b/t",))
    assert check_external("fake://b/x/f", ("fakes://b/x",), NO_TRUST, str(tmp_path)) == "fake://b/x/f"
    assert " and Fake, reading everywhere" in why_no_commit("memory://r/t")


def why_no_commit(path):
    with pytest.raises(UnsupportedError) as error:
        FileIO.of(path).check_can_commit()
    return str(error.value)


def test_schemes_belong_to_one_store_and_are_lower_case():
    schemes = [scheme for store in STORES for scheme in store.schemes]
    assert len(set(schemes)) == len(schemes)
    assert all(text == text.lower() for store in STORES for text in (*store.schemes, *store.options))


def test_facts_of_schemes():
    by_fact = {
        fact: {scheme for store in STORES if getattr(store, fact) for scheme in store.schemes}
        for fact in ("object_store", "flat", "renames_atomically", "commits", "high_latency")
    }
    assert by_fact["object_store"] == {
        *("s3", "s3a", "s3n", "gs", "gcs", "abfs", "abfss", "az", "adl"),
        *("wasb", "wasbs", "oss", "oci", "obs", "cos", "cosn"),
    }
    assert by_fact["flat"] == by_fact["object_store"] - {"adl"} | {"http", "https"}
    assert by_fact["renames_atomically"] == {"file", "hdfs", "viewfs"}
    never = {"adl", "oci", "obs", "cos", "cosn"}
    assert by_fact["commits"] == by_fact["object_store"] - never | {"file", "hdfs", "viewfs"}
    assert by_fact["high_latency"] == by_fact["commits"] - {"file"}
    assert committing_stores() == "local disks, S3, HDFS, Google Cloud Storage, Azure and Alibaba OSS"


@pytest.mark.parametrize(
    ("path", "scheme"),
    [
        ("/a", "file"), ("s3a://b/f", "s3"), ("S3N://b/f", "s3"), ("gcs://b/f", "gs"),
        ("abfss://b/f", "abfss"), ("https://h/f", "https"), ("memory://r/f", "memory"),
    ],
)  # fmt: skip
def test_schemes_of_one_store_are_equal(path, scheme):
    assert canonical_scheme(path) == scheme


def test_options_with_prefixes_of_stores_are_storage_options():
    prefixes = ["spark.hadoop.", "hadoop.", "fs.", "dfs.", "s3.", "s3a.", "s3n.", "oss.", "gs.", "gcs."]
    prefixes += ["abfs.", "abfss.", "azure.", "storage."]
    assert all(is_storage_option(prefix + "x") for prefix in prefixes)
    assert not any(map(is_storage_option, ("bucket", "scan.mode", "s3", "fields.a.sum", "path")))


def test_stores_do_not_get_options_of_others():
    options = {"s3.access-key": "k", "spark.hadoop.fs.s3a.secret.key": "s", "gs.project": "p", "token": "t"}
    options |= {"fs.azure.account.key": "a", "fs.oss.accessKeyId": "o"}
    assert options_for(stores.store_of("gs://b"), options) == {"gs.project": "p", "token": "t"}
    assert options_for(stores.store_of("s3://b"), options).keys() == {*list(options)[:2], "token"}
    assert options_for(stores.store_of("wasbs://c@a.blob.core.windows.net"), options).keys() == {
        "fs.azure.account.key",
        "token",
    }
    assert options_for(stores.store_of("oss://b"), options).keys() == {"fs.oss.accessKeyId", "token"}
