"""The Iceberg metadata that commits write: what it lists after each kind of change, and what it refuses."""

import json
import logging
from datetime import date
from decimal import Decimal

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paimon_core.catalog.filesystem import FileSystemCatalog
from paimon_core.errors import UnsupportedError
from paimon_core.iceberg.listed import leftover_files, one_spelling
from paimon_core.iceberg.manifest_files import avro_name
from paimon_core.iceberg.sync import sync
from paimon_core.iceberg.values import decoder, encode, encode_bounds
from paimon_core.scan.entries import live_entries
from paimon_core.schema.change import AddColumn, DropColumn, SetOption, UpdateType
from paimon_core.schema.iceberg import iceberg_schema, unreadable_change
from paimon_core.schema.schema import Schema
from paimon_core.schema.table_schema import TableSchema
from paimon_core.table import Table
from paimon_core.types.datatype import DataField
from paimon_core.types.parse import parse_type
from tests.support.iceberg_files import Described, described, names_in
from tests.support.tables import ORDERS, append_table, keyed_table, orders

ON = {"metadata.iceberg.storage": "table-location"}


def _append(path, **options) -> Table:
    return append_table(path, **{key.replace("-", "_"): value for key, value in {**ON, **options}.items()})


def _keyed(path, **options) -> Table:
    return keyed_table(path, **{key.replace("-", "_"): value for key, value in {**ON, **options}.items()})


def _now(table: Table) -> Described:
    return described(table.store.io, f"{table.path}/metadata")


def _live(table: Table) -> set[str]:
    snapshot = table.snapshot()
    return {entry.file.file_name for entry in live_entries(table.store, snapshot).live}


def _listed(found: Described) -> list[int]:
    return [one["snapshot-id"] for one in found.document["snapshots"]]


# ---- what is listed


def test_each_commit_of_append_table_lists_all_files(tmp_path):
    table = _append(tmp_path / "t")
    for i in range(3):
        table.write(orders((i, "a", i)))
        actual = _now(table)
        assert actual.version == actual.document["current-snapshot-id"] == i + 1
        assert set(actual.files[i + 1]) == _live(table)
        assert _listed(actual) == list(range(1, i + 2))
        assert names_in(table.store.io, f"{tmp_path}/t/metadata") == actual.named  # older versions are deleted
    assert [len(files) for files in actual.files.values()] == [1, 2, 3]


def test_only_files_of_full_compactions_of_keyed_table_are_listed(tmp_path):
    table = _keyed(tmp_path / "t", bucket="1")
    table.write(orders((1, "a", 1)))
    assert _now(table).files == {1: {}}
    table.write(orders((1, "b", 2), (2, "b", 2)))
    table.compact(full=True)
    actual = _now(table)
    assert set(actual.files[3]) == _live(table)
    assert [record["record_count"] for record in actual.files[3].values()] == [2]
    table.write(orders((3, "c", 3)))
    assert _now(table).files[4] == actual.files[3]


def test_overwrite_marks_files_that_it_replaces(tmp_path):
    table = _append(tmp_path / "t")
    table.write(orders((1, "a", 1)))
    table.overwrite(orders((2, "b", 2)))
    actual = _now(table)
    assert set(actual.files[2]) == _live(table)
    summary = actual.document["snapshots"][-1]["summary"]
    counts = {key: summary[key] for key in ("operation", "added-records", "deleted-records", "total-records")}
    assert counts == {"operation": "overwrite", "added-records": "1", "deleted-records": "1", "total-records": "1"}
    table.truncate()
    assert _now(table).files[3] == {}


def test_counts_accumulate_over_snapshots(tmp_path):
    table = _append(tmp_path / "t")
    for i in range(4):
        table.write(orders((i, "a", i), (i, "b", i)))
    size = sum(entry.file.file_size for entry in live_entries(table.store, table.snapshot()).live)
    summary = _now(table).document["snapshots"][-1]["summary"]
    assert (summary["total-records"], summary["total-data-files"]) == ("8", "4")
    assert summary["total-files-size"] == str(size)


