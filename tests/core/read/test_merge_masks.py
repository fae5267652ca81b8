"""Masks of merged files: the rows that they leave are the rows that the merge returns."""

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from paimon_core import FileSystemCatalog, Schema, Table
from paimon_core.errors import OutOfRangeError, UnsupportedError
from paimon_core.format import parquet_writer
from paimon_core.predicate.filter import bound_filter
from paimon_core.read import merge_masks as masks
from paimon_core.read.table_read import TableRead
from paimon_core.schema.change import AddColumn, RenameColumn, UpdateType
from tests.support.draws import rounds

ROWS = pa.schema(
    [pa.field("k", pa.int32(), False), pa.field("t", pa.string(), False), ("s", pa.int32()), ("v", pa.string())]
)
DELETES, ADDS = ["+I", "+I", "+U", "-U", "-D"], ["+I", "+U"]
TABLES = {
    "deduplicate": ({}, DELETES),
    "thin": ({"data-file.thin-mode": "true"}, DELETES),
    "avro": ({"file.format": "avro"}, DELETES),
    "orc": ({"file.format": "orc"}, DELETES),
    "ignore-delete": ({"ignore-delete": "true"}, DELETES),
    "sequence field": ({"sequence.field": "s"}, DELETES),
    "sequence field, descending": ({"sequence.field": "s", "sequence.field.sort-order": "descending"}, DELETES),
    "sequence field, ignore-delete": ({"sequence.field": "s", "ignore-delete": "true"}, DELETES),
    "lookups": ({"changelog-producer": "lookup"}, DELETES),
    "vectors": ({"deletion-vectors.enabled": "true", "deletion-vectors.merge-on-read": "true"}, DELETES),
    "first-row": ({"merge-engine": "first-row"}, ADDS),
    "first-row, ignore-delete": ({"merge-engine": "first-row", "ignore-delete": "true"}, DELETES),
    "many runs": ({"sort-spill-threshold": "2"}, DELETES),
}


def new_table(path, options, keys=("k", "t")):
    catalog = FileSystemCatalog(str(path))
    catalog.create_database("d", ignore_if_exists=True)
    settings = {"bucket": "1", "write-only": "true", "num-levels": "6"} | options
    return catalog.create_table("d.t", Schema(ROWS, primary_keys=list(keys), options=settings))


def columns_of(table, rows):
    """The rows as a table with the present columns of the table."""
    names = table.arrow_schema.names
    data = {"k": [r[0] for r in rows], names[1]: [r[1] for r in rows], names[2]: [r[2] for r in rows]}
    data[names[3]] = [r[3] for r in rows]
    missing = {name: [None] * len(rows) for name in names if name not in data}
    return pa.table(data | missing, table.arrow_schema)


def random_rows(rng, count):
    keys = rng.sample([(k, t) for k in range(30) for t in ("a", "b")], count)
    return [(*key, rng.choice([None, *range(4)]), rng.choice(["x", "y", None])) for key in keys]


def commit_several(table, rng, kinds, writers):
    """Commit the rows of several writers that began at the same snapshot: their sequence numbers may be equal."""
    prepared = []
    for number in range(writers):
        rows = random_rows(rng, rng.randrange(1, 25))
        with table.writer(f"u{number}") as writer:
            writer.write(columns_of(table, rows), row_kinds=[rng.choice(kinds) for _ in rows])
            prepared.append((number, writer.prepare_commit()))
    for number, messages in prepared:
        table.committer(f"u{number}").commit(messages)


def masked_rows(table, split, condition=None):
    """The rows of a split, read file by file and masked; and the number of masked files."""
    store, fields = table.store, table.store.schema.fields
    found = {}
    for section in masks.merged_sections(store, split):
        found |= masks.merge_masks(store, section, condition)
    kept = []
    for file in split.files:
        read = masks.file_reader(store, split.bucket_ref, fields)
        rows = pa.Table.from_batches(read(file, 1), TableRead(store, fields).schema)
        mask = found.get(file.file_name)
        assert mask is None or len(mask) == file.row_count == rows.num_rows
        kept.append(rows if mask is None else rows.filter(pa.array(mask)))
    return pa.concat_tables(kept), len(found)


def check(table):
    """Compare masks with the merge for each split; return the number of masked files."""
    count = 0
    for split in table.scan().plan().splits:
        if split.raw_convertible:
            assert masks.merged_sections(table.store, split) == []
            continue
        fields = table.store.schema.fields
        merged = pa.Table.from_batches(
            TableRead(table.store, fields).to_batches(split), TableRead(table.store, fields).schema
        )
        kept, masked = masked_rows(table, split)
        order = [(name, "ascending") for name in table.store.schema.trimmed_primary_keys]
        assert kept.sort_by(order).equals(merged.sort_by(order))
        count += masked
    return count


