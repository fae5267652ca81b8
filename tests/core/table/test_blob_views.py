"""Columns that store views of blobs: the table, the column and the row of a blob of the same catalog."""

import pickle
import struct

import pyarrow as pa
import pytest

from paimon_core import blob_views, open_catalog
from paimon_core.errors import CorruptedError, InvalidInputError, NotFoundError, UnsupportedError
from paimon_core.format.blob_view import views
from paimon_core.read import blob_views as reader
from paimon_core.schema.schema import Schema
from paimon_core.table import Table
from tests.support.metastore_double import metastore_double
from tests.support.rest_rules import field, leaf, rules
from tests.support.rest_server import catalog_server

EVOLVING = {"row-tracking.enabled": "true", "data-evolution.enabled": "true"}
SOURCE = Schema(
    pa.schema([("k", pa.int64()), ("b", pa.binary()), ("c", pa.binary())]), options={**EVOLVING, "blob-field": "b,c"}
)
VIEWS = Schema(pa.schema([("k", pa.int64()), ("v", pa.binary())]), options={**EVOLVING, "blob-view-field": "v"})


def view(table, field_id, row_id):
    """A view, by its definition."""
    name = table.encode()
    return struct.pack("<bqi", 1, 0x424C4F4256494557, len(name)) + name + struct.pack("<iq", field_id, row_id)


def rows(*values):
    return pa.table({"k": range(len(values)), "v": pa.array(values, pa.binary())})


def values(table, **options):
    return table.with_options(options).to_arrow().column("v").to_pylist()


@pytest.fixture
def catalog(tmp_path):
    """A catalog with a table of blobs in two commits, and an empty table of views."""
    catalog = open_catalog(str(tmp_path))
    catalog.create_database("db")
    source, _ = catalog.create_table("db.source", SOURCE), catalog.create_table("db.t", VIEWS)
    for turn in range(2):
        keys = range(5 * turn, 5 * turn + 5)
        source.write(
            pa.table({"k": keys, "b": [b"b%d" % k for k in keys], "c": [b"c" if k % 2 else None for k in keys]})
        )
    return catalog


def test_views_are_stored_and_blobs_are_read(catalog):
    source, table = catalog.table("db.source"), catalog.table("db.t")
    b, c = (source.schema.field(name).id for name in "bc")
    given = [view("db.source", *at) for at in ((b, 7), (c, 7), (b, 0), (c, 0), (b, 7))]
    assert blob_views("db.source", b, pa.array([7, 0])).to_pylist() == [given[0], given[2]]
    table.write(rows(*given, None))
    assert values(table) == [b"b7", b"c", b"b0", None, b"b7", None]
    assert values(table, **{"blob-as-descriptor": "true"}) == [*given, None]
    source.update_columns(pa.table({"_ROW_ID": [7], "b": [b"new"]}))
    assert values(table) == [b"new", b"c", b"b0", None, b"new", None]
    table.compact(full=True)
    assert table.to_arrow(["v"], filter="k = 0").to_pylist() == [{"v": b"new"}]


@pytest.mark.parametrize("keys", [(), ("k",)])
def test_filters_test_blobs_not_views(catalog, keys):
    """A view of NULL is NULL: neither statistics nor filters of files decide."""
    options = {"bucket": "1", "blob-view-field": "v"} if keys else {**VIEWS.options, "deletion-vectors.enabled": "true"}
    table = catalog.create_table("db.filtered", Schema(VIEWS.fields, primary_keys=keys, options=options))
    c = catalog.table("db.source").schema.field("c").id
    table.write(rows(view("db.source", c, 0), view("db.source", c, 1)))
    keyed = lambda **how: table.to_arrow(["k"], **how).column("k").to_pylist()  # noqa: E731
    assert keyed(filter="v IS NULL") == [0]
    assert keyed(filter="v IS NOT NULL") == [1]
    assert keyed(filter="v IS NOT NULL", limit=1) == [1]
    assert keyed(filter="v IS NULL AND k = 1") == []
    assert keyed(filter="v IS NULL OR k = 1") == [0, 1]
    assert table.with_options({"blob-as-descriptor": "true"}).to_arrow(filter="v IS NULL").num_rows == 0
    with pytest.raises(UnsupportedError, match="deleted by a condition on 'v', which stores views"):
        table.delete("v IS NULL")
    if keys:
        assert table.changes(0).column("v").to_pylist() == [None, b"c"]


