"""BLOB columns that Java keeps in files of their own, read by us."""

import pytest

from tests.conformance.compare import same
from tests.conformance.shared_table import SharedTable

pytestmark = pytest.mark.java
BLOBS = {"row-tracking.enabled": "true", "data-evolution.enabled": "true", "blob-field": "b"}


def blob(rng):
    return rng.choice((None, "", "00ff", rng.randbytes(40).hex(), rng.randbytes(3000).hex()))


def test_blobs_are_the_same(judge, name, rng):
    table = SharedTable(judge, name)
    fields = [["k", "INT"], ["b", "BLOB"], ["s", "STRING"]]
    small = {**BLOBS, "blob.target-file-size": "2 kb"}  # several files of blobs beside one of the rest
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
