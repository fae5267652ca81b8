"""BLOB columns, in files of their own: Java writes and we read, the other way round, and both in turns."""

import pyarrow as pa
import pytest

from paimon_core.lsm.row_ranges import is_blob
from paimon_core.scan.entries import live_entries
from tests.conformance.compare import same
from tests.conformance.shared_table import SharedTable

pytestmark = pytest.mark.java
BLOBS = {"row-tracking.enabled": "true", "data-evolution.enabled": "true", "blob-field": "b"}


def blob(rng):
    return rng.choice((None, "", "00ff", rng.randbytes(40).hex(), rng.randbytes(3000).hex()))


def blobs(named):
    """Options of a table of blobs; ``named``: the value of ``blob-field``, ``None`` as tables of Java's API lack it."""
    without = {key: value for key, value in BLOBS.items() if key != "blob-field"}
    return without if named is None else {**without, "blob-field": named}


@pytest.mark.parametrize("named", [pytest.param("b", marks=pytest.mark.more), None])
def test_blobs_are_the_same(judge, name, rng, named):
    table = SharedTable(judge, name)
    fields = [["k", "INT"], ["b", "BLOB"], ["s", "STRING"]]
    small = {**blobs(named), "blob.target-file-size": "2 kb"}  # several blob files and one file for the other columns
    table.java("create_table", fields=fields, options=small)
    for turn in range(4):
        table.java("write", rows=[{"k": 10 * turn + i, "b": blob(rng), "s": f"s{i}"} for i in range(9)])
    rows = table.agree_everywhere()
    assert len(table.ours().scan().plan().splits[0].files) > 8
    table.java("write", rows=[{"s": f"new{i}"} for i in range(9)], columns=["s"], first_row_id=0)
    rows = table.agree()
    for columns in (["b"], ["s", "b"], ["b", "_ROW_ID"]):
        found = table.ours().to_arrow(columns).to_pylist()
        at = {"k": 0, "b": 1, "s": 2}
        theirs = [[int(r[0] is None) if c == "_ROW_ID" else r[at[c]] for c in columns] for r in rows]
        ours = [
            [0 if c == "_ROW_ID" else r[c].hex() if isinstance(r[c], bytes) else r[c] for c in columns] for r in found
        ]
        same(ours, theirs, f"{name}: {columns}")
    same(table.our_rows(table.fields_at(), filter="s = 'new3'"), [r for r in rows if r[2] == "new3"], f"{name}: filter")
    table.java("alter_table", changes=[{"op": "add_column", "name": "w", "type": "INT"}])
    table.java("write", rows=[{"k": 99, "b": "aa", "s": "x", "w": 1}])
    table.agree_everywhere()
    table.java("compact", kind="full", options={"compaction.min.file-num": "2"})
    table.agree_everywhere()


# ---- we write


def described(table):
    """Return the manifest entries of a table without names and times, and the bytes of its blob files."""
    snapshot, found = table.snapshot(), []
    for entry in live_entries(table.store, snapshot).live:
        file = entry.file
        path = table.store.file_path(entry.bucket_ref, file)
        said = {name: getattr(file, name) for name in file.__slots__ if name not in ("file_name", "creation_time")}
        if is_blob(file):
            said["bytes"] = table.store.io.read(path)
        else:  # as large as its writer makes it
            del said["file_size"]
        place = entry.location
        found.append(repr((file.file_name.rsplit(".", 1)[1], *place, said)))
    return [*found, [snapshot.total_record_count, snapshot.delta_record_count, snapshot.next_row_id]]


@pytest.mark.parametrize("named", ["b,c", "b", None])
def test_files_and_manifests_agree_with_java(judge, name, rng, named):
    both = [SharedTable(judge, f"{name}_{who}") for who in ("ours", "theirs")]
    fields = [["k", "INT"], ["b", "BLOB"], ["p", "STRING"], ["c", "BLOB"], ["s", "STRING"]]
    options = {**blobs(named), "blob.target-file-size": "4 kb"}
    for table in both:
        table.java("create_table", fields=fields, partition_keys=["p"], options=options)
    for _ in range(2):
        rows = [{"k": i, "b": blob(rng), "p": "x", "c": blob(rng), "s": f"s{i}"} for i in range(12)]
        both[0].we_write([["+I", row] for row in rows])
        both[1].java("write", rows=rows)
    ours, theirs = (described(table.ours()) for table in both)
    same(ours, theirs, f"{name}: files of blobs and what is said of them")
    same(both[0].agree_everywhere(), both[1].agree_everywhere(), f"{name}: rows")


def agree(table):
    """Rows, ids, and some columns."""
    table.agree()
    names = [f.name for f in table.fields_at()]
    theirs = table.judge.call("read", table=f"{table.name}$row_tracking")["rows"]
    ours = table.ours().to_arrow([*names, "_ROW_ID", "_SEQUENCE_NUMBER"]).to_pylist()
    plain = [[v.hex() if isinstance(v, bytes) else v for v in row.values()] for row in ours]
    same(plain, [row[1:] for row in theirs], f"{table.name}: row ids")
    for columns in (["k", "b"], ["s", "c"]):  # blobs alone Java finds only where each range has one file of them
        theirs = [row[1:] for row in table.java("read", projection=columns)["rows"]]
        ours = table.ours().to_arrow(columns).to_pylist()
        plain = [[v.hex() if isinstance(v, bytes) else v for v in row.values()] for row in ours]
        same(plain, theirs, f"{table.name}: {columns}")


@pytest.mark.more
def test_both_write_replace_and_compact_in_turns(judge, name, rng):
    table = SharedTable(judge, name)
    fields = [["k", "INT"], ["b", "BLOB"], ["s", "STRING"], ["c", "BLOB"]]
    options = {**BLOBS, "blob-field": "b,c", "blob.target-file-size": "4 kb", "compaction.min.file-num": "2"}
    table.java("create_table", fields=fields, options=options)
    rows = 0

    def write(we):
        nonlocal rows
        count = rng.randint(1, 8)
        new = [{"k": rows + i, "b": blob(rng), "s": f"s{i}", "c": blob(rng)} for i in range(count)]
        table.we_write([["+I", row] for row in new]) if we else table.java("write", rows=new)
        rows += count

    def replace(we):
        if we:
            column = rng.choice("bsc")
            ids = sorted(rng.sample(range(rows), min(3, rows)))
            blobs = [None if b is None else bytes.fromhex(b) for b in (blob(rng) for _ in ids)]
            new = {"s": pa.array(["new"] * len(ids))} if column == "s" else {column: pa.array(blobs, pa.binary())}
            table.ours().update_columns(pa.table({"_ROW_ID": ids, **new}))
        else:
            # blobs alone Java cannot write: it would begin a file without columns
            found = [e.file for e in live_entries(table.ours().store, table.ours().snapshot()).live]
            file = rng.choice([f for f in found if not is_blob(f)])
            new = [{"s": "theirs"}] * file.row_count
            table.java("write", rows=new, columns=["s"], first_row_id=file.first_row_id)

    for turn in range(12):
        write(turn % 2) if turn < 4 or turn % 5 == 0 else replace(turn % 2)
        if turn in (6, 10):
            table.java("alter_table", changes=[{"op": "add_column", "name": f"w{turn}", "type": "INT"}])
        if turn == 8:
            table.ours().compact(full=True)
        agree(table)
    table.ours().compact(full=True)
    agree(table)
    table.java("compact", kind="full")
    agree(table)
    table.agree_everywhere()