CHANGES = [AddColumn("w", "DOUBLE"), UpdateType("s", "BIGINT"), RenameColumn("v", "u")]


@pytest.mark.drawn
@pytest.mark.cases(5)
@pytest.mark.parametrize("name", TABLES)
def test_masks_leave_the_merged_rows(name, rng, tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_writer, "_ROW_GROUP_ROWS", 5)
    options, kinds = TABLES[name]
    masked = 0
    for game in range(rounds(5, 1)):
        table, changes = new_table(tmp_path / str(game), options), list(CHANGES)
        for _ in range(5):
            commit_several(table, rng, kinds, rng.choice([1, 1, 2]))
            if rng.random() < 0.3 or table.store.traits.hides_level_0:
                table.compact(full=rng.random() < 0.3)
            if changes and rng.random() < 0.3:
                table = table.alter([changes.pop()])
            masked += check(table)
    assert masked


@pytest.fixture
def marked(monkeypatch):
    """The result of each attempt to find the newest rows without a sort."""
    results = []
    mark = masks.find_newest

    def recorded(*arguments):
        results.append(mark(*arguments))
        return results[-1]

    monkeypatch.setattr(masks, "find_newest", recorded)
    return results


@pytest.mark.drawn
@pytest.mark.cases(5)
@pytest.mark.parametrize("name", ["deduplicate", "sequence field", "lookups", "vectors", "many runs"])
def test_masks_of_integer_keys_leave_merged_rows(name, rng, tmp_path, monkeypatch, marked):
    monkeypatch.setattr(parquet_writer, "_ROW_GROUP_ROWS", 5)
    options, kinds = TABLES[name]
    for game in range(rounds(3, 1)):
        table = new_table(tmp_path / str(game), options, keys=["k"])
        for _ in range(5):
            commit_several(table, rng, kinds, rng.choice([1, 1, 2]) if game else 1)
            if rng.random() < 0.3 or table.store.traits.hides_level_0:
                table.compact(full=rng.random() < 0.3)
            check(table)
    assert all(marked)
    assert bool(marked) == table.store.traits.merge_engine().newest_wins or name == "lookups"


@pytest.mark.parametrize(
    ("kind", "least", "largest"),
    [
        (pa.int8(), -128, 127), (pa.int16(), -9, 300), (pa.int64(), -(2**63), -(2**63) + 40), (pa.date32(), -5, 5),
        (pa.int64(), 2**63 - 40, 2**63 - 1), (pa.timestamp("us"), -5, 90), (pa.timestamp("ms"), 0, 20),
    ],
)  # fmt: skip
def test_dense_keys_of_each_type(tmp_path, marked, kind, least, largest):
    columns = pa.schema([pa.field("k", kind, False), ("v", pa.int32())])
    options = {"bucket": "1", "write-only": "true"}
    table = Table.create(str(tmp_path / "t"), Schema(columns, primary_keys=["k"], options=options))
    for run, keys in enumerate(([least, least + 2, largest], [least, least + 1, least + 3], [largest, largest - 1])):
        values = pa.array(sorted(keys), pa.int64())
        values = values.cast(pa.int32()) if pa.types.is_date32(kind) else values
        table.write(pa.table({"k": values.cast(kind), "v": pa.array([run] * len(keys), pa.int32())}, columns))
    assert check(table) == 3
    assert marked == [True]


def test_sparse_keys_are_sorted(tmp_path, marked):
    table = new_table(tmp_path, {}, keys=["k"])
    for keys in ([0, 1, 2**30], [0, 5, 2**30], [0]):
        table.write(columns_of(table, [(k, "a", 0, "x") for k in keys]))
    assert check(table) == 3
    assert marked == []


def test_keys_outside_of_the_range_are_sorted(tmp_path, marked, monkeypatch):
    table = new_table(tmp_path, {}, keys=["k"])
    for _ in range(2):
        table.write(columns_of(table, [(k, "a", 0, "x") for k in range(5)]))
    for span in (range(1, 5), range(4)):
        monkeypatch.setattr(masks, "key_span", lambda store, files, rows, span=span: span)
        assert check(table) == 2
    assert marked == [False, False]


