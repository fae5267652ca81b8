"""Tables of every merge engine, drawn: which columns are merged how, what rows they get, and what of a result is free.

Values are drawn so that the answer is one Java gets right: sums and products that fit, no null taken back from a
collection, no NaN in a column that orders, no row that removes a record by ``remove-record-on-delete``.
"""

import importlib.util
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from paimon_core.types.datatype import DataField
from paimon_core.types.parse import parse_type
from tests.conformance.domain import ATOMIC, value
from tests.conformance.judge import Judge
from tests.conformance.shared_table import SharedTable

if SKETCHES := importlib.util.find_spec("datasketches") is not None:
    import datasketches
if BITMAPS := importlib.util.find_spec("pyroaring") is not None:
    import pyroaring

KEYS = 12
ADDS = ("+I", "+I", "+U")
EVERY = ("+I", "+I", "+I", "+U", "-U", "-D")
ENGINES = ("deduplicate", "first-row", "partial-update", "aggregation")
Draw = Callable[[Random], Any]


@dataclass(frozen=True)
class Column:
    """One column that is merged. ``drawn``: its values, None for any of its type. ``whole``: no nulls when taken back.

    ``free`` says that the order of elements is not part of the answer, or "hll" or "bitmap" that bytes are not.
    """

    type: str
    function: str | None = None
    drawn: Draw | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    takes_back: bool = True
    whole: bool = False
    free: str = ""
    pool: str = ""


def _one_of(*values: Any) -> Draw:
    return lambda rng: rng.choice(values)


def _list(*elements: Any, most: int = 3) -> Draw:
    return lambda rng: [rng.choice(elements) for _ in range(rng.randint(0, most))]


def _map(keys: Sequence[Any], draw: Draw) -> Draw:
    return lambda rng: [[k, draw(rng)] for k in sorted(rng.sample(keys, rng.randint(0, len(keys))))]


def _struct(**draws: Draw) -> Draw:
    return lambda rng: {name: draw(rng) for name, draw in draws.items()}


def _rows(**draws: Draw) -> Draw:
    return lambda rng: [{name: draw(rng) for name, draw in draws.items()} for _ in range(rng.randint(0, 3))]


_SMALL, _LETTERS = _one_of(-2, -1, 0, 1, 2), _one_of("a", "b", "c", None)
SUMMED = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "INT"), _SMALL),
    "BIGINT": _one_of(1, 2, -5, 2**55, -(2**55)),
    "FLOAT": _one_of(0.5, 1.5, "-0.0", 0.0, 16777216.0, -3.0, "Infinity"),
    "DOUBLE": _one_of(0.1, 0.2, 1e16, -1e16, 3.3, "-0.0", 0.0, "NaN", "-Infinity"),
    "DECIMAL(9, 2)": lambda rng: f"{rng.randint(-99999, 99999) / 100:.2f}",
    "DECIMAL(38, 10)": lambda rng: f"{rng.randint(-(10**9), 10**9)}.{rng.randrange(10**10):010d}",
}
_FACTORS = {
    "INT": _one_of(1, -1),
    "BIGINT": _one_of(1, -1),
    "FLOAT": _one_of(0.5, 1.5, 2.0, -1.0),
    "DOUBLE": _one_of(0.1, 3.3, 2.0, -1.0, "-0.0"),
    "DECIMAL(18, 4)": _one_of("1.0000", "-1.0000", "2.0000", "0.5000"),
}
_WIDE_FACTORS = {"INT": _one_of(1, 1, 1, -1, 2), "BIGINT": _one_of(1, 1, -1, 2, 3)}
_ORDERED = tuple(t for t in ATOMIC if t != "BOOLEAN")
_ROW = "ARRAY<ROW<k INT, s INT, x STRING>>"
_ROW_DRAWN = _rows(k=_one_of(1, 2, 3), s=_SMALL, x=_LETTERS)
_ANY = (*ATOMIC, "ARRAY<INT>", "MAP<STRING, INT>", "ROW<a INT, b STRING>")


