"""Views and functions of catalogs: in a JDBC database, on a REST server, in a Hive metastore, and in none."""

import json
import sqlite3

import pyarrow as pa
import pytest

from paimon_core import CatalogFunction, Schema, View, open_catalog
from paimon_core.errors import AlreadyExistsError, CorruptedError, InvalidInputError, NotFoundError, UnsupportedError
from paimon_core.types.datatype import DataField
from paimon_core.types.parse import parse_type
from tests.support.metastore_double import metastore_double
from tests.support.rest_server import catalog_server

FIELDS = (DataField(0, "id", parse_type("INT NOT NULL"), "the key"), DataField(1, "n", parse_type("ARRAY<STRING>")))
VIEW = View(FIELDS, "SELECT 1, array('x')", {"spark": "SELECT 1, array('x')"}, "a comment", {"k": "v"})
OTHER = View(FIELDS[:1], "SELECT 2", {"spark": "SELECT 2"})
TABLE = Schema(pa.schema([("id", pa.int32())]))


@pytest.fixture(params=["jdbc", "rest", "hive"])
def catalog(request, tmp_path):
    if request.param == "jdbc":
        options = {"metastore": "jdbc", "uri": f"jdbc:sqlite:{tmp_path}/catalog.db", "warehouse": str(tmp_path / "w")}
        yield _opened(options, tmp_path)
    elif request.param == "rest":
        with catalog_server(tmp_path / "w") as server:
            yield _opened(server.options, tmp_path)
    else:
        with metastore_double() as (uri, _):
            yield _opened({"metastore": "hive", "uri": uri, "warehouse": str(tmp_path / "w")}, tmp_path)


def _opened(options, tmp_path):
    catalog = open_catalog(options=options)
    for name in ("db", "other"):
        catalog.create_database(name)
        (tmp_path / "w" / f"{name}.db").mkdir(parents=True, exist_ok=True)  # as a metastore does
    return catalog


def dialects_of(catalog, view):
    """Return the dialects that a catalog stores: a metastore has one text for all."""
    return {} if catalog.kind == "hive" else dict(view.dialects)


def test_view_is_stored_and_found(catalog):
    assert catalog.list_views("db") == []
    catalog.create_view("db.v", VIEW)
    found = catalog.view("db.v")
    assert (found.query, found.query_in("spark"), found.comment) == (VIEW.query, VIEW.query, "a comment")
    assert (dict(found.dialects), dict(found.options)) == (dialects_of(catalog, VIEW), {"k": "v"})
    assert [(f.name, str(f.type), f.description) for f in found.fields] == [
        ("id", "INT NOT NULL", "the key"),
        ("n", "ARRAY<STRING>", None),
    ]
    assert (catalog.list_views("db"), catalog.list_tables("db"), catalog.list_views("sys")) == (["v"], [], [])
    assert catalog.view_exists("db.v")
    assert not catalog.table_exists("db.v")
    with pytest.raises(NotFoundError, match=r"no view 'db\.u'.*database 'db' has: v"):
        catalog.view("db.u")
    with pytest.raises((NotFoundError, UnsupportedError), match=r"db\.v.* is a view"):
        catalog.table("db.v")


def test_view_is_replaced_and_dropped(catalog):
    catalog.create_view("db.v", VIEW)
    with pytest.raises(AlreadyExistsError, match=r"db\.v.* exists already"):
        catalog.create_view("db.v", OTHER)
    catalog.create_view("db.v", OTHER, ignore_if_exists=True)
    assert catalog.view("db.v").query == VIEW.query
    catalog.create_view("db.v", OTHER, replace=True)
    assert (catalog.view("db.v").query, catalog.view("db.v").comment) == ("SELECT 2", None)
    catalog.create_view("db.w", OTHER, replace=True)
    catalog.drop_view("db.v")
    assert catalog.list_views("db") == ["w"]
    catalog.drop_view("db.v", ignore_if_not_exists=True)
    with pytest.raises(NotFoundError, match="no view"):
        catalog.drop_view("db.v")
    with pytest.raises(NotFoundError, match="no database 'nope'"):
        catalog.create_view("nope.v", VIEW)


