"""Writes of rows that are in key order, as Spark's sort delivers them: the writer checks the order and keeps it."""

import pyarrow as pa
import pytest

from paimon_core.merge import sorting
from tests.support.tables import keyed_table

COLUMNS = pa.schema([pa.field("k", pa.string(), nullable=False), ("v", pa.int64())])


@pytest.mark.parametrize("buckets", ["1", "3"])
def test_sorted_rows_are_not_sorted_again(tmp_path, monkeypatch, buckets):
    sorts = []
    for name in ("_merged", "_sorted"):
        sort = getattr(sorting, name)
        monkeypatch.setattr(sorting, name, lambda prefix, sort=sort: sorts.append(len(prefix)) or sort(prefix))
    keys = [f"a key with a long name {i:05d}" for i in range(3_000)]
    for rows, sorted_again in ((keys, False), (keys[::-1], True)):
        table = keyed_table(tmp_path / f"t{sorted_again}", COLUMNS, ["k"], bucket=buckets)
        with table.writer() as writer:
            writer.write(pa.table([rows, range(len(rows))], schema=COLUMNS))
            table.committer().commit(writer.prepare_commit())
        assert bool(sorts) == sorted_again
        assert sorted(table.to_arrow()["k"].to_pylist()) == keys
