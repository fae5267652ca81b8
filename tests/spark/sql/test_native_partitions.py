"""Spark's own Parquet encoder writes partitioned append tables: all results equal those of Python workers."""

from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from paimon_core.schema.schema import Schema
from paimon_core.table import Table
from paimon_core.types.datatype import DataField
from paimon_core.types.parse import parse_type
from paimon_spark.sql.writes import native_writes
from tests.spark.conftest import MODE
from tests.spark.sql.test_native_writes import ENGINE, SPARK, python_workers, rows, save  # noqa: F401

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(MODE != "classic", reason="executors of a cluster lack the classes"),
    pytest.mark.usefixtures("writes_by_tasks"),
]
PARTITIONS = {
    "STRING": "element_at(array(NULL, '', ' ', 'a/b=c%d', 'ä€😀', '{x}', 'null', '__DEFAULT_PARTITION__', 'a:b'), k)",
    "CHAR(5)": "element_at(array('', 'x', 'ä€😀'), k)",
    "BOOLEAN": "element_at(array(true, false, NULL), k)",
    "TINYINT": "CAST(k - 4 AS TINYINT)",
    "SMALLINT": "CAST(k - 4 AS SMALLINT)",
    "INT": "INT(k - 4)",
    "BIGINT": "(k - 4) * 1000000007L",
    "FLOAT": "element_at(array(FLOAT('NaN'), -FLOAT('NaN'), FLOAT(-0.0D), FLOAT(0), FLOAT(1e20), FLOAT(1e-5)), k)",
    "DOUBLE": "element_at(array(DOUBLE('NaN'), -DOUBLE('NaN'), -0.0D, 0.0D, DOUBLE('Infinity'), 0.1D, 1e7D), k)",
    "DECIMAL(9, 2)": "CAST((k - 4) * 1.25 AS DECIMAL(9, 2))",
    "DECIMAL(18, 0)": "CAST((k - 4) * 123456789012L AS DECIMAL(18, 0))",
    "DECIMAL(38, 9)": "CAST((k - 4) * CAST('1234567890123456789.5' AS DECIMAL(20, 1)) AS DECIMAL(38, 9))",
    "DATE": "element_at(array(DATE'0001-01-01', DATE'2024-02-29', make_date(-100, 1, 1), NULL), k)",
    "TIMESTAMP(6)": "element_at(array(TIMESTAMP_NTZ'1500-03-01 10:11:12.123456', TIMESTAMP_NTZ'2024-01-01'), k)",
    "TIMESTAMP_LTZ(6)": "element_at(array(timestamp_micros(-1), timestamp_micros(1700000000000000)), k)",
    "VARBINARY(3)": "element_at(array(unhex(''), unhex('61'), unhex('2F3D')), k)",
}
"""The values of partitions by the type of the column; k is 1, 2 ... of each row."""


def create(path, *columns, keys=("p",), **options):
    fields = [DataField(i, name, parse_type(kind)) for i, (name, kind) in enumerate(columns)]
    return Table.create(str(path), Schema(fields, partition_keys=keys, options=options))


def parquet_files(path):
    return sorted(Path(path).rglob("*.parquet"))


def encoders(path):
    return {pq.read_metadata(file).created_by.split()[0] for file in parquet_files(path)}


def partitions(path):
    """Return the directories of the files of a table."""
    return sorted({str(file.parent.relative_to(path)) for file in parquet_files(path)})


def files(path):
    """Return the partition and the metadata of the live files of a table, without names, sizes and times."""
    found = [
        (split.partition.hex(), split.bucket, replace(file, file_name="", file_size=0, creation_time=None))
        for split in Table.open(str(path)).scan().plan().splits
        for file in split.files
    ]
    return sorted(found, key=str)


def contents(path):
    return sorted(map(str, Table.open(str(path)).to_arrow().select(["id"]).to_pylist()))


def same_tables(native, engine):
    """Compare a table that Spark's encoder wrote with one that Python workers wrote."""
    assert (encoders(native), encoders(engine)) == ({SPARK}, {ENGINE})
    assert partitions(native) == partitions(engine)
    assert files(native) == files(engine)
    assert contents(native) == contents(engine)


@pytest.mark.parametrize("kind", PARTITIONS)
def test_partitions_of_each_type_are_those_of_the_engine(spark, tmp_path, python_workers, kind):  # noqa: F811
    text = PARTITIONS[kind]
    values = rows(spark, 0, 60, "id", "1 + INT(id % 9) AS k")
    frame = values.selectExpr("id", f"{text.replace('element_at', 'try_element_at')} AS p")
    for name in ("spark", "engine"):
        create(tmp_path / name, ("id", "BIGINT"), ("p", kind), **{"partition.legacy-name": "false"})
        save(frame, tmp_path / name)
        python_workers()
    same_tables(tmp_path / "spark", tmp_path / "engine")
