"""Every line of the Java engine, and pypaimon, take turns with this engine on one table; both read the same rows."""

import random
import tempfile

import pytest

from paimon_core.schema.schema import Schema
from paimon_core.table import Table
from paimon_core.types.arrow import arrow_schema
from tests.conformance.compare import same
from tests.conformance.judge import Judge
from tests.conformance.test_turns import KINDS, Game, created
from tests.conformance.values import arrow, rows
from tests.golden.lines import VERSIONS
from tests.golden.python_lines import PythonLine, drawn, fields_of

MOVES = (
    ("we_write", 6), ("java_writes", 6), ("our_minor", 2), ("our_full", 1), ("we_overwrite", 1), ("java_overwrites", 1),
    ("add_column", 1), ("rename_column", 1),
)  # fmt: skip
COMPACTIONS = (("minor", 1), ("full", 1))
"""Moves of tables with a primary key: of append tables, the program calls methods that older lines lack."""
PYTHON_KINDS = {
    "append": ((), (), {}),
    "partitions": ((), ("p",), {}),
    "keyed": (("k",), (), {"bucket": "2"}),
    "sequence": (("k",), (), {"bucket": "1", "sequence.field": "s"}),
}


@pytest.mark.java
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["keys-partitions", "keys-sequence", "append-partitions"])
@pytest.mark.parametrize("version", VERSIONS)
def test_java_line_takes_turns_with_us(tmp_path, monkeypatch, version, kind, seed):
    monkeypatch.setattr(Game, "MOVES", MOVES + COMPACTIONS * kind.startswith("keys"))
    with Judge(tmp_path, version, linked=True) as judge:
        game = Game(created(judge, "db.t", KINDS[kind], "parquet"), KINDS[kind], random.Random(f"{seed} {kind}"))
        for _ in range(25):
            print(game.turn())
        game.table.agree_everywhere()
    assert not game.table.ours().verify(deep=True).faults


@pytest.mark.readers
@pytest.mark.slow
@pytest.mark.parametrize("kind", PYTHON_KINDS)
@pytest.mark.parametrize("library", ["pypaimon", "rust"])
def test_python_library_takes_turns_with_us(python, tmp_path, library, kind, seed):
    keys, partitions, options = PYTHON_KINDS[kind]
    rng, fields, path = random.Random(f"{seed} {kind}"), fields_of("parquet"), f"{tmp_path}/db.db/t"
    Table.create(path, Schema(arrow_schema(fields), keys, partitions, options))
    types = {field.name: field for field in fields}
    with tempfile.TemporaryDirectory() as scratch:
        line = PythonLine(python, library, str(tmp_path), scratch)
        for turn in range(16):
            table, data = Table.open(path), drawn(rng, fields, 6)
            match rng.randrange(5) if turn else 0:
                case 0 | 1:
                    table.write(arrow(data, fields))
                case 2:
                    table.compact(full=True)
                case _:
                    line.do("write", table="db.t", rows=line.file(data, fields))
            table = Table.open(path)
            same(
                line.read("db.t", types)["rows"], rows(table.to_arrow(), table.schema.fields), f"{library}, turn {turn}"
            )
        line.close()
    assert not Table.open(path).verify(deep=True).faults