def test_ids_of_metadata_equal_ids_in_parquet_files(tmp_path):
    columns = [
        ("k", "INT"), ("a", "ARRAY<INT>"), ("m", "MAP<STRING, ARRAY<INT>>"), ("r", "ROW<x INT, y ARRAY<INT>>"),
        ("s", "MULTISET<STRING>"),
    ]  # fmt: skip
    fields = tuple(DataField(i, name, parse_type(text)) for i, (name, text) in enumerate(columns))
    table = Table.create(str(tmp_path / "t"), Schema(fields, options=ON))
    row = {"k": 1, "a": [1], "m": [("x", [1])], "r": {"x": 1, "y": [2]}, "s": [("z", 1)]}
    table.write(pa.Table.from_pylist([row], schema=table.arrow_schema))
    (file,) = next(iter(_now(table).files.values())).values()
    stored = _parquet_ids(pq.read_schema(file["file_path"]))
    assert _iceberg_ids(_now(table).document["schemas"][0]) == stored
    assert _now(table).document["last-column-id"] == max(stored)


def _parquet_ids(schema: pa.Schema) -> list[int]:
    found: list[int] = []

    def visit(field: pa.Field) -> None:
        if field.metadata and b"PARQUET:field_id" in field.metadata:
            found.append(int(field.metadata[b"PARQUET:field_id"]))
        kind = field.type
        if pa.types.is_map(kind):
            parts = [kind.key_field, kind.item_field]
        elif pa.types.is_list(kind):
            parts = [kind.value_field]
        else:
            parts = [kind.field(i) for i in range(kind.num_fields)]
        for part in parts:
            visit(part)

    for field in schema:
        visit(field)
    return sorted(found)


def _iceberg_ids(part) -> list[int]:
    if isinstance(part, list):
        return sorted(number for one in part for number in _iceberg_ids(one))
    if not isinstance(part, dict):
        return []
    own = [value for key, value in part.items() if key in ("id", "element-id", "key-id", "value-id")]
    return sorted([*own, *(number for value in part.values() for number in _iceberg_ids(value))])


def test_bounds_and_partitions_agree_with_rows(tmp_path):
    schema = pa.schema([("p", pa.date32()), ("n", pa.int32()), ("t", pa.string())])
    table = Table.create(str(tmp_path / "t"), Schema(schema, partition_keys=["p"], options=ON))
    rows = [(date(2024, 1, 1), 5, "b"), (date(2024, 1, 1), -3, None), (None, 7, "z")]
    table.write(pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema=schema))
    files = {record["partition"]["p"]: record for record in _now(table).files[1].values()}
    assert set(files) == {date(2024, 1, 1), None}
    first = files[date(2024, 1, 1)]

    def of(name: str) -> dict[int, object]:
        return {pair["key"]: pair["value"] for pair in first[name]}

    assert of("null_value_counts")[2] == 1
    assert (of("lower_bounds")[1], of("upper_bounds")[1]) == ((-3).to_bytes(4, "little", signed=True), b"\5\0\0\0")
    assert (of("lower_bounds")[2], of("upper_bounds")[2]) == (b"b", b"b")


def test_manifests_record_their_schema_and_partition_spec(tmp_path):
    schema = pa.schema([("the day", pa.string()), ("n", pa.int32())])
    table = Table.create(str(tmp_path / "t"), Schema(schema, partition_keys=["the day"], options=ON))
    table.write(pa.table({"the day": ["a", "c"], "n": [1, 2]}, schema=schema))
    (snapshot,) = _now(table).document["snapshots"]
    with open(snapshot["manifest-list"], "rb") as file:
        (meta,) = list(fastavro.reader(file))
    assert meta["partitions"] == [
        {"contains_null": False, "contains_nan": False, "lower_bound": b"a", "upper_bound": b"c"}
    ]
    with open(meta["manifest_path"], "rb") as file:
        reader = fastavro.reader(file)
        header = reader.metadata
    assert json.loads(header["schema"]) == iceberg_schema(table.schema)
    assert json.loads(header["partition-spec"]) == [
        {"name": "the day", "transform": "identity", "source-id": 0, "field-id": 1000}
    ]
    assert (header["content"], header["format-version"], header["avro.codec"]) == ("data", "2", "snappy")
    assert '"r102", "fields": [{"name": "the_x20day"' in header["avro.schema"]


