"""Blobs of tables with a primary key: written once, moved by their descriptors, never deleted (format 11.4)."""

import os
import struct
import time
import zlib
from pathlib import Path

import pyarrow as pa
import pytest

from paimon_core import AddColumn, open_catalog
from paimon_core.datafile.blob_references import BlobReferences
from paimon_core.errors import InvalidInputError, UnsupportedError
from paimon_core.format.blob_descriptor import described
from paimon_core.manifest.commit_message import CommitMessage
from paimon_core.schema.schema import Schema
from paimon_core.table import Table
from paimon_core.types.datatype import DataField
from paimon_core.types.parse import parse_type
from tests.support.tables import files_below

KINDS = {"k": "INT NOT NULL", "n": "INT", "b": "BLOB", "a": "ARRAY<BLOB>", "m": "MAP<STRING NOT NULL, BLOB>"}
NO_COMPACTION = {"write-only": "true"}


def made(path, kinds=KINDS, **options):
    fields = [DataField(i, name, parse_type(kind)) for i, (name, kind) in enumerate(kinds.items())]
    return Table.create(str(path), Schema(fields, primary_keys=["k"], options={"bucket": "1", **options}))


def rows(table, keys, tag):
    """Rows with blobs that contain the tag; some blobs, elements and values are NULL, some arrays and maps empty."""
    types = {f.name: f.type for f in table.arrow_schema}
    blob = lambda kind, k: f"{tag}{kind}{k}".encode() * 8  # noqa: E731
    columns = {
        "k": keys,
        "n": keys,
        "b": [blob("b", k) if k % 3 else None for k in keys],
        "a": [[blob("a", k), None, b""] if k % 2 else ([] if k % 4 else None) for k in keys],
        "m": [[("x", blob("m", k)), ("y", None)] if k % 2 else ([] if k % 4 else None) for k in keys],
    }
    return pa.table([pa.array(values, types[name]) for name, values in columns.items()], names=list(columns))


def found(table, **options):
    return {row["k"]: row for row in table.with_options(options).to_arrow().to_pylist()}


def expected(table, *writes):
    """Return the newest row of each key."""
    return {row["k"]: row for keys, tag in writes for row in rows(table, keys, tag).to_pylist()}


def packs(table):
    return sorted(Path(table.path).rglob("*.managed.blob"))


def references(path):
    """Return the paths in a ``.blobref`` file, by its definition."""
    data = path.read_bytes()
    magic, version, count = struct.unpack_from(">iBi", data)
    assert (magic, version) == (0x50424C52, 1)
    assert struct.unpack(">I", data[-4:])[0] == zlib.crc32(data[4:-4])
    at, texts = 9, []
    for _ in range(2 * count):
        (length,) = struct.unpack_from(">H", data, at)
        texts.append(data[at + 2 : at + 2 + length].decode())
        at += 2 + length
    assert at == len(data) - 4
    return [f"{directory}/{name}" for directory, name in zip(texts[::2], texts[1::2], strict=True)]


def test_blobs_are_written_merged_compacted_and_expired(tmp_path):
    table = made(tmp_path / "t", **NO_COMPACTION)
    writes = [(list(range(6)), "A"), (list(range(2, 8)), "B"), ([1, 7], "C")]
    for keys, tag in writes:
        table.write(rows(table, keys, tag))
    stored = packs(table)
    assert len(stored) == 9  # one for each column and write
    assert found(table) == expected(table, *writes)
    table.delete("k = 3")
    rest = expected(table, *writes)
    del rest[3]
    assert found(table) == rest
    assert [table.get({"k": k}) for k in (1, 3)] == [rest[1], None]
    assert found(table, **{"scan.snapshot-id": "1"}) == expected(table, writes[0])
    table.compact(full=True)
    assert packs(table) == stored
    assert found(table) == rest
    lists = sorted(Path(table.path).rglob("*.blobref"))
    assert {path.name.removesuffix(".blobref") for path in lists} == {
        p.name for p in Path(table.path).rglob("*.parquet")
    }
    assert [references(path) for path in lists if not references(path)] == [[]]  # of the file with the deletion
    table.maintenance.expire_snapshots(retain_max=1, retain_min=1)
    (listed,) = Path(table.path).rglob("*.blobref")
    pointers = [row[c] for row in found(table, **{"blob-as-descriptor": "true"}).values() for c in "bam"]
    flat = [p for v in pointers for p in (v if isinstance(v, list) else [v])]
    flat = [p[1] if isinstance(p, tuple) else p for p in flat]
    assert tuple(references(listed)) == tuple(sorted(set(described(pa.array(flat, pa.binary()), "t").files)))
    assert packs(table) == stored
    assert found(table) == rest


