"""Options of Spark's own scan that depend on the files."""

import pytest

from paimon_spark.sql.reads.native import NativeFiles, uri_of

VECTORED = "parquet.hadoop.vectored.io.enabled"


@pytest.mark.parametrize(
    ("kind", "paths", "vectored"),
    [
        ("parquet", ["/t/a.parquet", "file:///t/b.parquet"], "false"),
        ("parquet", ["s3://b/t/a.parquet"], None),
        ("parquet", ["/t/a.parquet", "s3://b/t/b.parquet"], None),
        ("orc", ["/t/a.orc"], None),
    ],
)
def test_only_local_parquet_files_are_read_in_one_thread(kind, paths, vectored):
    sizes = {uri_of(path): 1 for path in paths}
    options = NativeFiles(kind, sizes, len(sizes)).options
    assert options.get(VECTORED) == vectored
    assert options["mergeSchema"] == "false"