@pytest.mark.parametrize(("bucket", "shown"), [("-1", 2), ("-2", 0)])
def test_tables_whose_buckets_are_found_or_postponed(tmp_path, bucket, shown):
    table = _keyed(tmp_path / "t", bucket=bucket)
    table.write(orders((1, "a", 1)))
    table.write(orders((2, "a", 1)))
    if bucket == "-1":
        table.compact(full=True)
    actual = _now(table)
    assert sum(record["record_count"] for record in actual.files[actual.version].values()) == shown
    if bucket == "-2":
        table.maintenance.compact(full=True)
        actual = _now(table)
        assert sum(record["record_count"] for record in actual.files[actual.version].values()) == 2


# ---- options


def test_older_versions_are_kept_as_asked(tmp_path):
    kept = _append(tmp_path / "all", **{"metadata.iceberg.delete-after-commit.enabled": "false"})
    some = _append(tmp_path / "some", **{"metadata.iceberg.previous-versions-max": "2"})
    for table in (kept, some):
        for i in range(5):
            table.write(orders((i, "a", i)))

    def versions(table: Table) -> list[str]:
        return sorted(name for name in names_in(table.store.io, f"{table.path}/metadata") if name.endswith("json"))

    assert versions(kept) == [f"v{i}.metadata.json" for i in range(1, 6)]
    assert versions(some) == [f"v{i}.metadata.json" for i in range(3, 6)]


@pytest.mark.parametrize(("least", "most", "manifests"), [("2", "3", [1, 2, 1, 2, 1]), ("10", "3", [1, 2, 3, 4, 5])])
def test_small_manifests_are_merged(tmp_path, least, most, manifests):
    sizes = {"metadata.iceberg.compaction.min.file-num": least, "metadata.iceberg.compaction.max.file-num": most}
    table, actual = _append(tmp_path / "t", **sizes), []
    for i in range(5):
        table.write(orders((i, "a", i)))
        now = _now(table)
        with open(now.document["snapshots"][-1]["manifest-list"], "rb") as file:
            actual.append(len(list(fastavro.reader(file))))
        assert set(now.files[i + 1]) == _live(table)
        assert names_in(table.store.io, f"{table.path}/metadata") == now.named
    assert actual == manifests


def test_manifests_have_compression_and_names_that_options_say(tmp_path):
    options = {"metadata.iceberg.manifest-compression": "zstd", "metadata.iceberg.manifest-legacy-version": "true"}
    table = _append(tmp_path / "t", **options)
    table.write(orders((1, "a", 1)))
    table.write(orders((2, "a", 1)))
    with open(_now(table).document["snapshots"][-1]["manifest-list"], "rb") as file:
        reader = fastavro.reader(file)
        assert reader.metadata["avro.codec"] == "zstandard"
        assert [record["added_data_files_count"] for record in reader] == [1, 1]


def test_metadata_of_hadoop_catalog_is_next_to_databases(tmp_path):
    catalog = FileSystemCatalog(str(tmp_path))
    catalog.create_database("shop")
    schema = Schema(ORDERS, options={"metadata.iceberg.storage": "hadoop-catalog"})
    table = catalog.create_table("shop.orders", schema)
    table.write(orders((1, "a", 1)))
    place = f"{tmp_path}/iceberg/shop/orders/metadata"
    assert set(described(table.store.io, place).files[1]) == _live(table)
    catalog.rename_table("shop.orders", "shop.sales")
    assert not (tmp_path / "iceberg/shop/orders").exists()
    renamed = catalog.table("shop.sales")
    actual = described(renamed.store.io, f"{tmp_path}/iceberg/shop/sales/metadata")
    assert actual.document["location"] == renamed.path
    assert {record["file_path"].rpartition("/bucket-")[0] for record in actual.files[1].values()} == {renamed.path}
    catalog.drop_table("shop.sales")
    assert not (tmp_path / "iceberg/shop/sales").exists()


