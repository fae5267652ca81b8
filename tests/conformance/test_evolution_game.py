"""Random changes of a schema, at any depth, in turns with writes and compactions: both engines always see one table."""

from dataclasses import dataclass, field

import pytest

from paimon_core.errors import PaimonError
from paimon_core.scan.batch_limits import NO_LIMITS
from paimon_core.schema.change import (
    AddColumn,
    DropColumn,
    MoveColumn,
    Position,
    RenameColumn,
    UpdateType,
    apply,
)
from paimon_core.types.datatype import ArrayType, AtomicType, MapType, RowType
from tests.conformance.compare import same
from tests.conformance.domain import value
from tests.conformance.judge import JudgeError
from tests.conformance.shared_table import SharedTable
from tests.conformance.test_java_writes import check_questions
from tests.conformance.test_streams import streamed_by_java, streamed_by_us
from tests.conformance.values import rows as written
from tests.support.draws import rounds

pytestmark = pytest.mark.java

ATOMS = (
    "INT", "BIGINT", "SMALLINT", "STRING", "DOUBLE", "FLOAT", "DECIMAL(9, 2)", "DECIMAL(20, 4)", "DATE", "TIMESTAMP(3)",
    "TIMESTAMP(6)", "BOOLEAN", "BYTES", "VARCHAR(10)",
)  # fmt: skip
CASTS = {
    "TINYINT": ("SMALLINT", "INT", "STRING"),
    "SMALLINT": ("INT", "BIGINT", "TINYINT", "DOUBLE", "STRING", "DECIMAL(20, 4)", "BOOLEAN"),
    "INT": ("BIGINT", "SMALLINT", "DOUBLE", "FLOAT", "STRING", "DECIMAL(9, 2)", "BOOLEAN"),
    "BIGINT": ("INT", "DOUBLE", "STRING", "DECIMAL(38, 10)"),
    "FLOAT": ("DOUBLE",),
    "DOUBLE": ("FLOAT", "INT"),
    "DECIMAL": ("DECIMAL(9, 2)", "DECIMAL(20, 4)", "DECIMAL(5, 1)", "STRING", "INT", "DOUBLE"),
    "VARCHAR": ("STRING", "VARCHAR(4)", "VARCHAR(10)", "BYTES", "CHAR(6)"),
    "CHAR": ("STRING", "VARCHAR(4)"),
    "DATE": ("TIMESTAMP(3)", "STRING"),
    "TIMESTAMP": ("TIMESTAMP(3)", "TIMESTAMP(6)", "STRING", "TIMESTAMP(0)", "BIGINT", "DATE"),
    "VARBINARY": ("BINARY(3)", "VARBINARY(2)"),
    "BINARY": ("BYTES",),
    "BOOLEAN": ("INT", "STRING"),
}
"""Changes of types whose cast never fails for the values of these tests."""
NAMES = ("a", "b", "c", "d", "e", "x", "y", "z")
FIXED = ("k", "p")


@dataclass(frozen=True)
class Kind:
    """A kind of table: keys, options, row kinds."""

    options: dict[str, str] = field(default_factory=dict)
    key: tuple[str, ...] = ("k",)
    partitions: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ("+I", "+I", "-D")