def plain_column(rng: Random) -> Column:
    """A column without a function, of any type."""
    return Column(rng.choice(_ANY))


def _typed(function: str, drawn: Mapping[str, Draw], **more: Any) -> Callable[[Random], Column]:
    def make(rng: Random) -> Column:
        kind = rng.choice(list(drawn))
        return Column(kind, function, drawn[kind], **more)

    return make


def _chosen(function: str, types: Sequence[str], *, takes_back: bool) -> Callable[[Random], Column]:
    return lambda rng: Column(rng.choice(types), function, takes_back=takes_back)


def _fixed(kind: str, function: str, drawn: Draw | None, **more: Any) -> Callable[[Random], Column]:
    return lambda rng: Column(kind, function, drawn, **more)


_TEXTS = _one_of("", "a", "b", "c,d", "ä", " ", ";", "a;b")
FUNCTIONS: Mapping[str, Callable[[Random], Column]] = {
    "sum": _typed("sum", SUMMED),
    "product": _typed("product", _FACTORS),  # an integer quotient may be 0, and Java then divides by it
    "product-adds": _typed("product", {**_FACTORS, **_WIDE_FACTORS}, takes_back=False),
    "max": _chosen("max", _ORDERED, takes_back=False),
    "min": _chosen("min", _ORDERED, takes_back=False),
    "last_value": _chosen("last_value", _ANY, takes_back=True),
    "last_non_null_value": _chosen("last_non_null_value", _ANY, takes_back=True),
    "first_value": _chosen("first_value", _ANY, takes_back=False),
    "first_non_null_value": _chosen("first_non_null_value", _ANY, takes_back=False),
    "first_not_null_value": _chosen("first_not_null_value", _ANY, takes_back=False),
    "bool_and": _fixed("BOOLEAN", "bool_and", None, takes_back=False),
    "bool_or": _fixed("BOOLEAN", "bool_or", None, takes_back=False),
    "listagg": _fixed("STRING", "listagg", _TEXTS, takes_back=False),
    "listagg-other": _fixed("STRING", "listagg", _TEXTS, takes_back=False, options={"list-agg-delimiter": "; "}),
    "listagg-distinct": _fixed("STRING", "listagg", _TEXTS, takes_back=False, options={"distinct": "true"}),
    "collect": _fixed("ARRAY<INT>", "collect", _list(1, 2, 3, None), whole=True),
    "collect-distinct": _fixed(
        "ARRAY<STRING>", "collect", _list("a", "b", "ä", None), options={"distinct": "true"}, whole=True, free="list"
    ),
    "merge_map": _fixed("MAP<STRING, INT>", "merge_map", _map(("a", "b", "c"), _SMALL), whole=True),
    "keytime": _fixed(
        "MAP<INT, ROW<x INT, t STRING>>",
        "merge_map_with_keytime",
        _map((1, 2, 3), _struct(x=_SMALL, t=_one_of("1", "2", "3"))),
        takes_back=False,
    ),
    "nested_update": _fixed(_ROW, "nested_update", _ROW_DRAWN, whole=True),
    "nested-key": _fixed(_ROW, "nested_update", _ROW_DRAWN, options={"nested-key": "k"}, whole=True, free="list"),
    "nested_partial_update": _fixed(
        _ROW, "nested_partial_update", _ROW_DRAWN, options={"nested-key": "k"}, takes_back=False, free="list"
    ),
    **({"rbm32": _fixed("BYTES", "rbm32", None, takes_back=False, free="bitmap", pool="rbm32")} if BITMAPS else {}),
    **({"rbm64": _fixed("BYTES", "rbm64", None, takes_back=False, pool="rbm64")} if BITMAPS else {}),
    **({"hll": _fixed("BYTES", "hll_sketch", None, takes_back=False, free="hll", pool="hll")} if SKETCHES else {}),
    **({"theta": _fixed("BYTES", "theta_sketch", None, takes_back=False, pool="theta")} if SKETCHES else {}),
}
"""What makes a column of each aggregate function, every one that Java 1.4.2 has."""