def test_hadoop_catalog_needs_database(tmp_path):
    with pytest.raises(UnsupportedError, match=r"'metadata.iceberg.storage' = 'hadoop-catalog' needs a table in"):
        append_table(tmp_path / "t", **{"metadata.iceberg.storage": "hadoop-catalog"})
    elsewhere = {"metadata.iceberg.storage": "hadoop-catalog", "metadata.iceberg.storage-location": "table-location"}
    table = Table.create(str(tmp_path / "u"), Schema(ORDERS, options=elsewhere))
    table.write(orders((1, "a", 1)))
    assert set(_now(table).files[1]) == _live(table)


# ---- expiry, tags, rollback, branches


def test_expired_snapshots_leave_metadata(tmp_path):
    table = _append(tmp_path / "t")
    for i in range(4):
        table.write(orders((i, "a", i)))
    table.maintenance.expire_snapshots(retain_max=2)
    actual = _now(table)
    assert _listed(actual) == [3, 4]
    assert names_in(table.store.io, f"{table.path}/metadata") == actual.named


def test_snapshots_that_expire_after_commit_are_not_listed(tmp_path):
    table = _append(tmp_path / "t", **{"snapshot.num-retained.min": "1", "snapshot.num-retained.max": "2"})
    for i in range(4):
        table.write(orders((i, "a", i)))
    assert _listed(_now(table)) == [one.id for one in table.snapshots()] == [3, 4]


def test_tags_are_references(tmp_path):
    table = _append(tmp_path / "t")
    table.write(orders((1, "a", 1)))
    table.tags.create("first")
    assert _now(table).document["refs"] == {"first": {"snapshot-id": 1, "type": "tag"}}
    table.write(orders((2, "a", 1)))
    table.tags.rename("first", "one")
    assert list(_now(table).document["refs"]) == ["one"]
    table.tags.delete("one")
    assert _now(table).document["refs"] == {}


def test_rollback_and_next_commit_replace_rolled_back_snapshots(tmp_path):
    table = _append(tmp_path / "t")
    for i in range(4):
        table.write(orders((i, "a", i)))
    uuid = _now(table).document["table-uuid"]
    table.rollback_to(2)
    actual = _now(table)
    assert (actual.version, _listed(actual)) == (2, [1, 2])
    assert set(actual.files[2]) == _live(table)
    assert names_in(table.store.io, f"{table.path}/metadata") == actual.named
    table.write(orders((9, "z", 9)))
    actual = _now(table)
    assert (actual.version, set(actual.files[3])) == (3, _live(table))
    assert actual.document["table-uuid"] == uuid


def test_leftovers_of_rollback_that_was_interrupted_are_replaced(tmp_path):
    table = _append(tmp_path / "t")
    for i in range(4):
        table.write(orders((i, "a", i)))
    # as a rollback by an engine that leaves the metadata alone
    for number in (4, 3):
        table.store.io.delete(table.store.snapshots.path(number))
    table.store.snapshots.write_hint("LATEST", 2)
    for i in range(3):
        table.write(orders((i, "other", i)))
        actual = _now(table)
        assert (actual.version, set(actual.files[3 + i])) == (3 + i, _live(table))
        assert names_in(table.store.io, f"{table.path}/metadata") == actual.named


