"""Options of reads and writes, translated; no Spark session is needed."""

import pytest
from pyspark.sql.types import LongType, StructField, StructType

from paimon_core.errors import InvalidInputError, PaimonError, UnsupportedError
from paimon_core.schema.partition_spec import PartitionText
from paimon_core.store.external_paths import NO_TRUST, Trust
from paimon_spark.options import (
    TableAddress,
    batch_request,
    changes_request,
    is_about_changes,
    read_request,
    stream_request,
    stream_write_request,
    write_request,
)
from paimon_spark.writer import table_to_write
from tests.support.tables import append_table


def read(**options):
    return read_request({"path": "/w/db.db/t", **options})


def write(*columns, **options):
    return write_request({"path": "/w/db.db/t", **options}, columns)


@pytest.mark.parametrize(
    ("options", "address"),
    [
        ({"path": "/w/db.db/t"}, TableAddress("/w/db.db/t")),
        ({"path": "/w/db.db/t/"}, TableAddress("/w/db.db/t")),
        ({"path": "t"}, TableAddress("t")),
        ({"path": "/t"}, TableAddress("/t")),
        ({"path": "s3://b/w/db.db/t$branch_dev"}, TableAddress("s3://b/w/db.db/t", "dev")),
        ({"path": "/w/t", "branch": "dev"}, TableAddress("/w/t", "dev")),
        ({"path": "/w/t$ro"}, TableAddress("/w/t", system_table="ro")),
        ({"path": "/w/t$Files"}, TableAddress("/w/t", system_table="files")),
        (
            {"warehouse": "/w", "table": "db.t$branch_dev$ro"},
            TableAddress("/w/db.db/t", "dev", system_table="ro", warehouse="/w"),
        ),
        ({"path": "/w/odd.name of t"}, TableAddress("/w/odd.name of t")),
        ({"warehouse": "/w/", "table": "db.t"}, TableAddress("/w/db.db/t", warehouse="/w/")),
        ({"warehouse": "/w", "identifier": "db.t$branch_dev"}, TableAddress("/w/db.db/t", "dev", warehouse="/w")),
        ({"path": "/t", "s3.access-key": "x"}, TableAddress("/t", None, {"s3.access-key": "x"})),
    ],
)
def test_path_branch_and_view_of_table(options, address):
    assert read_request(options).address == address


def test_start_of_stream_is_refused_for_batch():
    for key, start in {"startingTimestamp": "2026-01-31T00:00:00+00:00", "stream-from-timestamp": "1000"}.items():
        options = {"path": "/w/db.db/t", key: start}
        assert read_request(options).when  # Spark asks for the columns of a stream in the same way
        with pytest.raises(InvalidInputError, match=f"{key}.*readStream.*timestampAsOf"):
            batch_request(options)
    when = batch_request({"path": "/w/db.db/t", "timestampAsOf": "2026-01-31", "timeZone": "UTC"}).when
    assert when == {"timestamp": "1769817600000"}


def test_watermarks_choose_moment_of_batch():
    assert read(**{"scan.watermark": "1000"}).when == {"watermark": 1000}
    with pytest.raises(InvalidInputError, match="each choose a snapshot"):
        read(**{"scan.watermark": "1000", "scan.tag-name": "t"})
    with pytest.raises(InvalidInputError, match=r"scan\.watermark.*for reads"):
        write(**{"scan.watermark": "1000"})
    with pytest.raises(UnsupportedError, match=r"scan\.watermark.*batch reads"):
        stream_request({"path": "/w/db.db/t", "scan.watermark": "1"})


