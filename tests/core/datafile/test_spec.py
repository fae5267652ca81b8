"""The effect of options on data files: keys stored once; formats, codecs and statistics by level."""

import pyarrow.orc as po
import pyarrow.parquet as pq
import pytest

from paimon_core.row.binary_row import deserialize
from paimon_core.schema.change import SetOption
from paimon_core.table import Table
from tests.support.compaction import levels_of
from tests.support.tables import keyed_table, orders, rows_of


def files(table: Table) -> list:
    return [f for levels in levels_of(table).values() for f in levels.all_files]


def stored_at(table: Table, meta) -> str:
    (split,) = table.scan().plan().splits
    return table.store.file_path(split.bucket_ref, meta)


def fill(table: Table, start: int = 0) -> None:
    for i in range(3):
        table.write(orders(*((start + k, f"{i}", i) for k in range(i, 40, i + 1))))
    table.write(orders((start + 39, None, None)), ["-D"])


def test_thin_mode_stores_keys_once(tmp_path):
    tables = {
        thin: keyed_table(tmp_path / thin, bucket="1", write_only="true", **{"data-file.thin-mode": thin})
        for thin in ("true", "false")
    }
    for table in tables.values():
        fill(table)
    thin, thick = tables["true"], tables["false"]
    for compacted in (False, True):
        assert rows_of(thin.to_arrow()) == rows_of(thick.to_arrow())
        for one, other in zip(files(thin), files(thick), strict=True):
            assert pq.read_schema(stored_at(thin, one)).names == ["_SEQUENCE_NUMBER", "_VALUE_KIND", "id", "v", "n"]
            assert pq.read_schema(stored_at(thick, other)).names[0] == "_KEY_id"
            assert (one.min_key, one.max_key, one.key_stats) == (other.min_key, other.max_key, other.key_stats)
            assert one.file_size < other.file_size
        if not compacted:
            for table in tables.values():
                assert table.compact(full=True) is not None


def test_key_statistics_are_stored_in_every_mode(tmp_path):
    options = {"data-file.thin-mode": "true", "metadata.stats-mode": "none"}
    table = keyed_table(tmp_path / "t", bucket="1", write_only="true", **options)
    table.write(orders((3, "a", 1), (9, "b", 2)))
    (meta,) = files(table)
    assert meta.value_stats_cols == ("id",)
    assert meta.value_stats == meta.key_stats
    assert deserialize(meta.value_stats.max_values, table.schema.key_arrow) == (9,)


@pytest.mark.parametrize("change", [("data-file.thin-mode", "true"), ("file.format", "orc"), ("file.format", "avro")])
def test_files_of_old_and_new_options_are_merged(tmp_path, change):
    table = keyed_table(tmp_path / "t", bucket="1", write_only="true")
    twin = keyed_table(tmp_path / "twin", bucket="1", write_only="true")
    fill(table)
    table = table.alter([SetOption(*change)])
    fill(table, start=10)
    for start in (0, 10):
        fill(twin, start)
    assert rows_of(table.to_arrow()) == rows_of(twin.to_arrow())
    table.compact(full=True)
    assert rows_of(table.to_arrow()) == rows_of(twin.to_arrow())
    assert len(files(table)) == 1


def test_formats_codecs_and_statistics_by_level(tmp_path):
    options = {
        "file.format.per.level": "0:avro,5:orc",
        "file.compression": "zstd",
        "file.compression.per.level": "5:snappy",
        "metadata.stats-mode.per.level": "0:none,5:full",
    }
    table = keyed_table(tmp_path / "t", bucket="1", write_only="true", **options)
    long = "a value of more than sixteen characters"
    for i in range(3):
        table.write(orders((i, long, i), (7, long, i)))
    assert [f.file_name.rsplit(".")[-1] for f in files(table)] == ["avro"] * 3
    assert all(f.value_stats_cols == () for f in files(table))
    before = rows_of(table.to_arrow())
    table.compact(full=True)
    (meta,) = files(table)
    assert (meta.level, meta.value_stats_cols) == (5, None)
    assert po.ORCFile(stored_at(table, meta)).compression == "SNAPPY"
    assert deserialize(meta.value_stats.max_values, table.schema.arrow) == (7, long, 2)
    table.write(orders((8, "x", 0)))
    assert rows_of(table.to_arrow()) == [*before, {"id": 8, "v": "x", "n": 0}]