def test_main_after_fast_forward_and_no_other_branch_is_described(tmp_path):
    table = _append(tmp_path / "t")
    table.write(orders((1, "a", 1)))
    table.branches.create("b", tag=None)
    branch = Table.open(str(tmp_path / "t"), branch="b")
    branch.write(orders((2, "b", 2)))
    branch.write(orders((3, "b", 3)))
    assert _listed(_now(table)) == [1]
    table.branches.fast_forward("b")
    actual = _now(table)
    assert set(actual.files[actual.version]) == _live(Table.open(str(tmp_path / "t")))


def test_new_table_in_place_of_dropped_one_has_its_own_identity(tmp_path):
    catalog = FileSystemCatalog(str(tmp_path))
    catalog.create_database("shop")
    schema = Schema(ORDERS, options={"metadata.iceberg.storage": "hadoop-catalog"})
    place, actual = f"{tmp_path}/iceberg/shop/orders/metadata", []
    for _ in range(2):
        table = catalog.create_table("shop.orders", schema)
        table.write(orders((1, "a", 1)))
        actual.append(described(table.store.io, place).document["table-uuid"])
        table.store.io.delete_directory(table.path)  # as by an engine that leaves the metadata alone
    assert actual[0] != actual[1]


def test_files_keep_spelling_of_directory_that_metadata_began_with(tmp_path):
    """Java knows a file by its whole path, in the spelling of its own warehouse."""
    table = _append(tmp_path / "t")
    table.write(orders((1, "a", 1)))
    path = tmp_path / "t/metadata/v1.metadata.json"
    path.write_text(path.read_text().replace(f'"location": "{table.path}"', f'"location": "file:{table.path}"'))
    table.write(orders((2, "a", 1)))
    actual = _now(table)
    assert actual.document["location"] == f"file:{table.path}"
    paths = sorted(record["file_path"].partition("/bucket-")[0] for record in actual.files[2].values())
    assert paths == [table.path, f"file:{table.path}"]
    table.truncate()
    assert _now(table).files[3] == {}


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("/a/b", "file:/a/b", True), ("/a/b/", "file:///a/b", True), ("s3a://x/y", "s3://x/y/", True),
        ("/a/b", "/a/c", False), ("s3://x/y", "gs://x/y", False),
    ],
)  # fmt: skip
def test_spellings_of_one_directory(one, other, same):
    assert (one_spelling(one) == one_spelling(other)) == same


def test_replaced_table_is_described_by_its_new_columns(tmp_path):
    catalog = FileSystemCatalog(str(tmp_path))
    catalog.create_database("d")
    for columns in ({"p": ["a"], "n": [1]}, {"n": ["x"], "p": ["b"]}):
        data = pa.table(columns)
        schema = Schema(data.schema, partition_keys=["p"], options=ON)
        staged = catalog.stage_table("d.t", schema, replace_existing=True)
        staged.table.write(data)
        staged.publish()
    table = catalog.table("d.t")
    actual = _now(table)
    assert set(actual.files[actual.version]) == _live(table)
    assert actual.document["partition-specs"][0]["fields"][0]["source-id"] == table.schema.field("p").id
    table.write(pa.table({"n": ["y"], "p": ["c"]}))
    assert set(_now(table).files[actual.version + 1]) == _live(table)


def test_clone_has_separate_metadata(tmp_path):
    here, there = FileSystemCatalog(str(tmp_path / "a")), FileSystemCatalog(str(tmp_path / "b"))
    for catalog in (here, there):
        catalog.create_database("d")
    table = here.create_table("d.t", Schema(ORDERS, options=ON))
    for i in range(2):
        table.write(orders((i, "a", i)))
        copy = here.clone("d.t", there, "d.t")
        actual = _now(copy)
        assert actual.document["location"] == copy.path
        assert set(actual.files[actual.version]) == _live(copy)
    assert actual.document["table-uuid"] != _now(table).document["table-uuid"]


def test_metadata_conforms_to_format(tmp_path):
    table = _append(tmp_path / "t")
    table.write(orders((1, "a", 1)))
    assert table.verify().sound
    assert table.maintenance.remove_orphan_files(older_than=table.store.now()).count == 0


# ---- schemas


