"""Credentials of a REST server for tables on S3, whose store accepts only the newest of them."""

import pickle
import time
from dataclasses import replace

import pyarrow as pa
import pytest

from paimon_core import Schema, open_catalog
from tests.support.rest_server import catalog_server
from tests.support.s3_server import s3_server

ROWS = pa.table({"a": [1, 2]})


@pytest.mark.more
def test_only_the_newest_credentials_of_a_table_work():
    """The driver and a task renew the credentials before they end, and use no others."""
    keys = {"test-access", "one"}
    with s3_server(keys=keys) as (root, storage), catalog_server(f"{root}/w", storage) as server:
        plain = {key: value for key, value in storage.items() if "key" not in key}
        server.defaults["data-token.enabled"] = "true"

        def token(key):
            options = {**plain, "s3.access-key": key, "s3.secret-key": "secret"}
            return {"token": options, "expiresAtMillis": int((time.time() + 7200) * 1000)}

        server.tokens = [token("one")]
        catalog = open_catalog(options=server.options)
        catalog.create_database("db")
        table = catalog.create_table("db.t", Schema(ROWS.schema))
        table.write(ROWS)
        in_task = pickle.loads(pickle.dumps(table))
        keys.remove("one")
        keys.add("two")
        with pytest.raises(OSError, match=r"Access Denied|Forbidden"):
            table.to_arrow()
        server.tokens = [token("two")]
        for opened in (table, in_task):
            opened.store.io._token = replace(opened.store.io._token, expires=time.time() + 3590)
            assert opened.to_arrow()["a"].to_pylist() == [1, 2]
        assert table.write(ROWS).id == 2
        assert "secret" not in repr((in_task, in_task.store, in_task.store.io))
