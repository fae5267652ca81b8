"""Tables whose keys may be NULL (``primary-key.nullable``): NULL equals NULL and is smaller than all values."""

import random

import pyarrow as pa
import pytest

from paimon_core import FileSystemCatalog, Schema
from paimon_core.errors import UnsupportedError
from paimon_core.format import parquet_writer
from paimon_core.read.merge_masks import merge_masks, merged_sections
from paimon_core.scan.base_run import base_run
from paimon_core.schema import support

KINDS = {"int": pa.int32(), "text": pa.string(), "double": pa.float64(), "flag": pa.bool_()}
VALUES = {"int": [None, -1, 0, 7], "text": [None, "", "a", "long " * 20], "double": [None, -0.0, 0.0, 1.5],
          "flag": [None, False, True]}  # fmt: skip


@pytest.fixture
def written(monkeypatch):
    """Lets this engine write such tables, in small row groups."""
    limits = tuple(limit for limit in support.LIMITS if "new keys" not in limit.reason)
    monkeypatch.setattr(support, "LIMITS", limits)
    monkeypatch.setattr(parquet_writer, "_ROW_GROUP_ROWS", 3)


def new_table(path, types, **options):
    rows = pa.schema([*((f"k{n}", KINDS[kind]) for n, kind in enumerate(types)), ("v", pa.int64())])
    catalog = FileSystemCatalog(str(path))
    catalog.create_database("d", ignore_if_exists=True)
    settings = {"primary-key.nullable": "true", "bucket": "2", "write-only": "true"} | options
    return catalog.create_table("d.t", Schema(rows, primary_keys=rows.names[:-1], options=settings))


def rows_of(table, **how):
    *keys, _ = table.arrow_schema.names
    rows = table.to_arrow(**how).to_pylist()
    found = {tuple(repr(row[key]) for key in keys): row["v"] for row in rows}
    assert len(found) == len(rows)  # no key twice
    return found


@pytest.mark.drawn
@pytest.mark.cases(2)
@pytest.mark.parametrize("types", [("int",), ("text", "int"), ("double", "flag"), ("int", "text")], ids="-".join)
def test_null_is_a_key(types, rng: random.Random, tmp_path, written):
    table, model, snapshots = new_table(tmp_path, types), {}, {}
    names = table.arrow_schema.names
    for turn in range(6):
        keys = sorted({tuple(rng.choice(VALUES[kind]) for kind in types) for _ in range(8)}, key=repr)
        kinds = [rng.choice(["+I", "+I", "-D"]) for _ in keys]
        rows = [dict(zip(names, (*key, turn), strict=True)) for key in keys]
        table.write(pa.Table.from_pylist(rows, table.arrow_schema), row_kinds=kinds)
        for key, kind in zip(keys, kinds, strict=True):
            model.pop(tuple(map(repr, key)), None)
            if kind == "+I":
                model[tuple(map(repr, key))] = turn
        if rng.random() < 0.3:
            table.compact(full=rng.random() < 0.5)
        assert rows_of(table) == model
        snapshots[table.store.snapshots.latest_id()] = dict(model)
        assert rows_of(table, filter="k0 IS NULL") == {key: v for key, v in model.items() if key[0] == "None"}
        assert rows_of(table, filter="k0 IS NOT NULL") == {key: v for key, v in model.items() if key[0] != "None"}
        plan = table.scan().plan()
        assert base_run(table.store, plan) is None
        masked = [merge_masks(table.store, part) for s in plan.splits for part in merged_sections(table.store, s)]
        unmasked = sum(s.row_count for s in plan.splits) - sum(len(m) for masks in masked for m in masks.values())
        assert unmasked + sum(int(m.sum()) for masks in masked for m in masks.values()) == len(model)
    for number, expected in snapshots.items():
        assert rows_of(table, snapshot_id=number) == expected
    first, last = min(snapshots), max(snapshots)
    before, after = snapshots[first], snapshots[last]
    changes = table.changes(first, last, mode="diff").to_pylist()
    kinds = sorted(row["rowkind"] for row in changes)
    assert kinds.count("+I") == len(after.keys() - before.keys())
    assert kinds.count("-D") == len(before.keys() - after.keys())


def test_lookups_and_writes_are_refused(tmp_path, written, monkeypatch):
    table = new_table(tmp_path, ("int",))
    row = pa.Table.from_pylist([{"k0": None, "v": 1}], table.arrow_schema)
    table.write(row)
    with pytest.raises(UnsupportedError, match=r"primary-key.nullable.*read with a filter"):
        table.get({"k0": 1})
    monkeypatch.undo()
    with pytest.raises(UnsupportedError, match=r"primary-key\.nullable"):
        table.write(row)
