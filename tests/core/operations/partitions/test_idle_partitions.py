"""Compaction of the partitions that get no files any more."""

from dataclasses import replace
from datetime import timedelta

import pyarrow as pa
import pytest

from paimon_core import Schema, Table
from paimon_core.errors import InvalidInputError
from paimon_core.operations.partitions.idle_partitions import idle_partitions
from paimon_core.types.datatype import DataField
from paimon_core.types.parse import parse_type

HOUR = 3_600_000


def test_only_partitions_without_younger_file_are_compacted(tmp_path):
    fields = [DataField(n, name, parse_type("INT")) for n, name in enumerate("pv")]
    options = {"bucket": "1", "write-only": "true"}
    table = Table.create(str(tmp_path / "t"), Schema(fields, ["p", "v"], ["p"], options))

    def at(hours):
        start = table.store.now()
        return Table(replace(table.store, now=lambda: start + hours * HOUR))

    def idle(hours, **more):
        actual = idle_partitions(at(10).store, timedelta(hours=hours), **more)
        return None if actual is None else at(10).compact(full=True, filter=actual)

    assert idle(0) is None
    for hours, p in ((0, 1), (0, 2), (8, 2), (0, 3)):
        at(hours).write(pa.table({"p": pa.array([p], pa.int32()), "v": pa.array([hours], pa.int32())}))
    assert idle(11) is None
    assert idle(5, partitions=[{"p": 1}, {"p": 2}]).commit_kind == "COMPACT"
    assert idle(5, partitions=[{"p": 1}, {"p": 2}]) is None
    assert idle(5, filter="p = 3").commit_kind == "COMPACT"
    assert idle(5) is None
    assert idle(1).commit_kind == "COMPACT"
    assert table.to_arrow().num_rows == 4
    dated = Table.create(str(tmp_path / "d"), Schema([DataField(0, "d", parse_type("DATE")), fields[1]], (), ["d"]))
    for _ in range(2):
        dated.write(pa.table({"d": pa.array([19000, None], pa.date32()), "v": pa.array([1, 2], pa.int32())}))
    actual = idle_partitions(replace(dated.store, now=lambda: table.store.now() + HOUR), timedelta(0))
    assert dated.compact(full=True, filter=actual).commit_kind == "COMPACT"
    plain = Table.create(str(tmp_path / "u"), Schema(fields))
    with pytest.raises(InvalidInputError, match="has no partitions"):
        idle_partitions(plain.store, timedelta(1))