_ORDERING = {
    "INT": _one_of(0, 1, 2, 3),
    "BIGINT": _one_of(-(2**63), 2**63 - 1, 0, 1),
    "STRING": _one_of("", "a", "b", "ä"),
    "DOUBLE": _one_of(0.0, "-0.0", 1.5, "Infinity", "-Infinity"),
    "DATE": _one_of("2024-01-01", "2024-01-02", "1969-12-31"),
    "TIMESTAMP(6)": _one_of("2024-01-01T00:00:00.000001000", "2024-01-01T00:00:00.000002000"),
    "DECIMAL(20, 2)": _one_of("1.00", "2.00", "-1.00"),
    "BOOLEAN": _one_of(True, False),
}


def ordering_of(kind: str) -> Column:
    """A column that orders rows: few values, so that ties and late rows are many."""
    return Column(kind, drawn=_ORDERING[kind])


def ordering_column(rng: Random) -> Column:
    """One of any type."""
    return ordering_of(rng.choice(("INT", "INT", *_ORDERING)))


@dataclass(frozen=True)
class Merging:
    """One table: its columns, what options say of merging them, and the kinds of rows it gets."""

    name: str
    options: Mapping[str, str]
    columns: Mapping[str, Column]
    kinds: Sequence[str] = ADDS
    file_format: str = "parquet"
    partitioned: bool = False
    key: str = "BIGINT"

    @property
    def definition(self) -> dict[str, Any]:
        """Arguments of the judge's create_table."""
        per_column = {
            f"fields.{name}.{option}": text
            for name, column in self.columns.items()
            for option, text in (
                *((("aggregate-function", column.function),) if column.function else ()),
                *column.options.items(),
            )
        }
        settings = {"bucket": "1", "snapshot.num-retained.min": "200", "file.format": self.file_format}
        return {
            "fields": [
                ["k", f"{self.key} NOT NULL"],
                ["p", "STRING" + " NOT NULL" * self.partitioned],
                *([name, column.type] for name, column in self.columns.items()),
            ],
            "primary_keys": ["p", "k"] if self.partitioned else ["k"],
            "partition_keys": ["p"] if self.partitioned else [],
            "options": {**settings, **per_column, **self.options},
        }

    def changes(self, rng: Random, count: int, pools: Mapping[str, Sequence[str]]) -> list[list[Any]]:
        """Random rows [kind, {column: value}], keys often more than once.

        With a descending sequence each key once: Java 1.4.2 sorts its write buffer ascending.
        """
        found = []
        for _ in range(count):
            kind = rng.choice(self.kinds)
            key = rng.randrange(KEYS)
            row = {"k": f"key {key:03d}" if self.key == "STRING" else key, "p": rng.choice("xy")}
            for name, column in self.columns.items():
                row[name] = self._value(rng, column, kind, pools)
            found.append([kind, row])
        if self.options.get("sequence.field.sort-order") == "descending":
            return list({row["k"]: [kind, row] for kind, row in found}.values())
        return found

    def _value(self, rng: Random, column: Column, kind: str, pools: Mapping[str, Sequence[str]]) -> Any:
        if rng.random() < 0.25 and not (column.whole and kind in ("-U", "-D")):
            return None
        if column.pool:
            return rng.choice(pools[column.pool])
        if column.drawn is not None:
            return column.drawn(rng)
        return value(rng, parse_type(column.type), "orc" if "orc" in str(self.options) else self.file_format, nulls=0.0)

    def of_format(self, file_format: str) -> "Merging":
        """The same in files of another format, which may not hold every type."""
        columns = {
            name: replace(column, type=column.type.replace("(9)", "(6)")) if file_format == "avro" else column
            for name, column in self.columns.items()
        }
        return replace(self, file_format=file_format, columns=columns)


