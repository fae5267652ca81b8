"""The reader of a stream, called as each version of Spark calls it, without a Spark session."""

import json
import pickle
import time

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType

from paimon_core.errors import InvalidInputError, NotFoundError, OutOfRangeError, PaimonError, UnsupportedError
from paimon_core.scan.batch_limits import Limits
from paimon_core.schema.change import AddColumn, RenameColumn
from paimon_core.schema.schema import Schema
from paimon_core.snapshot.consumers import Consumers
from paimon_core.table import Table
from paimon_core.types.datatype import AtomicType
from paimon_spark import stream_reader
from paimon_spark.datasource import PaimonDataSource
from paimon_spark.options import stream_request

pytestmark = pytest.mark.versions
ROWS = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string())])


@pytest.fixture
def table(warehouse):
    return made(f"{warehouse}/db.db/t")


def made(path: str, **options: str) -> Table:
    settings = {"bucket": "2", "write-only": "true", **{k.replace("_", "-"): v for k, v in options.items()}}
    return Table.create(path, Schema(ROWS, primary_keys=["id"], options=settings))


def put(table: Table, *ids: int, text: str = "x", kinds: list[str] | None = None) -> None:
    table.write(pa.table({"id": pa.array(ids, pa.int64()), "v": [text] * len(ids)}), kinds)


class Query:
    """A run of a query: a process of Spark with the reader in it, offsets as text, tasks with pickles.

    `asks` is how Spark asks for the newest offset: with the start (4.2 and later) or without (4.1).
    """

    def __init__(
        self, table: Table, schema: StructType | None = None, asks: bool | None = None, **options: str
    ) -> None:
        given = {"path": table.path, **{k.replace("_", "-"): v for k, v in options.items()}}
        source = PaimonDataSource(given)
        self.schema = schema or source.schema()
        self.reader = PaimonDataSource(given).streamReader(self.schema)
        self.task = pickle.dumps(PaimonDataSource(given).streamReader(self.schema))
        self.asks = with_start() if asks is None else asks

    def start(self) -> str:
        return json.dumps(self.reader.initialOffset())

    def latest(self, start: str, limit: object = None) -> str:
        if not self.asks:
            return json.dumps(self.reader.latestOffset())
        return json.dumps(self.reader.latestOffset(json.loads(start), limit or self.reader.getDefaultReadLimit()))

    def rows(self, start: str, end: str) -> list[tuple]:
        """Of one batch, sorted."""
        tasks = [pickle.dumps(p) for p in self.reader.partitions(json.loads(start), json.loads(end))]
        found = [
            tuple(row.values())
            for task in tasks
            for batch in pickle.loads(self.task).read(pickle.loads(task))
            for row in batch.to_pylist()
        ]
        return sorted(found)

    def resumed(self, end: str) -> None:
        """Resume as Spark 4.1 does from its last offset; other versions need nothing."""
        if not self.asks:
            assert self.reader.partitions(json.loads(end), json.loads(end)) == []

    def batches(self, start: str | None = None, limit: object = None) -> list[list[tuple]]:
        """All there is, in batches, until there is no more."""
        found = []
        if start is not None:
            self.resumed(start)
        at = start or self.start()
        while (end := self.latest(at, limit)) != at:
            found.append(self.rows(at, end))
            at = end
        return found


def with_start() -> bool:
    return hasattr(stream_reader, "read_limits")


WAYS = [pytest.param(True, marks=pytest.mark.skipif(not with_start(), reason="Spark 4.1 has no limits")), False]


@pytest.mark.parametrize("asks", WAYS)
def test_all_rows_then_changes_then_nothing(table, asks):
    put(table, 1, 2, 3)
    put(table, 3, 4, text="y")
    query = Query(table, asks=asks)
    start = query.start()
    first = query.latest(start)
    assert query.rows(start, first) == [(1, "x"), (2, "x"), (3, "y"), (4, "y")]
    assert query.latest(first) == first
    put(table, 4, 5, text="z")
    second = query.latest(first)
    assert query.rows(first, second) == [(4, "z"), (5, "z")]
    assert query.latest(second) == second


