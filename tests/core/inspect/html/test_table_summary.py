"""The page of a table as a value: what it counts and draws, that it is bounded, and that a broken table has a page."""

import decimal
import html
import json
from pathlib import Path

import pyarrow as pa
import pytest

from benchmarks.made_up import COLUMNS, Maker
from paimon_core import AddColumn, InvalidInputError, Schema, Table
from paimon_core.inspect.html.fact_lines import MOST_COLUMNS
from paimon_core.inspect.html.render import summary_document
from paimon_core.inspect.html.storage import MOST_BUCKETS, MOST_PARTITIONS
from paimon_core.inspect.html.tree import MOST_BARS, MOST_STRIPS
from paimon_core.table import table_summary
from paimon_core.types.datatype import INT
from paimon_core.types.human_text import count, share, short, size, wall_clock
from tests.support.tables import append_table, keyed_table, orders

MOST_ELEMENTS = 3_000
MOST_PROFILE = 12
MOST_SNAPSHOTS = 6
"""Fewer than the page draws, so that small tables exceed them."""


def only_card(table):
    page = table_summary(table)
    assert page.errors == ()
    (card,) = page.storage.value.cards
    return card


def spans(bars):
    return [(bar.kind, bar.x, round(bar.x + bar.width, 1)) for bar in bars]


def test_tree_shows_runs_newest_first_over_order_of_keys(tmp_path):
    table = keyed_table(tmp_path / "t", bucket="1", write_only="true")
    table.write(orders((1, "a", 0), (4, "b", 0)))
    table.with_options({"write-only": "false"}).compact(full=True)
    table.write(orders((4, "c", 0), (9, "d", 0)))
    table.write(orders((2, "e", 0)), row_kinds=["-D"])
    card = only_card(table)
    assert (card.runs, card.files, card.rows) == (3, 3, 5)
    tree = card.tree
    assert [strip.label for strip in tree.strips] == ["L0 × 2", "", "L5"]
    assert tree.scaled  # key 1 at 0 %, key 9 at 100 %
    assert [spans(strip.bars) for strip in tree.strips] == [
        [("l0 del", 12.5, 12.9)],
        [("l0", 37.5, 100.0)],
        [("deep", 0.0, 37.5)],
    ]
    assert (tree.low, tree.high, tree.deepest) == ("1", "9", 2)
    assert [(bar.x, bar.width, bar.lines[0]) for bar in tree.depth] == [(0.0, 100.0, "1 run")]


def test_tree_of_texts_and_of_skewed_keys_has_one_step_for_each_bound(tmp_path):
    table = keyed_table(tmp_path / "t", bucket="1", write_only="true")
    for low, high in ((1, 40), (20, 60), (50, 90), (10**12, 10**12 + 1)):  # one file far from all others
        table.write(orders((low, "a", 0), (high, "b", 0)))
    tree = only_card(table).tree
    assert not tree.scaled
    assert spans(tree.strips[0].bars) == [("l0", 75.0, 100.0)]
    assert "not to scale" in summary_document(table_summary(table))
    schema = pa.schema([pa.field("k", pa.string(), nullable=False)])
    texts = keyed_table(tmp_path / "texts", schema, ("k",), bucket="1")
    texts.write(pa.table({"k": ["a", "b"]}, schema=schema))
    assert not only_card(texts).tree.scaled


def test_bucket_of_many_runs_has_few_bars_and_counts_all(tmp_path):
    table = keyed_table(tmp_path / "t", bucket="1", write_only="true")
    for number in range(MOST_STRIPS + 8):
        table.write(orders((number, "v", 0), (100 - number, "v", 0)))
    card = only_card(table)
    strips = card.tree.strips
    assert len(strips) == MOST_STRIPS + 1
    assert strips[0].label == f"L0 × {MOST_STRIPS + 8}"
    assert strips[-1].label == "8 older"
    assert card.tree.deepest == MOST_STRIPS + 8
    assert card.due
    states = {measure.name: (measure.value, measure.state) for measure in table_summary(table).health.value}
    assert states["sorted runs to merge, at most"] == (str(MOST_STRIPS + 8), "act")
    assert states["buckets due for compaction"] == ("1 of 1", "watch")


