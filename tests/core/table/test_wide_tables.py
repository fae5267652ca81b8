"""The work on a table grows with its columns, not with their square."""

import cProfile
import pstats

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from paimon_core import Schema, Table

FEW = 150
_KEYED = {"bucket": "1"}
KINDS = {
    "append": ([], {}),
    "columns of rows": ([], {"row-tracking.enabled": "true", "data-evolution.enabled": "true"}),
    "deduplicate": (["id"], _KEYED),
    "partial-update": (["id"], _KEYED | {"merge-engine": "partial-update"}),
    "aggregation": (["id"], _KEYED | {"merge-engine": "aggregation", "fields.default-aggregate-function": "sum"}),
    "lookup": (["id"], _KEYED | {"changelog-producer": "lookup"}),
    "orc": ([], {"file.format": "orc"}),
    "avro": ([], {"file.format": "avro"}),
}


def rows(columns: int, first: int = 0) -> pa.Table:
    numbers = {f"c{i}": np.arange(5) + first for i in range(columns)}
    schema = pa.schema([pa.field("id", pa.int64(), False), *(pa.field(name, pa.int64()) for name in numbers)])
    return pa.table({"id": np.arange(5) + first, **numbers}, schema=schema)


def calls(path: str, columns: int, keys: list[str], options: dict[str, str]) -> dict[str, int]:
    """Return the number of function calls of each operation on a table with this number of columns."""
    given = rows(columns)
    Table.create(path, Schema(given.schema, primary_keys=keys, options=options))
    operations = {
        "write": lambda table: table.write(given),
        "write again": lambda table: table.write(rows(columns, 2)),
        "read": lambda table: table.to_arrow(),
        "filter": lambda table: table.to_arrow(filter="c5 = 3 AND c7 < 40"),
        "update": lambda table: table.update({"c3": pc.field("c4")}, "id < 3"),
        "merge": lambda table: table.merge(given.slice(0, 2), on=["id"]).when_matched_update_all().execute(),
        "compact": lambda table: table.compact(full=True),
    }
    if options.get("merge-engine"):
        del operations["update"], operations["merge"]
    found = {}
    for name, operation in operations.items():
        table = Table.open(path)
        with cProfile.Profile() as profile:
            operation(table)
        found[name] = pstats.Stats(profile).total_calls
    return found


@pytest.mark.cases(1)
@pytest.mark.parametrize("kind", KINDS)
def test_calls_grow_with_columns(tmp_path, kind):
    few, many = (calls(f"{tmp_path}/{n}", n, *KINDS[kind]) for n in (FEW, 4 * FEW))
    growth = {name: round(many[name] / few[name], 1) for name in few}
    assert {name: times for name, times in growth.items() if times > 4.2} == {}
