import pytest

from paimon_core.errors import UnsupportedError
from paimon_core.format import FORMATS, TEXT_FORMATS, WRITABLE_FORMATS
from paimon_core.options.option import Options
from paimon_core.schema.support import LIMITS, check_alterable, check_readable, check_writable
from paimon_core.schema.table_schema import TableSchema
from paimon_core.types.datatype import DataField
from paimon_core.types.parse import parse_type


def schema(options=(), *, keys=("k",), partitions=(), extra="INT"):
    fields = [("k", "INT NOT NULL"), ("p", "INT"), ("v", "STRING"), ("x", extra)]
    columns = tuple(DataField(i, name, parse_type(t)) for i, (name, t) in enumerate(fields))
    given = {"bucket": "2"} if keys else {}
    return TableSchema(0, columns, 9, tuple(partitions), tuple(keys), Options(given | dict(options)))


def refused(check, table):
    try:
        check(table)
    except UnsupportedError as error:
        return str(error)
    return None


# (options, refused on read, refused on write)
WITH_KEY = [
    ({}, False, False),
    ({"type": "format-table"}, True, True),
    ({"type": "materialized-table"}, True, True),
    ({"merge-engine": "partial-update"}, False, False),
    ({"merge-engine": "aggregation"}, False, False),
    ({"merge-engine": "first-row"}, False, False),
    ({"merge-engine": "FIRST_ROW"}, False, False),
    ({"merge-engine": "deduplicate"}, False, False),
    ({"deletion-vectors.enabled": "true"}, False, False),
    ({"deletion-vectors.enabled": "false"}, False, False),
    ({"changelog-producer": "none"}, False, False),
    ({"changelog-producer": "input"}, False, False),
    ({"changelog-producer": "full-compaction"}, False, False),
    ({"changelog-producer": "lookup"}, False, False),
    ({"force-lookup": "true"}, False, False),
    ({"force-lookup": "true", "changelog-producer": "full-compaction"}, True, True),
    ({"sequence.snapshot-ordering": "true"}, False, True),
    ({"write.sequence-number-init-mode": "snapshot"}, False, True),
    ({"write.sequence-number-init-mode": "scan"}, False, False),
    ({"pk-clustering-override": "true"}, True, True),
    ({"primary-key.nullable": "true"}, False, True),
    ({"record-level.expire-time": "1 d", "record-level.time-field": "x"}, False, False),
    ({"bucket": "-1"}, False, False),
    ({"bucket": "-2"}, False, False),
    ({"bucket": "-2", "postpone.merge-on-read": "true"}, True, False),
    ({"postpone.merge-on-read": "true"}, False, False),
    ({"sequence.field": "v", "sequence.field.sort-order": "descending"}, False, False),
    ({"rowkind.field": "v", "ignore-delete": "true", "ignore-update-before": "true"}, False, False),
    ({"bucket-function.type": "hive"}, False, False),
    ({"file.format.per.level": "0:avro,5:orc"}, False, False),
    ({"file.format.per.level": "0:avro,5:csv"}, False, True),
    ({"file.format.per.level": "0:json,5:orc"}, False, False),
    ({"file.format": "csv"}, True, True),
    ({"data-file.thin-mode": "true"}, False, False),
    ({"num-sorted-run.compaction-trigger": "3", "write-only": "true"}, False, False),
    ({"local-merge-buffer-size": "1 mb"}, False, False),
    ({"pk-vector.index.columns": "v"}, False, True),
]
ON_ANY = [
    ({"row-tracking.enabled": "true"}, False, False),
    ({"data-evolution.enabled": "true"}, False, False),
    ({"blob-field": "v"}, False, True),
    ({"blob-as-descriptor": "true"}, False, True),
    ({"blob-descriptor-field": "v"}, False, True),
    ({"blob-external-storage-field": "v"}, False, True),
    ({"blob-view-field": "v"}, False, True),
    ({"vector-field": "v"}, True, True),
    ({"chain-table.enabled": "true"}, True, True),
    ({"scan.fallback-branch": "b"}, True, False),
    ({"scan.primary-branch": "b"}, True, False),
    ({"query-auth.enabled": "true"}, True, False),
    ({"fields.v.default-value": "x"}, False, True),
    ({"fields.v.stats-mode": "none"}, False, False),
    ({"fields.v.map.storage-layout": "shared-shredding"}, True, True),
    ({"fields.v.map.storage-layout": "default"}, False, False),
    ({"file-index.ngram.columns": "v"}, False, True),
    ({"file-index.read.enabled": "true"}, False, False),
    ({"global-index.enabled": "true"}, False, True),
    ({"file.format": "JSON"}, False, False),
    ({"file.format": "text"}, False, True),
    ({"file.format": "ORC"}, False, False),
    ({"file.format": "avro"}, False, False),
    ({"manifest.format": "orc"}, False, True),
    ({"manifest.format": "avro"}, False, False),
    ({"data-file.external-paths": "s3://b/x"}, False, True),
    ({"data-file.path-directory": "data"}, False, False),
    ({"metadata.iceberg.storage": "table-location"}, False, False),
    ({"metadata.iceberg.storage": "hive-catalog"}, False, True),
    ({"metadata.iceberg.storage": "disabled"}, False, False),
    ({"partition.timestamp-format.strict": "true"}, False, True),
    ({"commit.callbacks": "a.B"}, False, True),
    ({"incremental-between": "1,2"}, True, False),
    ({"scan.mode": "compacted-full"}, True, False),
    ({"scan.mode": "latest_full"}, False, False),
    ({"scan.snapshot-id": "1"}, False, False),
    ({"scan.file-creation-time-millis": "1"}, True, False),
    ({"changelog-file.format": "lance"}, False, True),
    ({"changelog-file.format": " ORC "}, False, False),
    ({"file.compression": "lzo"}, False, True),
    ({"file.compression": ""}, False, True),
    ({"file.compression": "LZ4"}, False, False),
    ({"file.compression": "lz4", "file.format": "avro"}, False, True),
    ({"file.compression": "lz4", "avro.codec": "snappy", "file.format": "avro"}, False, False),
    ({"file.compression": "none", "orc.compress": "lzo", "file.format": "orc"}, False, True),
    ({"file.compression": "snappy", "file.format": "json"}, False, True),
    ({"file.compression": "lz4", "file.format.per.level": "0:avro"}, False, True),
    ({"file.compression.per.level": "0:none,5:brotli"}, False, True),
    ({"file.compression.per.level": "0:lz4", "file.format.per.level": "0:orc"}, False, False),
    ({"changelog-file.compression": "zip"}, False, True),
    ({"changelog-file.compression": "lz4", "changelog-file.format": "avro"}, False, True),
    ({"manifest.compression": "lz4"}, False, True),
    ({"manifest.compression": "null"}, False, False),
    # maintenance and speed: accepted whether they take effect or not
    ({"snapshot.num-retained.min": "1", "tag.automatic-creation": "process-time"}, False, False),
    ({"compaction.min.file-num": "2", "clustering.columns": "v", "async-file-write": "false"}, False, False),
    ({"partition.expiration-time": "1 d", "consumer.expiration-time": "1 d"}, False, False),
    ({"of.tomorrow": "x"}, False, False),
]
CASES = [(("k",), *case) for case in WITH_KEY + ON_ANY] + [((), *case) for case in ON_ANY]