def removed_orphans(table, **options):
    """Make all files old, remove orphans, and return their names."""
    for path in Path(table.path).rglob("bucket-*/*"):
        os.utime(path, (1, 1))
    return sorted(p.rpartition("/")[2] for p in table.maintenance.remove_orphan_files(**options).paths)


def test_orphan_removal_removes_blobs_and_lists(tmp_path, caplog):
    """Rows of snapshots, tags and branches keep their blobs, and so do snapshots that a running write may have read."""
    table = made(tmp_path / "t", **NO_COMPACTION)
    writes = [([1, 2], "A"), ([1], "X"), ([1], "Y"), ([1], "Z")]
    of_write = []
    for number, (keys, tag) in enumerate(writes, 1):
        before = {*packs(table)}
        table.write(rows(table, keys, tag))
        of_write.append(sorted(path.name for path in {*packs(table)} - before))
        if number == 2:
            table.tags.create("x", 2)
            table.branches.create("c", "x")
    Table.open(f"{table.path}$branch_c").write(rows(table, [9], "E"))
    table.compact(full=True)
    stray = [tmp_path / "t" / "bucket-0" / f"data-x-0.{kind}" for kind in ("managed.blob", "parquet.blobref")]
    for path in stray:
        path.write_bytes(b"x")
    assert removed_orphans(table, dry_run=True) == [stray[1].name]  # the branch may have had an older snapshot
    assert removed_orphans(table, older_than=table.store.now()) == [path.name for path in stray]
    table.maintenance.expire_snapshots(retain_max=1, retain_min=1)
    assert removed_orphans(table, older_than=table.snapshot().time_millis - 1) == []
    assert "snapshot 5, the oldest of" in caplog.text
    assert removed_orphans(table, older_than=table.store.now()) == of_write[2]
    assert found(table) == expected(table, *writes)
    assert found(table, **{"scan.tag-name": "x"}) == expected(table, *writes[:2])
    assert found(Table.open(f"{table.path}$branch_c")) == expected(table, *writes[:2], ([9], "E"))


def test_orphan_removal_keeps_blobs_of_running_writes(tmp_path):
    """A write has read descriptors from a tag that was deleted afterwards."""
    table = made(tmp_path / "t", {"k": "INT NOT NULL", "b": "BLOB"}, **NO_COMPACTION)
    of_key = lambda b: pa.table({"k": [1], "b": [b]}).cast(table.arrow_schema)  # noqa: E731
    table.write(of_key(b"tagged"))
    (pack,) = packs(table)
    table.tags.create("x", 1)
    table.write(of_key(b"newest"))
    table.compact(full=True)
    table.maintenance.expire_snapshots(retain_max=1, retain_min=1)
    for path in Path(table.path).rglob("bucket-*/*"):
        os.utime(path, (1, 1))
    limit = table.store.now()
    time.sleep(0.01)  # the write begins after the limit
    tagged = table.with_options({"scan.tag-name": "x", "blob-as-descriptor": "true"}).to_arrow()
    writer = table.writer()
    writer.write(tagged.cast(table.arrow_schema))
    messages = writer.prepare_commit()
    table.tags.delete("x")
    table.maintenance.remove_orphan_files(older_than=limit)
    assert pack.exists()
    table.committer().commit(messages)
    assert found(table) == {1: {"k": 1, "b": b"tagged"}}


