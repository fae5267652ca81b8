"""Families of options: every name is known or refused with the nearest one; what a table stores only warns."""

import warnings

import pytest

from paimon_core.errors import InvalidInputError
from paimon_core.fileindex import FILE_INDEXES
from paimon_core.options import check_known, families, is_known, nearest, spelled, warn_of_strays, warn_once
from paimon_core.options.file_index import KIND_OPTIONS, index_options, renamed_setting


@pytest.fixture(autouse=True)
def _as_in_a_new_process():
    warn_once.cache_clear()


@pytest.mark.parametrize(
    ("key", "near"),
    [
        ("fields.v.agregate-function", "fields.v.aggregate-function"),
        ("fields.my_v.aggregate_function", "fields.my_v.aggregate-function"),
        ("fields.a.b.sequence-grup", "fields.a.b.sequence-group"),
        ("fields.default-agregate-function", "fields.default-aggregate-function"),
        ("fields.v", None),
        ("fields.", None),
        ("file-index.bloom-filter.v.itmes", "file-index.bloom-filter.v.items"),
        ("file-index.bloom-filter.column", "file-index.bloom-filter.columns"),
        ("file-index.blom-filter.columns", "file-index.bloom-filter.columns"),
        ("file-index.read.enable", "file-index.read.enabled"),
        ("parquet.page.sise", "parquet.page.size"),
        ("orc.compres", "orc.compress"),
        ("avro.codecs", "avro.codec"),
        ("csv.field-delimeter", "csv.field-delimiter"),
        ("json.line-delimeter", "json.line-delimiter"),
        ("read.batchsize", "read.batch-size"),
        ("lookup.cache-max-memory-sise", "lookup.cache-max-memory-size"),
        ("sink.paralelism", "sink.parallelism"),
        ("scan.snapshot-idd", "scan.snapshot-id"),
        ("variant.shredingSchema", "variant.shreddingSchema"),
        ("write.merge_schema", "write.merge-schema"),
        ("metastore.partitioned-tables", "metastore.partitioned-table"),
        ("metadata.iceberg.storge", "metadata.iceberg.storage"),
        ("manifest-sort.enable", "manifest-sort.enabled"),
        ("table-default.file.formatt", "table-default.file.format"),
        ("commit.callback.a.B.parm", "commit.callback.a.B.param"),
    ],
)
def test_misspelt_name_is_refused_with_nearest(key, near):
    assert not is_known(key)
    assert nearest(key) == near
    with pytest.raises(InvalidInputError, match="unknown option"):
        check_known({key: "x"}, "table t")


@pytest.mark.parametrize(
    "key",
    [
        "fields.a,b.sequence-group",
        "fields.a.b.aggregate-function",
        "file-index.bloom-filter.columns",
        "file-index.bitmap.m[a.b].version",
        "parquet.bloom.filter.fpp#a",
        "orc.timestamp-ltz.legacy.type",
        "table-default.fields.v.aggregate-function",
        "global-index.of-tomorrow",
    ],
)
def test_names_with_something_in_them_are_known(key):
    check_known({key: "x"}, "table t")


def test_every_name_is_known_once_and_begins_as_its_family():
    names = [*families.EFFECTIVE, *families.REFUSED, *families.ELSEWHERE]
    assert len(names) == len(set(names))
    for name in names:
        assert is_known(name), name
        assert spelled(name.lower()) == name or "<" in name


def test_every_index_kind_has_options():
    assert set(KIND_OPTIONS) == set(FILE_INDEXES)


def test_settings_of_indexed_column_with_dot_in_its_name_count():
    options = {"file-index.bloom-filter.columns": "a.b", "file-index.bloom-filter.a.b.items": "7"}
    assert index_options(options, "bloom-filter", "a.b") == {"items": "7"}
    renamed = renamed_setting("file-index.bloom-filter.a.b.items", lambda name: {"a.b": "c"}.get(name, name))
    assert renamed == "file-index.bloom-filter.c.items"


def test_unknown_key_that_is_kept_warns_once_and_one_of_no_family_never():
    kept = {"fields.v.agregate-function": "sum", "owner": "me", "parquet.page.size": "1", "bucket": "1"}
    with pytest.warns(UserWarning, match=r"'fields\.v\.agregate-function' of t .*no effect; did you mean") as told:
        warn_of_strays(kept, "t")
    assert len(told) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_strays(kept, "t")
