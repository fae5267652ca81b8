"""The Hive catalog without a metastore: types, settings, and what is sent to a stand-in."""

import sys

import pyarrow as pa
import pytest

from paimon_core import AddColumn, FileSystemCatalog, RemoveOption, Schema, SetOption, Table, open_catalog
from paimon_core.catalog.hive.client import LostAnswerError, MetastoreError, client_of, thrift
from paimon_core.catalog.hive.hive_types import column_comment, hive_type
from paimon_core.catalog.hive.metastore_table import engine_path, hive_path, is_external, new_table
from paimon_core.catalog.hive.settings import HiveSettings, hive_settings, site_warehouse
from paimon_core.errors import (
    AlreadyExistsError,
    InvalidInputError,
    MissingDependencyError,
    NotFoundError,
    UnsupportedError,
)
from paimon_core.schema.validate import create
from paimon_core.store.environment import NotLockedError
from paimon_core.types.datatype import DataField
from paimon_core.types.parse import parse_type
from tests.support.metastore_double import metastore_double

COLUMNS = pa.schema([pa.field("k", pa.int32(), nullable=False), ("v", pa.string()), ("d", pa.string())])
KEYED = Schema(COLUMNS, primary_keys=["k"], options={"bucket": "1"})
URI = {"uri": "thrift://host"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("BOOLEAN", "boolean"),
        ("TINYINT", "tinyint"),
        ("BIGINT NOT NULL", "bigint"),
        ("DECIMAL(10, 2)", "decimal(10,2)"),
        ("CHAR(255)", "char(255)"),
        ("CHAR(256)", "string"),
        ("VARCHAR(65535)", "varchar(65535)"),
        ("VARCHAR(65536)", "string"),
        ("STRING", "string"),
        ("BYTES", "binary"),
        ("BLOB", "binary"),
        ("TIME(3)", "string"),
        ("TIMESTAMP(3)", "timestamp"),
        ("TIMESTAMP(6) WITH LOCAL TIME ZONE", "timestamp"),
        ("VARIANT", "struct<value:binary,metadata:binary>"),
        ("ARRAY<INT>", "array<int>"),
        ("MULTISET<STRING>", "map<string,int>"),
        ("MAP<STRING, ARRAY<DATE>>", "map<string,array<date>>"),
    ],
)
def test_types_have_names_of_hive(text, expected):
    assert hive_type(parse_type(text), "c") == expected


def test_type_that_hive_does_not_have_is_refused():
    with pytest.raises(UnsupportedError, match="column 'g' has the type GEOMETRY"):
        hive_type(parse_type("GEOMETRY"), "g")


def test_comment_of_column_fits_the_metastore():
    field = DataField(0, "a", parse_type("INT"), "two\nlines " + "x" * 300)
    comment = column_comment(field)
    assert len(comment) == 255
    assert (comment[:10], comment[-3:]) == ("two lines ", "...")


def test_settings_come_from_options_before_hive_site(tmp_path, monkeypatch):
    (tmp_path / "hive-site.xml").write_text(
        "<configuration><property><name>hive.metastore.uris</name><value>thrift://a:1,thrift://b</value></property>"
        "<property><name>hive.metastore.warehouse.dir</name><value>/wh</value></property>"
        "<property><name>hive.metastore.client.socket.timeout</name><value>7</value></property></configuration>"
    )
    options = {"hive-conf-dir": str(tmp_path)}
    settings = hive_settings(options)
    assert (settings.addresses, settings.timeout) == ((("a", 1), ("b", 9083)), 7)
    assert site_warehouse(options) == "/wh"
    assert hive_settings({**options, **URI}).addresses == (("host", 9083),)
    monkeypatch.setenv("HIVE_CONF_DIR", str(tmp_path))
    assert hive_settings({}).shown == "thrift://a:1,thrift://b:9083"
    with pytest.raises(InvalidInputError, match=r"hive-site\.xml cannot be read"):
        hive_settings({"hive-conf-dir": str(tmp_path / "none")})


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({}, InvalidInputError, "needs a metastore: give the option 'uri'"),
        ({"uri": "http://host:1"}, InvalidInputError, "is no address of a Hive metastore"),
        ({**URI, "hive.metastore.sasl.enabled": "true"}, UnsupportedError, "Kerberos"),
        ({**URI, "hive.metastore.use.SSL": "true"}, UnsupportedError, "does not support TLS"),
        ({**URI, "hive.metastore.client.auth.mode": "KERBEROS"}, UnsupportedError, "passwords, tokens and Kerberos"),
        ({**URI, "metastore.client.class": "a.B"}, UnsupportedError, "'a.B'.*runs no Java classes"),
        ({**URI, "case-sensitive": "true"}, UnsupportedError, "lower-case names"),
        ({**URI, "lock.enabled": "maybe"}, InvalidInputError, "'lock.enabled' of the catalog is 'maybe'"),
        ({**URI, "lock-acquire-timeout": "x"}, InvalidInputError, "must be a duration"),
        ({**URI, "lock.type": "zookeeper"}, UnsupportedError, "has the lock 'hive'"),
    ],
)
def test_wrong_settings_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        hive_settings(options)