@pytest.mark.parametrize("damage", [None, b"PBLR", b""])
def test_orphan_removal_keeps_blobs_without_sound_lists(tmp_path, damage, caplog):
    table = made(tmp_path / "t", **NO_COMPACTION)
    table.write(rows(table, [1], "A"))
    (listed,) = Path(table.path).rglob("*.blobref")
    (tmp_path / "t" / "bucket-0" / "data-x-0.managed.blob").write_bytes(b"x")
    if damage is None:
        listed.unlink()
    else:
        listed.write_bytes(damage)
    assert removed_orphans(table) == []
    assert "without references stay: data file" in caplog.text if damage is None else "is no list of" in caplog.text
    assert found(table) == expected(table, ([1], "A"))


@pytest.mark.parametrize("engine", ["partial-update", "first-row"])
def test_other_merge_engines(tmp_path, engine):
    table = made(tmp_path / "t", **{"merge-engine": engine})
    for tag in "AB":
        table.write(rows(table, [1, 3], tag))
    table.compact(full=True)
    old, new = expected(table, ([1, 3], "A")), expected(table, ([1, 3], "B"))
    if engine == "first-row":
        assert found(table) == old
    else:
        assert found(table) == {1: new[1], 3: new[3]}
        nothing = pa.table({"k": pa.array([1], pa.int32()), "n": pa.array([9], pa.int32())})
        table.write(nothing)
        assert found(table)[1] == {**new[1], "n": 9}


def test_sequence_groups_keep_the_blob_of_the_newest_row(tmp_path):
    options = {"merge-engine": "partial-update", "fields.n.sequence-group": "b"}
    table = made(tmp_path / "t", {"k": "INT NOT NULL", "n": "INT", "b": "BLOB"}, **options)
    schema = table.arrow_schema
    for n, blob in ((5, b"five"), (3, b"three"), (6, b"six"), (7, None)):
        table.write(pa.table({"k": [1], "n": [n], "b": [blob]}).cast(schema))
        assert found(table)[1]["b"] == {5: b"five", 3: b"five", 6: b"six", 7: None}[n]


def test_blobs_outside_sequence_groups_beside_aggregates(tmp_path):
    options = {"merge-engine": "partial-update", "fields.s.sequence-group": "n", "fields.n.aggregate-function": "sum"}
    options |= {"fields.b.aggregate-function": "last_non_null_value", **NO_COMPACTION}
    table = made(tmp_path / "t", {"k": "INT NOT NULL", "s": "INT", "n": "INT", "b": "BLOB"}, **options)
    for s, n, blob in ((2, 10, b"one"), (1, 5, b"two"), (3, 1, None)):
        table.write(pa.table({"k": [1], "s": [s], "n": [n], "b": [blob]}).cast(table.arrow_schema))
    merged = {1: {"k": 1, "s": 3, "n": 16, "b": b"two"}}
    assert found(table) == merged
    table.compact(full=True)
    assert found(table) == merged
    assert len(packs(table)) == 2  # the compaction writes no blobs


def test_files_of_blobs_end_at_their_target_size(tmp_path):
    table = made(tmp_path / "t", {"k": "INT NOT NULL", "b": "BLOB"}, **{"blob.target-file-size": "100 b"})
    values = [b"x" * n for n in (50, 50, 300, 10, 10, 10, 10)]
    table.write(pa.table({"k": pa.array(range(7), pa.int32()), "b": values}))
    assert [row["b"] for row in found(table).values()] == values
    pointers = described(pa.array([r["b"] for r in found(table, **{"blob-as-descriptor": "true"}).values()]), "t")
    assert pointers.file_of.tolist() == [0, 0, 1, 2, 2, 2, 2]
    assert (pointers.starts.tolist(), pointers.lengths.tolist()) == (
        [4, 70, 4, 4, 30, 56, 82],
        [50, 50, 300, 10, 10, 10, 10],
    )
    assert all(struct.unpack("<i", path.read_bytes()[:4])[0] == 1481511375 for path in packs(table))


