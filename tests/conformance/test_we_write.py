"""We write, the Java engine reads; then it compacts and writes on, and we after it."""

import math

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from paimon_core.format import parquet_writer
from paimon_core.schema.schema import Schema
from paimon_core.table import Table
from paimon_core.types.arrow import arrow_schema
from paimon_core.types.datatype import AtomicType
from paimon_core.write.table_write import WriterRole
from tests.conformance.compare import same
from tests.conformance.kinds import APPEND, CODECS, FORMATS, KINDS, LAYOUTS, MATRIX
from tests.conformance.shared_table import SharedTable, created_by_java
from tests.conformance.test_java_writes import check_questions
from tests.conformance.values import normal
from tests.conformance.values import rows as written_rows
from tests.support.draws import rounds

pytestmark = pytest.mark.java
_MADE = ((0, "parquet"), (5, "parquet"), (0, "orc"), (5, "avro"))


def created_by_us(judge, name, kind, **options):
    """A new table of a kind, made by our engine."""
    table = SharedTable(judge, name)
    judge.call("create_database", database=name.split(".")[0])
    settings = {"file.format": kind.file_format, **kind.options, **options}
    Table.create(
        table.path,
        Schema(
            arrow_schema(kind.fields),
            primary_keys=list(kind.primary_keys),
            partition_keys=list(kind.partition_keys),
            options=settings,
        ),
    )
    return table


def both_write(table, kind, rng):
    """Turns of both engines, agreement after each."""
    for _ in range(3):
        table.we_write(kind.rows(rng, 30))
        table.agree()
    table.java("compact", kind="minor")
    table.we_write(kind.rows(rng, 30))
    table.agree()
    table.java("write", rows=kind.rows(rng, 30))
    table.we_write(kind.rows(rng, 30))
    table.agree()
    table.java("compact", kind="full")
    table.agree()
    table.we_write(kind.rows(rng, 10))
    check_questions(table, table.agree_everywhere(), rng, filters=4, projections=2)


@pytest.mark.parametrize("kind", MATRIX)
@pytest.mark.cases(1)
def test_java_reads_every_kind_of_table(judge, name, rng, kind):
    both_write(created_by_java(judge, name, kind), kind, rng)


@pytest.mark.parametrize("kind", LAYOUTS, ids=lambda kind: kind.name)
@pytest.mark.cases(1)
def test_java_reads_every_layout(judge, name, rng, kind):
    both_write(created_by_java(judge, name, kind), kind, rng)


@pytest.mark.parametrize(
    ("kind", "file_format"),
    [
        pytest.param(KINDS[i], f, id=f"{KINDS[i].name}-{f}", marks=() if (i, f) in _MADE else pytest.mark.slow)
        for i in (0, 5)
        for f in FORMATS
    ],
)
@pytest.mark.more
def test_tables_we_make(judge, name, rng, kind, file_format):
    """Schemas of ours mean the same to Java, whichever types they have."""
    kind = kind.of_format(file_format)
    table = created_by_us(judge, name, kind)
    described = table.java("describe")
    ours = table.ours().schema
    same(
        [[f["id"], f["name"], f["type"].replace("`", "")] for f in described["fields"]],
        [[f.id, f.name, str(f.type).replace("`", "")] for f in ours.fields],
        f"{name}: columns",
    )
    assert described["highest_field_id"] == ours.highest_field_id
    assert (described["primary_keys"], described["partition_keys"]) == (
        list(ours.primary_keys),
        list(ours.partition_keys),
    )
    both_write(table, kind, rng)


@pytest.mark.cases(9)
@pytest.mark.parametrize(("file_format", "codec"), [(f, c) for f, codecs in CODECS.items() for c in codecs])
def test_java_reads_each_codec(judge, name, rng, file_format, codec):
    kind = APPEND.of_format(file_format)
    table = created_by_java(judge, name, kind, options={"file.format": file_format, "file.compression": codec})
    table.we_write(kind.rows(rng, 50))
    table.agree()


def test_commit_returns_its_input_rows(judge, name, rng):
    """Our rows are read back unchanged, by Java too."""
    table = created_by_java(judge, name, APPEND)
    data = table.arrow([row for _, row in APPEND.rows(rng, 200)])
    table.ours().write(data)
    same(table.agree(), written_rows(data, table.fields_at()), f"{name}: what was written")


