"""Append tables: what we compact and sort Java reads and goes on from; both pick the same files; `$ro` is the same."""

import pytest

from paimon_core.schema.change import AddColumn, DropColumn
from paimon_core.types.datatype import is_nested
from paimon_core.types.parse import parse_type
from tests.conformance.compare import same
from tests.conformance.kinds import APPEND, FORMATS, KINDS, Kind, dotted, keyed
from tests.conformance.shared_table import SharedTable, created_by_java

pytestmark = pytest.mark.java

BUCKETS = Kind("append-buckets", {"bucket": "2", "bucket-key": "k", "write-only": "true"})
PARTITIONS = Kind("append-partitions", partition_keys=("p",))
PLAIN = Kind("append-plain")


def row_counts(table):
    """Rows of every live file."""
    return sorted([f.row_count] for split in table.ours().scan().plan().splits for f in split.files)


def small_files(table, kind, rng, count=7, rows=20):
    for _ in range(count):
        table.we_write(kind.rows(rng, rows))


@pytest.mark.parametrize(
    ("file_format", "kind"),
    [
        pytest.param(f, kind, id=f"{f}-{kind.name}", marks=() if f == "parquet" or i == j else pytest.mark.slow)
        for j, f in enumerate(FORMATS)
        for i, kind in enumerate((PLAIN, PARTITIONS, BUCKETS))
    ],
)
@pytest.mark.more
def test_both_engines_compact_in_turns(judge, name, rng, kind, file_format):
    """We compact, Java reads, writes and compacts, we read and compact again."""
    kind = kind.of_format(file_format)
    table = created_by_java(judge, name, kind)
    for _ in range(2):
        small_files(table, kind, rng)
        before = table.agree()
        assert table.ours().compact().commit_kind == "COMPACT"
        same(table.agree(), before, f"{name}: compaction changes no row")
        table.java("write", rows=kind.rows(rng, 20))
        table.java("compact", kind="minor")
        table.agree()
        table.we_write(kind.rows(rng, 5))
        table.ours().compact(full=True)
        table.java("compact", kind="full")
        table.agree()
    table.agree_everywhere()


@pytest.mark.cases(4)
@pytest.mark.parametrize("full", [False, True], ids=["minor", "full"])
@pytest.mark.parametrize("count", [3, 5, *(pytest.param(count, marks=pytest.mark.slow) for count in (4, 7))])
@pytest.mark.parametrize("kind", [PLAIN, BUCKETS], ids=lambda kind: kind.name)
def test_both_engines_pick_same_files(judge, name, rng, kind, count, full):
    """Of two tables of equal files one is compacted by us, the other by Java. We differ where the plan says so: full
    takes what is left over in a table without buckets, and neighbours beyond the fifth join a group at once."""
    ours = created_by_java(judge, name + "_ours", kind)
    theirs = created_by_java(judge, name + "_theirs", kind)
    for _ in range(count):
        rows = kind.rows(rng, 30)
        ours.we_write(rows)
        theirs.we_write(rows)
    ours.ours().compact(full=full)
    theirs.java("compact", kind="full" if full else "minor")
    if (kind is PLAIN and full and count < 5) or (kind is BUCKETS and not full and count > 5):
        assert len(row_counts(ours)) < len(row_counts(theirs))
    else:
        same(row_counts(ours), row_counts(theirs), f"{name}: files")
    same(ours.agree(), theirs.agree(), f"{name}: rows")


def test_writers_of_buckets_compact_same_files(judge, name, rng):
    """Inline compaction of both engines on one table; the order of a bucket's rows is the order of writing."""
    table = SharedTable(judge, name)
    options = {"bucket": "1", "bucket-key": "k"}
    table.java("create_table", fields=[["k", "INT"], ["n", "INT"]], options=options)
    for n in range(0, 24, 2):
        table.ours().write(table.arrow([{"k": rng.randrange(9), "n": n}]))
        table.java("write", rows=[{"k": rng.randrange(9), "n": n + 1}])
        assert len(row_counts(table)) <= 6
    assert table.ours().to_arrow().column("n").to_pylist() == list(range(24))
    assert [row[2] for row in table.java("read")["rows"]] == list(range(24))
    table.agree_everywhere()


STRATEGIES = ("order", "zorder", "hilbert")
SORTINGS = [
    pytest.param(f, s, id=f"{f}-{s}", marks=() if s == STRATEGIES[FORMATS.index(f)] else pytest.mark.slow)
    for f in FORMATS
    for s in STRATEGIES
]


@pytest.mark.parametrize(("file_format", "strategy"), SORTINGS)
@pytest.mark.more
def test_java_reads_sorted_tables(judge, name, rng, strategy, file_format):
    """By every type of column; Java finds by our statistics what it found before, and goes on."""
    kind = APPEND.of_format(file_format)
    table = created_by_java(judge, name, kind, options={"file.format": file_format, "target-file-size": "8 kb"})
    ordered = [f.name for f in kind.fields if not is_nested(f.type)]
    for _ in range(3):
        small_files(table, kind, rng, 2, 60)
        before = table.agree()
        columns = rng.sample(ordered, rng.randint(1, 5))
        assert table.ours().compact(order_by=columns, order_strategy=strategy).commit_kind == "COMPACT"
        same(table.agree(), before, f"{name}: sorted by {columns}")
        found = table.java("read", equals={"s1": 3}, projection=["k", "s1"])["rows"]
        at = [f.name for f in table.fields_at()].index("s1")
        same(
            [row[2] for row in found],
            [row[at] for row in before if row[at] == 3],
            f"{name}: Java where s1 = 3 after sorting by {columns}",
        )
    table.java("compact", kind="full")
    table.java("write", rows=kind.rows(rng, 10))
    table.agree_everywhere()


def test_after_schema_changes(judge, name, rng):
    """Files of several schemas become files of the newest."""
    table = SharedTable(judge, name)
    table.java("create_table", fields=[["k", "INT"], ["a", "INT"], ["b", "STRING"]])
    table.java("write", rows=[{"k": 1, "a": 1, "b": "x"}])
    table.ours().alter([AddColumn("c", parse_type("DOUBLE")), DropColumn("b")])
    table.java("write", rows=[{"k": 2, "a": 2, "c": 0.5}])
    table.java("alter_table", changes=[{"op": "update_type", "name": "a", "type": "BIGINT"}])
    table.java("write", rows=[{"k": 3, "a": 1 << 40, "c": None}])
    before = table.agree()
    table.ours().compact(full=True)
    same(table.agree(), before, f"{name}: small files")
    table.ours().compact(order_by=["c", "a"], order_strategy="zorder")
    same(table.agree_everywhere(), before, f"{name}: sorted")


@pytest.mark.parametrize("kind", [KINDS[3], dotted("levels", {"num-levels": "3"}, keyed("k")), APPEND])
@pytest.mark.cases(1)
def test_read_optimized_view_agrees_with_java(judge, name, rng, kind):
    """`$ro` shows the same rows in both engines, after compactions by either."""
    table = created_by_java(judge, name, kind)
    fields = table.fields_at()
    for turn in range(4):
        table.we_write(kind.rows(rng, 30))
        if turn % 2:
            table.java("compact", kind="full")
        else:
            table.ours().compact(full=True)
        table.java("write", rows=kind.rows(rng, 10))
        ro = SharedTable(judge, name + "$ro")
        same(ro.our_rows(fields), ro.java_rows(fields), f"{name}$ro")
    table.agree_everywhere()