def test_values_that_are_descriptors_are_copied_unless_the_table_owns_the_blob(tmp_path):
    kinds = {"k": "INT NOT NULL", "b": "BLOB"}
    source, table = made(tmp_path / "s", kinds), made(tmp_path / "t", kinds)
    source.write(pa.table({"k": pa.array([0, 1, 2], pa.int32()), "b": [b"0", None, b"22"]}))
    described_rows = source.with_options({"blob-as-descriptor": "true"}).to_arrow()
    with pytest.raises(InvalidInputError, match="neither below the table nor below the warehouse"):
        table.write(described_rows)
    assert not packs(table)
    table.with_options({"blob.external-paths.allowed": source.path}).write(
        pa.concat_tables([described_rows, pa.table({"k": [3], "b": [b"bytes"]}).cast(described_rows.schema)])
    )
    assert [row["b"] for row in found(table).values()] == [b"0", None, b"22", b"bytes"]
    stored = packs(table)
    table.write(table.with_options({"blob-as-descriptor": "true"}).to_arrow(filter="k = 2"))
    assert packs(table) == stored
    assert found(table)[2]["b"] == b"22"


def test_rows_move_to_other_buckets_without_their_blobs(tmp_path):
    table = made(tmp_path / "t")
    table.write(rows(table, list(range(8)), "A"))
    stored = packs(table)
    Table.open(table.path).maintenance.rescale(3)
    table = Table.open(table.path)
    assert packs(table) == stored
    assert found(table) == expected(table, (list(range(8)), "A"))


def test_changes_show_blobs(tmp_path):
    table = made(tmp_path / "t", {"k": "INT NOT NULL", "b": "BLOB"})
    table.write(pa.table({"k": pa.array([1, 2], pa.int32()), "b": [b"one", b"two"]}))
    table.delete("k = 2")
    assert table.changes(0).to_pylist() == [
        {"rowkind": "+I", "k": 1, "b": b"one"},
        {"rowkind": "+I", "k": 2, "b": b"two"},
        {"rowkind": "-D", "k": 2, "b": None},
    ]


def test_abort_deletes_blobs_and_prepared_blobs_survive(tmp_path):
    options = {"blob.target-file-size": "200 b", "write-buffer-size": "1 kb", "write-buffer-spillable": "false"}
    table = made(tmp_path / "t", **options)
    before = files_below(table.path)
    writer = table.writer()
    writer.write(rows(table, list(range(50)), "A"))
    assert packs(table)
    writer.abort()
    assert files_below(table.path) == before
    writer = table.writer()
    writer.write(rows(table, [1], "A"))
    messages = writer.prepare_commit()
    writer.write(rows(table, list(range(1, 50)), "B"))
    writer.abort()
    messages = [CommitMessage.from_bytes(message.to_bytes()) for message in messages]
    table.committer().commit(messages)
    assert found(table) == expected(table, ([1], "A"))


def test_commit_that_is_given_up_deletes_blobs(tmp_path):
    table = made(tmp_path / "t")
    table.write(rows(table, [1], "A"))
    before = files_below(table.path)
    writer = table.writer()
    writer.write(rows(table, [1], "B"))
    table.committer().abort(writer.prepare_commit())
    assert files_below(table.path) == before