ONE = {"bucket": "1"}
APPEND = {"key": (), "kinds": ("+I",)}
KINDS = {
    "append": Kind(**APPEND),
    "append-partitions": Kind(partitions=("p",), **APPEND),
    "append-vectors": Kind({"deletion-vectors.enabled": "true"}, **APPEND),
    "rows": Kind({"row-tracking.enabled": "true"}, **APPEND),
    "key": Kind({"bucket": "2"}),
    "key-partitions": Kind(ONE, ("k", "p"), ("p",)),
    "key-compacting": Kind({**ONE, "num-sorted-run.compaction-trigger": "3"}),
    "dynamic": Kind({"bucket": "-1", "dynamic-bucket.target-row-num": "9"}),
    "vectors": Kind({**ONE, "deletion-vectors.enabled": "true"}),
    "sequence": Kind({**ONE, "sequence.field": "s"}),
    "lookup": Kind({**ONE, "changelog-producer": "lookup", "sequence.field": "s"}),
    "full-compaction": Kind({**ONE, "changelog-producer": "full-compaction"}),
    "input": Kind({**ONE, "changelog-producer": "input"}),
    "first-row": Kind({**ONE, "merge-engine": "first-row"}, kinds=("+I",)),
    "partial-update": Kind({**ONE, "merge-engine": "partial-update", "fields.s.sequence-group": "a,v"}, kinds=("+I",)),
    "aggregation": Kind(
        {
            **ONE,
            "merge-engine": "aggregation",
            "fields.v.aggregate-function": "max",
            "fields.default-aggregate-function": "last_non_null_value",
        },
        kinds=("+I",),
    ),
}


def some_type(rng, depth=2):
    """A type, often nested."""
    shape = rng.choice("RAM") if depth and rng.random() < 0.45 else ""
    match shape:
        case "A":
            return f"ARRAY<{some_type(rng, depth - 1)}>"
        case "M":
            return f"MAP<STRING, {some_type(rng, depth - 1)}>"
        case "R":
            parts = [f"f{i} {some_type(rng, depth - 1)}" for i in range(rng.randint(1, 3))]
            return f"ROW<{', '.join(parts)}>"
    return rng.choice(ATOMS)


def siblings(fields, above=()):
    """Yield every set of sibling fields with the path above it."""
    yield above, fields
    for one in fields:
        for path, kind in parts(one.type, (*above, one.name)):
            if isinstance(kind, RowType):
                yield from siblings(kind.fields, path)


def parts(kind, path):
    """Yield the type and the types of its elements and values, down to the next row."""
    yield path, kind
    if isinstance(kind, ArrayType):
        yield from parts(kind.element, (*path, "element"))
    if isinstance(kind, MapType):
        yield from parts(kind.value, (*path, "value"))


def some_change(rng, fields):
    """A change for the judge and the same one for us; None: nothing can change in this way."""
    places = list(siblings(fields))
    above, there = rng.choice(places if rng.random() < 0.7 else places[:1])
    free = [f for f in there if above or f.name not in FIXED]
    op = rng.choice(("add", "drop", "rename", "move", "retype", "retype", "retype"))
    if op == "add":
        path, kind = (*above, rng.choice(NAMES)), some_type(rng)
        return {"op": "add_column", "name": list(path), "type": kind}, AddColumn(path, kind)
    if not free:
        return None
    one = rng.choice(free)
    path = (*above, one.name)
    if op == "drop":
        return {"op": "drop_column", "name": list(path)}, DropColumn(path)
    if op == "rename":
        to = rng.choice([name for name in NAMES if name != one.name])
        return {"op": "rename_column", "name": list(path), "to": to}, RenameColumn(path, to)
    if op == "move" and not above:
        where, other = rng.choice(("first", "after", "before")), rng.choice(there).name
        other = None if where == "first" else other
        move = {"to": where} if other is None else {"to": where, "reference": other}
        return {"op": "move", "name": one.name, "move": move}, MoveColumn(one.name, Position(where, other))
    atoms = [(p, t) for p, t in parts(one.type, path) if isinstance(t, AtomicType)]
    if op != "retype" or not atoms:
        return None
    path, kind = rng.choice(atoms)
    target = rng.choice(CASTS[kind.root])
    return {"op": "update_type", "name": list(path), "type": target}, UpdateType(path, target)