def test_only_rows_of_views_are_read(catalog, monkeypatch):
    """A batch of views reads each column of each table once, and only the splits with its rows."""
    source, table = catalog.table("db.source"), catalog.table("db.t")
    b = source.schema.field("b").id
    table.write(rows(*blob_views("db.source", b, pa.array([9, 8, 6])).to_pylist()))
    read = []
    original = reader.TableScan.plan
    monkeypatch.setattr(reader.TableScan, "plan", lambda scan: read.append(original(scan)) or read[-1])
    assert values(table) == [b"b9", b"b8", b"b6"]
    of_source = [plan for plan in read if any(f.row_count == 5 for s in plan.splits for f in s.files)]
    assert [[min(f.first_row_id for f in s.files) for s in plan.splits] for plan in of_source] == [[5]]


def test_views_under_a_primary_key(catalog):
    kept = Schema(pa.schema([("k", pa.int64()), ("v", pa.binary())]), primary_keys=["k"],
                  options={"bucket": "1", "blob-view-field": "v", "merge-engine": "partial-update"})  # fmt: skip
    table = catalog.create_table("db.keyed", kept)
    b = catalog.table("db.source").schema.field("b").id
    table.write(rows(view("db.source", b, 1), view("db.source", b, 2)))
    table.write(rows(view("db.source", b, 3)))
    assert values(table) == [b"b3", b"b2"]
    assert table.get({"k": 1})["v"] == b"b2"


@pytest.mark.parametrize(
    ("value", "error", "said"),
    [
        (view("db.source", 1, 99), CorruptedError, "row 99 of table 'db.source', which has no such row"),
        (view("db.source", 0, 1), CorruptedError, "column 0 of table 'db.source', which is no column of type BLOB"),
        (view("db.source", 7, 1), CorruptedError, "column 7 of table 'db.source'"),
        (view("db.t", 1, 0), UnsupportedError, "column 'v' of table 'db.t', which holds views itself"),
        (view("db.none", 1, 0), NotFoundError, "table 'db.none', which does not exist"),
        (view("db.../../x", 1, 0), InvalidInputError, "is not a table name|would leave its directory"),
        (view("../x.t", 1, 0), InvalidInputError, "is not a table name|would leave its directory"),
        (view("source", 1, 0), InvalidInputError, "is not a table name"),
        (view("db.source$files", 1, 0), InvalidInputError, "no name of a table with its database"),
    ],
)
def test_views_of_missing_blobs_are_errors(catalog, value, error, said):
    table = catalog.table("db.t")
    table.write(rows(value))
    with pytest.raises(error, match=said):
        table.to_arrow()
    assert table.to_arrow(["k"]).num_rows == 1


KINDS = ["filesystem", "jdbc", "hive", "rest"]


@pytest.fixture
def named_catalog(request, tmp_path):
    """A catalog of the kind of the parameter, and its server; `None`: the catalog has no server."""
    if request.param == "rest":
        with catalog_server(tmp_path / "w") as server:
            yield open_catalog(options=server.options), server
    elif request.param == "hive":
        with metastore_double() as (uri, _):
            yield open_catalog(str(tmp_path / "w"), options={"metastore": "hive", "uri": uri}), None
    else:
        uri = {"uri": f"jdbc:sqlite:{tmp_path}/c.db"} if request.param == "jdbc" else {}
        yield open_catalog(str(tmp_path / "w"), options={"metastore": request.param, **uri}), None


@pytest.mark.parametrize("named_catalog", KINDS, indirect=True)
def test_views_name_tables_of_every_catalog(named_catalog, tmp_path):
    """Another process opens the catalog again. A blob is read where its own table may read it."""
    catalog, server = named_catalog
    catalog.create_database("db")
    (tmp_path / "w" / "db.db").mkdir(parents=True, exist_ok=True)  # Hive's own server does it
    elsewhere = {"path": str(tmp_path / "elsewhere")} if catalog.has_locations else {}
    source = catalog.create_table("db.source", Schema(SOURCE.fields, options={**SOURCE.options, **elsewhere}))
    table = catalog.create_table("db.t", VIEWS)
    source.write(pa.table({"k": [0, 1], "b": [b"b0", None], "c": [b"c0", b"c1"]}))
    b, c = (source.schema.field(name).id for name in "bc")
    table.write(rows(view("db.source", c, 1), view("db.source", b, 0), view("db.source", b, 1), None))
    assert values(table) == [b"c1", b"b0", None, None]
    assert values(pickle.loads(pickle.dumps(table))) == [b"c1", b"b0", None, None]
    assert values(catalog.table("db.t"), **{"scan.snapshot-id": "1"}) == [b"c1", b"b0", None, None]
    catalog.drop_table("db.source")
    with pytest.raises(NotFoundError, match=r"views of blobs of table 'db\.source', which does not exist"):
        catalog.table("db.t").to_arrow()
    if server is not None:
        catalog.create_table(
            "db.source", Schema(SOURCE.fields, options={**SOURCE.options, "query-auth.enabled": "true"})
        )
        server.permissions = {"db.source": rules(leaf(field("k", "BIGINT"), "EQUAL", 1))}
        with pytest.raises(UnsupportedError, match="the catalog's server filters the rows"):
            catalog.table("db.t").to_arrow()


