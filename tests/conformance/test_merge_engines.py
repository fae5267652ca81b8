"""Every merge engine, aggregate function and option of theirs: written and compacted by either engine on copies
of a table, over level 0 alone, after minor and full compaction, and with new rows above compacted ones."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from paimon_core.errors import InvalidInputError
from tests.conformance.compare import same
from tests.conformance.domain import ATOMIC, NESTED
from tests.conformance.duel import WRITE_ONLY, Duel
from tests.conformance.judge import JudgeError
from tests.conformance.kinds import FEW
from tests.conformance.merging import ADDS, EVERY, FUNCTIONS, SUMMED, Column, Merging, aggregated, ordering_of

pytestmark = pytest.mark.java
SHAPE = {"num-sorted-run.compaction-trigger": "2", "num-levels": "4"}
EASY = {f"c{i}": Column(text) for i, text in enumerate(FEW)}
WIDE = {f"c{i}": Column(text) for i, text in enumerate((*ATOMIC, *NESTED))}
INT = ordering_of("INT")
CASES: list[Merging] = []


def case(name: str, columns: Mapping[str, Column], kinds=ADDS, **options: str) -> None:
    """A case; options with _ for - and __ for a dot."""
    engine = {"merge-engine": name.split(" ")[0]}
    given = {key.replace("__", ".").replace("_", "-"): text for key, text in options.items()}
    CASES.append(Merging(name, {**engine, **SHAPE, **given}, dict(columns), kinds))


def grouped(
    name: str, groups: Mapping[str, Mapping[str, Column]], kinds=ADDS, removes: str = "", **more: Column
) -> None:
    """A case of sequence groups: {ordering columns: columns}; ordering columns are INT if nothing else is given."""
    columns = {column: INT for ordering in groups for column in ordering.split(",")}
    columns |= {column: kind for members in groups.values() for column, kind in members.items()} | more
    options = {f"fields.{ordering}.sequence-group": ",".join(members) for ordering, members in groups.items()}
    options |= {"partial-update.remove-record-on-sequence-group": removes} if removes else {}
    case(f"partial-update {name}", columns, kinds)
    CASES[-1] = replace(CASES[-1], options={**CASES[-1].options, **options})


def columns_of(functions: Mapping[str, object], rng, kinds) -> dict[str, Column]:
    return {"f_" + name.replace("-", "_"): aggregated(rng, name, kinds) for name in functions}


case("deduplicate", WIDE, EVERY)
case("deduplicate ignore-delete", EASY, EVERY, ignore_delete="true")
case("deduplicate sequence", {"s": INT, **EASY}, EVERY, sequence__field="s")
case("deduplicate two sequences down", {"s": INT, "t": ordering_of("STRING"), **EASY}, EVERY, sequence__field="s,t",
     sequence__field__sort_order="descending")  # fmt: skip
case("first-row", WIDE)
case("first-row ignore-delete", EASY, EVERY, ignore_delete="true")
case("partial-update", WIDE)
case("partial-update sequence", {"s": INT, **EASY}, sequence__field="s")
case("partial-update ignore-delete", EASY, EVERY, ignore_delete="true")

_TWO = {"s": {"a": Column("INT"), "b": Column("STRING")}, "t": {"c": Column("DOUBLE"), "d": Column("ARRAY<INT>")}}
_PLAIN = {"u": Column("INT"), "w": Column("STRING")}
grouped("groups", _TWO, ADDS, **_PLAIN)
grouped("groups retracting", _TWO, EVERY, **_PLAIN)
grouped("group of two", {"s,t": {"a": Column("INT"), "b": Column("DATE")}}, EVERY, **_PLAIN)
grouped("group of three", {"s,t,v": {"a": Column("INT")}}, EVERY, t=ordering_of("BIGINT"), v=ordering_of("STRING"))
grouped("group by double", {"s": {"a": Column("INT")}}, EVERY, s=ordering_of("DOUBLE"))
grouped("group by decimal", {"s": {"a": Column("INT")}}, EVERY, s=ordering_of("DECIMAL(20, 2)"))
grouped("group by timestamp", {"s": {"a": Column("INT")}}, EVERY, s=ordering_of("TIMESTAMP(6)"))
grouped("group removing", _TWO, EVERY, "s", **_PLAIN)
grouped("groups removing", _TWO, EVERY, "s,t", **_PLAIN)
AGGREGATED = {
    "aggregation adds": ADDS,
    "aggregation retracts": EVERY,
    "aggregation sequence": ADDS,
    "aggregation ignore-delete": EVERY,
    "partial-update group of aggregates": ADDS,
    "partial-update group of aggregates retracting": EVERY,
    "partial-update group of aggregates removing": EVERY,
}
NUMBERS = {f"{function}_{i}": Column(text, function, drawn)
           for i, (text, drawn) in enumerate(SUMMED.items()) for function in ("sum", "max", "min")}  # fmt: skip
case("aggregation numbers", NUMBERS)
case("aggregation sums retracting", {name: c for name, c in NUMBERS.items() if c.function == "sum"}, EVERY)
case("aggregation extremes", {f"{function}_{i}": Column(text, function) for function in ("max", "min")
                              for i, text in enumerate(t for t in ATOMIC if t != "BOOLEAN")})  # fmt: skip
for _function in ("last_value", "last_non_null_value"):
    case(f"aggregation {_function}", {name: replace(c, function=_function) for name, c in WIDE.items()}, EVERY)
for _function in ("first_value", "first_non_null_value"):
    case(f"aggregation {_function}", {name: replace(c, function=_function) for name, c in WIDE.items()})
case("aggregation default", EASY, fields__default_aggregate_function="first_value")

_EVERY_FORMAT = ("first-row ignore-delete", "partial-update groups retracting")
_LONG = ("aggregation last_value", "aggregation first_value")


def matrix():
    """Cases by formats; what a format hardly bears on is left to the long run."""
    return [
        pytest.param(
            table,
            file_format,
            id=f"{table.name.replace(' ', '-')}-{file_format}",
            marks=()
            if table.name in _EVERY_FORMAT or (file_format, table.name in _LONG) == ("parquet", False)
            else pytest.mark.slow,
        )
        for table in CASES
        for file_format in ("parquet", "orc", "avro")
    ]


def through_all_levels(judge, name, rng, merging):
    """Level 0 alone; compacted as far as it goes; more above it; everything at the highest level; more again."""
    duel = Duel(judge, name, merging, rng)
    for move in (
        *(Duel.both_write, Duel.both_write, Duel.both_compact, Duel.both_write, Duel.java_writes, Duel.both_compact),
        *(Duel.we_write, Duel.both_compact_fully, Duel.both_write, Duel.we_write, Duel.both_compact_fully),
    ):
        duel.do(move)
    duel.table.java("drop_table")


@pytest.mark.parametrize(("merging", "file_format"), matrix())
@pytest.mark.cases(1)
def test_merge_engines_agree_through_all_levels(judge, name, rng, merging, file_format):
    through_all_levels(judge, name, rng, merging.of_format(file_format))


@pytest.mark.parametrize(
    "file_format", ["parquet", *(pytest.param(f, marks=pytest.mark.slow) for f in ("orc", "avro"))]
)
@pytest.mark.parametrize("style", AGGREGATED)
@pytest.mark.cases(2)
def test_every_aggregate_function_agrees_with_java(judge, name, rng, style, file_format):
    """All functions side by side in one table, of types that are drawn."""
    kinds = AGGREGATED[style]
    columns = columns_of(FUNCTIONS, rng, kinds)
    options = {"merge-engine": style.split(" ")[0], **SHAPE}
    if "group" in style:
        options["fields.s.sequence-group"] = ",".join(columns)
        columns["s"] = INT
        options |= {"partial-update.remove-record-on-sequence-group": "s"} if "removing" in style else {}
    elif "sequence" in style:
        options["sequence.field"] = "s"
        columns["s"] = INT
    elif "ignore" in style:
        options["ignore-delete"] = "true"
    through_all_levels(judge, name, rng, Merging(style, options, columns, kinds).of_format(file_format))


@pytest.mark.parametrize("ours", [True, False], ids=["we", "java"])
def test_first_rows_show_once_they_are_compacted(judge, name, rng, ours):
    """Level 0 is not read; a key compacted once stays as it is."""
    merging = Merging("first-row", {"merge-engine": "first-row", "write-only": "true"}, {"v": Column("INT")})
    duel = Duel(judge, name, merging, rng)

    def write(*rows):
        changes = [["+I", {"k": k, "p": "x", "v": v}] for k, v in rows]
        if ours:
            duel.table.we_write(changes)
        else:
            duel.table.java("write", rows=changes)

    def compact(kind):
        if ours:
            duel.table.ours().compact(full=kind == "full")
        else:
            duel.table.java("compact", kind=kind)

    def shown():
        return sorted([row[0], row[2]] for row in duel.table.agree())

    write((1, 10), (2, 20), (1, 11))
    same(shown(), [], f"{name}: level 0")
    compact("full")
    same(shown(), [[1, 10], [2, 20]], f"{name}: compacted")
    write((2, 21), (3, 30))
    same(shown(), [[1, 10], [2, 20]], f"{name}: more at level 0")
    compact("minor")
    same(shown(), [[1, 10], [2, 20], [3, 30]], f"{name}: compacted some")
    write((3, 31), (4, 40))
    compact("full")
    same(shown(), [[1, 10], [2, 20], [3, 30], [4, 40]], f"{name}: compacted all")


REFUSED = {
    "first-row": Merging("first-row", {"merge-engine": "first-row"}, {"v": Column("INT")}),
    "partial-update": Merging("partial-update", {"merge-engine": "partial-update"}, {"v": Column("INT")}),
    **{
        function: Merging(function, {"merge-engine": "aggregation"}, {"v": Column(text, function)})
        for function, text in (
            ("max", "INT"), ("min", "STRING"), ("first_value", "INT"), ("first_non_null_value", "INT"),
            ("bool_and", "BOOLEAN"), ("bool_or", "BOOLEAN"), ("listagg", "STRING"),
        )
    },
}  # fmt: skip


@pytest.mark.parametrize("which", REFUSED)
def test_rows_that_cannot_be_taken_back(judge, name, rng, which):
    """Java fails when it merges the row; we refuse it, because the table could not be read or compacted afterwards."""
    duel = Duel(judge, name, replace(REFUSED[which], options={**REFUSED[which].options, **WRITE_ONLY}), rng)
    value = {"INT": 1, "STRING": "a", "BOOLEAN": True}[duel.merging.columns["v"].type]
    duel.table.java("write", rows=[["+I", {"k": 1, "p": "x", "v": value}]])
    gone = [["-D", {"k": 1, "p": "x", "v": value}]]
    with pytest.raises(InvalidInputError, match="-D"):
        duel.table.we_write(gone)
    duel.table.java("write", rows=gone)
    with pytest.raises(JudgeError):
        duel.table.java("compact", kind="full", options={"write-only": "false"})
    with pytest.raises(InvalidInputError, match="-D"):
        duel.table.ours().compact(full=True)


def test_nan_orders_nothing(judge, name, rng):
    """To Java it equals every other value, so that the answer depends on who is asked first; refused here."""
    columns = {"s": Column("DOUBLE"), "v": Column("INT")}
    options = {"merge-engine": "deduplicate", "sequence.field": "s", **WRITE_ONLY}
    duel = Duel(judge, name, Merging("deduplicate", options, columns), rng)
    for v, s in enumerate((2.0, "NaN", 1.0)):
        duel.table.java("write", rows=[["+I", {"k": 1, "p": "x", "s": s, "v": v}]])
    with pytest.raises(InvalidInputError, match="'s' orders rows"):
        duel.table.ours().to_arrow()
    with pytest.raises(InvalidInputError, match="'s' orders rows"):
        duel.table.we_write([["+I", {"k": 2, "p": "x", "s": "NaN", "v": 1}]])
