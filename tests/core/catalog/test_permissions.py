"""Row filters and column masks of a REST server: each read of a table obeys them or is refused."""

import pickle

import pyarrow as pa
import pytest

from paimon_core import Schema, Table, open_catalog
from paimon_core.catalog.identifier import Identifier
from paimon_core.catalog.rest.permissions import permissions_of
from paimon_core.errors import InvalidInputError, PaimonError, UnsupportedError
from paimon_core.predicate.permissions import UNRESTRICTED
from paimon_core.schema.change import RenameColumn
from paimon_core.types.arrow import arrow_schema
from paimon_core.types.datatype import DataField
from paimon_core.types.parse import parse_type
from tests.support.rest_rules import column, compound, field, leaf, rules, text
from tests.support.rest_server import catalog_server

FIELDS = [
    ("k", pa.int64()), ("region", pa.string()), ("ssn", pa.string()), ("pay", pa.int32()), ("note", pa.string()),
]  # fmt: skip
KEYED = pa.schema([pa.field(name, kind, nullable=name != "k") for name, kind in FIELDS])
ROWS = pa.table(
    {
        "k": [1, 2, 3, 4],
        "region": ["eu", "us", "eu", None],
        "ssn": ["s1", "s2", "s3", "s4"],
        "pay": pa.array([10, 20, 30, 40], pa.int32()),
        "note": ["a", None, "c", "d"],
    },
    KEYED,
)
OPTIONS = {"query-auth.enabled": "true", "bucket": "1"}
ONLY_EU = leaf(field("region"), "EQUAL", "eu")
HIDDEN = text("CONCAT", "***")
RULES = rules(ONLY_EU, ssn=HIDDEN)
SHOWN = [{"k": 1, "ssn": "***"}, {"k": 3, "ssn": "***"}]


@pytest.fixture
def server(tmp_path):
    with catalog_server(tmp_path / "warehouse") as running:
        yield running


@pytest.fixture
def catalog(server):
    catalog = open_catalog(options=server.options)
    catalog.create_database("db")
    return catalog


@pytest.fixture(params=["key", "append"])
def name(request, catalog):
    """The name of a table with a primary key, or without one; it has two snapshots."""
    keyed = request.param == "key"
    options = OPTIONS if keyed else {**OPTIONS, "bucket-key": "k"}
    table = catalog.create_table("db.t", Schema(KEYED, primary_keys=["k"] if keyed else [], options=options))
    table.write(ROWS.slice(0, 2))
    table.write(ROWS.slice(2))
    return "db.t"


@pytest.fixture
def restricted(server, catalog, name):
    server.permissions[name] = RULES
    return catalog.table(name)


READS = {
    "to_arrow": lambda t: t.to_arrow(["k", "ssn"]).to_pylist(),
    "without the columns of the filter": lambda t: [{"k": k, "ssn": "***"} for k in t.to_arrow(["k"])["k"].to_pylist()],
    "to_batches": lambda t: [row for batch in t.to_batches(["k", "ssn"]) for row in batch.to_pylist()],
    "reader": lambda t: t.to_arrow_batch_reader(["k", "ssn"]).read_all().to_pylist(),
    "stream of arrow": lambda t: pa.table(t).select(["k", "ssn"]).to_pylist(),
    "pandas": lambda t: t.to_pandas(["k", "ssn"]).to_dict("records"),
    "filter": lambda t: t.to_arrow(["k", "ssn"], filter="ssn = '***' AND k < 9").to_pylist(),
    "limit": lambda t: t.to_arrow(["k", "ssn"], limit=2).to_pylist(),
    "time travel": lambda t: t.to_arrow(["k", "ssn"], snapshot_id=2).to_pylist(),
    "pickled": lambda t: pickle.loads(pickle.dumps(t)).to_arrow(["k", "ssn"]).to_pylist(),
    "page": lambda t: SHOWN if "s1" not in t.page(rows=4).html() and "***" in t.page(rows=4).html() else [],
}


@pytest.mark.cases(8)
@pytest.mark.parametrize("read", READS)
def test_read_obeys(restricted, read):
    if read == "pandas":
        pytest.importorskip("pandas")
    assert sorted(READS[read](restricted), key=lambda row: row["k"]) == SHOWN


