"""Table.changes: the changes of one history with every producer, and their range."""

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from paimon_core.datafile.deletion_vectors import deleted_rows, vector_entries
from paimon_core.errors import InvalidInputError, OutOfRangeError
from paimon_core.table import Table
from tests.support.compaction import levels_of, shape
from tests.support.tables import append_table, files_below, keyed_table, orders, rows_of

BALLAST = tuple((1000 + k, f"{k * 2654435761 % 2**32:08x}", 0) for k in range(2000))


def told(table: Table, after: int = 0, through: int | None = None) -> list[tuple]:
    rows = table.changes(after, through).to_pylist()
    return [(row["rowkind"], row["id"], row["v"]) for row in rows if row["id"] < 1000]


def history(table: Table) -> Table:
    """Four commits: a row; its change and a new row; deletes of an existing and of a missing row; the row again."""
    table.write(orders((1, "a", 0)))
    table.write(orders((1, "b", 0), (2, "x", 0)), ["+U", "+I"])
    table.write(orders((2, "x", 0), (7, "q", 0)), ["-D", "-D"])
    table.write(orders((1, "b", 0)))
    return table


LOOKED_UP = [("+I", 1, "a"), ("-U", 1, "a"), ("+U", 1, "b"), ("+I", 2, "x"), ("-D", 2, "x")]
WRITTEN = [("+I", 1, "a"), ("+U", 1, "b"), ("+I", 2, "x"), ("-D", 2, "x"), ("-D", 7, "q"), ("+I", 1, "b")]
SAME = [("-U", 1, "b"), ("+U", 1, "b")]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, WRITTEN),
        ({"changelog_producer": "input"}, WRITTEN),
        ({"changelog_producer": "lookup"}, LOOKED_UP + SAME),
        ({"changelog_producer": "lookup", "changelog_producer.row_deduplicate": "true"}, LOOKED_UP),
        ({"changelog_producer": "lookup", "deletion_vectors.enabled": "true"}, LOOKED_UP + SAME),
        ({"changelog_producer": "full-compaction", "full_compaction.delta_commits": "1"}, LOOKED_UP + SAME),
    ],
    ids=["none", "input", "lookup", "lookup-once", "vectors", "full-compaction"],
)
def test_changes_of_history(tmp_path, options, expected):
    table = history(keyed_table(tmp_path / "t", bucket="1", **options))
    assert told(table) == expected
    assert rows_of(table.to_arrow()) == [{"id": 1, "v": "b", "n": 0}]


def test_full_compactions_emit_changes_since_last_one(tmp_path):
    table = keyed_table(tmp_path / "t", bucket="1", changelog_producer="full-compaction")
    table.write(orders((1, "a", 0), (2, "b", 0)))
    table.compact(full=True)
    first = table.snapshot().id
    table.write(orders((1, "gone", 0), (2, "c", 0), (3, "d", 0)), ["-D", "+U", "+I"])
    table.write(orders((3, "e", 0)))
    assert told(table, first) == []
    table.compact(full=True)
    assert told(table, first) == [("-D", 1, "a"), ("-U", 2, "b"), ("+U", 2, "c"), ("+I", 3, "e")]
    assert table.compact(full=True) is None


def test_columns_that_do_not_count_as_change(tmp_path):
    options = {"changelog_producer.row_deduplicate": "true", "changelog_producer.row_deduplicate_ignore_fields": "n"}
    table = keyed_table(tmp_path / "t", bucket="1", changelog_producer="lookup", **options)
    table.write(orders((1, "a", 1), (2, "a", 1)))
    table.write(orders((1, "a", 2), (2, "b", 2)))
    assert told(table, 2) == [("-U", 2, "a"), ("+U", 2, "b")]


def test_rows_of_higher_levels_are_marked_as_deleted(tmp_path):
    """The worked example of the format's deletion vectors, with rows that keep the highest level large."""
    table = keyed_table(tmp_path / "t", bucket="1", **{"deletion_vectors.enabled": "true"})
    table.write(orders((1, "a", 0), (2, "b", 0), *BALLAST))
    table.write(orders((1, "c", 0), (2, "b", 0), (3, "d", 0)), ["+I", "-D", "+I"])
    assert shape(table) == [(4, 2), (5, 2002)]
    (levels,) = levels_of(table).values()
    entries = vector_entries(table.store, table.snapshot())
    assert deleted_rows(entries, levels.all_files) == {levels.files[5][0].file_name: 2}
    assert [r["v"] for r in rows_of(table.to_arrow(filter="id < 1000"))] == ["c", "d"]
    table.compact(full=True)
    assert shape(table) == [(5, 2002)]
    assert vector_entries(table.store, table.snapshot()) == []
    assert [r["v"] for r in rows_of(table.to_arrow(filter="id < 1000"))] == ["c", "d"]