def test_view_is_renamed_and_altered(catalog):
    catalog.create_view("db.v", VIEW)
    catalog.create_view("db.taken", OTHER)
    with pytest.raises(AlreadyExistsError):
        catalog.rename_view("db.v", "db.taken")
    catalog.rename_view("db.v", "other.w")
    assert (catalog.list_views("db"), catalog.list_views("other")) == (["taken"], ["w"])
    catalog.alter_view("other.w", options={"k": None, "new": "1"}, comment="another")
    found = catalog.view("other.w")
    assert (dict(found.options), found.comment, found.query) == ({"new": "1"}, "another", VIEW.query)
    catalog.alter_view("other.w", comment="")
    assert catalog.view("other.w").comment is None
    for change in (lambda: catalog.rename_view("db.v", "db.x"), lambda: catalog.alter_view("db.v", comment="x")):
        with pytest.raises(NotFoundError, match="no view"):
            change()


def test_dialects(catalog):
    catalog.create_view("db.v", VIEW)
    if catalog.kind == "hive":
        with pytest.raises(UnsupportedError, match="one text for all engines"):
            catalog.alter_view("db.v", dialects={"flink": "SELECT 7"})
        with pytest.raises(UnsupportedError, match="one text for all engines"):
            catalog.create_view("db.x", View(FIELDS, "SELECT 1", {"flink": "SELECT 7"}))
        return
    catalog.alter_view("db.v", dialects={"flink": "SELECT 7"})
    catalog.alter_view("db.v", dialects={"flink": "SELECT 8", "spark": None})
    found = catalog.view("db.v")
    assert (found.query_in("flink"), found.query_in("spark")) == ("SELECT 8", VIEW.query)
    assert "spark" not in found.dialects
    with pytest.raises(InvalidInputError, match="has no query in dialect 'spark'; its dialects: flink"):
        catalog.alter_view("db.v", dialects={"spark": None})


def test_views_and_tables_share_names(catalog):
    catalog.create_table("db.t", TABLE)
    catalog.create_view("db.v", VIEW)
    with pytest.raises(AlreadyExistsError):
        catalog.create_table("db.v", TABLE)
    for replace in (False, True):
        with pytest.raises(AlreadyExistsError):
            catalog.create_view("db.t", VIEW, replace=replace)
    for rename in (lambda: catalog.rename_view("db.v", "db.t"), lambda: catalog.rename_table("db.t", "db.v")):
        with pytest.raises(AlreadyExistsError):
            rename()
    with pytest.raises(InvalidInputError, match="not empty, it has t, v"):
        catalog.drop_database("db")
    catalog.drop_database("db", cascade=True)
    assert "db" not in catalog.list_databases()


def test_directories_hold_no_views(tmp_path):
    catalog = open_catalog(str(tmp_path))
    catalog.create_database("db")
    assert (catalog.list_views("db"), catalog.list_functions("db")) == ([], [])
    assert not catalog.view_exists("db.v")
    catalog.drop_view("db.v", ignore_if_not_exists=True)
    message = "'db.v' cannot be created: a catalog with the option 'metastore' = 'filesystem' stores no views"
    with pytest.raises(UnsupportedError, match=message):
        catalog.create_view("db.v", VIEW)
    with pytest.raises(NotFoundError):
        catalog.view("db.v")


def test_functions_of_server(tmp_path):
    with catalog_server(tmp_path / "w") as server:
        catalog = _opened(server.options, tmp_path)
        sql = {"spark": {"type": "sql", "definition": "x + 1"}}
        function = CatalogFunction(FIELDS[:1], FIELDS[:1], sql, comment="c", options={"k": "v"})
        catalog.create_function("db.f", function)
        found = catalog.function("db.f")
        assert (found.definitions, found.comment, dict(found.options)) == (sql, "c", {"k": "v"})
        assert [(f.name, str(f.type)) for f in found.parameters] == [("id", "INT NOT NULL")]
        with pytest.raises(AlreadyExistsError, match=r"function 'db\.f' exists already"):
            catalog.create_function("db.f", function)
        catalog.create_function("db.f", function, ignore_if_exists=True)
        assert catalog.list_functions("db") == ["f"]
        catalog.drop_function("db.f")
        with pytest.raises(NotFoundError, match=r"no function 'db\.f'"):
            catalog.drop_function("db.f")