def test_schemas_of_all_listed_snapshots_exist(tmp_path):
    table = _append(tmp_path / "t")
    table.write(orders((1, "a", 1)))
    table = table.alter([AddColumn("w", "STRING"), DropColumn("v"), UpdateType("n", "BIGINT")])
    table.write(pa.table({"id": [2], "n": [2], "w": ["x"]}, schema=table.arrow_schema))
    document = _now(table).document
    ids = [schema["schema-id"] for schema in document["schemas"]]
    assert (ids, document["current-schema-id"]) == ([0, 1], 1)
    assert [one["schema-id"] for one in document["snapshots"]] == [0, 1]
    types = {field["name"]: (field["id"], field["type"]) for field in document["schemas"][1]["fields"]}
    assert types == {"id": (0, "long"), "n": (2, "long"), "w": (3, "string")}


@pytest.mark.parametrize(
    ("old", "new", "fits"),
    [
        ("INT", "BIGINT", True), ("TINYINT", "INT", True), ("FLOAT", "DOUBLE", True), ("INT", "STRING", False),
        ("DECIMAL(10, 2)", "DECIMAL(12, 2)", True), ("DECIMAL(10, 2)", "DECIMAL(12, 3)", False),
        ("DECIMAL(10, 2)", "DECIMAL(9, 2)", False), ("BIGINT", "INT", False), ("INT", "DOUBLE", False),
        ("DATE", "TIMESTAMP(6)", False), ("VARCHAR(3)", "STRING", True), ("ARRAY<INT>", "ARRAY<BIGINT>", True),
        ("MAP<STRING, INT>", "MAP<STRING, STRING>", False), ("ARRAY<INT>", "INT", False), ("VARIANT", "STRING", False),
    ],
)  # fmt: skip
def test_type_changes_follow_iceberg(old, new, fits):
    first, second = (TableSchema(i, (DataField(7, "c", parse_type(t)),), 7) for i, t in enumerate((old, new)))
    actual = unreadable_change(first, second)
    assert (actual is None) == fits
    assert actual is None or "column c, which was " in actual


def test_change_of_type_that_iceberg_lacks_is_refused_when_table_is_written(tmp_path):
    table = _append(tmp_path / "t")
    table.write(orders((1, "a", 1)))
    table = table.alter([UpdateType("n", "STRING")])
    with pytest.raises(UnsupportedError, match=r"column n, which was INT in schema 0 and is STRING in 1.*'disabled'"):
        table.write(pa.table({"id": [2], "v": ["a"], "n": ["2"]}, schema=table.arrow_schema))
    table = table.alter([SetOption("metadata.iceberg.storage", "disabled")])
    table.write(pa.table({"id": [2], "v": ["a"], "n": ["2"]}, schema=table.arrow_schema))


# ---- what is refused


@pytest.mark.parametrize(
    ("options", "columns", "message"),
    [
        ({"metadata.iceberg.storage": "hive-catalog"}, "INT", "'metadata.iceberg.storage' = 'hive-catalog'"),
        ({"metadata.iceberg.storage": "rest-catalog"}, "INT", "'metadata.iceberg.storage' = 'rest-catalog'"),
        ({"metadata.iceberg.format-version": "3"}, "INT", "'metadata.iceberg.format-version' = '3'"),
        ({"deletion-vectors.enabled": "true"}, "INT", "with option 'deletion-vectors.enabled' = 'true'"),
        ({"file.format": "orc"}, "INT", "files of the format 'orc'"),
        ({"file.format.per.level": "0:avro"}, "INT", "files of the format 'avro'"),
        ({}, "TIME(3)", r"column c of type TIME\(3\)"),
        ({}, "TIMESTAMP(9)", r"column c of type TIMESTAMP\(9\)"),
        ({}, "TIMESTAMP(0)", r"column c of type TIMESTAMP\(0\)"),
        ({}, "ARRAY<ROW<x TIME(0)>>", r"column c.element.x of type TIME\(0\)"),
        ({}, "VARIANT", "column c of type VARIANT"),
    ],
)
def test_table_that_iceberg_readers_misread_is_refused(tmp_path, options, columns, message):
    fields = (DataField(0, "k", parse_type("INT NOT NULL")), DataField(1, "c", parse_type(columns)))
    schema = Schema(fields, primary_keys=["k"], options={**ON, "bucket": "1", **options})
    with pytest.raises(UnsupportedError, match=message):
        Table.create(str(tmp_path / "t"), schema)