def test_overwriting_emits_no_change(tmp_path):
    for producer in ("input", "lookup"):
        table = keyed_table(tmp_path / producer, bucket="1", changelog_producer=producer)
        table.write(orders((1, "a", 0)))
        before = len([f for f in files_below(table.path) if "changelog-" in f])
        table.overwrite(orders((9, "z", 0)))
        assert told(table) == [("+I", 1, "a")]
        assert len([f for f in files_below(table.path) if "changelog-" in f]) == before
        table.write(orders((9, "y", 0)))
        assert told(table)[1:] == ([("+I", 9, "y")] if producer == "input" else [("-U", 9, "z"), ("+U", 9, "y")])


def test_tables_without_keys_emit_added_rows(tmp_path):
    table = append_table(tmp_path / "t")
    table.write(orders((1, "a", 0)))
    table.write(orders((2, "b", 0)))
    assert told(table, 1) == [("+I", 2, "b")]
    assert table.changes(0).schema.names == ["rowkind", "id", "v", "n"]


def test_range_without_snapshots_is_an_error_that_names_it(tmp_path):
    table = history(keyed_table(tmp_path / "t", bucket="1"))
    assert told(table, 2, 2) == []
    assert table.changes(1, 2).num_rows == 2
    for after, through in ((0, 9), (3, 2), (-1, 2)):
        with pytest.raises(OutOfRangeError, match="snapshots 1 to 4"):
            table.changes(after, through)
    assert keyed_table(tmp_path / "empty").changes(0).num_rows == 0


def test_changes_outlive_their_snapshots(tmp_path):
    """As expiry leaves a table whose changelog is kept for longer."""
    table = history(keyed_table(tmp_path / "t", bucket="1", changelog_producer="lookup"))
    expected = told(table)
    (tmp_path / "t" / "changelog").mkdir()
    for snapshot in range(1, 4):
        source = Path(table.path) / "snapshot" / f"snapshot-{snapshot}"
        shutil.move(source, tmp_path / "t" / "changelog" / f"changelog-{snapshot}")
    (tmp_path / "t" / "snapshot" / "EARLIEST").unlink(missing_ok=True)
    assert table.snapshots()[0].id == 4
    assert told(table) == expected
    shutil.rmtree(tmp_path / "t" / "changelog")
    with pytest.raises(OutOfRangeError, match="snapshots 4 to 8"):
        table.changes(0)


def test_changelog_files_have_options_of_their_own(tmp_path):
    options = {"changelog_file.format": "avro", "changelog_file.prefix": "cl-", "changelog_file.stats_mode": "none"}
    table = history(keyed_table(tmp_path / "t", bucket="1", changelog_producer="lookup", **options))
    names = {f.rsplit("/", 1)[1] for f in files_below(table.path) if "/" in f and "bucket-0" in f}
    assert {n.rsplit(".", 1)[1] for n in names if n.startswith("cl-")} == {"avro"}
    assert {n.rsplit(".", 1)[1] for n in names if n.startswith("data-")} == {"parquet"}
    assert told(table) == LOOKED_UP + SAME


@pytest.mark.parametrize(
    ("keys", "options", "message"),
    [
        ([], {"changelog-producer": "lookup"}, "primary key"),
        (["id"], {"changelog-producer": "full-compaction", "deletion-vectors.enabled": "true"}, "deletion-vectors"),
        (["id"], {"merge-engine": "first-row", "deletion-vectors.enabled": "true"}, "first-row"),
        (["id"], {"merge-engine": "first-row", "changelog-producer": "input"}, "first-row"),
    ],
)
def test_contradictions_are_refused(tmp_path, keys, options, message):
    make = keyed_table if keys else append_table
    with pytest.raises(InvalidInputError, match=message):
        make(tmp_path / "t", **{k.replace("-", "_"): v for k, v in options.items()})


def test_change_of_nested_values(tmp_path):
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("m", pa.map_(pa.string(), pa.list_(pa.int32())))])
    options = {"changelog_producer": "lookup", "changelog_producer.row_deduplicate": "true"}
    table = keyed_table(tmp_path / "t", schema, bucket="1", **options)
    table.write(pa.table([[1, 2], [[("a", [1, 2])], None]], schema=schema))
    table.write(pa.table([[1, 2], [[("a", [1, 2])], [("b", [])]]], schema=schema))
    kinds = [(row["rowkind"], row["id"]) for row in table.changes(2).to_pylist()]
    assert kinds == [("-U", 2), ("+U", 2)]
