"""File indexes: the bytes Java writes and ours are the same, each reads the other's, and rows come out as without."""

import pyarrow as pa
import pytest

from paimon_core.datafile.reader import read_file
from paimon_core.fileindex.indexed_columns import FileIndexes, indexed_columns
from paimon_core.fileio.fileio import join
from paimon_core.scan.entries import live_entries
from paimon_core.schema.change import SetOption
from paimon_core.types.parse import parse_type
from tests.conformance.compare import same
from tests.conformance.domain import value
from tests.conformance.shared_table import SharedTable
from tests.conformance.test_java_writes import check_questions
from tests.support.index_files import unpack

pytestmark = pytest.mark.java
TIMES = ("TIMESTAMP(0)", "TIMESTAMP(6)", "TIMESTAMP(9)", "TIMESTAMP(6) WITH LOCAL TIME ZONE")
INTEGERS = ("TINYINT", "SMALLINT", "INT", "BIGINT", "DATE", "TIME(3)")
TYPES = {
    "bloom-filter": (*INTEGERS, *TIMES, "FLOAT", "DOUBLE", "STRING", "CHAR(5)", "BYTES", "BINARY(4)"),
    "bitmap": (*INTEGERS, *TIMES, "FLOAT", "DOUBLE", "STRING", "CHAR(5)", "BOOLEAN"),
    "bsi": (*INTEGERS, *TIMES, "DECIMAL(4, 2)", "DECIMAL(18, 5)"),
    "range-bitmap": (
        *INTEGERS, "TIMESTAMP(0)", "TIMESTAMP(6)", "FLOAT", "DOUBLE", "STRING", "BOOLEAN", "DECIMAL(18, 5)",
    ),
}  # fmt: skip
SETTINGS = {
    "bloom-filter": ({"items": "700"}, {"items": "50", "fpp": "0.01"}),
    "bitmap": ({}, {"version": "1"}, {"index-block-size": "80 b"}),
    "bsi": ({},),
    "range-bitmap": ({}, {"chunk-size": "30 b"}),
}
CASES = [(kind, settings) for kind in TYPES for settings in SETTINGS[kind]]


def columns(kind):
    return [["k", "INT NOT NULL"], *([f"c{i}", t] for i, t in enumerate(TYPES[kind])), ["m", "MAP<STRING, INT>"]]


def options(kind, settings, threshold="1 b"):
    names = [*(f"c{i}" for i in range(len(TYPES[kind]))), "m[a]", "m[none]"]
    said = {f"file-index.{kind}.{n.partition('[')[0]}.{key}": v for n in names for key, v in settings.items()}
    return {
        f"file-index.{kind}.columns": ",".join(names), "file-index.in-manifest-threshold": threshold, **said
    }  # fmt: skip


def random_rows(rng, kind, count, few=False):
    """Rows of the columns; the least BIGINT left out, whose opposite Java's bit slices do not have."""
    types = [parse_type(t) for _, t in columns(kind)]
    pools = [[value(rng, t) for _ in range(6 if few else count)] for t in types]
    names = [n for n, _ in columns(kind)]
    rows = [{n: rng.choice(pool) for n, pool in zip(names, pools, strict=True)} for _ in range(count)]
    for row in rows:
        keys = rng.sample(["a", "b", "é"], rng.randrange(3))
        row |= {
            "k": rng.randrange(1000),
            "m": rng.choice([None, sorted([key, rng.choice([None, 1, 2, 300])] for key in keys)]),
        }
        row |= {n: v + 1 for n, v in row.items() if v == -(2**63)}
    return rows


def live(table):
    store = table.store
    return [(e, join(store.bucket_path(e.bucket_ref), "")) for e in live_entries(store, table.snapshot()).live]


def stored_indexes(table):
    """By data file the bytes of its indexes."""
    found = {}
    for entry, directory in live(table):
        beside = [name for name in entry.file.extra_files if name.endswith(".index")]
        assert len(beside) + (entry.file.embedded_index is not None) == 1
        found[entry.file.file_name] = (
            table.store.io.read(join(directory, beside[0])) if beside else entry.file.embedded_index
        )
    return found


def rows_of_files(table):
    store = table.store
    for entry, _ in live(table):
        batches = read_file(store, entry.bucket_ref, entry.file, store.schema.fields)
        yield entry.file.file_name, pa.Table.from_batches(batches)


def bodies(container):
    """[column, kind, bytes] of every index."""
    found = unpack(container, "an index")
    return [[column, kind, body.hex()] for column, kinds in found.items() for kind, body in kinds.items()]


@pytest.mark.parametrize(("kind", "settings"), CASES)
@pytest.mark.parametrize("few", [pytest.param(True, marks=pytest.mark.slow), False], ids=["few-values", "many-values"])
def test_bytes_equal_bytes_of_java(judge, name, rng, kind, settings, few):
    table = SharedTable(judge, name)
    table.java("create_table", fields=columns(kind), options=options(kind, settings))
    for count in (1, 400):
        table.java("write", rows=[["+I", row] for row in random_rows(rng, kind, count, few)])
    ours = table.ours()
    theirs = stored_indexes(ours)
    assert len(theirs) == 2
    for file, rows in rows_of_files(ours):
        made = FileIndexes(indexed_columns(ours.schema.options, ours.schema.fields))
        made.add(rows)
        mine = made.finish()
        same(bodies(mine), bodies(theirs[file]), f"{name}: indexes of {file}")
        assert mine == theirs[file]