def test_partitions_and_properties_of_write():
    named = (PartitionText("dt", "2026-01-31"), PartitionText("hh", "8"))
    assert write(**{"overwrite-partition": "dt=2026-01-31, hh = 8"}).partition == named
    for text in ("", "dt", "=1", "dt=1,,hh=2", "dt=1,DT=2"):
        with pytest.raises(InvalidInputError, match="overwrite-partition"):
            write(**{"overwrite-partition": text})
    with pytest.raises(InvalidInputError, match="are mutually exclusive"):
        write(**{"overwrite-partition": "dt=1", "partitionOverwriteMode": "dynamic"})
    assert write(**{"snapshot-property.run": "7", "snapshot-property.By": "x"}).properties == {"run": "7", "by": "x"}
    with pytest.raises(InvalidInputError, match="lacks a name"):
        write(**{"snapshot-property.": "7"})
    assert write(**{"snapshot-property.run": "7", "txnAppId": "a", "txnVersion": "1"}).properties == {"run": "7"}
    with pytest.raises(UnsupportedError, match="snapshot-property"):
        write(userMetadata="7")
    for key, value in {"snapshot-property.run": "7", "overwrite-partition": "dt=1"}.items():
        with pytest.raises(InvalidInputError, match="batch writes"):
            stream_write_request({"path": "/w/db.db/t", key: value}, ())


def test_secrets_do_not_show():
    assert "hush" not in repr(read(**{"s3.secret-key": "hush", "fs.s3a.secret.key": "hush"}))


def test_view_cannot_be_written():
    with pytest.raises(UnsupportedError, match=r"/w/t\$ro can only be read"):
        write_request({"path": "/w/t$ro"}, ["a"])


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({}, "no table is named"),
        ({"warehouse": "/w"}, "no table is named"),
        ({"path": "/t", "table": "db.t"}, "both locate"),
        ({"path": "/t$branch_a", "branch": "b"}, "has branch 'a'"),
        ({"paths": '["/a", "/b"]'}, "a read takes one path"),
        ({"warehouse": "/w", "table": "t"}, "must be 'database.table'"),
    ],
)
def test_wrong_locations_are_refused(options, error):
    with pytest.raises(PaimonError, match=error):
        read_request(options)


@pytest.mark.parametrize(
    ("options", "when"),
    [
        ({}, {}),
        ({"scan.snapshot-id": "3"}, {"snapshot_id": 3}),
        ({"snapshot-id": "3"}, {"snapshot_id": 3}),
        ({"versionasof": "v1"}, {"version": "v1"}),
        ({"tag": "v1"}, {"tag": "v1"}),
        ({"timestampasof": "2026-01-31 12:00:00+01:00"}, {"timestamp": "1769857200000"}),
        ({"timestampasof": "2026-01-31 12:00:00", "timezone": "Europe/Berlin"}, {"timestamp": "1769857200000"}),
        ({"timestampasof": "1769857200000"}, {"timestamp": "1769857200000"}),
        ({"as-of-timestamp": "17"}, {"timestamp": 17}),
        ({"scan.mode": "from-snapshot", "scan.snapshot-id": "3"}, {"snapshot_id": 3}),
        ({"scan.mode": "latest-full"}, {}),
    ],
)
def test_options_select_snapshot(options, when):
    assert read(**options).when == when


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"versionasof": "1", "tag": "a"}, "each choose a snapshot"),
        ({"scan.snapshot-id": "x"}, "whole number"),
        ({"scan.mode": "from-timestamp"}, "needs a time-travel option"),
        ({"scan.mode": "compacted-full"}, "not supported for batch"),
        ({"split-size": "1mb", "source.split.target-size": "2mb"}, "given twice"),
        ({"columns": "a,,b"}, "list of column names"),
        ({"columns": "a,a"}, "names a column twice"),
        ({"read.arrow-batch-rows": "0"}, "a whole number from 1"),
        ({"colums": "a"}, "did you mean 'columns'"),
        ({"zzzzzzzz": "a"}, "unknown option 'zzzzzzzz'"),
    ],
)
def test_bad_read_options_are_refused(options, error):
    with pytest.raises(PaimonError, match=error):
        read(**options)


@pytest.mark.parametrize("name", ["endingtimestamp", "overwriteschema", "replacewhere"])
def test_unsupported_options_are_refused_by_name(name):
    with pytest.raises(UnsupportedError, match=name):
        read(**{name: "1"})
    with pytest.raises(UnsupportedError, match=name):
        write(**{name: "1"})


