"""Write the tables of the Python libraries again: ``python -m tests.golden.python_lines PYTHON``.

PYTHON is a Python that has pypaimon and pypaimon-rust. The files of ``lines/<writer>`` have the forms of `lines`.
"""

import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from paimon_core.types.datatype import DataField
from paimon_core.types.parse import parse_type
from tests.conformance.domain import value
from tests.conformance.kinds import FORMATS
from tests.conformance.values import arrow, rows
from tests.golden.lines import LINES, SEED, packed

PROGRAM = Path(__file__).parent / "python_writer.py"
LIBRARIES = {"pypaimon": "pypaimon", "rust": "pypaimon-rust"}
BASE = (("p", "STRING NOT NULL"), ("k", "INT NOT NULL"), ("s", "INT"))
TYPES = (
    "BOOLEAN", "TINYINT", "BIGINT", "DOUBLE", "DECIMAL(9, 2)", "DECIMAL(38, 10)", "STRING", "BYTES", "DATE",
    "TIMESTAMP(3)", "TIMESTAMP(6)", "TIMESTAMP(6) WITH LOCAL TIME ZONE", "ARRAY<INT>", "ROW<a INT, b STRING>",
)  # fmt: skip
EVOLUTION = {"row-tracking.enabled": "true", "data-evolution.enabled": "true", "deletion-vectors.enabled": "true"}
Definition = tuple[tuple[str, ...], tuple[str, ...], dict[str, str]]
"""Primary key, partition columns and options."""
KINDS: dict[str, Definition] = {
    **{f"append_{one}": ((), (), {"file.format": one}) for one in FORMATS},
    "buckets": ((), (), {"bucket": "2", "bucket-key": "k"}),
    "partitions": ((), ("p",), {}),
    "keyed": (("k",), (), {"bucket": "1"}),
    "keyed_partitions": (("p", "k"), ("p",), {"bucket": "2", "file.format": "orc"}),
    "sequence": (("k",), (), {"bucket": "1", "sequence.field": "s"}),
    "changelog": (("k",), (), {"bucket": "1", "changelog-producer": "input"}),
    "dynamic": (("k",), (), {"bucket": "-1"}),
    "vectors": ((), (), EVOLUTION),
}


class LibraryError(RuntimeError):
    """A library refused an order."""