@pytest.mark.parametrize("asks", WAYS)
def test_another_run_plans_same_batch(table, asks):
    put(table, 1, 2)
    query = Query(table, asks=asks)
    start = query.start()
    first = query.latest(start)
    put(table, 2, 3, text="y")
    second = query.latest(first)
    if not asks:
        assert query.rows(start, first) == [(1, "x"), (2, "x")]
        second = query.latest(first)
    put(table, 4, text="z")

    again = Query(table, asks=asks, **{"source.split.target-size": "1 kb"})
    again.resumed(first)
    assert again.rows(again.start(), first) == [(1, "x"), (2, "x")], "Spark forgets where the first batch started"
    again = Query(table, asks=asks)
    again.resumed(second)
    assert again.rows(first, second) == [(2, "y"), (3, "y")]
    third = again.latest(second)
    assert again.rows(second, third) == [(4, "z")]


@pytest.mark.parametrize("asks", WAYS)
def test_stream_of_empty_table(table, asks):
    query = Query(table, asks=asks)
    start = query.start()
    assert query.latest(start) == start
    assert query.rows(start, start) == []
    put(table, 1)
    put(table, 2)
    first = query.latest(start)
    assert query.rows(start, first) == [(1, "x"), (2, "x")]
    again = Query(table, asks=asks)
    again.resumed(first)
    assert again.rows(again.start(), first) == [(1, "x"), (2, "x")]


@pytest.mark.parametrize("asks", WAYS)
@pytest.mark.parametrize(
    ("limit", "batches"), [("maxFilesPerTrigger", 4), ("maxRowsPerTrigger", 4), ("maxBytesPerTrigger", 4)]
)
def test_limits_cut_batches_and_lose_nothing(table, asks, limit, batches):
    put(table, *range(10))
    put(table, *range(10, 20))
    query = Query(table, asks=asks, **{limit: "1"})
    actual = query.batches()
    assert len(actual) == batches, "two buckets of the first scan, which is one piece each, and of the second commit"
    assert sorted(row for batch in actual for row in batch) == [(i, "x") for i in range(20)]


@pytest.mark.skipif(not with_start(), reason="Spark 4.1 has no limits")
def test_read_all_available_ignores_limits(table):
    put(table, *range(10))
    query = Query(table, maxRowsPerTrigger="3")
    assert query.reader.getDefaultReadLimit() == stream_reader.read_limits.ReadMaxRows(3)
    assert len(query.batches(limit=stream_reader.read_limits.ReadAllAvailable())) == 1
    assert Query(table).reader.getDefaultReadLimit() == stream_reader.read_limits.ReadAllAvailable()


@pytest.mark.skipif(not with_start(), reason="Spark 4.1 has no such trigger")
def test_available_now_ends(table):
    put(table, *range(10))
    query = Query(table, maxFilesPerTrigger="1")
    query.reader.prepareForTriggerAvailableNow()
    start = query.start()
    first = query.latest(start)
    put(table, 99)
    rest = query.batches(first)
    assert sorted([*query.rows(start, first), *(row for batch in rest for row in batch)]) == [
        (i, "x") for i in range(10)
    ]


@pytest.mark.parametrize("asks", WAYS)
def test_batch_waits_for_rows_at_most_for_delay(table, asks):
    put(table, 1)
    query = Query(table, asks=asks, minRowsPerTrigger="3", maxTriggerDelayMs="700")
    start = query.start()
    first = query.latest(start)
    assert query.rows(start, first) == [(1, "x")], "the first one does not wait"
    began = time.monotonic()
    put(table, 2)
    assert query.latest(first) == first
    put(table, 3, 4)
    second = query.latest(first)
    if time.monotonic() - began < 0.7:
        assert query.rows(first, second) == [(2, "x"), (3, "x"), (4, "x")]
    put(table, 5)
    requested = 0
    while query.latest(second) == second:
        requested += 1
        assert requested < 100
    assert query.rows(second, query.latest(second)) == [(5, "x")]


