import re
from datetime import timedelta

import pytest

from paimon_core.errors import InvalidInputError
from paimon_core.options import (
    ALL_OPTIONS,
    bucket,
    check_known,
    file,
    iceberg,
    is_known,
    lsm,
    merge,
    nearest,
    scan,
    snapshot,
)

MODULES = (file, bucket, merge, lsm, scan, snapshot, iceberg)


@pytest.mark.parametrize("option", ALL_OPTIONS.values(), ids=ALL_OPTIONS)
def test_declaration_has_name_of_key_and_description(option):
    name = re.sub(r"[.-]", "_", option.key).upper()
    assert any(getattr(module, name, None) is option for module in MODULES)
    assert option.doc


def test_keys_are_declared_once():
    keys = [key for option in ALL_OPTIONS.values() for key in (option.key, *option.old_keys)]
    assert len(keys) == len(set(keys))


@pytest.mark.parametrize(
    ("key", "default"),
    [
        ("bucket", -1),
        ("file.format", "parquet"),
        ("target-file-size", None),
        ("write-buffer-size", 256 << 20),
        ("manifest.target-file-size", 8 << 20),
        ("snapshot.time-retained", timedelta(hours=1)),
        ("commit.max-retries", 10),
        ("merge-engine", "deduplicate"),
        ("sequence.field", ()),
        ("source.split.target-size", 128 << 20),
        ("partition.default-name", "__DEFAULT_PARTITION__"),
    ],
)
def test_option_has_default_of_java(key, default):
    assert ALL_OPTIONS[key].default == default


@pytest.mark.parametrize(
    "key",
    [
        "bucket",
        "path",
        "branch",
        "scan.version",
        "primary-key",
        "partition",
        "delete-file.thread-num",
        "fields.a.aggregate-function",
        "fields.default-aggregate-function",
        "file-index.bloom-filter.columns",
        "parquet.compression",
        "table-default.bucket",
        "manifest.format",
        "lookup.cache-max-memory-size",
        "pk-vector.index.columns",
        "read.stream.maxFilesPerTrigger",
    ],
)
def test_key_is_known(key):
    assert is_known(key)
    check_known({key: "x"}, "table t")


@pytest.mark.parametrize(
    ("key", "near"),
    [
        ("bucket_key", "bucket-key"),
        ("Bucket", "bucket"),
        ("snapshot.time-retaned", "snapshot.time-retained"),
        ("write.buffer.size", "write-buffer-size"),
    ],
)
def test_misspelt_keys_are_refused_with_advice(key, near):
    assert not is_known(key)
    assert nearest(key) == near
    with pytest.raises(InvalidInputError, match=f"unknown option {key!r} in table t; did you mean {near!r}"):
        check_known({"bucket": "1", key: "x"}, "table t")


@pytest.mark.parametrize("key", ["zzz", "fields.", "", "parquet"])
def test_keys_like_nothing_known(key):
    with pytest.raises(InvalidInputError, match=f"unknown option {key!r}"):
        check_known({key: "x"}, "table t")
