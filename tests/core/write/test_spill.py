"""Write buffers spilled to local disk: the same rows, fewer files, and no temporary file left over."""

import tempfile

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon_core.errors import InvalidInputError
from paimon_core.operations.compaction.external_sort import SortLimits
from paimon_core.options.option import Options
from paimon_core.read.external_merge import spill_codec
from paimon_core.table import Table
from tests.core.write.test_compaction_engines import new_table
from tests.support.compaction import levels_of
from tests.support.draws import draws
from tests.support.tables import keyed_table, orders, rows_of

KINDS = ["+I", "+U", "-D"]


@pytest.fixture
def local_disk(tmp_path, monkeypatch):
    """Where temporary files go."""
    place = tmp_path / "local"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    return place


def number_of_files(table: Table) -> int:
    return sum(len(levels.all_files) for levels in levels_of(table).values())


ROW = st.tuples(st.integers(0, 30), st.none() | st.text("ab", max_size=2), st.none() | st.integers(0, 3))
COMMIT = st.lists(st.lists(st.tuples(ROW, st.sampled_from(KINDS)), min_size=1, max_size=12), max_size=8)


@draws(25)
@given(
    st.lists(COMMIT, max_size=3),
    st.sampled_from(["64 b", "1 kb", "4 kb"]),
    st.sampled_from(["0 b", "900 b", "3 kb", "1 gb"]),
    st.sampled_from(["1", "2", "128"]),
    st.sampled_from([
        {}, {"sequence.field": "n"}, {"sequence.field": "n", "sequence.field.sort-order": "descending"},
        {"merge-engine": "first-row", "ignore-delete": "true"},
        {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum", "ignore-delete": "true"},
        {"merge-engine": "partial-update", "ignore-delete": "true"},
    ]),
    st.sampled_from(["none", "zstd", "lz4"]),
)  # fmt: skip
def test_spilling_changes_no_row(commits, buffer, disk, handles, options, codec):
    spilling = {"write-buffer-size": buffer, "write-buffer-spillable": "true", "spill-compression": codec,
                "write-buffer-spill.max-disk-size": disk, "local-sort.max-num-file-handles": handles}  # fmt: skip
    shape = {"bucket": "2", "write-only": "true", **options}  # a delete compacted away hides no row of a lower number
    twin = new_table(**shape, **({} if disk == "1 gb" else {**spilling, "write-buffer-spillable": "false"}))
    table = new_table(**shape, **spilling)
    for each in (twin, table):
        for commit in commits:
            with each.writer() as writer:
                for changes in commit:
                    writer.write(orders(*(row for row, _ in changes)), [kind for _, kind in changes])
                each.committer().commit(writer.prepare_commit())
        each.compact(full=True)
    assert rows_of(table.to_arrow()) == rows_of(twin.to_arrow())


@draws(25)
@given(
    st.lists(COMMIT, max_size=2),
    st.sampled_from(["64 b", "1 kb"]),
    st.sampled_from([
        {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum", "fields.v.aggregate-function": "listagg",
         "fields.v.ignore-retract": "true"},
        {"merge-engine": "aggregation", "aggregation.remove-record-on-delete": "true"},
        {"merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"},
        {"merge-engine": "partial-update", "sequence.field": "n", "ignore-delete": "true"},
    ]),
    st.sampled_from(["none", "input"]),
)  # fmt: skip
def test_computing_engines_merge_all_spilled_rows_at_once(commits, buffer, options, producer):
    """Folding what was folded gives something else for these: rows wait as they came, as if the buffer were larger."""
    shape = {"bucket": "2", "write-only": "true", "changelog-producer": producer, **options}
    most = 2 if any("remove-record" in key for key in options) else 1  # removals that precede rows of their key
    tables = new_table(**shape), new_table(**shape, **{"write-buffer-size": buffer})
    for each in tables:
        for commit in commits:
            with each.writer() as writer:
                for changes in commit:
                    writer.write(orders(*(row for row, _ in changes)), [kind for _, kind in changes])
                messages = writer.prepare_commit()
                assert all(len(m.new_files) <= most for m in messages)
                each.committer().commit(messages)
    of_large, of_small = (rows_of(t.to_arrow()) for t in tables)
    assert of_small == of_large


def test_keys_written_often_are_in_one_batch(tmp_path):
    """A key has more rows than a batch takes, on disk and in memory; and no more runs are open than may be."""
    options = {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum", "write-buffer-size": "1 mb",
               "local-sort.max-num-file-handles": "3", "write-only": "true"}  # fmt: skip
    table = keyed_table(tmp_path / "t", bucket="1", **options)
    rows = 400_000
    keys = pa.array([1] * (rows // 2) + [i % 70_000 for i in range(rows // 2)])
    data = pa.table([keys, pa.nulls(rows, pa.string()), pa.array([1] * rows, pa.int32())], schema=orders().schema)
    with table.writer() as writer:
        for at in range(0, rows, 10_000):
            writer.write(data.slice(at, 10_000))
        (message,) = writer.prepare_commit()
        table.committer().commit([message])
    assert 1 < len(message.new_files) < 10
    actual = {r["id"]: r["n"] for r in table.to_arrow().to_pylist()}
    assert sum(actual.values()) == rows
    assert actual[1] == rows // 2 + 3
    assert len(actual) == 70_000


def test_buffer_of_full_file_does_not_wait(tmp_path, local_disk):
    options = {"write-buffer-size": "64 kb", "target-file-size": "20 kb", "write-only": "true"}
    table = keyed_table(tmp_path / "t", bucket="1", **options)
    with table.writer() as writer:
        for at in range(0, 8_000, 1000):
            writer.write(wide(8_000).slice(at, 1000))
        assert not any(local_disk.iterdir())
        table.committer().commit(writer.prepare_commit())
    assert rows_of(table.to_arrow()) == rows_of(wide(8_000))


def wide(count: int) -> pa.Table:
    return orders(*((i * 7919 % count, f"{i}" * 10, i) for i in range(count)))


def test_files_are_fewer_and_disk_is_empty_afterwards(tmp_path, local_disk):
    counts, rows = {}, wide(20_000)
    for spill in ("true", "false"):
        options = {"write-buffer-size": "64 kb", "write-buffer-spillable": spill, "write-only": "true"}
        table = keyed_table(tmp_path / spill, bucket="4", **options)
        with table.writer() as writer:
            for at in range(0, 20_000, 1000):
                writer.write(rows.slice(at, 1000))
            assert any(local_disk.iterdir()) == (spill == "true")
            table.committer().commit(writer.prepare_commit())
            assert not list(local_disk.rglob("*.arrow"))
        assert not any(local_disk.iterdir())
        assert rows_of(table.to_arrow()) == rows_of(rows)
        counts[spill] = number_of_files(table)
    assert counts["true"] == 4 < counts["false"]


@pytest.mark.parametrize("end", ["abort", "close", "error"])
def test_spilled_files_are_deleted(tmp_path, local_disk, end):
    options = {"write-buffer-size": "16 kb", "write-buffer-spillable": "true"}
    table = keyed_table(tmp_path / "t", **options)
    writer, rows = table.writer(), wide(5_000)
    for at in range(0, 5_000, 500):
        writer.write(rows.slice(at, 500))
    assert any(local_disk.iterdir())
    if end == "error":
        with pytest.raises(ZeroDivisionError), writer:
            1 / 0  # noqa: B018
    else:
        getattr(writer, end)()
    assert not any(local_disk.iterdir())
    assert table.snapshot() is None
    assert not list((tmp_path / "t").rglob("data-*"))


def test_spilling_stops_at_disk_limit(tmp_path, local_disk):
    options = {"write-buffer-size": "64 kb", "write-buffer-spillable": "true", "spill-compression": "none",
               "write-buffer-spill.max-disk-size": "200 kb", "write-only": "true"}  # fmt: skip
    table = keyed_table(tmp_path / "t", bucket="1", **options)
    most, rows = 0, wide(20_000)
    with table.writer() as writer:
        for at in range(0, 20_000, 500):
            writer.write(rows.slice(at, 500))
            most = max(most, sum(f.stat().st_size for f in local_disk.rglob("*.arrow")))
        table.committer().commit(writer.prepare_commit())
    assert 0 < most <= 220 << 10
    assert number_of_files(table) > 1
    assert rows_of(table.to_arrow()) == rows_of(rows)


@pytest.mark.parametrize(
    ("options", "codec"),
    [({}, "lz4"), ({"spill-compression": "ZSTD"}, "zstd"), ({"spill-compression": "none"}, None)],
)
def test_spill_codec_is_lz4_unless_option_is_set(options, codec):
    for actual in (spill_codec(Options(options)), SortLimits.of(Options(options)).codec):
        assert (None if actual is None else actual.name) == codec


def test_zstd_level_is_taken_from_option():
    options = Options({"spill-compression": "zstd", "spill-compression.zstd-level": "7"})
    assert spill_codec(options).compression_level == SortLimits.of(options).codec.compression_level == 7


def test_unknown_codec_is_refused_by_name(tmp_path, local_disk):
    message = "option 'spill-compression' is 'lzo': must be one of lz4, zstd, none"
    with pytest.raises(InvalidInputError, match=message):
        keyed_table(tmp_path / "new", **{"spill-compression": "lzo"})
    stored = Options({"spill-compression": "lzo"})  # by another engine
    for codec_of in (spill_codec, SortLimits.of):
        with pytest.raises(InvalidInputError, match=message):
            codec_of(stored)