def test_batch_that_limit_ends_does_not_wait(table):
    put(table, 1)
    query = Query(table, asks=False, maxFilesPerTrigger="1", minRowsPerTrigger="9", maxTriggerDelayMs="600000")
    start = query.start()
    first = query.latest(start)
    assert query.rows(start, first) == [(1, "x")]
    put(table, 2)
    put(table, 3)
    second = query.latest(first)
    assert query.rows(first, second) == [(2, "x")], "there is more to come"
    assert query.latest(second) == second, "now there is not"


def test_idle_query_sends_few_requests(table):
    put(table, 1)
    query = Query(table, asks=False)
    query.batches()
    began = time.monotonic()
    for _ in range(4):
        query.reader.latestOffset()
    least, most = stream_reader.PAUSE_SECONDS
    assert 3 * least <= time.monotonic() - began < 4 * most + 5


# ---- columns


def test_rowkind_comes_first_or_where_schema_says(warehouse):
    table = made(f"{warehouse}/db.db/changes", changelog_producer="input")
    put(table, 1, 2)
    put(table, 2, kinds=["-D"])
    query = Query(table, **{"read.changelog": "true", "scan.mode": "from-snapshot", "scan.snapshot-id": "1"})
    assert query.schema.names == ["rowkind", "id", "v"]
    assert query.batches() == [[("+I", 1, "x"), ("+I", 2, "x"), ("-D", 2, "x")]]
    requested = StructType([StructField("id", LongType()), StructField("rowkind", StringType())])
    query = Query(table, requested, readChangeFeed="true", startingVersion="2")
    assert query.batches() == [[(2, "-D")]]
    without = StructType([StructField("id", LongType())])
    with pytest.raises(InvalidInputError, match="lacks the column 'rowkind'"):
        Query(table, without, **{"read.changelog": "true"})
    with pytest.raises(InvalidInputError, match="'rowkind' does not exist"):
        Query(table, requested)


def test_deletes_are_returned_ignored_on_request_or_refused(table):
    put(table, 1, 2)
    query = Query(table)
    start = query.start()
    first = query.latest(start)
    put(table, 1, 2, kinds=["+U", "-D"])
    query.resumed(first)
    with pytest.raises(UnsupportedError, match=r"deleted at snapshot 2.*'read.changelog'.*'read.ignore-deletes'"):
        query.rows(first, query.latest(first))
    assert Query(table, ignoreDeletes="true").batches(first) == [[(1, "x")]]
    assert Query(table, **{"read.changelog": "true"}).batches(first) == [[("+U", 1, "x"), ("-D", 2, "x")]]


def test_columns_and_filter(table):
    put(table, 1, 2, 3)
    query = Query(table, columns="v", filter="id >= 2")
    assert query.schema.names == ["v"]
    assert query.batches() == [[("x",), ("x",)]]


def test_query_of_all_columns_stops_at_new_columns_until_restarted(table):
    put(table, 1)
    query = Query(table)
    start = query.start()
    first = query.latest(start)
    table = table.alter([AddColumn("w", AtomicType("INT"))])
    table.write(pa.table({"id": [2], "v": ["y"], "w": pa.array([7], pa.int32())}))
    with pytest.raises(InvalidInputError, match="Restart the reader to continue with the new columns"):
        query.batches(first)
    assert Query(table).batches(first) == [[(2, "y", 7)]]
    assert Query(table, columns="id,v").batches(first) == [[(2, "y")]]


