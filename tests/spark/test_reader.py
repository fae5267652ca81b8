"""A reader of batches as Spark's tasks use it, without a session."""

import gc
import pickle

import pytest
from pyspark.sql.datasource import DataSourceReader

from paimon_spark.datasource import PaimonDataSource
from paimon_spark.options import read_request
from paimon_spark.reader import batch_reader, freeze_modules
from paimon_spark.types import spark_schema
from tests.support.far_timestamps import FAR, far_table
from tests.support.tables import append_table, orders


def test_modules_are_exempt_from_garbage_collection_once(tmp_path, monkeypatch):
    table = append_table(tmp_path / "t")
    table.write(orders((1, "a", 1)))
    reader = batch_reader(read_request({"path": table.path}), spark_schema(table.schema.fields))
    (task,) = reader.partitions()
    frozen = []
    monkeypatch.setattr(gc, "freeze", lambda: frozen.append(True))
    freeze_modules.cache_clear()
    for _ in range(2):
        batches = pickle.loads(pickle.dumps(reader)).read(pickle.loads(pickle.dumps(task)))
        assert sum(batch.num_rows for batch in batches) == 1
    assert frozen == [True]


@pytest.mark.parametrize("options", [{}, {"incremental-between": "0,1"}], ids=["rows", "changes"])
@pytest.mark.parametrize("suffix", ["", "$files", "$ro"])
def test_readers_take_no_filters_of_queries(tmp_path, suffix, options):
    table = append_table(tmp_path / "t")
    table.write(orders((1, "a", 1)))
    source = PaimonDataSource({"path": f"{table.path}{suffix}", **({} if suffix else options)})
    assert type(source.reader(source.schema())).pushFilters is DataSourceReader.pushFilters


@pytest.mark.parametrize("format_", ["parquet", "orc"])
def test_timestamps_that_nanoseconds_cannot_hold_are_read_in_microseconds_of_spark(tmp_path, format_):
    table = far_table(tmp_path / "t", file_format=format_)
    source = PaimonDataSource({"path": table.path})
    reader = source.reader(source.schema())
    rows = [row for task in reader.partitions() for batch in reader.read(task) for row in batch.to_pylist()]
    assert [row["ts"] for row in sorted(rows, key=lambda row: row["n"])] == FAR


@pytest.mark.parametrize("named", [False, True])
def test_reader_of_read_optimized_view_keeps_view(tmp_path, named):
    table = far_table(tmp_path / "d.db" / "t", keys="n", bucket="1", **{"write-only": "true"})
    place = {"warehouse": str(tmp_path), "table": "d.t$ro"} if named else {"path": table.path + "$ro"}
    source = PaimonDataSource(place)
    reader = source.reader(source.schema())
    assert [batch.num_rows for task in reader.partitions() for batch in reader.read(task)] == []
    source = PaimonDataSource({key: value.removesuffix("$ro") for key, value in place.items()})
    reader = source.reader(source.schema())
    assert sum(batch.num_rows for task in reader.partitions() for batch in reader.read(task)) == 4
