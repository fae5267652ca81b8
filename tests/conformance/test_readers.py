"""Other libraries, pypaimon and pypaimon_rust, read what we write: each in one process of an environment of its own.

The environment is made on first use below .venvs; ``$CONFORMANCE_READERS_PYTHON`` names a Python that has them already.
"""

import json
import random
import subprocess
from pathlib import Path

import pyarrow as pa
import pytest

from paimon_core.schema.schema import Schema
from paimon_core.table import Table
from paimon_core.types.arrow import arrow_schema, to_arrow
from paimon_core.types.datatype import AtomicType, DataField
from paimon_core.types.parse import parse_type
from tests.conformance.compare import same
from tests.conformance.domain import value
from tests.conformance.kinds import FORMATS
from tests.conformance.values import arrow, rows

pytestmark = pytest.mark.readers
HERE = Path(__file__).parent
TYPES = (
    "BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(9, 2)", "DECIMAL(38, 10)", "STRING",
    "VARCHAR(10)", "BYTES", "DATE", "TIMESTAMP(3)", "TIMESTAMP(6)", "TIMESTAMP(6) WITH LOCAL TIME ZONE", "ARRAY<INT>",
    "ROW<a INT, b STRING>",
)  # fmt: skip
KINDS = {
    "append": ((), (), {}),
    "append-buckets": ((), (), {"bucket": "2", "bucket-key": "k"}),
    "append-partitions": ((), ("p",), {}),
    "keys": (("k",), (), {"bucket": "2"}),
    "keys-partitions": (("p", "k"), ("p",), {"bucket": "1"}),
    "keys-sequence": (("k",), (), {"bucket": "2", "sequence.field": "s"}),
}


@pytest.fixture(scope="session")
def written(tmp_path_factory):
    """A warehouse of tables we wrote; for each (kind, format) its columns and rows as we read them."""
    rng, warehouse, found = random.Random(5), tmp_path_factory.mktemp("readers"), {}
    (warehouse / "db.db").mkdir()
    for kind, (keys, partitions, options) in KINDS.items():
        for file_format in FORMATS:
            fields = tuple(
                DataField(-1, name, parse_type(text))
                for name, text in [("p", "STRING NOT NULL"), ("k", "INT NOT NULL"), ("s", "INT")]
                + [(f"c{i}", t) for i, t in enumerate(TYPES)]
            )
            name = f"{kind}_{file_format}".replace("-", "_")
            schema = Schema(arrow_schema(fields), keys, partitions, {**options, "file.format": file_format})
            table = Table.create(str(warehouse / "db.db" / name), schema)
            for _ in range(3):
                drawn = [{f.name: value(rng, f.type, "orc") for f in fields} for _ in range(20)]
                drawn = [{**row, "p": rng.choice("ab"), "k": rng.randrange(30)} for row in drawn]
                kinds = [rng.choice(("+I", "+U", "-D")) for _ in drawn] if keys else None
                table.write(arrow(drawn, fields), kinds)
            found[kind, file_format] = (name, table.schema.fields, rows(table.to_arrow(), table.schema.fields))
    return warehouse, found


@pytest.fixture(scope="session", params=["pypaimon", "rust"])
def answers(request, python, written, tmp_path_factory):
    """Return the answer of one library for every table: an Arrow file or an error."""
    warehouse, tables = written
    place = tmp_path_factory.mktemp(request.param)
    orders = [{"table": f"db.{name}", "into": str(place / f"{name}.arrow")} for name, _, _ in tables.values()]
    (place / "orders").write_text("".join(json.dumps(order) + "\n" for order in orders), encoding="utf-8")
    done = subprocess.run(
        [python, HERE / "readers" / "read.py", request.param, warehouse, place / "orders"],
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    said = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"ok"')]
    assert len(said) == len(orders), done.stderr[-2000:]
    return request.param, {
        key: (order["into"], answer) for key, order, answer in zip(tables, orders, said, strict=True)
    }


@pytest.mark.parametrize("file_format", FORMATS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.more
def test_libraries_read_our_tables(answers, written, kind, file_format):
    library, said = answers
    name, fields, expected = written[1][kind, file_format]
    place, answer = said[kind, file_format]
    if not answer["ok"]:
        pytest.fail(f"{library} cannot read {name}: {answer['error'][:1000]}")
    with pa.memory_map(place) as source:
        found = canonical(pa.ipc.open_file(source).read_all(), fields)
    lost = MISREAD.get((library, file_format), "")
    kept = [at for at, f in enumerate(fields) if not lost or not str(f.type).startswith(lost)]
    ours = [[row[at] for at in kept] for row in expected]
    same(rows(found, [fields[at] for at in kept]), ours, f"{name} by {library}")


MISREAD = {("rust", "avro"): "ROW"}
"""Columns a library gets wrong, whoever wrote them: fields of a row after a NULL one come as NULL from Avro."""


def canonical(found: pa.Table, fields) -> pa.Table:
    """The library's columns in our types: it may use others that hold the same values."""
    columns = [_cast(found.column(f.name), f) for f in fields]
    return pa.Table.from_arrays(columns, names=[f.name for f in fields])


def _cast(column: pa.ChunkedArray, field: DataField) -> pa.ChunkedArray:
    target = to_arrow(field.type)
    if isinstance(field.type, AtomicType) and pa.types.is_timestamp(target) and not pa.types.is_timestamp(column.type):
        raise AssertionError(f"column {field.name!r} came as {column.type}, not as a timestamp")
    return column.cast(target)
