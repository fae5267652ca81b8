"""A reader of batches as Spark's tasks use it, without a session."""

import gc
import pickle

from paimon_spark.options import read_request
from paimon_spark.reader import PaimonReader
from paimon_spark.types import spark_schema
from tests.support.tables import append_table, orders


def test_modules_are_exempt_from_garbage_collection_once(tmp_path, monkeypatch):
    table = append_table(tmp_path / "t")
    table.write(orders((1, "a", 1)))
    request = read_request({"path": table.path})
    reader = PaimonReader(table, request, spark_schema(table.schema.fields))
    (task,) = reader.partitions()
    frozen = []
    monkeypatch.setattr(gc, "freeze", lambda: frozen.append(True))
    monkeypatch.setattr(gc, "get_freeze_count", lambda: len(frozen))
    for _ in range(2):
        batches = pickle.loads(pickle.dumps(reader)).read(pickle.loads(pickle.dumps(task)))
        assert sum(batch.num_rows for batch in batches) == 1
    assert frozen == [True]
