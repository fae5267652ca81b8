"""Two branches read as one table: both engines show the same rows."""

import pyarrow as pa
import pytest

from paimon_spark.datasource import PaimonDataSource
from tests.conformance.compare import same
from tests.conformance.kinds import ALL, Kind
from tests.conformance.shared_table import SharedTable, created_by_java
from tests.conformance.values import normal, rows

pytestmark = pytest.mark.java
KINDS = (
    Kind("fallback-keys", {"bucket": "2"}, ("p", "k"), ("p",), ALL),
    Kind("fallback-append", {"bucket": "-1"}, partition_keys=("p",)),
    Kind("fallback-whole", {"bucket": "-1"}),
)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_partitions_of_a_second_branch(judge, name, rng, kind):
    table = created_by_java(judge, name, kind)
    table.java("create_branch", name="b")
    branch = SharedTable(judge, name, branch="b")
    branch.java("write", rows=kind.rows(rng, 30))
    table.java("alter_table", changes=[{"op": "set_option", "key": "scan.fallback-branch", "value": "b"}])
    assert table.agree()
    own = kind.rows(rng, 30)
    table.java("write", rows=own[:3])
    branch.java("write", rows=kind.rows(rng, 30))
    actual = table.agree()
    assert len(actual) > 3 or kind.name == "fallback-whole"
    table.java("compact", kind="full")
    same(table.agree(), actual, "compacted")
    fields = table.fields_at()
    if kind.partition_keys:
        chosen = [row for row in actual if row[[f.name for f in fields].index("p")] is None]
        same(rows(table.ours().to_arrow(filter="p IS NULL"), fields), chosen, "filtered")
    source = PaimonDataSource({"path": table.path})
    reader = source.reader(source.schema())
    assert sum(b.num_rows for task in reader.partitions() for b in reader.read(task)) == len(actual)
    branch.agree()


def test_streams_have_the_changes_of_the_own_branch(judge, name, rng):
    kind = KINDS[1]
    table = created_by_java(judge, name, kind)
    table.java("create_branch", name="b")
    branch = SharedTable(judge, name, branch="b")
    for _ in range(2):
        table.java("write", rows=kind.rows(rng, 4))
        branch.java("write", rows=kind.rows(rng, 30))
    table.java("alter_table", changes=[{"op": "set_option", "key": "scan.fallback-branch", "value": "b"}])
    fields, ours = table.fields_at(), table.ours()
    plans = table.java("stream_read", options={})["plans"]
    theirs = [
        [normal(v, f.type) for v, f in zip(row[1:], fields, strict=True)] for plan in plans for row in plan["rows"]
    ]
    assert len(theirs) == 8
    streamed = pa.Table.from_batches(ours.stream().to_batches())
    same(rows(streamed, fields), theirs, "streamed")
    same(rows(ours.changes(0).drop_columns(["rowkind"]), fields), theirs, "all changes")