@pytest.mark.parametrize(("keys", "options", "read", "write"), CASES)
def test_unsupported_features_are_refused_by_name(keys, options, read, write):
    table = schema(options, keys=keys)
    for check, expected in ((check_readable, read), (check_writable, write)):
        message = refused(check, table)
        assert (message is not None) == expected, message
        if message is not None:
            assert any(key in message for key in options), message
    assert any(limit.detect(table) for limit in LIMITS) == (read or write)


def test_merge_engines_mean_nothing_without_key():
    table = schema({"merge-engine": "aggregation"}, keys=())
    check_readable(table)
    check_writable(table)


def test_key_without_its_partition_column_needs_dynamic_buckets():
    table = schema({"bucket": "-1"}, partitions=["p"])
    check_readable(table)
    check_writable(table)
    assert "partition" in (refused(check_writable, schema(partitions=["p"])) or "")


@pytest.mark.parametrize(
    ("type_text", "path"),
    [
        ("VECTOR<FLOAT, 3>", "x"),
        ("ARRAY<ROW<b BLOB>>", "x.element.b"),
        ("MAP<STRING, ROW<a INT, g GEOMETRY>>", "x.value.g"),
    ],
)
def test_columns_of_special_types_are_refused_wherever_they_hide(type_text, path):
    table = schema(extra=type_text)
    for check in (check_readable, check_writable):
        with pytest.raises(UnsupportedError, match=f"column {path} of type"):
            check(table)