def partitioned(path):
    wish = Schema(COLUMNS, ["dt", "id"], ["dt"], {"bucket": "1", "write-only": "true"})
    return Table.create(str(path), wish)


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """A table of 5 000 made-up files in 250 partitions."""
    table = partitioned(tmp_path_factory.mktemp("many") / "t")
    maker = Maker.of(table)
    table.committer().commit([maker.added(partition, 20) for partition in range(250)])
    return table


def test_advice_is_shown_for_newest_snapshot_only(tmp_path):
    table = keyed_table(tmp_path / "t", bucket="1", write_only="true")
    for number in range(20):
        table.write(orders((number, "v", 0), (100 - number, "v", 0)))
    given = table.advice()
    assert given
    page = table_summary(table)
    lines = page.advice.value
    assert [(one.severity, one.text) for one in lines] == [(one.severity, one.text) for one in given[:1]]
    assert (lines[0].kind, lines[0].also) == ("compaction-backlog", ("never-compacted",))  # both say: compact
    text = summary_document(page)
    assert html.escape(page.advice.value[0].command)[:40] in text
    older = table_summary(table, snapshot_id=3)
    assert older.advice.value == ()
    assert ">Advice<" not in summary_document(older)


def test_large_table_is_shown_in_part_with_note(many):
    page = table_summary(many)
    assert page.errors == ()
    assert len(page.storage.value.cards) == MOST_BUCKETS
    assert page.storage.value.buckets == 250
    actual = page.storage.value.partitions
    assert (actual.total, len(actual.rows), actual.more) == (250, MOST_PARTITIONS, 250 - MOST_PARTITIONS)
    assert (actual.first, actual.last) == ("dt=0", "dt=249")  # by value, not by text
    text = summary_document(page)
    assert "6 of 250 buckets" in text
    assert "240 other partitions" in text
    assert elements(text) < MOST_ELEMENTS


def elements(text):
    return text.count("<rect") + text.count("<path") + text.count("<line")


def test_table_of_too_many_files_is_counted_and_not_read(many, monkeypatch):
    monkeypatch.setattr("paimon_core.inspect.html.table_summary.MOST_FILES", 4_999)
    monkeypatch.setattr("paimon_core.inspect.html.table_summary.live_files", None)
    page = table_summary(many)
    assert page.errors == ()
    assert page.unread == 5_000
    assert page.storage.value is None
    assert "5,000 data files: too many to draw" in summary_document(page)


def test_level_of_many_files_has_few_bars(tmp_path):
    table = partitioned(tmp_path / "t")
    table.committer().commit([Maker.of(table).added(0, 3_000)])
    card = only_card(table)
    (strip,) = card.tree.strips
    assert len(strip.bars) == MOST_BARS
    assert card.files == 3_000
    assert card.tree.deepest == 1
    assert sum(int(bar.lines[0].removesuffix(" files")) for bar in strip.bars) == 3_000


def test_append_table_has_run_profile_with_its_small_files(tmp_path, monkeypatch):
    monkeypatch.setattr("paimon_core.inspect.html.run_profile.MOST_COLUMNS", MOST_PROFILE)
    table = append_table(tmp_path / "t", target_file_size="1 kb", write_only="true")
    for number in range(MOST_PROFILE + 10):
        table.write(orders((number, "v" * 10, number)))
    card = only_card(table)
    assert card.tree is None
    assert not [tile for tile in table_summary(table).tiles.value if "bucket" in tile.name]  # "no buckets", says a chip
    bars = [bar for bar in card.run_profile.bars if bar.kind != "whisker"]
    assert len(bars) == card.run_profile.columns == MOST_PROFILE
    assert len(card.run_profile.bars) == MOST_PROFILE + 10  # ten bars are of two files each
    assert card.run_profile.target == "1.0 KiB"
    assert card.files == MOST_PROFILE + 10
    kinds = {bar.kind for bar in bars}
    small = table_summary(table).health.value[0]
    assert (kinds == {"small"}) == (small.value != f"0 of {MOST_PROFILE + 10}")