class PythonLine:
    """A process with a library over a warehouse, and files of rows between the two."""

    def __init__(self, python: str, library: str, warehouse: str, scratch: str) -> None:
        self._scratch, self._count = Path(scratch), 0
        self._process = subprocess.Popen(
            [python, PROGRAM, library, warehouse], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def do(self, order: str, **arguments: Any) -> None:
        """Let the library carry out an order. Raises LibraryError if it fails."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"do": order, **arguments}) + "\n")
        self._process.stdin.flush()
        answer = {}
        while "ok" not in answer:
            line = self._process.stdout.readline()
            if not line:
                raise LibraryError(f"{order}: the process ended")
            answer = json.loads(line) if line.startswith('{"ok"') else {}
        if not answer["ok"]:
            raise LibraryError(f"{order}: {answer['error'][:300]}")

    def file(self, found: Sequence[Mapping[str, Any]], fields: Sequence[DataField]) -> str:
        """Return the path of a file with rows as the conversation writes them."""
        self._count += 1
        path, data = str(self._scratch / f"{self._count}.arrow"), arrow([dict(row) for row in found], fields)
        schema = pa.schema([f.with_nullable(d.type.nullable) for f, d in zip(data.schema, fields, strict=True)])
        with pa.OSFile(path, "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
            writer.write_table(data.cast(schema))
        return path

    def read(self, table: str, types: Mapping[str, DataField], **options: str) -> dict[str, Any]:
        """Return what the library reads: columns, types and rows; ``types``: the columns by every name they had."""
        into = str(self._scratch / "read.arrow")
        self.do("read", table=table, options=options, into=into)
        with pa.memory_map(into) as source:
            found = pa.ipc.open_file(source).read_all()
        fields = [types[name] for name in found.column_names]
        as_ours = arrow([], fields).schema
        columns = [found.column(f.name).cast(a.type) for f, a in zip(fields, as_ours, strict=True)]
        plain = pa.Table.from_arrays(columns, names=found.column_names)
        return {
            "columns": found.column_names,
            "types": [str(f.type) for f in found.schema],
            "rows": rows(plain, fields),
        }

    def close(self) -> None:
        """Let the process end."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(60)


def fields_of(file_format: str, more: Sequence[tuple[str, str]] = ()) -> tuple[DataField, ...]:
    """Return the columns of a table. In Avro without nested columns, in which pypaimon writes no NULL."""
    types = [text for text in TYPES if file_format != "avro" or "<" not in text]
    columns = [*BASE, *((f"c{i}", text) for i, text in enumerate(types)), *more]
    return tuple(DataField(-1, name, parse_type(text)) for name, text in columns)


def drawn(rng: random.Random, fields: Sequence[DataField], count: int) -> list[dict[str, Any]]:
    """Return random rows; of equal keys in one commit the last counts."""
    found = [{f.name: value(rng, f.type, "orc") for f in fields} for _ in range(count)]
    found = [{**row, "p": rng.choice("ab"), "k": rng.randrange(30), "s": n} for n, row in enumerate(found)]
    return [*{(row["p"], row["k"]): row for row in found}.values()]


def history(line: PythonLine, name: str, definition: Definition, rng: random.Random) -> dict[str, Any]:
    """Write, tag, branch, delete, change the schema and write again; return what the library reads at each moment."""
    keys, partitions, options = definition
    file_format = options.get("file.format", "parquet")
    fields = fields_of(file_format)
    types, table = {f.name: f for f in fields}, f"db.{name}"
    first = line.file(drawn(rng, fields, 10), fields)
    line.do("create", table=table, rows=first, keys=keys, partitions=partitions, options=options)
    line.do("write", table=table, rows=first)
    line.do("write", table=table, rows=line.file(drawn(rng, fields, 10), fields))
    count = 2
    if "data-evolution.enabled" in options:
        line.do("delete", table=table, ids=[1, 3, 12])
        count += 1
    line.do("tag", table=table, name="first", snapshot=1)
    line.do("branch", table=table, name="side", tag="first")
    moments = {"tag first": {"scan.tag-name": "first"}}
    if "row-tracking.enabled" not in options:
        line.do("alter", table=table, rename=["c0", "renamed"], add=["added", "DATE"])
        changed = fields_of(file_format, [("added", "DATE")])
        changed = tuple(DataField(-1, "renamed" if f.name == "c0" else f.name, f.type) for f in changed)
        types |= {f.name: f for f in changed}
        line.do("write", table=table, rows=line.file(drawn(rng, changed, 6), changed))
        count += 1
    moments |= {f"snapshot {number}": {"scan.snapshot-id": str(number)} for number in range(1, count + 1)}
    found = {moment: line.read(table, types, **given) for moment, given in sorted(moments.items())}
    return {**found, "now": line.read(table, types), "branch side": line.read(f"{table}$branch_side", types)}


def told_by(line: PythonLine, name: str, definition: Definition) -> dict[str, Any] | LibraryError:
    """Return the result of `history`, or the refusal of the library."""
    try:
        return history(line, name, definition, random.Random(f"{SEED} {name}"))
    except LibraryError as error:
        return error


def main() -> None:
    """Write the tables of both libraries; print what a library cannot do itself."""
    python = sys.argv[1]
    for library, package in LIBRARIES.items():
        asked = [python, "-c", f"from importlib.metadata import version; print(version({package!r}))"]
        number = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
        told = {}
        with tempfile.TemporaryDirectory() as warehouse, tempfile.TemporaryDirectory() as scratch:
            line = PythonLine(python, library, warehouse, scratch)
            for name, definition in KINDS.items():
                found = told_by(line, name, definition)
                if isinstance(found, LibraryError):
                    print(f"{package} {number} {name}: left out: {found}")
                else:
                    told[name] = found
            line.close()
            packed(LINES / f"{package}-{number}", Path(warehouse), told)


if __name__ == "__main__":
    main()