def test_kerberos_in_hive_site_is_refused_under_both_names(tmp_path):
    for name in ("metastore.sasl.enabled", "hive.metastore.sasl.enabled"):
        (tmp_path / "hive-site.xml").write_text(
            f"<configuration><property><name>{name}</name><value>true</value></property></configuration>"
        )
        with pytest.raises(UnsupportedError, match=f"property '{name}' is 'true'.*Kerberos"):
            hive_settings({**URI, "hive-conf-dir": str(tmp_path)})


def test_missing_client_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "pymetastore.hive_metastore", None)
    thrift.cache_clear()
    with pytest.raises(MissingDependencyError, match=r"pip install 'pyspark-paimon\[hive\]'"):
        thrift()


def test_table_has_the_parameters_of_java():
    settings = HiveSettings((("h", 1),), "ada")
    options = {"bucket": "2", "metastore.partitioned-table": "true"}
    schema = create(Schema(COLUMNS, ["k", "d"], ["d"], options=options, comment="c"), 0)
    table = new_table(thrift().types, "db", "t", schema, "/wh/db.db/t", settings, external=False)
    assert table.parameters == {
        **options,
        "primary-key": "k,d",
        "partition": "d",
        "bucket-key": "k",
        "comment": "c",
        "table_type": "PAIMON",
        "storage_handler": "org.apache.paimon.hive.PaimonStorageHandler",
    }
    assert (table.tableType, table.owner, table.retention) == ("MANAGED_TABLE", "ada", 2147483647)
    assert table.sd.location == "file:/wh/db.db/t"
    assert [c.name for c in table.sd.cols] == ["k", "v"]
    assert [c.name for c in table.partitionKeys] == ["d"]
    external = new_table(thrift().types, "db", "t", schema, "s3://b/t", settings, external=True)
    assert (external.tableType, external.parameters["EXTERNAL"]) == ("EXTERNAL_TABLE", "TRUE")
    assert is_external(external)
    external.parameters["TRANSLATED_TO_EXTERNAL"] = "TRUE"  # a managed table in metastore 4
    assert not is_external(external)
    assert (engine_path("file:/a/b/"), engine_path("file:///a"), hive_path("/a")) == ("/a/b", "/a", "file:/a")


@pytest.fixture
def double():
    with metastore_double() as found:
        yield found


@pytest.fixture
def catalog(double, tmp_path):
    options = {"metastore": "hive", "uri": f"thrift://127.0.0.1:1,{double[0]}", "lock.enabled": "true"}
    options |= {"lock-acquire-timeout": "200 ms", "lock-check-max-sleep": "50 ms"}
    catalog = open_catalog(str(tmp_path / "warehouse"), options=options)
    (tmp_path / "warehouse" / "db.db").mkdir(parents=True)
    catalog.create_database("db", properties={"comment": "c"})
    return catalog