def test_timeline_has_last_snapshots_and_names_that_keep_them(tmp_path, monkeypatch):
    monkeypatch.setattr("paimon_core.inspect.html.timeline_chart.MOST_SNAPSHOTS", MOST_SNAPSHOTS)
    table = append_table(tmp_path / "t")
    for number in range(MOST_SNAPSHOTS + 3):
        table.write(orders((number, "v", number)))
    table.tags.create("month", MOST_SNAPSHOTS)
    table.tags.create("old", 1)
    table.branches.create("dev", "month")
    table.consumers.reset("reader", MOST_SNAPSHOTS + 1)
    line = table_summary(table).timeline.value
    assert [c.id for c in line.columns] == list(range(4, MOST_SNAPSHOTS + 4))
    assert line.total == MOST_SNAPSHOTS + 3
    assert {c.id: c.names for c in line.columns if c.names} == {
        MOST_SNAPSHOTS: ("branch", "tag"),
        MOST_SNAPSHOTS + 1: ("consumer",),
    }
    assert [(n.kind, n.name, n.snapshot) for n in line.names] == [
        ("consumer", "reader", MOST_SNAPSHOTS + 1),
        ("branch", "dev", MOST_SNAPSHOTS),
        ("tag", "month", MOST_SNAPSHOTS),
        ("tag", "old", 1),
    ]
    assert line.columns[-1].shown
    assert line.columns[0].lines[0] == "snapshot 4: APPEND"
    assert line.columns[0].lines[2:4] == ("+1 rows, 4 in total", "+1 file, -0 files")
    assert line.scale == "largest change: +1 rows"
    rows, sizes = line.growth
    assert [bar.lines for bar in rows.bars][::5] == [("snapshot 4: 4",), ("snapshot 9: 9",)]
    assert sizes.bars[-1].lines == (f"snapshot 9: {table_summary(table).tiles.value[1].value}",)
    assert [bar.height for bar in sizes.bars] == sorted(bar.height for bar in sizes.bars)


def test_heights_of_timeline_are_square_roots_unless_changes_are_skewed(tmp_path):
    heights = []
    for name, rows in (("even", (1, 100)), ("skewed", (1, 10_000))):
        table = append_table(tmp_path / name)
        for number in rows:
            table.write(orders(*((key, "v", 0) for key in range(number))))
        line = table_summary(table).timeline.value
        heights.append([column.height for column in line.columns])
        assert line.scale == f"largest change: +{rows[1]:,} rows" + (
            ", logarithmic heights" if name == "skewed" else ""
        )
    assert heights == [[5.2, 52], [3.9, 52]]


def test_rows_are_exact_or_at_most(tmp_path):
    table = keyed_table(tmp_path / "t", bucket="1", write_only="true")
    table.write(orders((1, "a", 0), (2, "b", 0)))
    assert rows_tile(table) == ("2", "rows", "")
    table.write(orders((1, "a", 1)))
    assert rows_tile(table) == ("at most 3", "rows", "")
    table.with_options({"write-only": "false"}).compact(full=True)
    assert rows_tile(table) == ("2", "rows", "")
    table.write(orders((1, "a", 2)), row_kinds=["-D"])
    assert rows_tile(table) == ("at most 3", "rows", "2 on the last level")
    vectors = append_table(tmp_path / "v", **{"deletion-vectors.enabled": "true"})
    vectors.write(orders((1, "v", 1), (2, "v", 1)))
    vectors.delete("id = 2")
    assert rows_tile(vectors) == ("1", "row", "")
    hidden = keyed_table(tmp_path / "h", bucket="1", write_only="true", **{"deletion-vectors.enabled": "true"})
    hidden.write(orders((1, "a", 0)))
    assert rows_tile(hidden) == ("0", "rows", "")
    assert hidden.to_arrow().num_rows == 0
    options = {"deletion-vectors.enabled": "true", "deletion-vectors.merge-on-read": "true"}
    merged = keyed_table(tmp_path / "m", bucket="1", write_only="true", **options)
    for number in range(2):
        merged.write(orders((1, "a", number)))
    assert rows_tile(merged) == ("at most 2", "rows", "")