def test_tests_of_masked_columns_see_masked_values(restricted):
    """Otherwise a user could guess a value, one test after another."""
    assert restricted.to_arrow(filter="ssn = 's1'").num_rows == 0
    assert restricted.to_arrow(["k"], filter="ssn = 's1' OR k = 3")["k"].to_pylist() == [3]
    assert restricted.to_arrow(["k"], filter="region = 'us'").num_rows == 0
    assert restricted.to_arrow([], filter="k > 0").num_rows == 2


def test_views_and_time_travel_obey(server, catalog, name):
    server.permissions[name] = RULES
    table = catalog.table(name)
    assert table.to_arrow(["k", "ssn"], snapshot_id=1).to_pylist() == SHOWN[:1]
    assert "s1" not in str(catalog.table(f"{name}$ro").to_arrow().to_pydict())


REFUSED = {
    "get": lambda t: t.get({"k": 2}) if t.schema.primary_keys else t.scan().plan(),
    "scan": lambda t: t.scan().plan(),
    "explain": lambda t: t.explain(),
    "stream": lambda t: t.stream(),
    "changes": lambda t: t.changes(0),
    "incremental": lambda t: t.with_options({"incremental-between": "1,2"}).to_arrow(),
    "delete": lambda t: t.delete("k = 2"),
    "update": lambda t: t.update({"note": "x"}, where="k = 2"),
    "upsert": lambda t: t.upsert(ROWS, "k"),
    "write": lambda t: t.write(ROWS),
    "compact": lambda t: t.compact(full=True),
    "health": lambda t: t.health(),
    "advice": lambda t: t.advice(),
    "metrics": lambda t: t.operation_metrics(),
    "file path": lambda t: t.to_arrow(["__paimon_file_path"]),
}


@pytest.mark.cases(6)
@pytest.mark.parametrize("call", REFUSED)
def test_other_call_is_refused(restricted, call):
    with pytest.raises(UnsupportedError, match="the catalog's server filters") as error:
        REFUSED[call](restricted)
    assert "s2" not in str(error.value)


SYSTEM_TABLES = {
    True: ("files", "file_key_ranges", "partitions", "buckets", "manifests", "statistics", "audit_log", "binlog"),
    False: ("options", "schemas", "snapshots", "tags", "branches", "consumers"),
}


@pytest.mark.parametrize("name", ["key"], indirect=True)
def test_system_tables_show_no_values(catalog, restricted):
    for refused, names in SYSTEM_TABLES.items():
        for system in names:
            table = catalog.system_table(f"db.t${system}")
            if refused:
                with pytest.raises(UnsupportedError, match="the catalog's server filters"):
                    table.to_arrow()
            else:
                assert "s1" not in str(table.to_arrow().to_pydict())
    snapshots = catalog.system_table("db.t$snapshots").to_arrow()
    assert snapshots.column("snapshot_id").to_pylist() == [1, 2]
    for count in ("total_record_count", "delta_record_count", "changelog_record_count", "next_row_id"):
        assert snapshots.column(count).null_count == 2, count
    assert catalog.system_table("sys.partitions").to_arrow().num_rows == 0


@pytest.mark.parametrize("name", ["key"], indirect=True)
def test_no_way_around(server, catalog, restricted):
    with pytest.raises(InvalidInputError, match=r"'query-auth\.enabled' cannot be changed for one read"):
        catalog.table("db.t", {"query-auth.enabled": "false"})
    with pytest.raises(InvalidInputError, match="cannot be changed for one read"):
        restricted.with_options({"query-auth.enabled": "false"})
    by_path = Table.open(restricted.path)
    for read in (by_path.to_arrow, by_path.explain, lambda: by_path.get({"k": 1}), by_path.stream):
        with pytest.raises(UnsupportedError, match="open the table by its name in the REST catalog"):
            read()
    server.permissions.clear()
    writer = catalog.table("db.t")
    server.catalog.table("db.t").branches.create("b")
    with pytest.raises(UnsupportedError, match=r"may hide rows and columns of each"):
        writer.with_options({"scan.fallback-branch": "b"}).to_arrow()


@pytest.mark.parametrize("name", ["append"], indirect=True)
def test_unrestricted_user_may_do_everything_until_the_server_objects(server, catalog, name):
    table = catalog.table(name)
    assert table.to_arrow().num_rows == 4
    assert table.delete("k = 2") is not None
    stream = table.stream()
    assert stream.plan() is not None
    server.permissions[name] = RULES
    catalog_table = catalog.table(name)
    with pytest.raises(UnsupportedError, match="the catalog's server filters"):
        stream.plan()
    assert catalog_table.to_arrow(["k"]).num_rows == 2