@pytest.mark.parametrize("kind", ["view", "function"])
def test_object_that_cannot_be_replaced_stays(tmp_path, kind):
    with catalog_server(tmp_path / "w") as server:
        catalog = _opened(server.options, tmp_path)
        create, find, first, second = {
            "view": (catalog.create_view, catalog.view, VIEW, OTHER),
            "function": (
                catalog.create_function,
                catalog.function,
                CatalogFunction((), (), {"spark": {"type": "sql", "definition": "1"}}),
                CatalogFunction((), (), {"spark": {"type": "sql", "definition": "2"}}),
            ),
        }[kind]
        create("db.o", first)
        server.refused = [(500, {"message": "broken", "code": 500})]
        with pytest.raises(OSError, match="broken"):
            create("db.o", second, replace=True)
        assert find("db.o").to_json() == first.to_json()


def test_columns_of_view_in_metastore(tmp_path):
    """A metastore says less than a type of Paimon: then the columns are also stored exactly."""
    kinds = ("INT", "TIME(3)", "TIMESTAMP(3) WITH LOCAL TIME ZONE", "DECIMAL(5, 2)", "ROW<a INT, b ARRAY<STRING>>")
    fields = [DataField(i, f"c{i}", parse_type(text)) for i, text in enumerate((*kinds, "MAP<INT, DATE>"))]
    with metastore_double() as (uri, double):
        catalog = _opened({"metastore": "hive", "uri": uri, "warehouse": str(tmp_path / "w")}, tmp_path)
        catalog.create_view("db.v", View(fields, "SELECT 1"))
        assert [str(f.type) for f in catalog.view("db.v").fields] == [str(f.type) for f in fields]
        stored = double.stored["db", "v"]
        assert (stored.tableType, stored.viewExpandedText) == ("VIRTUAL_VIEW", "SELECT 1")
        del stored.parameters["paimon.view.fields"]  # as Java and Hive store it
        seen = [str(f.type) for f in catalog.view("db.v").fields]
        assert seen[1:4] == ["STRING", "TIMESTAMP(6)", "DECIMAL(5, 2)"]
        stored.sd.cols[0].type = "uniontype<int,string>"
        with pytest.raises(UnsupportedError, match="column 'c0' has the Hive type uniontype"):
            catalog.view("db.v")


def test_rows_are_java_ones(tmp_path):
    options = {"metastore": "jdbc", "uri": f"jdbc:sqlite:{tmp_path}/c.db", "warehouse": str(tmp_path / "w")}
    catalog = _opened(options, tmp_path)
    with sqlite3.connect(tmp_path / "c.db") as connection:
        assert not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'paimon_views'").fetchall()
        catalog.create_view("db.v", VIEW)
        ((key, database, name, text),) = connection.execute("SELECT * FROM paimon_views").fetchall()
        assert (key, database, name) == ("jdbc", "db", "v")
        assert json.loads(text) == {
            "fields": [
                {"id": 0, "name": "id", "type": "INT NOT NULL", "description": "the key"},
                {"id": 1, "name": "n", "type": {"type": "ARRAY", "element": "STRING"}},
            ],
            "query": VIEW.query,
            "dialects": {"spark": VIEW.query},
            "comment": "a comment",
            "options": {"k": "v"},
        }
        connection.execute("DELETE FROM paimon_database_properties WHERE database_name = 'db'")
    assert "db" in catalog.list_databases()  # as in Java, a view is enough


def test_unknown_description_is_an_error(tmp_path):
    options = {"metastore": "jdbc", "uri": f"jdbc:sqlite:{tmp_path}/c.db", "warehouse": str(tmp_path / "w")}
    catalog = _opened(options, tmp_path)
    catalog.create_view("db.v", VIEW)
    with sqlite3.connect(tmp_path / "c.db") as connection:
        connection.execute("UPDATE paimon_views SET view_schema = '{}'")
    with pytest.raises(CorruptedError, match=r"describes view 'db\.v' in an unknown way"):
        catalog.view("db.v")