@pytest.mark.parametrize("kind", ["TIMESTAMP(6)", "DOUBLE", "DECIMAL(4, 2)"])
def test_partition_columns_of_other_types_are_refused(tmp_path, kind):
    fields = (DataField(0, "p", parse_type(kind)), DataField(1, "c", parse_type("INT")))
    with pytest.raises(UnsupportedError, match="partition column p of type"):
        Table.create(str(tmp_path / "t"), Schema(fields, partition_keys=["p"], options=ON))


def test_files_of_other_tools_are_refused_and_found(tmp_path, caplog):
    pq.write_table(orders((7, "x", 7)), tmp_path / "x.parquet")
    table = append_table(tmp_path / "t")
    table.add_files(str(tmp_path / "x.parquet"))
    table = table.alter([SetOption("metadata.iceberg.storage", "table-location")])
    with pytest.raises(UnsupportedError, match="which files of other tools lack"):
        table.add_files(str(tmp_path / "x.parquet"))
    with caplog.at_level(logging.WARNING):
        table.write(orders((1, "a", 1)))
    assert "was written by another tool" in caplog.text
    assert names_in(table.store.io, f"{table.path}/metadata") == set()
    table.overwrite(table.to_arrow())
    assert set(_now(table).files[3]) == _live(table)


def test_files_of_other_tools_do_not_become_table_with_iceberg_metadata(tmp_path):
    (tmp_path / "in").mkdir()
    pq.write_table(orders((7, "x", 7)), tmp_path / "in/x.parquet")
    catalog = FileSystemCatalog(str(tmp_path / "w"))
    catalog.create_database("d")
    with pytest.raises(UnsupportedError, match="which files of other tools lack"):
        catalog.migrate(str(tmp_path / "in"), "d.t", options=ON)
    assert not catalog.table_exists("d.t")


def test_vectors_from_before_enabling_iceberg_are_refused(tmp_path, caplog):
    table = append_table(tmp_path / "t", **{"deletion-vectors.enabled": "true", "deletion-vectors.modifiable": "true"})
    table.write(orders((1, "a", 1), (2, "b", 2)))
    table.delete("id = 1")
    with pytest.raises(UnsupportedError, match="deletion vectors, which its Iceberg metadata cannot show"):
        sync(table.store.alter([SetOption("deletion-vectors.enabled", "false")]).with_options(ON))
    assert names_in(table.store.io, f"{table.path}/metadata") == set()


# ---- when something goes wrong


def test_failed_metadata_is_logged_and_written_by_next_commit(tmp_path, caplog, monkeypatch):
    table = _append(tmp_path / "t")
    table.write(orders((1, "a", 1)))
    write = type(table.store.io).write

    def broken(io, path, data):
        if path.endswith(".metadata.json"):
            raise OSError("the disk is full")
        write(io, path, data)

    with monkeypatch.context() as patched, caplog.at_level(logging.WARNING):
        patched.setattr(type(table.store.io), "write", broken)
        assert table.write(orders((2, "a", 1))).id == 2
    assert "its Iceberg metadata was not written" in caplog.text
    assert _now(table).version == 1
    table.write(orders((3, "a", 1)))
    actual = _now(table)
    assert (actual.version, set(actual.files[3])) == (3, _live(table))
    assert _listed(actual) == [1, 3]  # readers cannot travel to snapshot 2


