"""Spark writes values of every type in every bucket mode."""

import pytest

from paimon_core.table import Table
from tests.support.bucket_modes import MODES, VALUES, fields_of, numbered, table_of
from tests.support.samples import rows_of

pytestmark = pytest.mark.spark
FEW = ("cross-partition",)


@pytest.mark.usefixtures("time_type")
@pytest.mark.parametrize("mode", [pytest.param(mode, marks=[] if mode in FEW else pytest.mark.more) for mode in MODES])
def test_values_of_every_type(spark, tmp_path, mode):
    columns = {"id": "INT NOT NULL", "p": "INT NOT NULL", **VALUES}
    source, table = table_of(tmp_path / "s", "no buckets", columns), table_of(tmp_path / "t", mode, columns)
    source.write(numbered(rows_of(fields_of(VALUES), 7, 40), 0, 1))
    rows = spark.read.format("paimon").load(source.path)
    assert rows.count() == 40
    rows.repartition(2).write.format("paimon").mode("append").save(table.path)
    if mode == "postponed, waiting":
        table.compact()
    written = spark.read.format("paimon").load(table.path).orderBy("id").collect()
    assert list(map(str, written)) == list(map(str, rows.orderBy("id").collect()))  # VARIANTs compare by their texts
    assert Table.open(table.path).to_arrow().num_rows == 40
