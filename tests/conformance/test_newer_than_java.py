"""Cases where Java 1.4.2 is wrong, most of them corrected in later versions: each test shows what both engines do."""

import pytest

from paimon_core.schema.change import UpdateType
from tests.conformance.compare import same
from tests.conformance.shared_table import SharedTable

pytestmark = pytest.mark.java


@pytest.fixture
def create(judge, name):
    """Returns a function that creates a table of one bucket, keyed by its first column."""

    def created(fields, options, suffix=""):
        table = SharedTable(judge, name + suffix)
        table.java("create_table", fields=fields, primary_keys=[fields[0][0]], options={"bucket": "1", **options})
        return table

    return created


def rows_in_java(table, **arguments):
    return [row[1:] for row in table.java("read", **arguments)["rows"]]


def our_rows(table):
    return table.our_rows(table.fields_at())


@pytest.mark.parametrize("writer", ["we", "java"])
def test_descending_sequence_in_one_commit(create, writer):
    """Java 2.0.0 sorts its write buffer in the direction of the option, 1.4.2 always ascending."""
    options = {"sequence.field": "s", "sequence.field.sort-order": "descending"}
    table = create([["k", "INT NOT NULL"], ["s", "INT"]], options)
    changes = [["+I", {"k": 1, "s": s}] for s in (5, 3, 9)]
    if writer == "we":
        table.we_write(changes)
    else:
        table.java("write", rows=changes)
    same(table.agree(), [[1, 3 if writer == "we" else 9]], f"{table.name}: the smallest sequence, or Java's")


def test_timestamps_before_1970_in_columns_of_coarser_types(create):
    """Java's master rounds down since August and September 2026, and the time of the day is positive since 2.0.0."""
    table = create([["k", "INT NOT NULL"], *([f"c{i}", "TIMESTAMP(6)"] for i in range(6))], {})
    moment = "1969-12-31T23:59:58.500001000"
    table.we_write([["+I", {"k": 1, **{f"c{i}": moment for i in range(6)}}]])
    targets = ("DATE", "TIMESTAMP(0)", "TIMESTAMP(2)", "BIGINT", "TIME(3)", "TIMESTAMP(3)")
    table.ours().alter([UpdateType(f"c{i}", target) for i, target in enumerate(targets)])
    cut = "1969-12-31T23:59:58.500000000"
    rounded = ["1969-12-31", "1969-12-31T23:59:58.000000000", cut, -2, "23:59:58.500", cut]
    same(our_rows(table), [[1, *rounded]], f"{table.name}: as we read it")
    up = ["1970-01-01", "1969-12-31T23:59:59.000000000", cut, -1]
    found = rows_in_java(table, projection=["k", "c0", "c1", "c2", "c3"])
    same(found, [[1, *up]], f"{table.name}: as Java 1.4.2 reads it")


def test_nested_update_at_its_limit(create):
    """Java 2.0.0 limits new keys only."""
    limited = {"fields.v.aggregate-function": "nested_update", "fields.v.nested-key": "n", "fields.v.count-limit": "2"}
    fields = [["k", "INT NOT NULL"], ["v", "ARRAY<ROW<n INT, x INT>>"]]
    table = create(fields, {"merge-engine": "aggregation", "write-only": "true", **limited})
    for rows in ([(1, 1), (2, 2)], [(3, 3), (1, 4)]):
        table.we_write([["+I", {"k": 1, "v": [{"n": n, "x": x} for n, x in rows]}]])

    def by_key(found):
        return [[k, sorted(v, key=lambda row: row["n"])] for k, v in found]

    same(by_key(our_rows(table)), [[1, [{"n": 1, "x": 4}, {"n": 2, "x": 2}]]], f"{table.name}: as we read it")
    same(by_key(rows_in_java(table)), [[1, [{"n": 1, "x": 1}, {"n": 2, "x": 2}]]], f"{table.name}: as Java 1.4.2 does")


@pytest.mark.parametrize("compacts", [False, True], ids=["uncompacted", "compacted"])
@pytest.mark.parametrize("engine", ["partial-update", "aggregation"])
def test_removed_record_inserted_again(create, engine, compacts):
    """No version of Java gives the same result with and without a compaction between."""
    options = {"merge-engine": engine, f"{engine}.remove-record-on-delete": "true", "write-only": "true"}
    if engine == "aggregation":
        options["fields.n.aggregate-function"] = "sum"
    table = create([["k", "INT NOT NULL"], ["v", "STRING"], ["n", "INT"]], options)
    for kind, v, n in (("+I", "a", 10), ("-D", "a", 10), ("+I", None, 11)):
        table.we_write([[kind, {"k": 1, "v": v, "n": n}]])
        if compacts:
            table.ours().with_options({"write-only": "false"}).compact(full=True)
    right, kept = [1, None, 11], [1, "a", 11 if engine == "partial-update" else 21]
    same(our_rows(table), [right], f"{table.name}: as we read it")
    same(rows_in_java(table), [right if compacts else kept], f"{table.name}: as Java 1.4.2 reads it")
