"""Texts that denote a time: every interface uses the session's time zone; a plain data source needs a zone option."""

import datetime as dt
import os
import time

import pyarrow as pa
import pytest

import paimon_spark
from paimon_core.errors import InvalidInputError
from paimon_core.schema.schema import Schema
from paimon_core.snapshot.time_travel import epoch_millis
from paimon_core.table import Table
from paimon_spark import PaimonTable
from paimon_spark.options import changes_request, read_request, stream_request, system_request
from paimon_spark.times import in_session_zone, session_millis, time_zone
from tests.spark.conftest import MODE

NOON = 1_769_857_200_000  # 2026-01-31 12:00 in Berlin, 11:00 in UTC
HOUR = 3_600_000


@pytest.fixture
def process_zone():
    """Another time zone of this process than any of a session here."""
    before = os.environ.get("TZ")
    os.environ["TZ"] = "America/New_York"
    time.tzset()
    yield
    os.environ.pop("TZ")
    os.environ.update({} if before is None else {"TZ": before})
    time.tzset()


@pytest.mark.parametrize(
    ("text", "offset"),
    [("UTC", 0), ("Z", 0), ("+01:00", 1), ("-09:30", -9.5), ("GMT+2", 2), ("UTC-3", -3), ("Asia/Tokyo", 9)],
)
def test_names_of_zones(text, offset):
    zone = time_zone(text)
    assert epoch_millis("1970-01-02", zone) == (24 - offset) * HOUR
    assert epoch_millis("1970-01-02 00:00:00+00:00", zone) == 24 * HOUR


@pytest.mark.parametrize("text", ["", "Nowhere/Town", "+19:00", "../etc"])
def test_other_names_of_zones_are_refused(text):
    with pytest.raises(InvalidInputError, match="must be a time zone, such as Europe/Berlin"):
        read_request({"path": "/t", "timestampAsOf": "2026-01-31", "timeZone": text})


def test_options_of_data_source_name_their_zone(process_zone):
    berlin = {"path": "/t", "timezone": "Europe/Berlin"}
    assert read_request({**berlin, "scan.timestamp": "2026-01-31 12:00:00"}).when == {"timestamp": str(NOON)}
    assert stream_request({**berlin, "startingTimestamp": "2026-01-31T12:00"}).options["scan.timestamp"] == str(NOON)
    between = {**berlin, "incremental-between-timestamp": f"2026-01-31 12:00,{NOON + 1}"}
    expected = f"{NOON},{NOON + 1}"
    assert changes_request(between).options["incremental-between-timestamp"] == expected
    audit = system_request({**between, "path": "/t$audit_log"})
    assert audit.options["incremental-between-timestamp"] == expected
    for request, option in (
        (read_request, "timestampAsOf"),
        (read_request, "scan.timestamp"),
        (stream_request, "startingTimestamp"),
        (changes_request, "incremental-between-timestamp"),
    ):
        text = "2026-01-31,2026-02-01" if "between" in option else "2026-01-31"
        with pytest.raises(InvalidInputError, match=r"'2026-01-31' has no time zone.*the option 'timeZone'"):
            request({"path": "/t", option: text})


def test_engine_documents_zone_of_process(process_zone):
    assert epoch_millis("2026-01-31 06:00:00") == NOON
    assert epoch_millis(dt.datetime(2026, 1, 31, 6)) == NOON


@pytest.fixture(params=["Europe/Berlin", "+01:00"])
def session_zone(spark, request):
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", request.param)
    yield request.param
    spark.conf.set("spark.sql.session.timeZone", before)


