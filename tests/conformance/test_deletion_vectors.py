"""Rows deleted by position: what either engine marks the other leaves out, marks on, and compacts away."""

from dataclasses import replace

import pytest

from tests.conformance.compare import same
from tests.conformance.kinds import FORMATS, Kind, dotted, keyed
from tests.conformance.shared_table import SharedTable, created_by_java

pytestmark = pytest.mark.java

MARKS = {"deletion-vectors.enabled": "true"}
WIDE = {**MARKS, "deletion-vectors.bitmap64": "true"}
KINDS = [
    Kind("plain", MARKS),
    Kind("plain-64", WIDE),
    Kind("one-vector-a-file", {**MARKS, "deletion-vector.index-file.target-size": "1 b"}),
    Kind("beside-the-data", {**MARKS, "index-file-in-data-file-dir": "true"}),
    Kind("partitions", MARKS, partition_keys=("p",)),
    Kind("buckets", {**MARKS, "bucket": "2", "bucket-key": "s1", "write-only": "true"}),
]

TURNS = [pytest.param(kind, id=kind.name, marks=[pytest.mark.slow] if kind in KINDS[2:4] else []) for kind in KINDS] + [
    pytest.param(KINDS[0].of_format(f), id=f, marks=pytest.mark.slow) for f in FORMATS if f != "parquet"
]
"""A vector does not know the format of its file: the others are left to the long run."""


def write(table: SharedTable, kind: Kind, rng, *, ours: bool) -> None:
    rows = kind.rows(rng, 40)
    if ours:
        table.we_write(rows)
    else:
        table.java("write", rows=rows)


def delete(table: SharedTable, k: int, *, ours: bool) -> None:
    if ours:
        table.ours().delete(f"k = {k}")
    else:
        table.java("append_delete", where={"k": k})


@pytest.mark.parametrize("kind", TURNS)
@pytest.mark.cases(1)
def test_turns_on_append_tables(judge, name, rng, kind):
    """Both write and delete in turns; each goes on from the vectors of the other, and compacts them away."""
    table = created_by_java(judge, name, kind)
    for turn in range(2):
        for ours in (False, True):
            write(table, kind, rng, ours=ours)
            for _ in range(3):
                delete(table, rng.randrange(40), ours=ours)
                delete(table, rng.randrange(40), ours=not ours)
        before = table.agree()
        if turn:
            table.java("compact", kind="full")
        else:
            table.ours().compact(full=True)
        same(table.agree(), before, f"{name}: compaction brings no row back and drops none")
    table.agree_everywhere()


def test_forms_may_be_mixed(judge, name, rng):
    """Java reads both side by side; it does not go on from a vector of the other form itself."""
    kind = Kind("", MARKS)
    table = created_by_java(judge, name, kind)
    for wide in (False, True, False):
        changes = [{"op": "set_option", "key": "deletion-vectors.bitmap64", "value": str(wide).lower()}]
        table.java("alter_table", changes=changes)
        write(table, kind, rng, ours=wide)
        for _ in range(3):
            delete(table, rng.randrange(40), ours=True)
    table.agree_everywhere()


@pytest.mark.cases(1)
@pytest.mark.parametrize("kind", [KINDS[0], *KINDS[4:]], ids=lambda kind: kind.name)
def test_java_continues_after_files_and_their_vectors_were_removed(judge, name, rng, kind):
    """Java reads vector files from end to end, and not only the ranges that their entries name."""
    table = created_by_java(judge, name, replace(kind, options={**kind.options, "compaction.small-file-ratio": "0"}))
    for _ in range(3):
        write(table, kind, rng, ours=True)
    for k in (1, 2, 3):
        delete(table, k, ours=k != 2)
    table.ours().delete("k < 25 and s1 = 2")
    victim = table.ours().scan().plan().splits[0]
    table.ours().delete(f"k in ({', '.join(map(str, range(12)))})")
    table.ours().compact()
    if kind.partition_keys:
        table.ours().drop_partitions(
            [{"p": victim.partition and table.ours().store.partition_values(victim.partition)[0]}]
        )
    table.agree()
    for k in (20, 21):
        delete(table, k, ours=False)
    table.agree_everywhere()


