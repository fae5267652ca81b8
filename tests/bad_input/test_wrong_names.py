"""A wrong name: the error says what was asked, what there is, at most 20 of it, and the nearest name."""

import re

import pyarrow as pa
import pytest

from paimon_core import FileSystemCatalog, Schema, Table
from paimon_core.errors import NotFoundError, PaimonError, listed_names, nearest_name

COLUMNS = pa.schema([pa.field("id", pa.int64(), nullable=False), ("day", pa.string())])
WRONG = {
    "tag": lambda t, c: t.to_arrow(tag="nightly-02"),
    "tag to delete": lambda t, c: t.tags.delete("nightly-02"),
    "version": lambda t, c: t.to_arrow(version="Nightly-1"),
    "interval": lambda t, c: t.changes("nightly-1", "nightly-O1"),
    "branch": lambda t, c: Table.open(t.path, branch="devel"),
    "branch to delete": lambda t, c: t.branches.delete("devel"),
    "fallback": lambda t, c: t.with_options({"scan.fallback-branch": "devel"}).to_arrow(),
    "consumer": lambda t, c: t.consumers.reset("stream"),
    "system table": lambda t, c: Table.open(t.path + "$snapshot"),
    "column": lambda t, c: t.to_arrow(["idd"]),
    "column of a filter": lambda t, c: t.to_arrow(filter="idd = 1"),
    "partition column": lambda t, c: t.compact(partitions=[{"dayy": "a"}]),
    "partition column of an overwrite": lambda t, c: t.drop_partitions([{"dayy": "a"}]),
    "partition column of a compaction": lambda t, c: t.compact(filter="dayy = 'a'"),
    "table": lambda t, c: c.table("shop.order"),
    "table to drop": lambda t, c: c.drop_table("shop.order"),
    "database": lambda t, c: c.create_table("shpo.t", Schema(COLUMNS)),
}
NEAREST = {
    "tag": "nightly-01", "tag to delete": "nightly-01", "version": "nightly-01", "interval": "nightly-01",
    "branch": "dev", "branch to delete": "dev", "fallback": "dev", "consumer": "streams", "system table": "$snapshots",
    "column": "id", "column of a filter": "id", "partition column": "day", "partition column of an overwrite": "day",
    "partition column of a compaction": "day", "table": "orders", "table to drop": "orders", "database": "shop",
}  # fmt: skip


@pytest.fixture
def catalog(tmp_path):
    catalog = FileSystemCatalog(str(tmp_path))
    catalog.create_database("shop")
    return catalog


@pytest.fixture
def table(catalog):
    options = {"bucket": "1"}
    schema = Schema(COLUMNS, primary_keys=["id", "day"], partition_keys=["day"], options=options)
    table = catalog.create_table("shop.orders", schema)
    table.write(pa.table({"id": [1], "day": ["a"]}))
    table.tags.create("nightly-01")
    table.branches.create("dev")
    table.consumers.reset("streams", 1)
    return table


@pytest.mark.parametrize("kind", WRONG)
def test_nearest_name_is_in_message(catalog, table, kind):
    with pytest.raises(PaimonError) as refused:
        WRONG[kind](table, catalog)
    message = str(refused.value)
    assert f"did you mean {NEAREST[kind]!r}?" in message
    assert message.count(NEAREST[kind]) >= 2, "it is one of the names that there are"


def test_of_many_tags_twenty_are_named(table):
    for number in range(2, 60):
        table.tags.create(f"nightly-{number:02}")
    with pytest.raises(NotFoundError) as refused:
        table.to_arrow(tag="nightly_57")
    message = str(refused.value)
    assert len(set(re.findall(r"nightly-\d\d(?=,)", message))) == 20
    assert message.endswith(", ... (59 in all); did you mean 'nightly-57'?")


def test_names_without_near_match_are_only_listed():
    assert listed_names("xyz", ["orders", "items"]) == "orders, items"
    assert listed_names("xyz", []) == "none"
    assert listed_names("xyz", [], "no tags") == "no tags"
    assert (nearest_name("ORDER", ["items", "Orders"]), nearest_name("", ["a"]), nearest_name("a", [])) == (
        "Orders", None, None,
    )  # fmt: skip