@pytest.mark.spark
@pytest.mark.everywhere
def test_texts_are_read_as_session_casts_them(spark, session_zone, process_zone):
    for text in ("2026-01-31 12:00:00", " 2026-01-31T12:00 ", "2026-01-31 11:00Z", str(NOON)):
        assert session_millis(text, spark) == NOON, text
    given = {"TimestampAsOf": "2026-01-31 12:00", "columns": "id"}
    assert in_session_zone(given, lambda: spark) == {"scan.timestamp": str(NOON), "columns": "id"}
    given = {"timestampAsOf": "2026-01-31 12:00", "timeZone": "UTC"}
    assert in_session_zone(given, lambda: spark) == {"scan.timestamp": str(NOON + HOUR)}
    with pytest.raises(InvalidInputError, match="'noon' is neither epoch milliseconds nor a date and time"):
        session_millis("noon", spark)


@pytest.fixture
def moments(warehouse):
    """A table whose snapshots 1 to 4 are one hour apart; the second one is of noon in Berlin."""
    schema = Schema(pa.schema([("id", pa.int32())]))
    table = Table.create(f"{warehouse}/db.db/t", schema)
    for id in range(4):
        table.write(pa.table({"id": pa.array([id], pa.int32())}))
    for snapshot in table.snapshots():
        file = f"{table.path}/snapshot/snapshot-{snapshot.id}"
        with open(file) as stored:
            text = stored.read()
        then = NOON + (snapshot.id - 2) * HOUR
        with open(file, "w") as stored:
            stored.write(text.replace(f'"timeMillis" : {snapshot.time_millis}', f'"timeMillis" : {then}'))
    return table


TEXT = "2026-01-31 12:30:00"


@pytest.mark.spark
@pytest.mark.everywhere
def test_paimon_table_takes_zone_of_session(spark, session_zone, process_zone, moments):
    for options in ({"timestampAsOf": TEXT}, {"scan.timestamp": TEXT}):
        assert PaimonTable.forPath(spark, moments.path, **options).toDF().count() == 2
        assert PaimonTable.forPath(spark, moments.path).toDF(**options).count() == 2
    expired = PaimonTable.forPath(spark, moments.path).expireSnapshots("2026-01-31 12:30", 100, 1, dryRun=True)
    assert expired.snapshots == (1, 2)


@pytest.mark.spark
@pytest.mark.skipif(MODE == "connect", reason="a catalog needs a classic session")
def test_every_text_of_sql_selects_same_snapshot(spark, session_zone, process_zone, moments, warehouse):
    paimon_spark.catalog(spark, "times", warehouse=warehouse)

    def count(query):
        return spark.sql(query).first()[0]

    expected = count(f"SELECT count(*) FROM times.db.t TIMESTAMP AS OF '{TEXT}'")
    assert expected == 2
    assert count(f"SELECT count(*) FROM times.db.t WITH ('scan.timestamp' = '{TEXT}')") == expected
    assert spark.read.option("timestampAsOf", TEXT).table("times.db.t").count() == expected
    assert spark.read.option("versionAsOf", "2").table("times.db.t").count() == expected
    assert spark.read.option("scan.timestamp", TEXT).table("times.db.t").count() == expected
    spark.conf.set("spark.paimon.scan.timestamp", TEXT)
    assert count("SELECT count(*) FROM times.db.t") == expected
    spark.conf.unset("spark.paimon.scan.timestamp")
    later = "2026-01-31 13:30:00"
    between = f"'incremental-between-timestamp' = '{TEXT},{later}'"
    assert count(f"SELECT max(id) FROM times.db.t WITH ({between})") == 2
    assert count(f"SELECT max(id) FROM times.db.`t$audit_log` WITH ({between})") == 2
    function = "paimon_incremental_between_timestamp"
    assert count(f"SELECT max(id) FROM {function}('times.db.t', '{TEXT}', '{later}')") == 2
    spark.sql(f"CALL times.sys.create_tag_from_timestamp(table => 'db.t', tag => 'x', timestamp => {NOON - HOUR + 1})")
    spark.sql(
        f"CALL times.sys.expire_snapshots(table => 'db.t', older_than => '{TEXT}', retain_max => 100, retain_min => 1)"
    )
    assert count("SELECT min(snapshot_id) FROM times.db.`t$snapshots`") == 3