@pytest.mark.parametrize("deletes", [False, True])
def test_oldest_run_is_read_in_range_of_newer_keys(tmp_path, monkeypatch, marked, deletes):
    monkeypatch.setattr(parquet_writer, "_ROW_GROUP_ROWS", 5)
    table = new_table(tmp_path, {}, keys=["k"])
    rows = columns_of(table, [(k, "a", 0, "x") for k in range(100)])
    with table.writer("u") as writer:
        writer.write(rows, row_kinds=["-D" if deletes and k == 90 else "+I" for k in range(100)])
        table.committer("u").commit(writer.prepare_commit())
    for keys in (range(42, 45), range(44, 48)):
        table.write(columns_of(table, [(k, "a", 1, "y") for k in keys]))
    counts = []
    find = masks.find_newest
    count = lambda batches: (counts.append(batch.num_rows) or batch for batch in batches)  # noqa: E731
    monkeypatch.setattr(masks, "find_newest", lambda oldest, *others: find(count(oldest), *others))
    assert check(table) == 3
    assert sum(counts) == (100 if deletes else 10)
    condition = bound_filter("k >= 43 AND k <= 60", table.store.schema.fields)
    (split,) = table.scan().plan().splits
    (section,) = masks.merged_sections(table.store, split)
    live = masks.merge_masks(table.store, section, condition)[section.files[0].file_name]
    assert live[48:60].all()
    assert not live[43:48].any()


def test_filter_on_keys_masks_other_rows(rng, tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_writer, "_ROW_GROUP_ROWS", 5)
    table = new_table(tmp_path, {})
    for _ in range(3):
        commit_several(table, rng, DELETES, 1)
    predicate = bound_filter("k >= 10 AND k < 13 AND v = 'x'", table.store.schema.fields)
    condition = masks.key_condition(table.store, predicate)
    assert "v" not in str(condition)
    (split,) = table.scan().plan().splits
    kept, whole = (masked_rows(table, split, part)[0] for part in (condition, None))
    assert kept.num_rows < whole.num_rows
    order = [("k", "ascending"), ("t", "ascending")]
    matching = (pc.field("k") >= 10) & (pc.field("k") < 13)
    assert kept.filter(matching).sort_by(order).equals(whole.filter(matching).sort_by(order))


def test_section_without_overlap_needs_no_mask(tmp_path):
    table = new_table(tmp_path, {"source.split.open-file-cost": "1 b"})
    for first in (0, 20, 10):
        table.write(columns_of(table, [(k, "a", 0, "x") for k in range(first, first + 5)]))
    (split,) = table.scan().plan().splits
    assert masks.merged_sections(table.store, split) == []
    table.delete("k = 11")
    (split,) = table.scan().plan().splits
    (section,) = masks.merged_sections(table.store, split)
    assert [file.row_count for file in section.files] == [5, 1]
    found = masks.merge_masks(table.store, section)
    assert [mask.tolist() for mask in found.values()] == [[True, False, True, True, True], [False]]


def test_deletion_vectors_are_part_of_masks(tmp_path):
    table = new_table(tmp_path, TABLES["vectors"][0])
    table.write(columns_of(table, [(k, "a", 0, "old") for k in range(40)]))
    table.compact(full=True)
    table.delete("k IN (2, 30)")
    table.compact()
    table.write(columns_of(table, [(k, "a", 0, "new") for k in (5, 38)]))
    table.compact()
    table.write(columns_of(table, [(k, "a", 0, "newest") for k in (1, 35)]))
    (split,) = table.scan().plan().splits
    (section,) = masks.merged_sections(table.store, split)
    assert section.vectors
    assert check(table) == len(split.files)
    assert masked_rows(table, split)[0].num_rows == 38
    digest = masks.section_digest(table.store, section)
    assert digest != masks.section_digest(table.store, replace(section, vectors=()))
    assert digest != masks.section_digest(table.store, section, bound_filter("k = 1", table.store.schema.fields))
    assert digest == masks.section_digest(table.store, replace(section, snapshot_id=99))


def test_combining_engine_has_no_masks(tmp_path):
    table = new_table(tmp_path, {"merge-engine": "aggregation"})
    for _ in range(2):
        table.write(columns_of(table, [(1, "a", 0, "x")]))
    (split,) = table.scan().plan().splits
    (section,) = masks.merged_sections(table.store, split)
    with pytest.raises(UnsupportedError, match="merge engine aggregation combines rows"):
        masks.merge_masks(table.store, section)


def test_table_without_key_has_no_sections(tmp_path):
    catalog = FileSystemCatalog(str(tmp_path))
    catalog.create_database("d")
    options = {"row-tracking.enabled": "true", "data-evolution.enabled": "true"}
    table = catalog.create_table("d.e", Schema(ROWS, options=options))
    table.write(columns_of(table, [(1, "a", 0, "x")]))
    (split,) = table.scan().plan().splits
    assert masks.merged_sections(table.store, replace(split, raw_convertible=False)) == []


def test_missing_file_of_expired_snapshot_is_named(tmp_path):
    table = new_table(tmp_path, {})
    for _ in range(2):
        table.write(columns_of(table, [(1, "a", 0, "x")]))
    (split,) = table.scan().plan().splits
    (section,) = masks.merged_sections(table.store, split)
    table.compact(full=True)
    table.maintenance.expire_snapshots(retain_max=1, retain_min=1)
    with pytest.raises(OutOfRangeError, match="snapshot 2"):
        masks.merge_masks(table.store, section)