@pytest.mark.parametrize("name", ["append"], indirect=True)
def test_schema_without_column_of_a_rule_is_not_read(server, catalog, name):
    server.catalog.table(name).alter([RenameColumn("ssn", "number")])
    server.permissions[name] = rules(ssn=HIDDEN)
    assert catalog.table(name).to_arrow().num_rows == 4
    with pytest.raises(UnsupportedError, match="masks column 'ssn', which the newest schema does not have"):
        catalog.table(name).to_arrow(snapshot_id=1)
    server.permissions[name] = rules(number=HIDDEN)
    table = catalog.table(name)
    assert set(table.to_arrow()["number"].to_pylist()) == {"***"}
    with pytest.raises(UnsupportedError, match="filters or masks column 'number', which this schema does not have"):
        table.to_arrow(snapshot_id=1)


# ---- rules

NUMBERS = [3, None, -1, 7]
TEXTS = ["Straße", None, "abc", "  b"]
RULE_ROWS = pa.record_batch({"i": pa.array(NUMBERS, pa.int32()), "t": TEXTS, "f": pa.array([0.1, None, 2, 3], "float")})
RULE_FIELDS = [
    DataField(i, n, parse_type(k)) for i, (n, k) in enumerate((("i", "INT"), ("t", "STRING"), ("f", "FLOAT")))
]
INT, TEXT, FLOAT = field("i", "INT"), field("t"), field("f", "FLOAT")


def applied(answer, rows=RULE_ROWS):
    return permissions_of(answer, RULE_FIELDS, Identifier("db", "t")).shown(rows)


@pytest.mark.parametrize(
    ("rule", "kept"),
    [
        (leaf(INT, "EQUAL", 3), [0]),
        (leaf(INT, "NOT_EQUAL", 3), [2, 3]),
        (leaf(INT, "LESS_THAN", 3), [2]),
        (leaf(INT, "LESS_OR_EQUAL", 3), [0, 2]),
        (leaf(INT, "GREATER_THAN", 3), [3]),
        (leaf(INT, "GREATER_OR_EQUAL", 3), [0, 3]),
        (leaf(INT, "IS_NULL"), [1]),
        (leaf(INT, "IS_NOT_NULL"), [0, 2, 3]),
        (leaf(INT, "IN", 3, None, 7), [0, 3]),
        (leaf(INT, "NOT_IN", 3), [2, 3]),
        (leaf(INT, "NOT_IN", 3, None), []),
        (leaf(INT, "NOT_IN"), [0, 2, 3]),
        (leaf(INT, "IN"), []),
        (leaf(INT, "BETWEEN", -1, 3), [0, 2]),
        (leaf(INT, "NOT_BETWEEN", -1, 3), [3]),
        (leaf(INT, "NOT_BETWEEN", None, 3), []),
        (leaf(INT, "EQUAL", None), []),
        (leaf(FLOAT, "EQUAL", 0.1), [0]),
        (leaf(TEXT, "STARTS_WITH", "a"), [2]),
        (leaf(TEXT, "ENDS_WITH", "b"), [3]),
        (leaf(TEXT, "CONTAINS", "ra"), [0]),
        (leaf(TEXT, "LIKE", "a%c"), [2]),
        (leaf(TEXT, "LIKE", "%b%"), [2, 3]),
        (leaf({"name": "NULL"}, "TRUE"), [0, 1, 2, 3]),
        (leaf({"name": "NULL"}, "FALSE"), []),
        (leaf(text("UPPER", column("t")), "EQUAL", "STRASSE"), [0]),
        (leaf(text("LOWER", column("t")), "EQUAL", "straße"), [0]),
        (leaf(text("CONCAT", column("t"), "!"), "EQUAL", "abc!"), [2]),
        (leaf({"name": "CAST", "fieldRef": column("i", "INT"), "type": "STRING"}, "EQUAL", "-1"), [2]),
        (compound("OR", leaf(INT, "EQUAL", -1), compound("AND", leaf(INT, "IS_NULL"), leaf(TEXT, "IS_NULL"))), [1, 2]),
    ],
)  # fmt: skip
def test_row_filter(rule, kept):
    numbered = RULE_ROWS.append_column("n", pa.array(range(4)))
    assert applied(rules(rule), numbered)["n"].to_pylist() == kept


