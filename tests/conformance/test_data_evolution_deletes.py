"""Deleted rows of tables whose columns may be in several files: pypaimon and we take turns, and read the same rows."""

import json
import subprocess
from pathlib import Path

import pyarrow as pa
import pytest

from paimon_core.table import Table
from tests.conformance.compare import same

pytestmark = [pytest.mark.readers, pytest.mark.slow]
EVOLVE = Path(__file__).parent / "readers" / "evolve.py"


@pytest.fixture
def ask(python, tmp_path):
    """Give pypaimon an order, and return its answer."""
    command = [python, EVOLVE, str(tmp_path), "db.t"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:

        def ask(**order):
            process.stdin.write(json.dumps(order) + "\n")
            process.stdin.flush()
            while (line := process.stdout.readline()) and not line.startswith('{"answer"'):
                pass
            assert line, f"pypaimon could not run {order}"
            return json.loads(line)["answer"]

        yield ask
        process.stdin.close()


@pytest.mark.parametrize("turns", [40])
def test_both_change_columns_and_delete_rows(ask, tmp_path, rng, turns):
    ask(do="create")
    path, model, following = str(tmp_path / "db.db" / "t"), {}, 0
    for turn in range(turns):
        table, theirs = Table.open(path), rng.random() < 0.5
        step = "append" if len(model) < 4 else rng.choice(["append", "update", "update", "delete", "delete", "compact"])
        if step == "append":
            rows = [[following + i, f"w{turn}", i] for i in range(rng.randint(1, 6))]
            if theirs:
                ask(do="append", rows=rows)
            else:
                names = table.arrow_schema.names
                lines = [dict(zip(names, row, strict=True)) for row in rows]
                table.write(pa.Table.from_pylist(lines, schema=table.arrow_schema))
            model |= {row[0]: row for row in rows}  # the id of a row is also its row id
            following += len(rows)
        elif step == "compact":
            table.compact(full=rng.random() < 0.7)
        else:
            ids = sorted(rng.sample(sorted(model), rng.randint(1, 3)))
            if step == "delete" and theirs:
                ask(do="delete", ids=ids)
            elif step == "delete":
                table.delete(f"id in ({', '.join(map(str, ids))})")
            else:
                column, value = rng.choice([("v", f"u{turn}"), ("n", turn)])
                if theirs:
                    ask(do="update", ids=ids, columns={column: [value] * len(ids)})
                else:
                    kind = table.arrow_schema.field(column).type
                    table.update_columns(pa.table({"_ROW_ID": ids, column: pa.array([value] * len(ids), kind)}))
                for i in ids:
                    model[i] = [value if name == column else old for name, old in zip("ivn", model[i], strict=True)]
            if step == "delete":
                model = {i: row for i, row in model.items() if i not in ids}
        rows = Table.open(path).to_arrow(["id", "v", "n", "_ROW_ID"]).to_pylist()
        same([list(row.values()) for row in rows], [[*row, i] for i, row in model.items()], f"{turn} {step}: ours")
        same(ask(do="read"), list(model.values()), f"{turn} {step}: pypaimon's")
    assert Table.open(path).verify(deep=True).sound
