"""Partitions rescaled by us: Java reads them, and goes on writing and compacting in the new number of buckets."""

import pytest

from tests.conformance.compare import same
from tests.conformance.shared_table import SharedTable

pytestmark = pytest.mark.java
FIELDS = [["p", "STRING NOT NULL"], ["k", "INT NOT NULL"], ["v", "STRING"]]
TABLES = {
    "append": ([], {"bucket-key": "k"}),
    "keys": (["p", "k"], {}),
    "lookup": (["p", "k"], {"changelog-producer": "lookup"}),
    "vectors": (["p", "k"], {"deletion-vectors.enabled": "true"}),
    "first-row": (["p", "k"], {"merge-engine": "first-row"}),
}


def some(rng, count):
    return [
        ["+I", {"p": rng.choice("ab"), "k": rng.randrange(40), "v": rng.choice(("x", "y", None))}] for _ in range(count)
    ]


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.cases(1)
def test_java_writes_after_rescale(judge, name, rng, kind):
    table = SharedTable(judge, name)
    keys, options = TABLES[kind]
    options = {"bucket": "2", "snapshot.num-retained.min": "200", **options}
    table.java("create_table", fields=FIELDS, partition_keys=["p"], primary_keys=keys, options=options)
    for buckets in (5, 3):
        table.java("write", rows=some(rng, 30))
        table.we_write(some(rng, 30))
        table.java("write", rows=some(rng, 30))
        before = table.agree()
        table.ours().maintenance.rescale(buckets)
        same(table.agree(), before, f"{name}: rows rescaled to {buckets}")
        inside = [table.java("read", bucket=bucket)["rows"] for bucket in range(buckets)]
        same([row[1:] for rows in inside for row in rows], before, f"{name}: rows bucket by bucket")
        assert sum(map(bool, inside)) == buckets
    table.java("write", rows=some(rng, 30))
    table.java("compact", kind="full")
    table.we_write(some(rng, 30))
    table.ours().compact(full=True)
    table.agree()