def test_bytes_over_time_are_those_of_each_snapshot(tmp_path):
    table = keyed_table(tmp_path / "t", bucket="1", write_only="true")
    for number in range(3):
        table.write(orders((number, "v" * 50, 0), (9, "w", number)))
    table.with_options({"write-only": "false"}).compact(full=True)
    table.overwrite(orders((2, "b", 0)))
    table.write(orders((3, "b", 0)))
    totals = []
    for snapshot in table.snapshots():
        splits = table.scan(snapshot_id=snapshot.id).plan().splits
        totals.append(f"snapshot {snapshot.id}: {size(sum(file.file_size for s in splits for file in s.files))}")
    _, sizes = table_summary(table).timeline.value.growth
    assert [bar.lines[0] for bar in sizes.bars] == totals


def rows_tile(table):
    tile = table_summary(table).tiles.value[0]
    return tile.value, tile.name, tile.note


def test_bytes_of_history_are_those_of_replaced_files(tmp_path):
    table = keyed_table(tmp_path / "t", bucket="1", write_only="true")
    table.write(orders((1, "a", 0)))
    assert not [tile for tile in table_summary(table).tiles.value if tile.name == "of history"]
    replaced = sum(file.file_size for split in table.scan().plan().splits for file in split.files)
    table.overwrite(orders((2, "b", 0)))
    (tile,) = [tile for tile in table_summary(table).tiles.value if tile.name == "of history"]
    assert tile.value == size(replaced)
    assert not [tile for tile in table_summary(table, snapshot_id=1).tiles.value if tile.name == "of history"]


def test_page_reads_no_blobs(tmp_path):
    schema = pa.schema([("k", pa.int64()), ("b", pa.large_binary())])
    options = {"row-tracking.enabled": "true", "data-evolution.enabled": "true", "blob-field": "b"}
    table = append_table(tmp_path / "t", schema, **options)
    table.write(pa.table({"k": [1, 2], "b": [b"secret", None]}))
    page = table.page(rows=2)
    assert (page.summary.preview.value.names, page.summary.preview.value.rows) == (("k",), (("1",), ("2",)))
    assert b"secret".hex() not in page.html()