@pytest.mark.parametrize("named_catalog", ["hive"], indirect=True)
@pytest.mark.parametrize("copy_first", [True, False])
def test_blob_that_two_tables_describe_is_read_through_one_that_may(named_catalog, tmp_path, copy_first):
    """The copy of a descriptor names a file that only the directory of the other table makes readable."""
    catalog, _ = named_catalog
    catalog.create_database("db")
    (tmp_path / "w" / "db.db").mkdir(parents=True, exist_ok=True)
    elsewhere = {"path": str(tmp_path / "elsewhere")}
    source = catalog.create_table("db.source", Schema(SOURCE.fields, options={**SOURCE.options, **elsewhere}))
    copied = Schema(VIEWS.fields, options={**EVOLVING, "blob-descriptor-field": "v"})
    copies, table = catalog.create_table("db.copies", copied), catalog.create_table("db.t", VIEWS)
    source.write(pa.table({"k": [0], "b": [b"b0"], "c": [b"c0"]}))
    stored = source.with_options({"blob-as-descriptor": "true"}).to_arrow(["b"]).column("b").to_pylist()
    trusted = copies.with_options({"blob.external-paths.allowed": elsewhere["path"]})
    trusted.write(rows(*stored))
    given = [view("db.copies", copies.schema.field("v").id, 0), view("db.source", source.schema.field("b").id, 0)]
    table.write(rows(*(given if copy_first else given[::-1])))
    assert values(table) == [b"b0", b"b0"]
    table.write(pa.table({"k": [2], "v": pa.array([given[0]], pa.binary())}))
    with pytest.raises(InvalidInputError, match="neither below the table nor below the warehouse"):
        catalog.table("db.t").to_arrow(filter="k = 2")


def test_views_need_a_catalog_and_are_written_as_views(catalog):
    table = catalog.table("db.t")
    table.write(rows(view("db.source", 1, 0)))
    with pytest.raises(UnsupportedError, match="which only its catalog finds"):
        Table.open(table.path).to_arrow()
    plain = catalog.create_table("db.plain", Schema(VIEWS.fields, primary_keys=["k"], options={"bucket": "1"}))
    other = catalog.create_table("db.other", VIEWS)
    other.write(rows(view("db.plain", plain.schema.field("v").id, 0)))
    with pytest.raises(InvalidInputError, match=r"table 'db\.plain' has no row ids"):
        other.to_arrow()
    for wrong in (b"bytes", view("db.source", 1, 0)[:20], view("db.source", 1, 0).replace(b"\x01", b"\x02", 1)):
        with pytest.raises(InvalidInputError, match=r"bytes that are no blob view \(row 1 of the data\)"):
            table.write(rows(None, wrong))
    with pytest.raises(InvalidInputError, match="'v' is in both"):
        catalog.create_table("db.both", Schema(VIEWS.fields, options={**VIEWS.options, "blob-descriptor-field": "v"}))
    with pytest.raises(InvalidInputError, match="no name of a table with its database"):
        blob_views("t", 1, pa.array([1]))
    with pytest.raises(InvalidInputError, match="numbers without NULL"):
        blob_views("db.t", 1, pa.array([None, 1]))


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (b"", CorruptedError),
        (view("db.t", 1, 1)[:-1], CorruptedError),
        (view("db.t", 1, 1).replace(b"db", b"\xff\xff"), CorruptedError),
        (b"\x02" + view("db.t", 1, 1)[1:], UnsupportedError),
    ],
)
def test_damaged_views_are_refused(value, error):
    with pytest.raises(error, match="a column has"):
        views(pa.array([value], pa.binary()), "a column")
