"""Iceberg metadata on an object store."""

import pytest

from paimon_core.catalog.filesystem import FileSystemCatalog
from paimon_core.scan.entries import live_entries
from paimon_core.schema.schema import Schema
from tests.support.iceberg_files import described, names_in
from tests.support.s3_server import s3_server
from tests.support.tables import ORDERS, orders


@pytest.mark.more
def test_metadata_in_bucket():
    with s3_server() as (root, options):
        catalog = FileSystemCatalog(f"{root}/w", options)
        catalog.create_database("d")
        schema = Schema(ORDERS, options={"metadata.iceberg.storage": "hadoop-catalog"})
        table = catalog.create_table("d.t", schema)
        for i in range(3):
            table.write(orders((i, "a", i)))
        place = f"{root}/w/iceberg/d/t/metadata"
        actual = described(table.store.io, place)
        live = live_entries(table.store, table.snapshot()).live
        paths = {table.store.file_path(entry.bucket_ref, entry.file) for entry in live}
        assert {record["file_path"] for record in actual.files[3].values()} == paths
        assert names_in(table.store.io, place) == actual.named
        table.rollback_to(1)
        assert described(table.store.io, place).version == 1
        catalog.drop_table("d.t")
        assert names_in(table.store.io, place) == set()