@pytest.mark.parametrize("type_text", ["VARIANT", "ARRAY<VARIANT>"])
def test_variants_are_stored_in_parquet_files_only(type_text):
    check_writable(schema(extra=type_text))
    for options in ({"file.format": "ORC"}, {"file.format.per.level": "0:avro"}):
        with pytest.raises(UnsupportedError, match=r"x.* of type VARIANT in (orc|avro) files"):
            check_writable(schema(options, extra=type_text))
        check_readable(schema(options, extra=type_text))


def test_directories_of_binary_partitions_need_other_names():
    for type_text in ("BYTES", "BINARY(3)", "VARBINARY(5)"):
        with pytest.raises(UnsupportedError, match=r"partition column x of type .*'partition.legacy-name' to 'false'"):
            check_writable(schema(keys=(), partitions=["x"], extra=type_text))
        check_writable(schema({"partition.legacy-name": "false"}, keys=(), partitions=["x"], extra=type_text))
        check_readable(schema(keys=(), partitions=["x"], extra=type_text))


def test_blobs_are_read_and_written_in_files_of_their_own_only():
    evolving = {"row-tracking.enabled": "true", "data-evolution.enabled": "true"}
    for options in ({**evolving, "blob-field": "x"}, evolving):
        for type_text in ("BLOB", "ARRAY<BLOB>", "MAP<INT NOT NULL, BLOB>"):
            table = schema(options, keys=(), extra=type_text)
            check_readable(table)
            check_writable(table)
    for check in (check_readable, check_writable):
        assert "column x of type BLOB" in (refused(check, schema({"blob-field": "x"}, keys=(), extra="BLOB")) or "")
        nested = schema(evolving, keys=(), extra="ARRAY<ARRAY<BLOB>>")
        assert "column x.element.element of type BLOB" in (refused(check, nested) or "")
    others = schema({**evolving, "blob-field": "v"}, keys=(), extra="BLOB")
    assert "'blob-field' = 'v'" in (refused(check_writable, others) or "")
    keyed = schema({"blob-field": "x"}, extra="ARRAY<BLOB>")
    check_readable(keyed)
    check_writable(keyed)
    unknown = schema({"blob-field": "x", "merge-engine": "aggregation"}, extra="BLOB")
    check_readable(unknown)
    assert "column x of type BLOB under a primary key" in (refused(check_writable, unknown) or "")


def test_ordinary_nested_columns_are_fine():
    table = schema(extra="MAP<STRING, ROW<a INT, g ARRAY<MULTISET<INT>>>>")
    check_readable(table)
    check_writable(table)


def test_writable_formats_are_every_registered_format():
    assert set(WRITABLE_FORMATS) == {*FORMATS, *TEXT_FORMATS}


def test_change_that_needs_missing_feature_is_refused():
    plain, unsupported = schema({}), schema({"vector-field": "v"})
    with pytest.raises(UnsupportedError, match="could no longer be written: option 'vector-field' = 'v'"):
        check_alterable(plain, unsupported)
    check_alterable(unsupported, unsupported)
    check_alterable(unsupported, plain)
    check_alterable(plain, schema({"query-auth.enabled": "true"}))  # of a server that other readers ask


@pytest.mark.parametrize(
    ("file_format", "type_text", "is_held"),
    [
        ("csv", "INT", True),
        ("csv", "ARRAY<INT>", False),
        ("csv", "TIMESTAMP_LTZ(6)", False),
        ("json", "ARRAY<INT>", True),
        ("json", "ARRAY<TIMESTAMP_LTZ(6)>", False),
        ("parquet", "ARRAY<TIMESTAMP_LTZ(6)>", True),
    ],
)
@pytest.mark.parametrize("option", ["file.format", "changelog-file.format"])
def test_columns_must_have_texts_in_files_of_texts(file_format, type_text, is_held, option):
    table = schema({option: file_format}, keys=(), extra=type_text)
    check_readable(table)
    message = refused(check_writable, table)
    assert (message is None) == is_held
    assert is_held or f"column x of type {parse_type(type_text)} in {file_format} files" in message