class MergedTable(SharedTable):
    """A shared table whose rows are compared without what is free in them."""

    def __init__(self, judge: Judge, name: str, merging: Merging) -> None:
        super().__init__(judge, name)
        self.merging = merging

    def java_rows(self, fields: Sequence[DataField], **arguments: Any) -> list[list[Any]]:
        """As Java reads them."""
        return self._formed(super().java_rows(fields, **arguments), fields)

    def our_rows(self, fields: Sequence[DataField], **arguments: Any) -> list[list[Any]]:
        """As we read them."""
        return self._formed(super().our_rows(fields, **arguments), fields)

    def _formed(self, found: list[list[Any]], fields: Sequence[DataField]) -> list[list[Any]]:
        columns = self.merging.columns
        free = [columns[f.name].free if f.name in columns else "" for f in fields]
        if "orc" in (self.merging.file_format, *self.merging.options.get("file.format.per.level", "").split(":")):
            found = [without_sign(row) for row in found]
        if not any(free):
            return found
        return [[_form(v, how) for v, how in zip(row, free, strict=True)] for row in found]


def without_sign(found: Any) -> Any:
    """Zeros alike: where a batch of an ORC file holds zeros only, Java gives all of them the sign of the first."""
    if isinstance(found, list):
        return [without_sign(v) for v in found]
    if isinstance(found, dict):
        return {k: without_sign(v) for k, v in found.items()}
    return 0.0 if found == "-0.0" else found


def _form(found: Any, free: str) -> Any:
    match free:
        case "list" if found is not None:
            return sorted(found, key=lambda v: json.dumps(v, sort_keys=True))
        case "hll" if found is not None:
            return datasketches.hll_sketch.deserialize(bytes.fromhex(found)).get_estimate()
        case "bitmap" if found is not None:
            return pyroaring.BitMap.deserialize(bytes.fromhex(found)).to_array().tolist()
    return found


def pools_of(judge: Judge, rng: Random, merging: Merging) -> dict[str, list[str]]:
    """Sketches and bitmaps to draw from, made by Java."""
    kinds = {column.pool for column in merging.columns.values() if column.pool}
    return {
        kind: [
            judge.call("sketch", kind=kind, values=[rng.randrange(99) for _ in range(rng.choice((0, 1, 5, 60)))])
            for _ in range(6)
        ]
        for kind in sorted(kinds)
    }


# ---- drawing tables


def drawn(rng: Random, engine: str) -> Merging:
    """A table of an engine with everything else random."""
    made = {
        "deduplicate": _deduplicate,
        "first-row": _first_row,
        "partial-update": _partial_update,
        "aggregation": _aggregation,
    }[engine](rng)
    options = {"merge-engine": engine, **made.options}
    for option, texts in {
        "bucket": ("1", "1", "2"),
        "num-sorted-run.compaction-trigger": ("5", "3", "2"),
        "num-levels": (None, "3"),
        "file.format.per.level": (None, None, "0:avro,5:orc"),
        "target-file-size": (None, None, "1 kb"),
        "metadata.stats-mode": (None, "none", "full"),
    }.items():
        if (text := rng.choice(texts)) is not None:
            options[option] = text
    mixed = "file.format.per.level" in options
    made = replace(made, options=options, partitioned=rng.random() < 0.2, key=rng.choice(("BIGINT", "STRING")))
    return made.of_format("avro" if mixed else rng.choice(("parquet", "parquet", "orc", "avro")))


def _columns(rng: Random, prefix: str, count: int) -> dict[str, Column]:
    return {f"{prefix}{i}": plain_column(rng) for i in range(count)}


