"""The examples of docs/spec/behaviour.md, run on the engine: a table of the page that is wrong fails here."""

import ast
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from paimon_core.errors import CommitConflictError, InvalidInputError
from paimon_core.format.stats import StatsCollector, parse_mode
from paimon_core.lsm.append_compaction import AppendCompactionPolicy
from paimon_core.lsm.intervals import sections
from paimon_core.lsm.levels import Levels
from paimon_core.lsm.universal import UniversalCompaction
from paimon_core.manifest.entry import ADD, ManifestEntry
from paimon_core.options.parse import duration, memory_size
from paimon_core.row.binary_row import EMPTY_ROW
from paimon_core.row.bucket import buckets
from paimon_core.scan.split_plan import Packing, plan_splits
from paimon_core.schema.change import AddColumn, SetOption
from paimon_core.schema.schema import Schema
from paimon_core.snapshot.retention import Retention, first_retained
from paimon_core.table import Table
from paimon_core.types.arrow import to_arrow
from paimon_core.types.cast import can_cast, cast_array
from paimon_core.types.datatype import ROOTS, STRING, DataField
from paimon_core.types.parse import parse_type
from paimon_core.write.routing.bucket_assigner import BucketAssigner
from tests.support.manifests import KEY, data_file

PAGE = (Path(__file__).parents[2] / "docs" / "spec" / "behaviour.md").read_text()
HOUR, MIB = 3_600_000, 1 << 20
ROW = re.compile(r"([+-][IUD])\s?\(([^)]*)\)")


def rows_of(section, *columns):
    """The rows, as dicts, of the one table of a section whose first columns are these."""
    text = re.search(rf"^#+ {re.escape(section)} .*?(?=^#|\Z)", PAGE, re.MULTILINE | re.DOTALL)[0]
    tables = []
    for block in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        head, _, *lines = ([cell.strip() for cell in line[1:-1].split("|")] for line in block.splitlines())
        if head[: len(columns)] == list(columns):
            tables.append([dict(zip(head, line, strict=True)) for line in lines])
    (rows,) = tables
    return rows


def examples(section, *columns):
    return pytest.mark.parametrize("row", rows_of(section, *columns), ids=lambda row: " ".join(row.values())[:40])


def numbers(text):
    return [int(number) for number in re.findall(r"-?\d+", text)]


def settings(text):
    """Options written as `a` = `b`, `c` = `d`."""
    return dict(re.findall(r"`([^`]+)` = `([^`]+)`", text))


def changes_in(text):
    """Rows written as +I(1,a) -D(2,x)."""
    return [(kind, int(values.split(",")[0]), values.split(",")[1]) for kind, values in ROW.findall(text)]


@pytest.fixture
def make(tmp_path):
    """Makes tables of one bucket whose key is their first column; ``fields``: names and types."""

    def made(fields, options):
        columns = [DataField(-1, name, parse_type(kind)) for name, kind in fields.items()]
        place = str(tmp_path / f"table-{len(list(tmp_path.iterdir()))}")
        return Table.create(
            place, Schema(columns, primary_keys=[next(iter(fields))], options={"bucket": "1", **options})
        )

    return made


def commit(table, rows, identifier=None):
    """Rows that begin with their kind, in one commit."""
    kinds, *columns = zip(*rows, strict=True)
    arrays = [pa.array(values, field.type) for values, field in zip(columns, table.arrow_schema, strict=True)]
    with table.writer() as writer:
        writer.write(pa.table(arrays, names=table.arrow_schema.names), list(kinds))
        messages = writer.prepare_commit(identifier)
    return table.committer().commit(messages, identifier, started_from=writer.started_from)


def values_of(table):
    return [tuple(row.values()) for row in table.to_arrow().to_pylist()]


# ---- 1 options, 2 writing


@examples("1.1", "kind", "accepted text", "example")
def test_values_of_options(row):
    for text, count in re.findall(r"`(\d+ \w+)` = (\d+)", row["example"]):
        assert int(count) == (memory_size(text) if text.endswith("b") else duration(text).total_seconds())