def test_all_row_filters_hold():
    assert applied(rules(leaf(INT, "GREATER_THAN", 0), leaf(TEXT, "STARTS_WITH", "S")))["i"].to_pylist() == [3]


@pytest.mark.parametrize(
    ("mask", "shown"),
    [
        (text("CONCAT", "x"), ["x"] * 4),
        (text("CONCAT", column("t"), "-", column("t")), ["Straße-Straße", None, "abc-abc", "  b-  b"]),
        (text("CONCAT", column("t"), None), [None] * 4),
        (text("CONCAT_WS", "-", column("t"), None, "z"), ["Straße-z", "z", "abc-z", "  b-z"]),
        (text("CONCAT_WS", "-", column("t")), ["Straße", "", "abc", "  b"]),
        (text("CONCAT_WS", None, column("t")), [None] * 4),
        (text("UPPER", column("t")), ["STRASSE", None, "ABC", "  B"]),
        ({"name": "NULL"}, [None] * 4),
        ({"name": "CAST", "fieldRef": column("i", "INT"), "type": "STRING"}, ["3", None, "-1", "7"]),
        (TEXT, TEXTS),
    ],
)
def test_mask(mask, shown):
    rows = applied(rules(t=mask))
    assert rows["t"].to_pylist() == shown
    assert rows.schema == arrow_schema(RULE_FIELDS)


def test_masks_see_stored_values():
    rows = applied(
        rules(
            leaf(TEXT, "EQUAL", "abc"),
            t={"name": "CAST", "fieldRef": column("i", "INT"), "type": "STRING"},
            i={"name": "NULL"},
        )
    )
    assert rows.select(["i", "t"]).to_pylist() == [{"i": None, "t": "-1"}]


UNKNOWN = [
    (rules({"kind": "OTHER"}), "the kind 'OTHER'"),
    (rules(leaf(INT, "IS_NAN")), "the function 'IS_NAN'"),
    (rules(leaf(field("x"), "IS_NULL")), "the column 'x', which the table does not have"),
    (rules(leaf(field("i", "BIGINT"), "EQUAL", 1)), "column 'i' as BIGINT, but the table has INT"),
    (rules(leaf(INT, "EQUAL", "secret")), "a literal that is no value of type INT"),
    (rules(leaf(TEXT, "LIKE", "secret_%")), "LIKE with '_' or a backslash"),
    (rules(leaf(TEXT, "STARTS_WITH", "a", "b")), "with 2 literals"),
    (rules(compound("NOT", leaf(INT, "IS_NULL"))), "the function 'NOT'"),
    (rules(t={"name": "SHA"}), "the transform 'SHA'"),
    (rules(t=text("UPPER", column("t"), "secret")), "the transform 'UPPER' with 2 inputs"),
    (rules(t=text("UPPER", column("i", "INT"))), "a text function of column 'i' of type INT"),
    (rules(i=text("CONCAT", "secret")), "a mask of type STRING for column 'i' of type INT"),
    ({"filter": ["secret"]}, "a rule that is not JSON"),
]


@pytest.mark.parametrize(("answer", "part"), UNKNOWN)
def test_unknown_rule_is_refused(answer, part):
    with pytest.raises(UnsupportedError, match=r"table 'db\.t' cannot be read") as error:
        applied(answer)
    assert part in str(error.value)
    assert "secret" not in str(error.value)


def test_answer_without_rules_restricts_nothing():
    for answer in (
        {},
        {"filter": None, "columnMasking": {}},
        {"filter": [""], "columnMasking": {"t": "", "": "{}"}},
    ):
        assert permissions_of(answer, RULE_FIELDS, Identifier("db", "t")) == UNRESTRICTED


def test_errors_and_reprs_show_no_value():
    cast = {"name": "CAST", "fieldRef": column("t"), "type": "INT"}
    with pytest.raises(PaimonError) as error:
        applied(rules(leaf(cast, "EQUAL", 1)))
    assert "Straße" not in str(error.value)
    assert "abc" not in repr(permissions_of(rules(leaf(TEXT, "EQUAL", "abc")), RULE_FIELDS, Identifier("db", "t")))
    strict = [DataField(1, "t", parse_type("STRING NOT NULL"))]
    masked = permissions_of(rules(t={"name": "NULL"}), strict, Identifier("db", "t"))
    with pytest.raises(UnsupportedError, match="masks column 't' with NULL, but the column is NOT NULL"):
        masked.shown(pa.record_batch({"t": ["a"]}))