def test_both_readers_of_query_read_by_one_schema(table):
    """Spark creates the planning reader and the task reader at different times."""
    put(table, 1)
    query = Query(table)
    start = query.start()
    first = query.latest(start)
    table.alter([RenameColumn("v", "old"), AddColumn("v", AtomicType("VARCHAR", length=9))])
    query.task = Query(table, query.schema).task
    assert query.rows(start, first) == [(1, "x")]


def test_stream_with_expired_start_has_newest_columns(table):
    put(table, 1)
    options = {"path": table.path, "scan.snapshot-id": "1"}
    table.alter([AddColumn("w", AtomicType("INT"))])
    put(table, 2)
    assert PaimonDataSource(options).schema().names == ["id", "v"]
    table.store.snapshots.io.delete(table.store.snapshots.path(1))
    assert PaimonDataSource(options).schema().names == ["id", "v", "w"]
    with pytest.raises(OutOfRangeError):
        PaimonDataSource(options).reader(PaimonDataSource(options).schema())


# ---- the changes between two snapshots, as a batch


def batch(table: Table, **options: str) -> list[tuple]:
    source = PaimonDataSource({"path": table.path, **options})
    reader = source.reader(source.schema())
    tasks = [pickle.dumps((reader, partition)) for partition in reader.partitions()]
    read = (reader.read(partition) for reader, partition in map(pickle.loads, tasks))
    return [tuple(row.values()) for batches in read for rows in batches for row in rows.to_pylist()]


def test_changes_between_two_snapshots(warehouse):
    table = made(f"{warehouse}/db.db/t", bucket="1", consumer_id="c")
    Consumers(table.store.io, table.store.branch_root).record("c", 4)
    put(table, 1, 2)
    put(table, 2, 3, text="y")
    put(table, 3, kinds=["-D"])
    assert batch(table, **{"incremental-between": "0,2"}) == [(1, "x"), (2, "x"), (2, "y"), (3, "y")]
    assert batch(table, **{"incremental-between": "1,2", "columns": "id", "filter": "v = 'y'"}) == [(2,), (3,)]
    assert batch(table, **{"incremental-between": "2,2"}) == []
    assert batch(table, **{"incremental-between": "2,3", "read.changelog": "true"}) == [("-D", 3, "x")]
    with pytest.raises(UnsupportedError, match="deleted at snapshot 3"):
        batch(table, **{"incremental-between": "1,3"})
    with pytest.raises(OutOfRangeError, match="no changes from 1 to 7: it has changes from 0 to 3"):
        batch(table, **{"incremental-between": "1,7"})
    table.store.io.delete(table.store.snapshots.path(1))
    with pytest.raises(OutOfRangeError, match="no changes from 0 to 3: it has changes from 1 to 3"):
        batch(table, **{"incremental-between": "0,3"})
    with pytest.raises(InvalidInputError, match=r"'consumer-id' is for spark\.readStream"):
        batch(table, **{"incremental-between": "0,3", "consumer-id": "d"})