def test_input_changelog_has_every_row(make):
    (row,) = rows_of("2.3", "written to one buffer")
    table = make({"k": "INT NOT NULL", "v": "STRING"}, {"changelog-producer": "input"})
    written = [
        (kind, int(key), value)
        for key, values in re.findall(r"k=(\d): ([^;]*)", row["written to one buffer"])
        for kind, value in re.findall(r"([+-]\w) (\w)", values)
    ]
    commit(table, written)
    shown, emitted = (
        [(kind, int(key), value) for key, kind, value in re.findall(r"\((\d), (\S+) (\w)\)", row[column])]
        for column in ("data file", "changelog file (input)")
    )
    assert [tuple(r.values()) for r in table.changes(0).to_pylist()] == emitted
    assert values_of(table) == [r[1:] for r in shown]


@examples("2.5", "mode", "values", "min", "max")
def test_bounds_of_statistics_modes(row):
    collector = StatsCollector([DataField(0, "v", STRING)], [parse_mode(row["mode"].strip("`"))])
    collector.update(pa.table({"v": re.findall(r"`([^`]*)`", row["values"])}))
    (actual,) = collector.result()
    assert (f"`{actual.min}`", f"`{actual.max}`") == (row["min"], row["max"])


# ---- 3 compaction


@examples("3.2", "files [min, max]", "sections", "runs")
def test_sections_of_overlapping_files(row):
    bounds = [numbers(pair) for pair in re.findall(r"\[[^]]*\]", row["files [min, max]"])]
    actual = sections([data_file(f"f{i}", *pair) for i, pair in enumerate(bounds)], KEY)
    assert (len(actual), [len(section) for section in actual]) == (int(row["sections"]), numbers(row["runs"]))


@examples("3.5", "#", "runs", "decided by", "unit")
def test_picks_of_universal_compaction(row):
    given = {name: int(value) for name, value in re.findall(r"(\w+)=(\d+)", row["runs"])}
    levels = [[] for _ in range(10)]
    count = 0
    for level, size, times in re.findall(r"L(\d):(\d+)(?: ×(\d))?", row["runs"]):
        for _ in range(int(times or 1)):
            file = data_file(f"f{count}", level=int(level), delete_row_count=0)
            levels[int(level)].append(replace(file, file_size=int(size)))
            count += 1
    forced = int(row["runs"].startswith("forced"))
    policy = UniversalCompaction(given.get("A", 200), 1, given.get("T", 5), force_level_0=forced)
    unit = policy.pick(Levels(tuple(map(tuple, levels)), given.get("Lmax", 5)), 0)
    if unit is None:
        assert row["unit"] == "none"
        return
    assert [f.file_name for f in unit.files] == [f"f{i}" for i in range(len(unit.files))]
    which = "all" if len(unit.files) == count else f"first {len(unit.files)}"
    assert row["unit"] == f"{which} → L{unit.output_level}"


@examples("3.6", "files in MiB (target 256, cost 4, min 5)")
def test_picks_of_append_compaction(row):
    picks = AppendCompactionPolicy(256 * MIB, int(256 * MIB * 0.7), 4 * MIB, 5)
    sizes = numbers(row["files in MiB (target 256, cost 4, min 5)"])
    files = [replace(data_file(f"f{i}"), file_size=size * MIB) for i, size in enumerate(sizes)]
    for full in (False, True):
        groups = picks.unordered(files, full=full)
        expected = row["groups, full" if full else "groups"]
        assert expected == (", ".join(f"{len(group)} files" for group in groups) or "none")


# ---- 4 merge engines


@examples("4.2", "rows", "options", "result")
@pytest.mark.parametrize("commits", ["one", "several"])
def test_rows_of_deduplicate(make, row, commits):
    table = make({"k": "INT NOT NULL", "v": "STRING", "s": "INT"}, settings(row["options"]))
    rows = []
    for text in row["rows"].split(", "):
        kind, value, sequence = re.fullmatch(r"(?:([+-]\w) )?(\w+)@(\w|∅)", text).groups()
        rows.append((kind or "+I", 1, value, None if sequence == "∅" else int(sequence)))
    for part in [rows] if commits == "one" else [[row] for row in rows]:
        commit(table, part)
    for _ in range(2):
        assert [value for _, value, _ in values_of(table)] == ([] if row["result"] == "no row" else [row["result"]])
        table.compact(full=True)