@pytest.mark.parametrize("kind", [KINDS[0], *KINDS[4:]], ids=lambda kind: kind.name)
@pytest.mark.cases(1)
def test_materialized_vectors_keep_rows_in_both_engines(judge, name, rng, kind):
    table = created_by_java(judge, name, kind)
    for ours in (True, False):
        for k in (1, 2, 3):
            write(table, kind, rng, ours=ours)
            delete(table, k, ours=ours)
        before = table.agree()
        table.ours().maintenance.materialize_deletion_vectors()
        same(table.agree(), before, f"{name}: materializing brings no row back and drops none")
    table.agree_everywhere()


@pytest.mark.parametrize("bucketed", [False, True])
def test_java_reads_the_remaining_rows_of_rewritten_files(judge, name, rng, bucketed):
    kind = Kind("", {"bucket": "2", "bucket-key": "k", "write-only": "true"} if bucketed else {})
    table = created_by_java(judge, name, kind)
    for ours in (False, True):
        write(table, kind, rng, ours=ours)
        table.ours().delete("k in (1, 5, 9) or s1 = 3")
    table.ours().delete("k > 35")
    table.java("compact", kind="full")
    table.agree_everywhere()


KEYED = [
    keyed("one-bucket", bucket="1"),
    dotted("64-bits", {"deletion-vectors.bitmap64": "true"}),
    dotted("sums", {"merge-engine": "aggregation", "fields.s1.aggregate-function": "sum", "ignore-delete": "true"}),
    dotted("sequence", {"sequence.field": "s1,s2"}),
    Kind("partitions", {"bucket": "2"}, ("p", "k"), ("p",), ("+I", "+U", "-D")),
]


@pytest.mark.parametrize("kind", KEYED, ids=lambda kind: kind.name)
@pytest.mark.cases(1)
def test_primary_key_tables_of_java(judge, name, rng, kind):
    """Java marks what it supersedes; we show what it has compacted, and nothing else."""
    kind = replace(kind, options={**MARKS, "num-sorted-run.compaction-trigger": "2", **kind.options})
    table = created_by_java(judge, name, kind)

    def rows() -> list:
        """Java looks keys up in local files named by their partition, which must not have a slash then."""
        return [[k, {**row, "p": row["p"] and row["p"].replace("/", "-")}] for k, row in kind.rows(rng, 40)]

    for i in range(4):
        table.java("write", rows=rows())
        if i == 1:
            table.java("compact", kind="full")
    table.agree_everywhere()
    table.java("alter_table", changes=[{"op": "set_option", "key": "write-only", "value": "true"}])
    table.java("write", rows=rows())  # waits in level 0, unseen
    table.agree_everywhere()
    for text in ("k = 7", "s1 = 1", "k < 20 and s1 is null"):
        everything = table.ours().to_arrow()
        expected = everything.num_rows and len(table.ours().to_arrow(filter=text))
        column = {"k": everything.column("k").to_pylist(), "s1": everything.column("s1").to_pylist()}
        test = {"k = 7": lambda k, s: k == 7, "s1 = 1": lambda k, s: s == 1,
                "k < 20 and s1 is null": lambda k, s: k < 20 and s is None}[text]  # fmt: skip
        assert expected == sum(test(k, s) for k, s in zip(column["k"], column["s1"], strict=True))


@pytest.mark.parametrize(
    "options",
    [{}, MARKS, {"merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"}],
    ids=["merged", "marked", "partial-update"],
)
def test_java_merges_our_deletes(judge, name, rng, options):
    kind = dotted("", options)
    kind = replace(kind, row_kinds=("+I",))
    table = created_by_java(judge, name, kind)
    inserts_again = "merge-engine" not in options  # Java 1.4.2 would show removed values (test_newer_than_java)
    for ours in (False, True) if inserts_again else (True,):
        write(table, kind, rng, ours=ours)
        table.ours().delete("k in (1, 5, 9) or s1 = 3")
    table.agree()
    table.java("compact", kind="full")
    table.agree_everywhere()