def test_inline_descriptors_under_a_primary_key(tmp_path):
    """A column of given descriptors works with every merge engine and changelog."""
    (tmp_path / "x").write_bytes(b"0123")
    options = {"blob-descriptor-field": "b", "changelog-producer": "input", "merge-engine": "aggregation"}
    table = made(tmp_path / "t", {"k": "INT NOT NULL", "b": "BYTES"}, **options)
    table = table.with_options({"blob.external-paths.allowed": str(tmp_path)})
    path = str(tmp_path / "x").encode()
    value = struct.pack("<bqi", 2, 0x424C4F4244455343, len(path)) + path + struct.pack("<qq", 1, 2)
    with pytest.raises(InvalidInputError, match="no blob descriptor"):
        table.write(pa.table({"k": [1], "b": [b"bytes"]}))
    table.write(pa.table({"k": [1, 2], "b": [value, None]}))
    assert [row["b"] for row in found(table).values()] == [b"12", None]
    assert table.changes(0).column("b").to_pylist() == [b"12", None]
    assert not list(Path(table.path).rglob("*blob*"))


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"merge-engine": "aggregation"}, InvalidInputError, "'merge-engine' is 'aggregation', but must be 'dedup"),
        ({"changelog-producer": "lookup"}, InvalidInputError, "'changelog-producer' is 'lookup', but must be 'none'"),
        ({"sequence.field": "b"}, InvalidInputError, "column 'b' holds blobs, which have no order"),
        (
            {"merge-engine": "partial-update", "fields.b.sequence-group": "n"},
            InvalidInputError,
            "column 'b' holds blobs, which have no order",
        ),
        (
            {
                "merge-engine": "partial-update",
                "fields.n.sequence-group": "b",
                "fields.b.aggregate-function": "first_value",
            },
            InvalidInputError,
            "column 'b' has the aggregate function 'first_value'.*'fields.b.ignore-retract'",
        ),
        (
            {"merge-engine": "partial-update", "fields.b.aggregate-function": "first_value"},
            InvalidInputError,
            "column 'b' has the aggregate function first_value but is in no sequence group",
        ),
        ({"bucket": "-2"}, UnsupportedError, "column b of type BLOB under a primary key is not supported yet"),
        ({"blob-descriptor-field": "a"}, InvalidInputError, "names 'a', which is not a column of type BLOB or BYTES"),
    ],
)
def test_tables_that_no_engine_could_keep_right_are_refused(tmp_path, options, error, said):
    with pytest.raises(error, match=said):
        made(tmp_path / "t", **options)


def test_lists_of_files_are_those_of_java():
    """Texts are modified UTF-8, sorted by UTF-16 units; files that are not managed are not listed."""
    names = ["/t/\U0001f600.managed.blob", "/t/\uffff.managed.blob", "/a/b.managed.blob", "/a/c.blob"]
    value = lambda path: struct.pack("<bqi", 2, 0x424C4F4244455343, len(path)) + path + bytes(16)  # noqa: E731
    lists = BlobReferences(["b"])
    column = pa.array([value(name.encode()) for name in names for _ in range(2)], pa.binary())
    kinds = pa.array([0] * len(column), pa.int8())
    lists.add(pa.table({"b": column, "_VALUE_KIND": kinds}))
    body = bytes.fromhex("0100000003")
    for text in (
        b"/a",
        b"b.managed.blob",
        b"/t",
        b"\xed\xa0\xbd\xed\xb8\x80.managed.blob",
        b"/t",
        b"\xef\xbf\xbf.managed.blob",
    ):
        body += struct.pack(">H", len(text)) + text
    assert lists.content() == b"PBLR" + body + struct.pack(">I", zlib.crc32(body))


def test_columns_are_added_to_tables_with_blobs(tmp_path):
    table = made(tmp_path / "t", {"k": "INT NOT NULL", "b": "BLOB"})
    table.write(pa.table({"k": pa.array([1], pa.int32()), "b": [b"one"]}))
    table = table.alter([AddColumn("c", parse_type("BLOB"))])
    table.write(pa.table({"k": pa.array([2], pa.int32()), "b": [b"two"], "c": [b"new"]}))
    assert found(table) == {1: {"k": 1, "b": b"one", "c": None}, 2: {"k": 2, "b": b"two", "c": b"new"}}


def test_files_that_rows_name_do_not_move(tmp_path):
    catalog = open_catalog(str(tmp_path))
    catalog.create_database("db")
    made(tmp_path / "db.db" / "t")
    moves = lambda: catalog.rename_table("db.t", "db.u"), lambda: catalog.clone("db.t", catalog, "db.u")
    for move in moves:
        with pytest.raises(UnsupportedError, match="rows name the files of the blobs in column 'a' by their paths"):
            move()
    assert catalog.list_tables("db") == ["t"]
