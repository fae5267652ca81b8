"""System tables: both engines show the same rows in the columns that both have."""

import json
from dataclasses import replace

import pytest

from paimon_core.catalog.filesystem import FileSystemCatalog
from paimon_core.inspect.system_tables.table_registry import SYSTEM_TABLES
from tests.conformance.compare import same
from tests.conformance.kinds import ALL, Kind, dotted, keyed
from tests.conformance.merging import ENGINES, MergedTable, drawn, pools_of
from tests.conformance.shared_table import created_by_java
from tests.conformance.values import normal, rows

pytestmark = pytest.mark.java
NEWER = {
    "snapshots": {"operation", "writer_version"},
    "partitions": {"total_buckets", "done", "deleted_record_count"},
    "table_indexes": {"row_range_start", "row_range_end", "index_field_id", "index_field_name"},
}
"""The columns of 2.0.0 that 1.4.2 lacks."""
ABSENT = ("file_indexes",)
"""The tables of 2.0.0 and later that 1.4.2 lacks."""


def agree(table, name, **when):
    """Both engines show the same rows, in any order; returns them."""
    ours = table.ours().system_table(name)
    fields = [f for f in ours.read(**when).fields if f.name not in NEWER.get(name, ())]
    java = {"snapshot": when["snapshot_id"]} if when else {}
    answer = table.judge.call("read", table=f"{table.java_name}${name}", **java)
    shown = [[n, t.replace("`", "")] for n, t in zip(answer["columns"], answer["types"], strict=True)]
    if name == "row_tracking":  # 2.0.0 lets them be null
        shown[-2:] = [[n, t.removesuffix(" NOT NULL")] for n, t in shown[-2:]]
    same([[f.name, str(f.type).replace("`", "")] for f in fields], shown, f"{table.name}${name}: columns")
    expected = [[normal(v, f.type) for v, f in zip(row[1:], fields, strict=True)] for row in answer["rows"]]
    if name == "schemas":  # Java has the options in the order of a hash table
        expected = [[*row[:4], json.loads(row[4]), *row[5:]] for row in expected]
    found = rows(ours.to_arrow(columns=[f.name for f in fields], **when), fields)
    if name == "schemas":
        found = [[*row[:4], json.loads(row[4]), *row[5:]] for row in found]
    same(found, expected, f"{table.name}${name} {when}")
    return found


def agree_on_all(table, *, leave_out=()):
    for name in SYSTEM_TABLES:
        if name not in (*leave_out, *ABSENT):
            agree(table, name)


def with_past(judge, name, kind, rng):
    """A table of both engines' commits, with a changed schema, a tag, a branch, a consumer and statistics."""
    table = created_by_java(judge, name, kind)
    table.java("write", rows=kind.rows(rng, 30))
    table.we_write(kind.rows(rng, 30))
    table.java("create_tag", name="v1", snapshot=1)
    table.java("create_branch", name="b1", tag="v1")
    table.java("reset_consumer", consumer="c1", next_snapshot=2)
    table.java(
        "alter_table",
        changes=[
            {"op": "drop_column", "name": "c7"},
            {"op": "add_column", "name": "Z", "type": "INT", "comment": "new"},
            {"op": "rename_column", "name": "c1", "to": "C"},
            {"op": "update_type", "name": "s1", "type": "BIGINT"},
            {"op": "set_option", "key": "fields.c0.aggregate-function", "value": "sum"},
        ],
    )
    changed = [[k, {n: v for n, v in row.items() if n not in ("c7", "c1")}] for k, row in kind.rows(rng, 30)]
    table.java("write", rows=changed)
    table.java("analyze")
    return table


KINDS_HERE = (
    dotted("keyed", {"metadata.stats-mode": "full"}, keyed("keyed")),
    Kind("append-partitions", {"bucket": "-1"}, partition_keys=("p", "c5")),
    Kind("key-partitions", {"bucket": "2"}, ("p", "k"), ("p",), ALL),
    dotted("stats-none", {"metadata.stats-mode": "none"}),
    dotted("stats-counts", {"metadata.stats-mode": "counts"}),
    dotted("stats-few", {"metadata.stats-keep-first-n-columns": "4"}),
    dotted("stats-sparse-store", {"metadata.stats-dense-store": "false", "metadata.stats-mode": "counts"}),
    dotted("vectors", {"deletion-vectors.enabled": "true"}),
    dotted("dynamic", {"bucket": "-1"}),
    dotted("postponed", {"bucket": "-2"}),
    dotted("write-only", {"write-only": "true"}),
    dotted("names", {"data-file.prefix": "part-", "file.suffix.include.compression": "true"}),
    dotted("directory", {"data-file.path-directory": "files"}),
    dotted("first-row", {"merge-engine": "first-row", "ignore-delete": "true", "changelog-producer": "lookup"}),
    dotted("input", {"changelog-producer": "input"}),
    dotted("numbered", {"table-read.sequence-number.enabled": "true"}),
    Kind("tracked", {"row-tracking.enabled": "true"}),
)


@pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, id=kind.name, marks=() if n < 2 else pytest.mark.more) for n, kind in enumerate(KINDS_HERE)],
)
def test_of_every_kind(judge, name, rng, kind):
    table = with_past(judge, name, kind, rng)
    leave_out = () if kind.name == "tracked" else ("row_tracking",)
    agree_on_all(table, leave_out=leave_out)
    for one in ("files", "manifests", "audit_log"):  # Java's other tables do not travel
        agree(table, one, snapshot_id=1)
    for level in (0, 5):
        actual = table.ours().system_table("files").to_arrow(filter=f"level = {level}").num_rows
        assert actual == sum(row[5] == level for row in agree(table, "files"))
    table.java("compact", kind="full")
    agree_on_all(table, leave_out=leave_out)


VECTORS = {"deletion-vectors.enabled": "true"}
LOOKUPS = {"changelog-producer": "lookup"}


@pytest.mark.parametrize("more", [{}, LOOKUPS, VECTORS], ids=["", "lookups", "vectors"])
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.cases(2)
def test_kinds_of_merged_rows(judge, name, rng, engine, more):
    """Of every engine, before and after compactions: the kind of the newest row, and rows that are deleted."""
    if engine == "first-row" and more is VECTORS:
        more = LOOKUPS  # first rows need no vectors
    merging = drawn(rng, engine)
    merging = replace(merging, options={**merging.options, **more})
    table = MergedTable(judge, name, merging)
    table.java("create_table", **merging.definition)
    pools = pools_of(judge, rng, merging)
    at = [0, 1 + [f.name for f in table.ours().schema.fields].index("k")]

    def check():
        ours = table.ours().system_table("audit_log").to_arrow(columns=["rowkind", "k"])
        found = sorted(map(list, zip(*(column.to_pylist() for column in ours.columns), strict=True)))
        for one in ("audit_log", "binlog"):
            answer = judge.call("read", table=f"{name}${one}")["rows"]
            shown = [[row[1 + i] for i in at] for row in answer]
            same(found, sorted([kind, k[0] if one == "binlog" else k] for kind, k in shown), f"{name}${one}")
        deleted = table.ours().system_table("audit_log").to_arrow(columns=["k"], filter="rowkind IN ('-D', '-U')")
        same(
            sorted(deleted.column(0).to_pylist()), sorted(k for kind, k in found if kind[0] == "-"), f"{name}: deleted"
        )

    for kind in (None, "minor", "full", None):
        changes = merging.changes(rng, 20, pools)
        table.java("write", rows=changes[:10], options={"write-only": "true"})
        table.ours(**{"write-only": "true"}).write(
            table.arrow([row for _, row in changes[10:]]), [kind for kind, _ in changes[10:]]
        )
        check()
        if kind is not None:
            table.java("compact", kind=kind)
            check()


def test_of_the_catalog(judge, name, rng):
    table = created_by_java(judge, name, Kind("global", {"bucket": "2"}, ("p", "k"), ("p",), ALL))
    table.java("write", rows=Kind("global", {}, ("p", "k"), ("p",), ALL).rows(rng, 30))
    whole = created_by_java(judge, name + "_u", keyed("global"))
    whole.java("write", rows=keyed("global").rows(rng, 30))
    own = name.split(".")[1]
    catalog = FileSystemCatalog(str(judge.warehouse))
    for one in ("tables", "partitions", "all_table_options"):
        ours = catalog.system_table(f"sys.{one}")
        answer = judge.call("read", table=f"sys.{one}")
        shown = [[n, t] for n, t in zip(answer["columns"], answer["types"], strict=True)]
        same([[f.name, str(f.type)] for f in ours.schema.fields], shown, f"sys.{one}: columns")
        expected = [row[1:] for row in answer["rows"] if row[2] in (own, own + "_u")]
        found = rows(ours.to_arrow(filter=f"table_name IN ('{own}', '{own}_u')"), ours.schema.fields)
        assert expected
        same(found, expected, f"sys.{one}")


@pytest.mark.parametrize("producer", ["input", pytest.param("lookup", marks=pytest.mark.more)])
def test_changes_in_a_batch(judge, name, rng, producer):
    kind = keyed(f"changes-{producer}", changelog_producer=producer)
    table = created_by_java(judge, name, kind)
    for _ in range(3):
        table.java("write", rows=kind.rows(rng, 20), compact="full")
    last = table.ours().store.snapshots.latest_id()
    for first in (0, 2):
        between = f"{first},{last}"
        for one in ("audit_log", "binlog")[: 1 + (producer == "lookup")]:  # Java packs -U with the next row
            ours = table.ours(**{"incremental-between": between}).system_table(one)
            fields = ours.schema.fields
            answer = judge.call("read", table=f"{name}${one}", incremental_between=between)
            expected = [[normal(v, f.type) for v, f in zip(row[1:], fields, strict=True)] for row in answer["rows"]]
            found = rows(ours.to_arrow(), fields)
            same(found, expected, f"{name}${one} {between}")
