"""Metastore 4.0.1: reads and writes without locks."""

import pyarrow as pa
import pytest

from paimon_core import AddColumn, Schema, open_catalog
from paimon_core.errors import AlreadyExistsError
from tests.support.places.hive import metastore

pytestmark = pytest.mark.places
COLUMNS = pa.schema([pa.field("k", pa.int32(), nullable=False), ("v", pa.string()), ("d", pa.string())])


def test_tables_in_metastore_4(tmp_path):
    with metastore(tmp_path / "server", "4.0.1") as uri:
        catalog = open_catalog(
            str(tmp_path / "warehouse"), options={"metastore": "hive", "uri": f"thrift://127.0.0.1:1,{uri}"}
        )
        catalog.create_database("db", properties={"comment": "x"})
        schema = Schema(COLUMNS, partition_keys=["d"], options={"metastore.partitioned-table": "true"})
        catalog.create_table("db.t", schema).write(pa.table({"k": [1], "v": ["a"], "d": ["x"]}, COLUMNS))
        with pytest.raises(AlreadyExistsError):
            catalog.create_table("db.t", schema)
        catalog.alter_table("db.t", [AddColumn("n", "BIGINT")])
        assert [c.name for c in catalog._client.table("db", "t").sd.cols] == ["k", "v", "n"]
        assert [p.values for p in catalog._client.call("get_partitions", "db", "t", 10)] == [["x"]]
        catalog.rename_table("db.t", "db.u")
        assert catalog.table("db.u").to_arrow().num_rows == 1
        path = catalog.location("db.u")
        catalog.drop_table("db.u")
        assert catalog.list_tables("db") == []
        assert not catalog._io.exists(path)
        catalog.drop_database("db")
        assert catalog.list_databases() == ["default"]