def _sequence(rng: Random) -> tuple[dict[str, str], dict[str, Column]]:
    """A user's sequence of one or two columns, up or down."""
    columns = {name: ordering_column(rng) for name in rng.choice(("s", "st"))}
    for name, column in columns.items():
        if column.type == "DOUBLE":  # Java's buffer may or may not distinguish -0.0 from 0.0
            columns[name] = replace(column, drawn=_one_of(0.0, 1.5, "Infinity", "-Infinity"))
    options = {"sequence.field": ",".join(columns)}
    if rng.random() < 0.3:
        options["sequence.field.sort-order"] = "descending"
    return options, columns


def _deduplicate(rng: Random) -> Merging:
    options, columns = _sequence(rng) if rng.random() < 0.5 else ({}, {})
    if rng.random() < 0.3:
        options["ignore-delete"] = "true"
    return Merging("deduplicate", options, {**columns, **_columns(rng, "c", 3)}, EVERY)


def _first_row(rng: Random) -> Merging:
    ignore = rng.random() < 0.5
    options = {"ignore-delete": "true"} if ignore else {}
    return Merging("first-row", options, _columns(rng, "c", 3), EVERY if ignore else ADDS)


def _partial_update(rng: Random) -> Merging:
    if rng.random() < 0.35:
        options, columns = _sequence(rng) if rng.random() < 0.4 else ({}, {})
        ignore = rng.random() < 0.4
        options |= {"ignore-delete": "true"} if ignore else {}
        return Merging("partial-update", options, {**columns, **_columns(rng, "c", 4)}, EVERY if ignore else ADDS)
    return _sequence_groups(rng)


def _sequence_groups(rng: Random) -> Merging:
    """Up to three groups of one or two ordering columns, over columns with and without a function."""
    kinds = rng.choice((ADDS, EVERY))
    columns: dict[str, Column] = _columns(rng, "u", 2)
    options: dict[str, str] = {}
    orderings = []
    for group in range(rng.randint(1, 3)):
        ordering = {f"s{group}{i}": ordering_column(rng) for i in range(rng.choice((1, 1, 2)))}
        members = {f"g{group}{i}": _member(rng, kinds) for i in range(rng.randint(1, 4))}
        options[f"fields.{','.join(ordering)}.sequence-group"] = ",".join(members)
        orderings.append(next(iter(ordering)))
        columns |= {**ordering, **members} if rng.random() < 0.5 else {**members, **ordering}
    if kinds is EVERY and rng.random() < 0.5:
        listed = rng.sample(orderings, rng.randint(1, len(orderings)))
        options["partial-update.remove-record-on-sequence-group"] = ",".join(listed)
    return Merging("partial-update", options, columns, kinds)


def _member(rng: Random, kinds: Collection[str]) -> Column:
    return plain_column(rng) if rng.random() < 0.4 else aggregated(rng, rng.choice(list(FUNCTIONS)), kinds)


def aggregated(rng: Random, function: str, kinds: Collection[str]) -> Column:
    """A column of a function; where rows may be taken back and it cannot, such rows are ignored."""
    column = FUNCTIONS[function](rng)
    if "-D" in kinds and not column.takes_back:
        return replace(column, options={**column.options, "ignore-retract": "true"})
    return column


def _aggregation(rng: Random) -> Merging:
    columns = {f"u{i}": plain_column(rng) for i in range(2)}
    options: dict[str, str] = {}
    if rng.random() < 0.3:
        options, ordering = _sequence(rng)
        columns |= ordering
    kinds = rng.choice((ADDS, EVERY, EVERY))
    if kinds is EVERY and rng.random() < 0.2:
        options["ignore-delete"] = "true"
    for i in range(rng.randint(3, 7)):
        columns[f"a{i}"] = aggregated(rng, rng.choice(list(FUNCTIONS)), kinds)
    if rng.random() < 0.2:
        options["fields.default-aggregate-function"] = rng.choice(("last_value", "last_non_null_value"))
    return Merging("aggregation", options, columns, kinds)