@pytest.mark.parametrize(
    ("name", "called"),
    [
        ("startingVersion", "startingversion"),
        ("readChangeFeed", "read.changelog"),
        ("maxFilesPerTrigger", "read.stream.maxfilespertrigger"),
        ("consumer-id", "consumer-id"),
    ],
)
def test_options_about_changes_are_refused_for_reads_of_rows(name, called):
    with pytest.raises(UnsupportedError, match=f"'{called}' is for reads of changes: pass it to spark.readStream"):
        read(**{name: "1"})
    assert changes_request({"path": "/t", name: "1"}) is None
    with pytest.raises(InvalidInputError, match=f"'{called}' is for reads"):
        write(**{name: "1"})
    assert is_about_changes({"path": "/t", name: "1"})
    assert not is_about_changes({"path": "/t", "scan.snapshot-id": "1"})


def test_table_options_and_storage_options_are_separated():
    request = read(**{"split-size": "1 mb", "read.batch-size": "7", "s3.endpoint": "http://x", "limit": "5"})
    assert request.options == {"source.split.target-size": "1 mb", "read.batch-size": "7"}
    assert request.address.storage_options == {"s3.endpoint": "http://x"}
    assert request.limit == 5


def test_keys_and_case_of_columns_in_options():
    request = write("Id", "Amount", **{"primary-key": "Id, dt", "fields.amount.aggregate-function": "sum"})
    assert request.primary_keys == ("Id", "dt")
    assert request.options == {"fields.Amount.aggregate-function": "sum"}


@pytest.mark.parametrize(
    ("options", "dynamic"),
    [
        ({}, False),
        ({"partitionoverwritemode": "DYNAMIC"}, True),
        ({"partitionoverwritemode": "static"}, False),
        ({"dynamic-partition-overwrite": "true"}, True),
        ({"dynamic-partition-overwrite": "false", "partitionoverwritemode": "static"}, False),
    ],
)
def test_option_selects_overwrite_mode(options, dynamic):
    assert write(**options).dynamic is dynamic


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"partitionoverwritemode": "static", "dynamic-partition-overwrite": "true"}, "disagree"),
        ({"partitionoverwritemode": "x"}, "one of static, dynamic"),
        ({"dynamic-partition-overwrite": "x"}, "true or false"),
        ({"tag": "v1"}, "is for reads"),
        ({"columns": "a"}, "unknown option 'columns'"),
    ],
)
def test_bad_write_options_are_refused(options, error):
    with pytest.raises(InvalidInputError, match=error):
        write(**options)


@pytest.mark.parametrize(
    ("key", "near"),
    [
        ("fields.v.agregate-function", "fields.v.aggregate-function"),
        ("parquet.page.sise", "parquet.page.size"),
        ("read.stream.maxFilesPerTriger", "read.stream.maxFilesPerTrigger"),
    ],
)
def test_misspelt_name_of_family_is_refused_with_nearest(key, near):
    for request in (lambda: read(**{key: "1"}), lambda: write("k", "v", **{key: "1"})):
        with pytest.raises(InvalidInputError, match=rf"unknown option.*did you mean '{near}'"):
            request()


def test_option_names_get_their_case_back():
    given = {
        "fields.Amount.aggregate-function": "sum",
        "file-index.bloom-filter.Amount.items": "7",
        "variant.shreddingSchema": "x",
        "parquet.compression.codec.zstd.bufferPool.enabled": "true",
    }
    lowered = {key.lower(): value for key, value in given.items()}
    assert write("k", "Amount", **lowered).options == given


def test_allowed_roots_of_external_files_reach_engine(tmp_path):
    """The roots that the options name, and the warehouse, reach the engine; a table by its path is in no warehouse."""
    allowed = "data-file.external-paths.allowed"
    append_table(tmp_path / "db.db" / "t")
    by_name = read_request({"warehouse": str(tmp_path), "table": "db.t", allowed: "/x,/y"})
    assert by_name.address.open(by_name.options).store.trust == Trust(("/x", "/y"), str(tmp_path))
    by_path = read_request({"path": str(tmp_path / "db.db" / "t")})
    assert by_path.address.open(by_path.options).store.trust == NO_TRUST
    writing = write_request({"path": str(tmp_path / "new"), allowed: "/x"}, ["id"])
    made = table_to_write(writing, StructType([StructField("id", LongType())]))
    assert made.store.trust == Trust(("/x",))
    assert allowed not in made.store.schemas.latest().options