def test_overwrites_leave_same_rows_in_both_engines(judge, name, rng):
    """Whole table, one partition, dynamic, truncate and drop: what is left is what the command says."""
    fields = [["p", "STRING"], ["q", "INT"], ["k", "INT"]]
    table = SharedTable(judge, name)
    table.java("create_table", fields=fields, partition_keys=["p", "q"])

    def data(*found):
        return table.arrow([dict(zip("pqk", row, strict=True)) for row in found])

    def check(*expected):
        same(table.agree(), [list(row) for row in expected], f"{name}: rows left")

    table.ours().write(data(("a", 1, 1), ("a", 2, 2), ("b", 1, 3), (None, 1, 4)))
    table.ours().overwrite(data(("a", 1, 5)), {"p": "a"})
    check(("a", 1, 5), ("b", 1, 3), (None, 1, 4))
    table.ours().overwrite(data(("b", 1, 6), (None, 1, 7)), "dynamic")
    check(("a", 1, 5), ("b", 1, 6), (None, 1, 7))
    static = {"dynamic-partition-overwrite": "false"}
    table.java("write", rows=[{"p": "b", "q": 9, "k": 8}], overwrite={"p": "b"}, options=static)
    check(("a", 1, 5), ("b", 9, 8), (None, 1, 7))
    table.ours().drop_partitions([{"p": None}])
    table.agree()
    table.ours().overwrite(data(("z", 0, 0)))
    check(("z", 0, 0))
    table.ours().truncate()
    check()
    table.java("write", rows=[{"p": "a", "q": 1, "k": 1}])
    check(("a", 1, 1))
    table.agree_everywhere()


def test_defaults_are_filled_as_by_java(judge, name):
    """Columns left out take the default of the schema, as Java fills them."""
    table = SharedTable(judge, name)
    fields = [
        {"name": "k", "type": "INT NOT NULL"},
        {"name": "n", "type": "INT", "default": "7"},
        {"name": "s", "type": "STRING", "default": "x y"},
        {"name": "d", "type": "DATE", "default": "2024-01-31"},
        {"name": "m", "type": "DECIMAL(5, 2)", "default": "1.5"},
        {"name": "b", "type": "BOOLEAN", "default": "true"},
    ]
    table.java("create_table", fields=fields, primary_keys=["k"], options={"bucket": "1"})
    table.java("write", rows=[{"k": 1}, {"k": 2, "n": 1}])
    table.ours().write(pa.table({"k": pa.array([3], pa.int32())}))
    table.ours().write(pa.table({"k": pa.array([4], pa.int32()), "n": pa.array([None], pa.int32())}))
    rows = {row[0]: row[1:] for row in table.agree()}
    assert rows[1] == rows[3] == rows[4] == [7, "x y", "2024-01-31", "1.50", True]


@pytest.mark.more
def test_commits_of_engines(judge, name, rng):
    """Several writers' messages in one commit, and many small commits with manifests merged in between."""
    kind = LAYOUTS[13]
    assert kind.name == "manifest-small"
    table = created_by_java(judge, name, kind)
    for turn in range(25):
        ours = table.ours()
        messages = []
        for part in range(2):
            with ours.writer(role=WriterRole(part, 2)) as writer:
                writer.write(table.arrow([row for _, row in kind.rows(rng, 5)]))
                messages += writer.prepare_commit()
        ours.committer().commit(messages)
        if turn % 6 == 5:
            table.java("write", rows=kind.rows(rng, 5))
            table.java("compact_manifests")
    table.agree_everywhere()


def test_statistics_let_java_skip_nothing(judge, name, rng):
    """Java prunes by our statistics: every value we wrote is found by equality."""
    table = created_by_java(judge, name, APPEND, options={"target-file-size": "1 b"})
    for _ in range(3):
        table.we_write(APPEND.rows(rng, 20))
    fields = table.fields_at()
    everything = table.agree()
    for at, field in enumerate(fields):
        if field.name == "k" or not isinstance(field.type, AtomicType):
            continue
        for value in [row[at] for row in rng.sample(everything, 3)]:
            if value in ("NaN", "-0.0") or value == 0:
                continue  # no two engines agree on what equals these
            found = table.java("read", equals={field.name: value}, projection=["k", field.name])["rows"]
            expected = [[row[1], row[at]] for row in everything if row[at] == value]
            theirs = [[row[1], normal(row[2], field.type)] for row in found]
            same(theirs, expected, f"{name}: Java where {field.name} = {value!r}")