def test_damaged_metadata_is_rewritten(tmp_path):
    table = _append(tmp_path / "t")
    table.write(orders((1, "a", 1)))
    (tmp_path / "t/metadata/v1.metadata.json").write_text("{")
    table.write(orders((2, "a", 1)))
    assert set(_now(table).files[2]) == _live(table)
    for name in names_in(table.store.io, f"{table.path}/metadata"):
        if name.endswith(".avro"):
            (tmp_path / "t/metadata" / name).unlink()
    table.write(orders((3, "a", 1)))
    actual = _now_of_newest(table)
    assert set(actual) == _live(table)


def _now_of_newest(table: Table) -> set[str]:
    document = json.loads((table.store.io).read(f"{table.path}/metadata/v3.metadata.json"))
    with open(document["snapshots"][-1]["manifest-list"], "rb") as file:
        metas = list(fastavro.reader(file))
    found = set()
    for meta in metas:
        with open(meta["manifest_path"], "rb") as file:
            found |= {entry["data_file"]["file_path"].rpartition("/")[2] for entry in fastavro.reader(file)}
    return found


def test_overtaken_commit_does_not_move_hint_back(tmp_path):
    table = _append(tmp_path / "t")
    for i in range(2):
        table.write(orders((i, "a", i)))
    assert sync(table.store) is False  # nothing to do
    table.store.io.write(f"{table.path}/metadata/version-hint.text", b"1")
    assert sync(table.store) is True
    assert _now(table).version == 2


def test_leftovers_are_orphan_files(tmp_path):
    table = _append(tmp_path / "t")
    table.write(orders((1, "a", 1)))
    (tmp_path / "t/metadata/left-m0.avro").write_bytes(b"x")
    later = table.store.now() + 1000
    assert [one.name for one in leftover_files(table.store, later)] == ["left-m0.avro"]
    assert leftover_files(table.store, 0) == []


# ---- values


@pytest.mark.parametrize(
    ("kind", "arrow", "value", "expected"),
    [
        ("boolean", pa.bool_(), True, "01"), ("int", pa.int8(), -2, "feffffff"), ("int", pa.int32(), 34, "22000000"),
        ("long", pa.int64(), 34, "2200000000000000"), ("float", pa.float32(), 1.0, "0000803f"),
        ("double", pa.float64(), -1.0, "000000000000f0bf"), ("date", pa.date32(), date(1970, 1, 3), "02000000"),
        ("string", pa.string(), "é", "c3a9"), ("binary", pa.binary(), b"\0\1", "0001"),
        ("decimal(9, 2)", pa.decimal128(9, 2), Decimal("14.20"), "058c"),
        ("decimal(9, 2)", pa.decimal128(9, 2), Decimal("-1.28"), "80"),
        ("decimal(9, 2)", pa.decimal128(9, 2), Decimal("1.28"), "0080"),
        ("decimal(9, 2)", pa.decimal128(9, 2), Decimal("0.00"), "00"),
        ("timestamp", pa.timestamp("ms"), 1, "e803000000000000"), ("timestamp", pa.timestamp("us"), -1, "f" * 16),
        ("timestamptz", pa.timestamp("us", "UTC"), 5, "0500000000000000"),
    ],
)  # fmt: skip
def test_bounds_have_binary_form_of_iceberg(kind, arrow, value, expected):
    actual = encode_bounds(pa.array([value, None], arrow), kind)
    assert [None if one is None else one.hex() for one in actual] == [expected, None]


def test_nan_is_not_bound():
    assert encode_bounds(pa.array([float("nan"), 1.0]), "double")[0] is None


@pytest.mark.parametrize(
    ("kind", "value"), [("boolean", False), ("int", -7), ("long", 2**40), ("date", 19000), ("string", "aü")]
)
def test_partition_values_survive_encoding(kind, value):
    assert decoder(kind)(encode(value, kind)) == value


@pytest.mark.parametrize(("name", "expected"), [("day", "day"), ("9a", "_9a"), ("a-b", "a_x2Db"), ("ü", "_xFC")])
def test_names_in_avro(name, expected):
    assert avro_name(name) == expected
