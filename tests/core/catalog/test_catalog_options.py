"""Options of catalogs and of stores: known names, other engines' names, names that belong elsewhere, unknown names."""

import re
import warnings
from pathlib import Path

import pyarrow as pa
import pytest

from paimon_core.catalog import catalog_options
from paimon_core.catalog.catalog_options import KNOWN
from paimon_core.catalog.filesystem import FileSystemCatalog
from paimon_core.errors import InvalidInputError, UnsupportedError
from paimon_core.options import warn_once
from paimon_core.schema.schema import Schema
from paimon_core.table import Table


@pytest.mark.parametrize(
    "options",
    [
        {"table-default.bucket": "4", "table-default.fields.v.aggregate-function": "sum"},
        {"data-file.external-paths.allowed": "/data"},
        {"metastore": "filesystem", "table.type": "managed", "defaultDatabase": "default"},
        {"lock.enabled": "false", "case-sensitive": "true", "allow-upper-case": "TRUE"},
    ],
)
def test_known_options_are_accepted_without_warning(tmp_path, options):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert FileSystemCatalog(str(tmp_path), options=options).options == options


def test_options_that_tune_java_warn(tmp_path):
    warn_once.cache_clear()
    with pytest.warns(UserWarning, match=r"'client-pool-cache.keys' of the catalog has no effect here"):
        FileSystemCatalog(str(tmp_path), options={"client-pool-cache.keys": "ugi"})


@pytest.mark.parametrize(
    ("key", "value", "advice"),
    [
        ("metastore", "glue", "choose the kind of catalog that it belongs to"),
        ("uri", "thrift://host:9083", "choose the kind of catalog that it belongs to"),
        ("token", "secret", "choose the kind of catalog that it belongs to"),
        ("dlf.access-key-id", "secret", "choose the kind of catalog that it belongs to"),
        ("jdbc.user", "secret", "choose the kind of catalog that it belongs to"),
        ("lock.enabled", "true", "leave it out if no other writer relies on the lock"),
        ("case-sensitive", "false", "write names as they are stored"),
        ("table.type", "external", "dropping a table deletes its files"),
        ("defaultDatabase", "sales", "choose a database with USE"),
        ("warehouse", "/elsewhere", "a separate argument"),
    ],
)
def test_options_that_choose_another_catalog_are_refused(tmp_path, key, value, advice):
    with pytest.raises(UnsupportedError, match=advice) as error:
        FileSystemCatalog(str(tmp_path), options={key: value})
    assert f"option {key!r} of the catalog is not supported" in str(error.value)
    assert "secret" not in str(error.value)


@pytest.mark.parametrize(
    ("key", "advice"),
    [
        ("table-default.file.formatt", "did you mean 'file.format'"),
        ("table-defaults.bucket", "did you mean 'table-default.bucket'"),
        ("data-file.external-path.allowed", "did you mean 'data-file.external-paths.allowed'"),
        ("cache_enabled", "did you mean 'cache-enabled'"),
        ("bucket", "did you mean 'table-default.bucket', the default of new tables"),
        ("s3.access-key", "give it as a storage option"),
        ("fs.s3a.endpoint", "give it as a storage option"),
        ("xyz", "known are 'data-file.external-paths.allowed' and 'table-default.<option>'"),
    ],
)
def test_unknown_options_are_refused_with_nearest_name(tmp_path, key, advice):
    with pytest.raises(InvalidInputError) as error:
        FileSystemCatalog(str(tmp_path), options={key: "1"})
    assert advice in str(error.value)


@pytest.mark.parametrize(
    "key", ["key", "token", "endpoint_url", "s3.access-key", "spark.hadoop.fs.s3a.endpoint", "dfs.x", "anon"]
)
def test_storage_options_of_stores_and_of_fsspec_are_accepted(tmp_path, key):
    assert FileSystemCatalog(str(tmp_path), {key: "1"}).storage_options == {key: "1"}


@pytest.mark.parametrize(
    ("key", "advice"),
    [
        ("table-default.bucket", "is an option of tables"),
        ("scan.snapshot-id", "is an option of tables"),
        ("bucket", "is an option of tables"),
        ("cache-enabled", "names are arguments of fsspec"),
        ("endpoint-url", "names are arguments of fsspec"),
        ("s4.access-key", "names are arguments of fsspec"),
    ],
)
def test_storage_options_of_no_store_are_refused(tmp_path, key, advice):
    with pytest.raises(InvalidInputError, match=advice):
        FileSystemCatalog(str(tmp_path), {key: "1"})
    with pytest.raises(InvalidInputError, match=advice):
        Table.open(str(tmp_path), {key: "1"})
    with pytest.raises(InvalidInputError, match=advice):
        Table.create(str(tmp_path / "t"), Schema(pa.schema([("k", pa.int64())])), {key: "1"})
    assert not (tmp_path / "t").exists()


def test_known_options_are_named_once():
    assert len(set(KNOWN)) == len(KNOWN)


def test_page_lists_each_option_with_its_kinds():
    """docs/reference/catalog-options.md has a row for each option, a row for each single value, and all other names."""
    page = (Path(__file__).parents[3] / "docs/reference/catalog-options.md").read_text()
    by_kind, single, without = page.split("\n## ")[1:]
    of_kind = catalog_options._OF_KIND
    expected = dict.fromkeys((*catalog_options._EFFECTIVE, "table-default.*", "metastore"), "all")
    for key in sorted({key for keys in of_kind.values() for key in keys} - {"metastore"}):
        kinds = ", ".join(f"`{kind}`" for kind, keys in of_kind.items() if key in keys)
        expected[key + "*" if key.endswith(".") else key] = kinds
    assert dict(re.findall(r"^\| `([^`]+)` \| ([^|]+) \|", by_kind, re.MULTILINE)) == expected
    fixed = {key: one.value for key, one in catalog_options._FIXED.items() if one.value is not None}
    assert dict(re.findall(r"^\| `([^`]+)` \| `([^`]+)` \|", single, re.MULTILINE)) == fixed
    assert sorted(re.findall(r"`([^`]+)`", without)) == sorted(catalog_options._WITHOUT_EFFECT)