class Game:
    """A table whose schema, rows and files change in turns of both engines."""

    def __init__(self, judge, name, kind, rng):
        self.table, self.kind, self.rng = SharedTable(judge, name), kind, rng
        columns = [["k", "INT" + " NOT NULL" * bool(kind.key)], ["p", "STRING" + " NOT NULL" * ("p" in kind.key)]]
        columns += [[n, some_type(rng)] for n in NAMES[:5]] + [["s", "INT"], ["v", "INT"]]
        stats, formats = rng.choice(("truncate(16)", "full", "none")), ("parquet", "parquet", "orc", "avro")
        self.table.java(
            "create_table",
            fields=columns,
            primary_keys=kind.key,
            partition_keys=kind.partitions,
            options={"file.format": rng.choice(formats), "metadata.stats-mode": stats, **kind.options},
        )

    def rows(self):
        """Rows of the schema of now; their key and partition are among a few."""
        made = []
        for _ in range(6):
            row = {f.name: value(self.rng, f.type, "orc") for f in self.table.ours().schema.fields}
            row.update(k=self.rng.randrange(15), p=self.rng.choice("xy"))
            made.append([self.rng.choice(self.kind.kinds), row])
        return made

    def change(self):
        """Change the schema by either engine; both take or refuse the change."""
        schema = self.table.ours().schema
        drawn = some_change(self.rng, schema.fields)
        if drawn is None:
            return
        theirs, ours = drawn
        try:
            apply(schema, [ours], has_snapshots=True)
        except PaimonError as error:
            if "aggregate function" not in str(error):  # Java finds out when it merges
                self.check_java_refuses(theirs, error)
            return
        if self.rng.random() < 0.5:
            self.table.ours().alter([ours])
        else:
            self.table.java("alter_table", changes=[theirs])

    def check_java_refuses(self, change, error):
        """Fail if Java takes a change that we refused with an error."""
        try:
            self.table.java("alter_table", changes=[change])
        except JudgeError:
            return
        pytest.fail(f"only we refuse {change}: {error}")

    def turn(self):
        """Do one thing."""
        table, rng = self.table, self.rng
        match rng.choice(("change", "change", "java", "ours", "java compacts", "we compact")):
            case "change":
                self.change()
            case "java":
                table.java("write", rows=self.rows())
            case "ours":
                table.we_write(self.rows())
            case "java compacts":
                table.java("compact", kind=rng.choice(("full", "minor")))
            case "we compact":
                table.ours().compact(full=bool(self.kind.key))

    def end(self):
        """Compare filtered and projected rows, and rows by key, with the rows of a full read."""
        found = self.table.agree()
        check_questions(self.table, found, self.rng)
        if not self.kind.key or "changelog-producer" in self.kind.options:
            self.check_stream()
        if self.kind.key == ("k",):
            fields = self.table.ours().schema.fields
            at = [f.name for f in fields].index("k")
            by_key = {row[at]: row for row in found}
            got = written(self.table.ours().get([{"k": k} for k in range(15)]), fields)
            same(got, [by_key[k] for k in range(15) if k in by_key], f"{self.table.name}: rows by key")

    def check_stream(self):
        """Compare streams from the first snapshot: rows of every schema arrive as rows of the schema of now."""
        start = {"scan.timestamp-millis": "1"}  # the id of a snapshot gives Java's stream the columns of then
        theirs = streamed_by_java(self.table, start)
        ours = streamed_by_us(self.table.ours(**start), NO_LIMITS, [])
        assert ours.keys() == theirs.keys(), self.table.name
        for snapshot, told in ours.items():
            same(told, theirs[snapshot], f"{self.table.name}: stream of snapshot {snapshot}")


def play(judge, name, kind, rng, turns):
    """Play until a read of the judge fails: Java cannot cast what was written long ago to what a column is now."""
    game = Game(judge, name, kind, rng)
    for _ in range(turns):
        try:
            game.turn()
            game.table.java("read")
        except JudgeError:
            return
        game.table.agree()
    game.end()


@pytest.mark.more
@pytest.mark.parametrize("kind", KINDS)
def test_random_schema_changes_agree_with_java(judge, name, rng, kind):
    play(judge, name, KINDS[kind], rng, rounds(30, least=12))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_many_random_changes(judge, name, rng, kind):
    for number in range(rounds(100)):
        play(judge, f"{name}_{number}", KINDS[kind], rng, 25)