@pytest.mark.drawn
@pytest.mark.more
def test_page_indexes_let_java_skip_nothing(judge, name, rng, monkeypatch):
    """Java skips pages by our indexes: every value we wrote is found by equality, be it in few pages or all over."""
    monkeypatch.setattr(parquet_writer, "_PAGE_BYTES", 1)  # a page ends whenever the encoder looks
    table = created_by_java(judge, name, APPEND)
    drawn = table.arrow([row for _, row in APPEND.rows(rng, 2_500)])
    atomic = [f for f in table.fields_at() if isinstance(f.type, AtomicType) and f.type.root != "VARIANT"]
    ascending = {f.name: drawn[f.name].take(pc.array_sort_indices(drawn[f.name])) for f in atomic}
    columns = [ascending.get(column, drawn[column]) for column in drawn.column_names]
    table.ours().write(pa.Table.from_arrays(columns, schema=drawn.schema))
    everything = table.our_rows(table.fields_at())
    for at, field in ((at, f) for at, f in enumerate(table.fields_at()) if f in atomic):
        for value in [row[at] for row in rng.sample(everything, rounds(10, 2))]:
            if value in ("NaN", "-0.0") or value == 0:
                continue  # no two engines agree on what equals these
            found = table.java("read", equals={field.name: value}, projection=[field.name])["rows"]
            theirs = [normal(row[1], field.type) for row in found]
            expected = [row[at] for row in everything if row[at] == value]
            assert len(theirs) == len(expected), f"{name}: Java where {field.name} = {value!r}"
            same(theirs, expected, f"{name}: Java where {field.name} = {value!r}")


def test_bounds_let_java_skip_no_nan(judge, name, monkeypatch):
    """NaN is the largest number to Java: no bound of ours, of files, row groups or pages, hides it."""
    monkeypatch.setattr(parquet_writer, "_PAGE_BYTES", 1)
    table = SharedTable(judge, name)
    table.java("create_table", fields=[["k", "INT"], ["v", "DOUBLE"], ["f", "FLOAT"], ["c", "DOUBLE"]])
    spread = pa.array([math.nan if k in (10, 2_500, 4_990) else k / 100 for k in range(5_000)])
    same_but_one = pa.array([math.nan if k == 100 else 5.0 for k in range(5_000)])
    rows = pa.table({"k": range(5_000), "v": spread, "f": spread, "c": same_but_one})
    table.ours().write(rows.cast(arrow_schema(table.fields_at())))
    for column, test, value, expected in (
        *((c, op, v, n) for c in "vf" for op, v, n in ((">", 40.0, 1_001), (">=", 80.0, 3), ("=", "NaN", 3))),
        ("v", "<", 0.5, 49),
        ("c", "!=", 5.0, 1),
        ("c", ">", 5.0, 1),
        ("c", ">=", "NaN", 1),
    ):
        actual = table.java("read", where=[[column, test, value]], projection=["k", column])["rows"]
        assert len(actual) == expected, (column, test, value)


@pytest.mark.parametrize("index", ["bloom-filter", "bitmap", "range-bitmap"])
def test_file_indexes_let_java_find_nan(judge, name, index):
    table = SharedTable(judge, name)
    options = {f"file-index.{index}.columns": "v,f"}
    table.java("create_table", fields=[["k", "INT"], ["v", "DOUBLE"], ["f", "FLOAT"]], options=options)
    values = [math.nan, 1.5, -2.5, math.inf, 0.0, None]
    rows = pa.table({"k": range(6), "v": values, "f": values})
    table.ours().write(rows.cast(arrow_schema(table.fields_at())))
    for test, value, expected in (
        ("=", "NaN", [0]),
        (">=", "NaN", [0]),
        (">", 1.0, [0, 1, 3]),
        ("<", 1.0, [2, 4]),
        ("!=", 1.5, [0, 2, 3, 4]),
    ):
        for column in "vf":
            actual = table.java("read", where=[[column, test, value]], projection=["k", column])["rows"]
            assert [row[1] for row in actual] == expected, (column, test, value)