@pytest.mark.parametrize(
    ("columns", "groups"),
    [
        ("row (k,a,b,s)", {"fields.s.sequence-group": "a,b"}),
        ("row (f0..f6)", {"fields.f3.sequence-group": "f1,f2", "fields.f6.sequence-group": "f4,f5"}),
        ("row (k,name,qty,s)", {"fields.s.sequence-group": "name,qty", "fields.qty.aggregate-function": "sum"}),
    ],
)
def test_records_of_sequence_groups(make, columns, groups):
    names = [f"f{i}" for i in range(7)] if ".." in columns else columns[5:-1].split(",")
    kinds = {name: "STRING" if name == "name" else "INT" for name in names}
    options = {"merge-engine": "partial-update", **groups}

    def values(text):
        return [
            None if v == "∅" else v if kinds[n] == "STRING" else int(v)
            for n, v in zip(names, text.split(","), strict=True)
        ]

    written = []
    for row in rows_of("4.4", columns):
        ((kind, text),) = ROW.findall(row[columns])
        written.append((kind, *values(text)))
        table = make({**kinds, names[0]: "INT NOT NULL"}, options)
        commit(table, written)
        expected = re.search(r"\(([^)]*)\)", row["record afterwards"])[1]
        assert values_of(table) == [tuple(values(expected))], row


@examples("4.6", "function", "type", "options of the field", "rows")
def test_results_of_aggregate_functions(make, row):
    options = {"merge-engine": "aggregation", "fields.v.aggregate-function": row["function"].strip("`")}
    options |= {f"fields.v.{key}": value for key, value in settings(row["options of the field"]).items()}
    table = make({"k": "INT NOT NULL", "v": row["type"]}, options)
    rows = [(kind, 1, ast.literal_eval(text)) for kind, text in re.findall(r"([+-]\w) `([^`]*)`", row["rows"])]
    if row["result"] == "refused":
        with pytest.raises(InvalidInputError):
            commit(table, rows)
        return
    commit(table, [(kind, key, list(v.items()) if isinstance(v, dict) else v) for kind, key, v in rows])
    ((_, actual),) = values_of(table)
    expected = ast.literal_eval(row["result"].strip("`"))
    assert (dict(actual) if isinstance(expected, dict) else actual) == expected


# ---- 5 changelogs


@pytest.mark.parametrize("producer", ["none", "input", "lookup", "full-compaction"])
def test_changelogs_of_producers(make, producer):
    options = {"changelog-producer": producer}
    if producer == "full-compaction":
        options["full-compaction.delta-commits"] = "2"
    table, seen = make({"k": "INT NOT NULL", "v": "STRING"}, options), 0
    for number, row in enumerate(rows_of("5.1", "commit", "none", "input", "lookup"), 1):
        newest = commit(table, changes_in(row["commit"]), number).id
        actual = [tuple(r.values()) for r in table.changes(seen, newest).to_pylist()]
        assert actual == sorted(changes_in(row[producer]), key=lambda change: change[1]), row
        seen = newest


@pytest.mark.parametrize("producer", ["lookup", "full-compaction"])
def test_rows_that_stay_equal_are_left_out(make, producer):
    sentence = re.search(r"last commit gives nothing for lookup, and (.*) for full-compaction", PAGE)
    expected = {"lookup": [], "full-compaction": changes_in(sentence[1])}[producer]
    options = {"changelog-producer": producer, "changelog-producer.row-deduplicate": "true"}
    options |= {"full-compaction.delta-commits": "2"} if producer == "full-compaction" else {}
    table = make({"k": "INT NOT NULL", "v": "STRING"}, options)
    made = [commit(table, changes_in(row["commit"]), i) for i, row in enumerate(rows_of("5.1", "commit", "none"), 1)]
    assert [tuple(row.values()) for row in table.changes(made[-2].id).to_pylist()] == expected


def test_full_compaction_emits_changes(make):
    table = make({"k": "INT NOT NULL", "v": "STRING"}, {"changelog-producer": "full-compaction"})
    example = re.search(r"^Example: Lmax holds (.*)\. L0 holds (.*)\. The changelog is (.*)\.$", PAGE, re.MULTILINE)
    top, new, expected = example.groups()
    commit(table, [("+I", int(k), v) for k, v in re.findall(r"k(\d)=(\w)", top)])
    before = table.compact(full=True).id
    old = dict(re.findall(r"k(\d)=(\w)", top))
    commit(table, [(kind, int(k), v or old[k]) for k, kind, v in re.findall(r"k(\d) ([+-]\w)(?: (\w))?", new)])
    table.compact(full=True)
    actual = [tuple(row.values()) for row in table.changes(before).to_pylist()]
    assert actual == [(kind, int(k), v) for kind, k, v in re.findall(r"([+-]\w)\(k(\d),(\w)\)", expected)]