def kind_of(index, *, keyed_table=False, threshold="1 b"):
    """A kind of table with this index on every column it takes, and on keys of a map."""
    base = [["k", "INT NOT NULL"], *columns(index)[1:]]
    return {
        "fields": base,
        "primary_keys": ["k"] if keyed_table else [],
        "options": {
            **options(index, SETTINGS[index][0], threshold),
            "metadata.stats-mode": "none",
            **({"bucket": "2"} if keyed_table else {}),
        },
    }


def asked_of_java(table, rows, rng, turns=6):
    """Java finds, with the help of the indexes, every row that has a value; it may show more, for others to filter."""
    names = [f.name for f in table.ours().schema.fields if f.name != "m"]
    for _ in range(turns):
        at = rng.randrange(1, len(names))
        wanted = rng.choice([row[at] for row in rows] + [None])
        if wanted is None or "NaN" in str(wanted) or wanted in (0.0, "-0.0"):
            continue  # Java distinguishes the zeros, and the judge has no NaN literal
        expected = [row[0] for row in rows if row[at] == wanted]
        answer = table.java("read", equals={names[at]: wanted}, projection=["k", names[at]])["rows"]
        same(sorted(set(expected) - {row[1] for row in answer}), [], f"{table.name}: {names[at]} = {wanted}")


@pytest.mark.parametrize("index", TYPES)
@pytest.mark.parametrize(
    ("keys", "threshold"),
    [
        pytest.param(False, "1 b", id="append-beside"),
        pytest.param(True, "1 mb", id="keys-embedded"),
        pytest.param(False, "1 mb", id="append-embedded", marks=pytest.mark.slow),
        pytest.param(True, "1 b", id="keys-beside", marks=pytest.mark.slow),
    ],
)
@pytest.mark.cases(3)
def test_each_reads_by_the_indexes_of_the_other(judge, name, rng, index, keys, threshold):
    table = SharedTable(judge, name)
    table.java("create_table", **kind_of(index, keyed_table=keys, threshold=threshold))
    for turn in range(4):
        changes = [["+I", row] for row in random_rows(rng, index, 40)]
        if turn % 2:
            table.we_write(changes)
        else:
            table.java("write", rows=changes)
        assert stored_indexes(table.ours())
    rows = table.agree()
    check_questions(table, rows, rng, filters=12, projections=1)
    asked_of_java(table, rows, rng)
    if keys:
        table.ours().compact(full=True)
    else:
        table.java("compact", kind="full")
    assert stored_indexes(table.ours())
    rows = table.agree()
    check_questions(table, rows, rng, filters=8, projections=0)
    asked_of_java(table, rows, rng)


@pytest.mark.parametrize("index", TYPES)
@pytest.mark.parametrize(
    ("keys", "threshold"),
    [
        pytest.param(False, "1 b", id="append-beside"),
        pytest.param(True, "1 mb", id="keys-embedded"),
        pytest.param(True, "1 b", id="keys-beside", marks=pytest.mark.slow),
    ],
)
@pytest.mark.cases(1)
def test_java_reads_by_the_indexes_that_old_files_were_given(judge, name, rng, index, keys, threshold):
    table, expected = SharedTable(judge, name), kind_of(index, keyed_table=keys, threshold=threshold)
    requested = {key: value for key, value in expected["options"].items() if key.startswith("file-index.")}
    rest = {key: value for key, value in expected["options"].items() if key not in requested}
    table.java("create_table", **{**expected, "options": {**rest, "write-only": "true"}})
    for turn in range(4):
        changes = [["+I", row] for row in random_rows(rng, index, 40)]
        if turn % 2:
            table.we_write(changes)
        else:
            table.java("write", rows=changes)
    before = table.agree()
    table.ours().alter([SetOption(key, value) for key, value in requested.items()])
    assert table.ours().maintenance.rewrite_file_index().commit_kind == "COMPACT"
    actual = stored_indexes(table.ours())
    assert len(actual) == len(live(table.ours())) >= 4
    for file, rows in rows_of_files(table.ours()):
        made = FileIndexes(indexed_columns(table.ours().schema.options, table.ours().schema.fields))
        made.add(rows)
        assert made.finish() == actual[file]
    same(table.agree(), before, f"{name}: new indexes change no row")
    check_questions(table, before, rng, filters=8, projections=0)
    asked_of_java(table, before, rng)
    table.java("write", rows=[["+I", row] for row in random_rows(rng, index, 40)])
    table.java("compact", kind="full")
    table.agree_everywhere()
    table.ours().maintenance.expire_snapshots(retain_max=1, retain_min=1)
    check_questions(table, table.agree(), rng, filters=4, projections=0)