def test_batch_of_changes_between_tags_and_times_by_any_source_and_name(warehouse):
    table = made(f"{warehouse}/db.db/t", bucket="1", **{"changelog-producer": "input"})
    put(table, 1, 2)
    table.tags.create("a")
    put(table, 2, 3, text="y")
    put(table, 1, kinds=["-D"])
    table.tags.create("b")
    table.compact(full=True)
    added = [(2, "y"), (3, "y")]
    for ends in ({"incremental-between": "a,b"}, {"incremental-between": "1,4"}):
        diff = {**ends, "incremental-between-scan-mode": "diff"}
        assert batch(table, **diff) == added
        kinds = batch(table, **diff, readChangeFeed="true")
        assert kinds == [("-D", 1, "x"), ("-U", 2, "x"), ("+U", 2, "y"), ("+I", 3, "y")]
    for options in (
        {"incremental-between": "a,b", "incremental-between-tag-to-snapshot": "true"},
        {"incremental-between": "1,3", "incremental-between-scan-mode": "delta"},
        {"incremental-between": "1,latest"},
        {"start-snapshot-id": "1", "end-snapshot-id": "3"},
        {"start-snapshot-id": "1"},
        {"startingVersion": "2", "endingVersion": "3"},
        {"startingVersion": "2"},
    ):
        actual = batch(table, **options, readChangeFeed="true")
        assert actual == [("+I", 2, "y"), ("+I", 3, "y"), ("-D", 1, "x")], options
    assert len(batch(table, **{"incremental-between-timestamp": f"0,{2**50}", "readChangeFeed": "true"})) == 5
    for options, message in (
        ({"end-snapshot-id": "3"}, "needs 'start-snapshot-id'"),
        ({"endingVersion": "3", "readChangeFeed": "true"}, "needs 'readChangeFeed'"),
        ({"start-snapshot-id": "1", "incremental-between": "1,2"}, "several options"),
        ({"incremental-between": "a,c"}, "'c' is neither a snapshot nor a tag"),
        ({"incremental-between": "b,a"}, "is after the last snapshot"),
    ):
        with pytest.raises(PaimonError, match=message):
            batch(table, **options)
    with pytest.raises(UnsupportedError, match="'end-snapshot-id' is for batch reads"):
        stream_request({"path": "/w/t", "end-snapshot-id": "3"})


# ---- progress in the table


@pytest.mark.parametrize("asks", WAYS)
def test_consumer_records_processed_snapshots(table, asks):
    consumers = Consumers(table.store.io, table.store.branch_root)
    put(table, *range(10))
    options = {"consumer_id": "c", "maxFilesPerTrigger": "1"}
    query = Query(table, asks=asks, **options)
    start = query.start()
    half = query.latest(start)
    query.rows(start, half)
    query.reader.commit(json.loads(half))
    assert consumers.get("c") is None, "another query could not go on in the middle of the first scan"
    full = query.latest(half)
    query.rows(half, full)
    query.reader.commit(json.loads(full))
    assert consumers.get("c") == 2
    put(table, 20)
    end = query.latest(full)
    query.rows(full, end)
    query.reader.commit(json.loads(end))
    assert consumers.get("c") == 3
    put(table, 21)
    assert Query(table, **options).batches() == [[(21, "x")]]


@pytest.mark.skipif(not with_start(), reason="Spark 4.1 does not say what is done")
def test_idle_query_records_its_consumer_again(table, monkeypatch):
    consumers = Consumers(table.store.io, table.store.branch_root)
    put(table, 1)
    query = Query(table, consumer_id="c")
    start = query.start()
    end = query.latest(start)
    query.latest(end)
    assert consumers.get("c") == 2
    consumers.delete("c")
    query.latest(end)
    assert consumers.get("c") is None, "nothing new to say"
    monkeypatch.setattr(stream_reader, "CONSUMER_SECONDS", 0.0)
    query.latest(end)
    assert consumers.get("c") == 2


# ---- what cannot be


def test_checkpoint_of_another_source_is_refused(table):
    put(table, 1)
    query = Query(table)
    with pytest.raises(InvalidInputError, match="its own checkpointLocation"):
        query.rows('{"snapshotId": 1, "index": 2, "scanSnapshot": true}', query.latest(query.start()))


def test_table_that_replaced_another_is_refused(warehouse, table):
    put(table, 1)
    query = Query(table)
    end = query.latest(query.start())
    table.store.io.delete_directory(table.path)
    with pytest.raises(NotFoundError):
        Query(table)
    with pytest.raises(PaimonError):
        query.latest(end)
    time.sleep(0.002)
    put(made(table.path), 7)
    with pytest.raises(InvalidInputError, match="replaced by another table"):
        Query(table).batches(end)