def test_deletion_vectors_mark_rows_that_compaction_replaces(make):
    """The example at the end of 5.6."""
    table = make({"k": "INT NOT NULL", "v": "STRING"}, {"deletion-vectors.enabled": "true"})

    def state():
        splits = table.scan().plan().splits
        marked = sum(vector.range.cardinality for split in splits for vector in split.vectors)
        shown = table.to_arrow(filter="k < 10").to_pylist()
        return sorted(f.level for split in splits for f in split.files), marked, [tuple(row.values()) for row in shown]

    commit(table, [("+I", 1, "a"), ("+I", 2, "b"), *(("+I", k, "filler") for k in range(10, 1000))])
    assert state() == ([5], 0, [(1, "a"), (2, "b")])
    commit(table, [("+I", 1, "c"), ("-D", 2, "b"), ("+I", 3, "d")])
    assert state() == ([4, 5], 2, [(1, "c"), (3, "d")])
    table.compact(full=True)
    assert state() == ([5], 0, [(1, "c"), (3, "d")])


# ---- 6 buckets


@examples("6.3", "merge engine", "key exists in another partition")
def test_keys_that_move_between_partitions(tmp_path, row):
    schema = pa.schema([("p", pa.int32()), ("k", pa.int32()), ("v", pa.string())])
    for engine in row["merge engine"].split(", "):
        table = Table.create(str(tmp_path / engine), Schema(schema, ["k"], ["p"], {"merge-engine": engine}))
        table.write(pa.table({"p": [1], "k": [7], "v": ["old"]}))
        table.write(pa.table({"p": [2], "k": [7], "v": ["new"]}))
        said = {
            "a -D goes to": (2, 7, "new"),
            "the row goes to the old": (1, 7, "new"),
            "the row is drop": (1, 7, "old"),
        }
        (expected,) = (v for text, v in said.items() if row["key exists in another partition"].startswith(text))
        assert values_of(table) == [expected]


@examples("6.1", "key", "n", "`default`", "`mod`", "`hive`")
def test_buckets_of_bucket_functions(row):
    kind, text = row["key"].split(" ", 1)
    keys = re.findall(r"`([^`]*)`", text) if kind == "STRING" else numbers(text)
    batch = pa.RecordBatch.from_arrays([pa.array(keys, to_arrow(parse_type(kind)))], ["k"])
    for function in ("default", "mod", "hive"):
        expected = row[f"`{function}`"]
        if expected == "refused":
            with pytest.raises(InvalidInputError):
                buckets(batch, int(row["n"]), function)
        else:
            assert buckets(batch, int(row["n"]), function).tolist() == numbers(expected)


@examples("6.2", "slots", "slot of the keys", "`max-buckets`")
def test_buckets_of_dynamic_assigner(row):
    slots, slot, most = (int(row[column]) for column in ("slots", "slot of the keys", "`max-buckets`"))
    rule = BucketAssigner(slots, 2, most if most > 0 else None)
    hashes = np.array([slot + slots * i for i in range(int(row["new keys"]))], np.int32)
    assert rule.assign_in_order(hashes, {}).tolist() == numbers(row["buckets"])


# ---- 7 commits


def test_counts_of_rows(tmp_path):
    schema = pa.schema([("p", pa.int32()), ("k", pa.int32()), ("v", pa.int32())])
    options = {"bucket": "1", "write-only": "true"}
    table = Table.create(str(tmp_path / "t"), Schema(schema, ["p", "k"], ["p"], options))
    table.write(pa.table({"p": [1, 2], "k": [1, 1], "v": [1, 1]}))
    table.write(pa.table({"p": [1], "k": [1], "v": [2]}))
    table.overwrite(pa.table({"p": [1], "k": [1], "v": [3]}), "dynamic")
    actual = [(s.commit_kind, s.total_record_count, s.delta_record_count) for s in table.snapshots()]
    expected = rows_of("7.3", "history of a partitioned PK table")
    assert actual == [(row["kind"], int(row["total"]), int(row["delta"])) for row in expected]


@examples("7.10", "parameters", "kept")
def test_snapshots_kept_by_expiry(row):
    def given(pattern, default):
        found = re.search(pattern, row["parameters"])
        return int(found[1]) if found else default

    now = 20 * HOUR + HOUR // 2
    old = now - given(r"retained (\d+) h", 1) * HOUR
    kept = Retention(given(r"min (\d+)", 10), given(r"max (\d+)", 2**31 - 1), old, given(r"limit (\d+)", 50))
    first = first_retained(kept, 1, 20, given(r"consumer at (\d+)", None), lambda ids: [i * HOUR for i in ids])
    assert first == numbers(row["kept"])[0]


