"""Tables that every Java line and the Python libraries wrote: read as their writers read them, then written by us."""

import json
import tarfile
from pathlib import Path

import pyarrow as pa
import pytest

from paimon_core import Table
from tests.conformance.compare import same
from tests.conformance.values import normal, rows

LINES = Path(__file__).parent / "lines"
HOMES = sorted(path.parent for path in LINES.glob("*/rows.json"))
TOLD = {home.name: json.loads((home / "rows.json").read_text(encoding="utf-8")) for home in HOMES}
QUICK = {("java-0.9.0", "append_orc"), ("java-0.9.0", "keyed_avro"), ("java-1.2.0", "changelog")}
SAFELY = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}  # since Python 3.10.12 and 3.11.4
MOST_RUNS = ("java-0.9.0", "java-1.4.2", "pypaimon-2.1.0")
"""The oldest and the newest Java line. The newest rows of all tables are read in each run."""


def _marks(writer, name):
    if (writer, name) in QUICK:
        return ()
    return pytest.mark.more if writer in MOST_RUNS else pytest.mark.slow


CASES = [
    pytest.param((writer, name), id=f"{writer}-{name}", marks=_marks(writer, name))
    for writer, tables in TOLD.items()
    for name in tables
]


@pytest.fixture(params=CASES)
def case(request, tmp_path):
    """The path of a copy of a table, and what its writer read."""
    writer, name = request.param
    with tarfile.open(LINES / writer / "tables.tar.xz") as archive:
        members = [member for member in archive.getmembers() if member.name.split("/")[0] == name]
        archive.extractall(tmp_path, members, **SAFELY)
    return str(tmp_path / name), TOLD[writer][name]


def opened(path, moment):
    """Return the table, the arguments of a read, and the columns at a moment such as "snapshot 2"."""
    kind, _, name = moment.partition(" ")
    table = Table.open(path, branch=name if kind == "branch" else None)
    when = {"snapshot": lambda: {"snapshot_id": int(name)}, "tag": lambda: {"tag": name}}.get(kind, dict)()
    snapshot = table.snapshot(**when) if when else None
    schema = table.schema if snapshot is None else table.store.schemas.get(snapshot.schema_id)
    return table, when, schema.fields


@pytest.mark.parametrize("writer", TOLD)
def test_every_table_has_newest_rows_of_its_writer(tmp_path, writer):
    with tarfile.open(LINES / writer / "tables.tar.xz") as archive:
        archive.extractall(tmp_path, **SAFELY)
    for name, told in TOLD[writer].items():
        fields, seen = Table.open(str(tmp_path / name)).schema.fields, told["now"]
        expected = [[normal(v, f.type) for v, f in zip(row, fields, strict=True)] for row in seen["rows"]]
        same(rows(Table.open(str(tmp_path / name)).to_arrow(), fields), expected, f"{writer} {name}")


def test_every_moment_has_rows_that_writer_read(case):
    path, told = case
    assert not Table.open(path).verify(deep=True).faults
    for moment, seen in told.items():
        if moment == "changes":
            continue
        table, when, fields = opened(path, moment)
        expected = [[normal(v, f.type) for v, f in zip(row, fields, strict=True)] for row in seen["rows"]]
        assert [f.name for f in fields] == seen["columns"]
        same(rows(table.to_arrow(**when), fields), expected, f"{path} {moment}")
        position = seen["columns"].index("k")
        some = [row for row in expected if row[position] > 20]
        same(rows(table.to_arrow(filter="k > 20", **when), fields), some, f"{path} {moment} k > 20")


def test_copy_is_written_compacted_and_expired(case):
    path, told = case
    table, _, fields = opened(path, "now")
    before = rows(table.to_arrow(), fields)
    extra = {f.name: None for f in fields} | {"p": "x", "k": 1000, "op": "+I"}
    arrow = table.to_arrow().schema
    table.write(pa.Table.from_pylist([extra], arrow))
    table.compact(full=True)
    table.maintenance.expire_snapshots(retain_max=1, retain_min=1)
    again = Table.open(path)
    assert len(again.snapshots()) == 1
    added = rows(pa.Table.from_pylist([extra], arrow), fields)
    same(rows(again.to_arrow(), fields), before + added, f"{path} after writes")
    same(len(again.to_arrow(tag="first")) * [[]], len(told["tag first"]["rows"]) * [[]], f"{path}: the tag")
    assert not again.verify(deep=True).faults