def test_view_is_refused_as_stream(table):
    with pytest.raises(UnsupportedError, match=r"\$ro cannot be read as a stream"):
        PaimonDataSource({"path": table.path + "$ro"}).streamReader(StructType())


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"limit": "3"}, "'limit' is for batch reads of rows"),
        ({"minrowspertrigger": "3"}, "go together"),
        ({"maxtriggerdelayms": "3"}, "go together"),
        (
            {"minrowspertrigger": "3", "maxtriggerdelayms": "3", "maxrowspertrigger": "2"},
            "is 3, above .maxRowsPerTrigger. = 2",
        ),
        ({"maxfilespertrigger": "0"}, "'read.stream.maxFilesPerTrigger' is '0': it must be a whole number from 1"),
        ({"maxbytespertrigger": "2 lots"}, "'read.stream.maxBytesPerTrigger' is '2 lots': it must be a size"),
        ({"read.changelog": "yes"}, "true or false"),
        ({"read.changelog": "true", "ignoredeletes": "true"}, "contradict each other"),
        ({"startingversion": "3", "scan.snapshot-id": "4"}, "disagree"),
        ({"maxfilepertrigger": "3"}, "did you mean 'maxfilespertrigger'"),
        ({"endingversion": "3"}, "is for batch reads"),
    ],
)
def test_bad_stream_options_are_refused(options, error):
    with pytest.raises(PaimonError, match=error):
        stream_request({"path": "/w/t", **options})


def test_options_by_all_their_names():
    request = stream_request(
        {
            "path": "/w/t",
            "maxFilesPerTrigger": "1",
            "read.stream.maxBytesPerTrigger": "2 kb",
            "streaming-max-rows-per-micro-batch": "30",
            "minRowsPerTrigger": "4",
            "read.stream.maxTriggerDelayMs": "5",
            "startingVersion": "latest",
            "consumer-id": "c",
        }
    )
    assert request.limits == Limits(1, 2048, 30)
    assert (request.min_rows, request.max_delay_millis) == (4, 5)
    assert request.options == {"scan.mode": "latest", "consumer-id": "c"}


# ---- lag


@pytest.mark.skipif(not with_start(), reason="Spark 4.1 asks for no newest offset")
def test_reported_offset_counts_rows_left_after_batch(table):
    for number in range(3):
        put(table, number)
    query = Query(table, startingVersion="1", maxFilesPerTrigger="1")
    first = query.latest(query.start())
    report = query.reader.reportLatestOffset()
    assert (report["snapshotId"], report["lag"]["snapshots"], report["lag"]["rows"]) == (3, 2, 2)
    second = query.latest(first)
    assert query.reader.reportLatestOffset()["lag"]["rows"] == 1
    third = query.latest(second)
    assert query.reader.reportLatestOffset()["lag"] == {"snapshots": 0, "rows": 0, "bytes": 0, "seconds": 0.0}
    assert query.latest(third) == third
    assert query.reader.reportLatestOffset()["lag"]["snapshots"] == 0
    assert "lag" not in json.loads(third), "offsets of batches have no lag"


@pytest.mark.skipif(not with_start(), reason="Spark 4.1 asks for no newest offset")
def test_snapshots_that_options_hold_back_are_lag(table):
    put(table, 1)
    query = Query(table, startingVersion="1", **{"streaming.read.snapshot.delay": "1 h"})
    start = query.start()
    assert query.latest(start) == start
    report = query.reader.reportLatestOffset()
    assert (report["snapshotId"], report["lag"]["snapshots"], report["lag"]["rows"]) == (1, 1, 1)


@pytest.mark.skipif(not with_start(), reason="Spark 4.1 asks for no newest offset")
def test_lag_that_cannot_be_counted_ends_no_query(table, monkeypatch):
    put(table, 1)
    put(table, 2)
    query = Query(table, startingVersion="1", maxFilesPerTrigger="1")
    query.latest(query.start())

    def away(*_):
        raise OSError("the store is away")

    monkeypatch.setattr(query.reader._lag, "lag", away)
    assert query.reader.reportLatestOffset()["snapshotId"] == 2