def append_and_append(table, prepared):
    commit(table, [("+I", 1, "second")])
    return prepared([("+I", 1, "first")]), [(1, "first")]


def append_and_overwrite(table, prepared):
    finish = prepared([("+I", 1, "first")], later=True)
    table.overwrite(pa.table({"k": [2], "v": ["other"]}).cast(table.arrow_schema))
    return finish(), [(1, "first"), (2, "other")]


def overwrite_and_append(table, prepared):
    finish = prepared([("+I", 1, "first")], later=True, overwrite=True)
    commit(table, [("+I", 2, "other")])
    return finish(), [(1, "first")]


def append_and_rescale(table, prepared):
    finish = prepared([("+I", 1, "first")], later=True)
    wider = table.alter([SetOption("bucket", "8")])
    wider.overwrite(pa.table({"k": [2], "v": ["other"]}).cast(table.arrow_schema))
    return finish(), [(2, "other")]


def append_and_alter(table, prepared):
    finish = prepared([("+I", 1, "first")], later=True)
    table.alter([AddColumn("n", "INT")])
    result = finish()
    assert result.schema_id == 1
    assert {file.schema_id for split in table.scan().plan().splits for file in split.files} == {0}
    return result, [(0, "zero"), (1, "first")]


@pytest.mark.parametrize(
    ("letter", "meet"),
    [
        ("a", append_and_append),
        ("e", append_and_overwrite),
        ("f", overwrite_and_append),
        ("i", append_and_rescale),
        ("j", append_and_alter),
    ],
)
def test_results_of_concurrent_writers(make, letter, meet):
    (row,) = (row for row in rows_of("7.5", "#", "W1", "W2", "W1's result") if row["#"] == letter)
    table = make({"k": "INT NOT NULL", "v": "STRING"}, {"write-only": "true"})
    commit(table, [("+I", 0, "zero")])

    def prepared(rows, *, later=False, overwrite=False):
        with table.writer(overwrite=overwrite) as writer:
            kinds, *columns = zip(*rows, strict=True)
            writer.write(pa.table(columns, names=["k", "v"]).cast(table.arrow_schema), list(kinds))
            messages = writer.prepare_commit()

        def finish():
            committer = table.committer()
            try:
                if overwrite:
                    return committer.overwrite(messages)
                return committer.commit(messages, started_from=writer.started_from)
            except CommitConflictError as conflict:
                return conflict

        return finish if later else finish()

    outcome, expected = meet(table, prepared)
    assert isinstance(outcome, CommitConflictError) == row["W1's result"].startswith("conflict")
    shown = values_of(Table.open(table.path).with_options({}))
    assert [r[:2] for r in shown if letter != "a" or r[0]] == expected


# ---- 8 splits


@examples("8.2", "bucket: L5 file v in 1..10, L0 file v in 100..110", "kept")
def test_files_that_statistics_leave_out(make, row):
    table = make({"k": "INT NOT NULL", "v": "INT"}, {"write-only": "true"})
    commit(table, [("+I", i, i) for i in range(1, 11)])
    table.compact(full=True)
    commit(table, [("+I", i, 98 + i) for i in range(2, 13)])
    text = row["bucket: L5 file v in 1..10, L0 file v in 100..110"]
    kept = sorted(file.level for split in table.scan(filter=text).plan().splits for file in split.files)
    assert kept == {"both": [0, 5], "none": [], "the L5 file": [5]}[row["kept"]]


def splits(files, row, columns, keys):
    target, cost = numbers(row[columns])
    entries = [ManifestEntry(ADD, EMPTY_ROW, 0, 1, file) for file in files]
    found = plan_splits(1, entries, Packing(target, cost), keys)
    return [("+".join(str(f.file_size) for f in split.files), split.raw_convertible) for split in found]


@examples("8.3", "target, cost", "splits by size")
def test_splits_with_key(row):
    line = re.search(r"^Sections (.*):$", PAGE, re.MULTILINE)[1]
    files = [
        replace(data_file(f"f{size}", int(low), int(high), delete_row_count=0), file_size=int(size))
        for low, high, size in re.findall(r"\[(\d+),(\d+)\]:(\d+)", line)
    ]
    expected = [(re.match(r"[\d+]+", text)[0], "raw" in text) for text in row["splits by size"].split("; ")]
    assert splits(files, row, "target, cost", KEY) == expected


