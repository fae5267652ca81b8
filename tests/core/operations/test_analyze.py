"""Statistics of ANALYZE: the file, its snapshot, and the texts of values that Java writes."""

from datetime import date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from paimon_core.errors import CommitConflictError, CorruptedError, UnsupportedError
from paimon_core.operations.analyze import (
    ColumnStatistics,
    TableStatistics,
    commit_statistics,
    from_text,
    read_statistics,
    to_text,
)
from paimon_core.schema.change import AddColumn
from paimon_core.types.parse import parse_type
from tests.support.tables import append_table, files_below


@pytest.fixture
def table(tmp_path):
    table = append_table(tmp_path / "t")
    table.write(pa.table({"id": [1, 2]}).cast(pa.schema([("id", pa.int64())])))
    return table


def statistics(table, **more):
    return TableStatistics(table.snapshot().id, table.schema.id, 2, 100, **more)


def stat_files(table):
    return [path for path in files_below(table.path) if "statistics" in str(path)]


def test_statistics_are_snapshot_of_same_rows(table):
    given = statistics(table, columns={"id": ColumnStatistics(0, 2, "1", "2", 0, 8, 8)})
    result = commit_statistics(table.store, given)
    assert (result.commit_kind, result.delta_record_count, result.total_record_count) == ("ANALYZE", 0, 2)
    assert read_statistics(table.store, result) == given
    assert table.to_arrow().num_rows == 2
    table.write(pa.table({"id": pa.array([3], pa.int64())}))
    assert read_statistics(table.store, table.snapshot()) == given  # until a schema change


def test_changes_between_snapshots_hold_nothing_of_analysis(table):
    result = commit_statistics(table.store, statistics(table))
    assert table.changes(result.id - 1, result.id).num_rows == 0


def test_another_schema_has_no_statistics(table):
    commit_statistics(table.store, statistics(table))
    later = table.alter([AddColumn("c", "INT")])
    later.write(pa.table({"id": pa.array([3], pa.int64())}))
    assert read_statistics(later.store, later.snapshot()) is None
    with pytest.raises(CommitConflictError, match="schema 0, but the table has schema 1"):
        commit_statistics(table.store, statistics(table))
    assert len(stat_files(table)) == 1


def test_table_without_snapshots_is_left_alone(tmp_path):
    table = append_table(tmp_path / "t")
    assert commit_statistics(table.store, TableStatistics(0, 0)) is None
    assert stat_files(table) == []


def test_expiry_deletes_file(table):
    commit_statistics(table.store, statistics(table))
    commit_statistics(table.store, statistics(table))
    assert len(stat_files(table)) == 2
    table.maintenance.expire_snapshots(retain_max=1, retain_min=1, older_than=2**41)
    assert len(stat_files(table)) == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"[]", "expected a JSON object"),
        (b'{"schemaId": 0}', "'snapshotId' is missing"),
        (b'{"snapshotId": "x", "schemaId": 0}', "'snapshotId' must be int"),
        (b'{"snapshotId": 1, "schemaId": 0, "colStats": []}', None),
        (b'{"snapshotId": 1, "schemaId": 0, "colStats": {"a": 1}}', "'colStats' must be an object"),
        (b'{"snapshotId": 1, "schemaId": 0, "colStats": {"a": {}}}', "'colId' is missing"),
    ],
)
def test_damaged_file_is_named(content, message):
    if message is None:
        assert TableStatistics.from_json(content, "p").columns == {}
        return
    with pytest.raises(CorruptedError, match=message):
        TableStatistics.from_json(content, "p")


VALUES = [
    ("DATE", date(2024, 1, 1), "19723"),
    ("TIMESTAMP(6)", datetime(2023, 11, 14, 22, 13, 20, 123456), "2023-11-14 22:13:20.123456"),
    ("TIMESTAMP(3)", datetime(2023, 11, 14, 22, 13, 20, 123000), "2023-11-14 22:13:20.123"),
    ("TIMESTAMP(6)", datetime(2023, 11, 14, 22, 13, 20), "2023-11-14 22:13:20"),
    ("DECIMAL(10, 2)", Decimal("-0.05"), "-0.05"),
    ("DECIMAL(30, 10)", Decimal("0.0000000001"), "0.0000000001"),
    ("STRING", 'ab"c', 'ab"c'),
    ("BOOLEAN", True, "true"),
    ("BIGINT", 3, "3"),
    ("DOUBLE", 1e10, "1.0E10"),
    ("DOUBLE", 1e-7, "1.0E-7"),
    ("DOUBLE", 100.0, "100.0"),
    ("DOUBLE", 0.00123, "0.00123"),
    ("DOUBLE", 1.25e7, "1.25E7"),
    ("DOUBLE", float("inf"), "Infinity"),
]


@pytest.mark.parametrize(("kind", "value", "text"), VALUES)
def test_values_have_texts_that_java_writes(kind, value, text):
    assert to_text(value, parse_type(kind)) == text
    assert from_text(text, parse_type(kind)) == value


def test_bytes_have_no_text():
    with pytest.raises(UnsupportedError, match="VARBINARY"):
        to_text(b"x", parse_type("VARBINARY(3)"))
    assert from_text("x", parse_type("BIGINT")) is None
    assert from_text("x", parse_type("VARBINARY(3)")) is None