def test_names_and_tables_in_metastore(catalog, double):
    assert catalog.list_databases() == ["db", "default"]
    table = catalog.create_table("db.t", KEYED)
    table.write(pa.table({"k": [1], "v": ["a"], "d": [None]}, COLUMNS))
    catalog.alter_table("db.t", [AddColumn("n", "INT"), SetOption("snapshot.num-retained.max", "99")])
    catalog.alter_table("db.t", [RemoveOption("snapshot.num-retained.max")])
    stored = double[1].stored["db", "t"]
    assert [c.name for c in stored.sd.cols] == ["k", "v", "d", "n"]
    assert "snapshot.num-retained.max" not in stored.parameters
    catalog.rename_table("db.t", "db.u")
    assert catalog.table("db.U").to_arrow().num_rows == 1
    assert catalog.location("db.u").endswith("/db.db/u")
    assert FileSystemCatalog(catalog.warehouse).list_tables("db") == ["u"]
    catalog.drop_table("db.u")
    catalog.drop_database("db")
    assert catalog.list_databases() == ["default"]


def test_lost_answers_are_looked_up(catalog, double):
    double[1].lost = {"create_table", "alter_table_with_environment_context", "drop_table", "get_table_req"}
    catalog.create_table("db.t", KEYED)
    catalog.alter_table("db.t", [AddColumn("n", "INT")])
    assert [c.name for c in double[1].stored["db", "t"].sd.cols][-1] == "n"
    catalog.drop_table("db.t")
    assert not double[1].lost
    assert catalog.list_tables("db") == []
    double[1].lost = {"get_all_databases"}
    with pytest.raises(LostAnswerError, match="may have been carried out"):
        catalog._client.call("get_all_databases", repeat=False)


def test_lock_is_taken_and_released(catalog, double):
    table = catalog.create_table("db.t", KEYED)
    row = pa.table({"k": [1], "v": ["a"], "d": [None]}, COLUMNS)
    with table.store.environment.locked(), pytest.raises(NotLockedError, match=r"was not free within 0\.2 s"):
        table.write(row)
    assert table.snapshot() is None
    assert double[1].locks == []
    with pytest.raises(ZeroDivisionError), table.store.environment.locked():
        raise ZeroDivisionError
    assert double[1].locks == []
    table.write(row)
    by_path = Table.open(table.path)
    calls = len(double[1].calls)
    by_path.write(row)
    assert len(double[1].calls) == calls


def test_two_tables_of_one_name(catalog, double, tmp_path):
    path = str(tmp_path / "elsewhere")
    catalog.create_table("db.t", Schema(COLUMNS, options={"path": path}))
    with pytest.raises(AlreadyExistsError, match="exists already, at"):
        catalog.create_table("db.t", Schema(COLUMNS, options={"path": f"{path}2"}))
    assert not (tmp_path / "elsewhere2").exists()
    catalog.drop_table("db.t")
    assert Table.open(path).schema.id == 0


def test_table_that_only_its_files_know(catalog):
    FileSystemCatalog(catalog.warehouse).create_table("db.t", KEYED)
    with pytest.raises(NotFoundError, match="metastore does not list"):
        catalog.table("db.t")
    assert catalog.repair() == ["db.t"]
    assert catalog.list_tables("db") == ["t"]
    assert catalog.repair(["db.t"]) == ["db.t"]
    with pytest.raises(UnsupportedError, match="repair_table repairs a table"):
        FileSystemCatalog(catalog.warehouse).repair()


def test_partitions_follow_the_files(catalog, double):
    options = {"metastore.partitioned-table": "true"}
    table = catalog.create_table("db.p", Schema(COLUMNS, partition_keys=["d"], options=options))
    table.write(pa.table({"k": [1, 2], "v": ["a", "b"], "d": ["x", None]}, COLUMNS))
    assert set(double[1].partitions["db", "p"]) == {("x",), ("__DEFAULT_PARTITION__",)}
    table.delete("d = 'x'")
    assert set(double[1].partitions["db", "p"]) == {("__DEFAULT_PARTITION__",)}


def test_unreachable_metastore_is_named(tmp_path):
    settings = hive_settings({"uri": "thrift://127.0.0.1:1"})
    with pytest.raises(MetastoreError, match=r"no Hive metastore answers at thrift://127\.0\.0\.1:1"):
        client_of(settings).databases()