@examples("8.4", "sizes 11, 13, 46, 23, 4, 101: target, cost", "splits")
def test_splits_without_key(row):
    column = "sizes 11, 13, 46, 23, 4, 101: target, cost"
    files = [replace(data_file(f"f{size}"), file_size=size) for size in numbers(column)]
    row = {**row, column: row[column]}
    assert splits(files, row, column, None) == [(text, True) for text in row["splits"].split("; ")]


# ---- 9 streams


@pytest.mark.parametrize("producer", ["none", "lookup"])
def test_changes_of_stream(make, producer):
    table = make({"k": "INT NOT NULL", "v": "STRING"}, {"changelog-producer": producer})
    first, *others = rows_of("9.4", "commit", "producer none", "producer lookup")
    commit(table, changes_in(first["commit"]))
    stream = table.stream(changelog=True)

    def emitted():
        return [tuple(row.values()) for _ in range(2) for batch in stream.to_batches() for row in batch.to_pylist()]

    assert emitted() == changes_in(first[f"producer {producer}"])
    for row in others:
        rows = changes_in(row["commit"])
        if row["commit"].startswith("overwrite"):
            table.overwrite(
                pa.table({"k": [k for _, k, _ in rows], "v": [v for *_, v in rows]}).cast(table.arrow_schema)
            )
        else:
            commit(table, rows)
        assert emitted() == changes_in(row[f"producer {producer}"]), row


# ---- 10 casts, 14 row ids


@examples("10.2", "stored", "read as", "value", "result")
def test_results_of_casts(row):
    stored, target = parse_type(row["stored"]), parse_type(row["read as"])

    def stored_value(text, kind):
        value = None if text == "∅" else text
        return cast_array(pa.array([value], pa.string()), STRING, kind)

    value = stored_value(row["value"], stored)
    if row["result"] == "refused":
        with pytest.raises(InvalidInputError):
            cast_array(value, stored, target)
    else:
        assert cast_array(value, stored, target).equals(stored_value(row["result"], target))


FAMILIES = {
    "integers": "TINYINT SMALLINT INT BIGINT", "numbers": "TINYINT SMALLINT INT BIGINT DECIMAL FLOAT DOUBLE",
    "texts": "CHAR VARCHAR", "bytes": "BINARY VARBINARY",
}  # fmt: skip
SMALL = {
    "CHAR": "(2)", "VARCHAR": "(2)", "BINARY": "(2)", "VARBINARY": "(2)", "DECIMAL": "(3, 1)", "TIME": "(0)",
    "TIMESTAMP": "(0)", "TIMESTAMP_LTZ": "(0)",
}  # fmt: skip


@examples("10.2", "target", "implicit from", "explicit also from")
def test_allowed_casts(row):
    def roots(column):
        words = row[column].replace(",", "").split()
        return {root for word in words for root in FAMILIES.get(word, word).split()}

    target = parse_type(row["target"].replace("(n)", "(30, 4)" if "DEC" in row["target"] else "(6)"))
    implicit, explicit = roots("implicit from"), roots("explicit also from")
    assert implicit | explicit <= ROOTS
    for root in ROOTS:
        source = parse_type(root + SMALL.get(root, ""))
        if source != target:
            allowed = [can_cast(source, target, explicit=flag) for flag in (False, True)]
            assert allowed == [root in implicit, root in implicit | explicit], f"{source} -> {target}"


def test_row_ids_of_commits(tmp_path):
    table = Table.create(
        str(tmp_path / "t"), Schema(pa.schema([("v", pa.int32())]), options={"row-tracking.enabled": "true"})
    )
    for row in rows_of("14.1", "snapshot", "new rows", "first row id"):
        result = table.write(pa.table({"v": pa.array([0] * int(row["new rows"]), pa.int32())}))
        assert (result.id, result.next_row_id) == (int(row["snapshot"]), int(row["next row id"]))
        added = table.to_arrow(["_ROW_ID", "_SEQUENCE_NUMBER"]).to_pylist()[-int(row["new rows"]) :]
        assert added[0] == {"_ROW_ID": int(row["first row id"]), "_SEQUENCE_NUMBER": int(row["seq"])}