def test_page_shows_rows_on_request_only(tmp_path):
    table = append_table(tmp_path / "t", pa.schema([("n", pa.int64()), ("s", pa.string()), ("b", pa.binary())]))
    table.write(pa.table({"n": [1, None, 3], "s": ["<i>", None, "x"], "b": [b"\xff", None, b""]}))
    assert table.page().summary.preview is None
    page = table.page(rows=2)
    preview = page.summary.preview.value
    assert (preview.names, preview.right) == (("n", "s", "b"), (True, False, False))
    assert preview.rows == (("1", "<i>", "ff"), (None, None, None))
    assert "&lt;i&gt;" in page.html()
    page.write(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == page.html()
    for rows in (-1, 101):
        with pytest.raises(InvalidInputError, match="from 0 to 100 rows"):
            table.page(rows)
    table.alter([AddColumn("late", INT)])
    assert Table.open(table.path).page(1, snapshot_id=1).summary.preview.value.names == ("n", "s", "b")
    file = next(Path(table.path).glob("bucket-*/*.parquet"))
    file.unlink()
    broken_page = table.page(1)
    assert broken_page.errors
    assert broken_page.summary.storage.value is not None


def test_time_travel_shows_older_snapshot(tmp_path):
    table = append_table(tmp_path / "t")
    for number in range(3):
        table.write(orders((number, "v", number)))
    page = table_summary(table.with_options({"scan.snapshot-id": "2"}))
    assert page.snapshot.value.id == 2
    assert [c.id for c in page.timeline.value.columns] == [1, 2]
    assert page.storage.value.cards[0].rows == 2


def test_summary_of_empty_table(tmp_path):
    for table in (keyed_table(tmp_path / "k"), append_table(tmp_path / "a")):
        page = table_summary(table)
        assert page.errors == ()
        assert "no snapshot yet" in summary_document(page)
        table.write(orders((1, "v", 1)))
        table.truncate()
        page = table_summary(table)
        assert page.errors == ()
        assert page.storage.value.cards == ()
        assert "snapshot <b>2</b>" in summary_document(page)


KEYS = {
    "decimal": (pa.decimal128(20, 2), [decimal.Decimal("-1.50"), decimal.Decimal("3.25")], ("-1.50", "3.25")),
    "text": (pa.string(), ["b", "ä"], ("b", "ä")),
    "binary": (pa.binary(), [b"\x00\x01", b"\xff"], ("0001", "ff")),
    "date": (pa.date32(), [0, 1], ("1970-01-01", "1970-01-02")),
    "time": (pa.timestamp("us"), [0, 1_000_000], ("1970-01-01 00:00:00.000000", "1970-01-01 00:00:01.000000")),
    "double": (pa.float64(), [float("-inf"), 0.5], ("-Infinity", "0.5")),
    "bool": (pa.bool_(), [False, True], ("false", "true")),
}


@pytest.mark.parametrize("kind", KEYS)
def test_keys_of_every_type_are_ordered_and_shown(tmp_path, kind):
    arrow, values, (low, high) = KEYS[kind]
    schema = pa.schema([pa.field("k", arrow, nullable=False), pa.field("n", pa.int64(), nullable=False)])
    table = keyed_table(tmp_path / "t", schema, ("k", "n"), bucket="1")
    table.write(pa.table([pa.array(values, arrow), pa.array([7, 8])], schema=schema))
    tree = only_card(table).tree
    assert (tree.low, tree.high) == (f"{low}, 7", f"{high}, 8")


def test_postponed_bucket_is_not_shown(tmp_path):
    table = keyed_table(tmp_path / "t", bucket="-2", **{"postpone.batch-write-fixed-bucket": "false"})
    table = table.with_options({"postpone.batch-write-fixed-bucket": "false"})
    table.write(orders((1, "v", 1)))
    page = table_summary(table)
    assert page.errors == ()
    assert page.storage.value.cards == ()
    (measure,) = [one for one in page.health.value if one.state == "watch"]
    assert measure.name == "waiting for a bucket"


def test_deleted_rows_of_vectors_are_counted(tmp_path):
    table = append_table(tmp_path / "t", **{"deletion-vectors.enabled": "true"})
    table.write(orders((1, "v", 1), (2, "v", 1), (3, "v", 1)))
    table.delete("id = 2")
    page = table_summary(table)
    (measure,) = [one for one in page.health.value if one.name == "rows in deletion vectors"]
    assert (measure.value, measure.note, measure.state) == ("33 %", "1 row", "watch")


def test_branch_and_read_optimized_view_have_pages(tmp_path):
    table = keyed_table(tmp_path / "t")
    table.write(orders((1, "v", 1)))
    table.tags.create("one")
    table.branches.create("dev", "one")
    for suffix, chip in (("$branch_dev", "branch dev"), ("$ro", "view $ro")):
        page = table_summary(Table.open(table.path + suffix))
        assert page.errors == ()
        assert chip in page.kind.value
        assert page.name == "t" + suffix


def test_wide_table_shows_its_first_columns(tmp_path):
    schema = pa.schema([(f"c{i}", pa.int32()) for i in range(MOST_COLUMNS + 5)])
    page = table_summary(append_table(tmp_path / "t", schema))
    assert len(page.columns.value) == MOST_COLUMNS
    assert "and 5 more columns" in summary_document(page)


def test_options_show_no_password_and_no_default(tmp_path):
    table = keyed_table(tmp_path / "t", write_only="false", target_file_size="64 mb")
    path = tmp_path / "t" / "schema" / "schema-0"  # another engine keeps options that this one refuses
    document = json.loads(path.read_text())
    document["options"]["s3.secret-key"] = "hush"
    path.write_text(json.dumps(document))
    page = table_summary(Table.open(table.path))
    assert {one.key: one.value for one in page.settings.value} == {
        "bucket": "2", "target-file-size": "64 mb", "s3.secret-key": "******"
    }  # fmt: skip
    assert "hush" not in summary_document(page)


# ---- broken tables


def broken(path, pattern, content=b"broken"):
    found = sorted(Path(path).glob(pattern))
    assert found
    for file in found:
        file.write_bytes(content)


@pytest.mark.parametrize(
    ("pattern", "parts"),
    [
        ("manifest/manifest-[0-9a-f]*-0", {"health", "storage"}),
        ("manifest/manifest-list*", {"health", "storage"}),
        ("snapshot/snapshot-1", {"timeline", "snapshot", "health", "storage"}),
        ("tag/tag-*", {"timeline"}),
        ("consumer/*", {"timeline"}),
    ],
)
def test_broken_table_shows_readable_parts(tmp_path, pattern, parts):
    table = keyed_table(tmp_path / "t")
    table.write(orders((1, "v", 1)))
    table.tags.create("one")
    table.consumers.reset("reader", 1)
    broken(table.path, pattern)
    page = table_summary(Table.open(table.path))
    assert {name for name in ("health", "storage", "timeline", "snapshot") if getattr(page, name).error} == parts
    assert page.errors
    text = summary_document(page)
    assert 'role="alert"' in text
    assert "BIGINT" in text  # the columns are there
    assert 'role="alert"' in Table.open(table.path)._repr_html_()


def test_old_files_that_expired_do_not_matter(tmp_path):
    table = append_table(tmp_path / "t")
    for number in range(3):
        table.write(orders((number, "v", number)))
    Path(table.path, "manifest", table.snapshots()[0].delta_manifest_list).unlink()
    page = table_summary(table)
    assert page.errors == ()
    assert all("file" not in line for line in page.timeline.value.columns[0].lines)


def test_moment_that_does_not_exist_is_error_in_its_place(tmp_path):
    table = append_table(tmp_path / "t")
    table.write(orders((1, "v", 1)))
    text = table.with_options({"scan.snapshot-id": "7"})._repr_html_()
    assert 'role="alert"' in text
    assert "snapshot 7" in text


# ---- texts


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (size(0), "0 B"), (size(1023), "1023 B"), (size(1024), "1.0 KiB"), (size(1 << 20), "1.0 MiB"),
        (size((1 << 20) - 1), "1.0 MiB"), (size(150 << 20), "150 MiB"), (size(1 << 62), "4096 PiB"),
        (count(1, "file"), "1 file"), (count(1200, "file"), "1,200 files"), (share(0, 0), "0 %"),
        (share(1, 1000), "< 1 %"), (share(1, 3), "33 %"), (short("a" * 9, 5), "aaa…a"), (short("abc", 3), "abc"),
        (wall_clock(0), "1970-01-01 00:00:00"), (wall_clock(1 << 60), f"{1 << 60} ms"),
    ],
)  # fmt: skip
def test_numbers_and_sizes_as_texts(text, expected):
    assert text == expected
