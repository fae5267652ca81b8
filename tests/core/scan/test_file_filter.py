"""Statistics that other engines write, and which files may be left out by them."""

from dataclasses import replace

import pyarrow as pa
import pytest

from paimon_core.manifest.stats import SimpleStats
from paimon_core.predicate.expr import Leaf
from paimon_core.predicate.rewrite import bind
from paimon_core.row.binary_row import serialize
from paimon_core.scan.entries import live_entries
from paimon_core.scan.file_filter import prune_files
from paimon_core.schema.schema import Schema
from paimon_core.store.create import create_table
from paimon_core.store.file_store import FileStore
from paimon_core.table import Table
from paimon_core.types.datatype import AtomicType, DataField
from tests.support.faulty_io import MemoryIO

ROOT = "memory://w/t"
PADDED = pa.schema([("s", pa.string())])


@pytest.mark.parametrize(("root", "kept"), [("CHAR", 1), ("VARCHAR", 0)])
@pytest.mark.parametrize("keys", [(), ("s",)])
def test_bounds_padded_with_blanks_leave_no_file_of_char_out(root, kept, keys):
    """Java pads CHAR in ORC files, and takes a file's bounds from there: 'a' is less than its own bound."""
    io = MemoryIO()
    fields = [DataField(0, "s", AtomicType(root, length=4)), DataField(1, "v", AtomicType("INT"))]
    options = {"bucket": "1" if keys else "-1", "file.format": "orc"}
    table = Table(FileStore(io, ROOT, create_table(io, ROOT, Schema(fields, keys, (), options))))
    table.write(pa.table({"s": ["a"], "v": pa.array([1], pa.int32())}))
    (entry,) = live_entries(table.store, table.snapshot()).live
    bound = serialize(["a   "], PADDED)
    stats = SimpleStats(bound, bound, (0,))
    file = replace(entry.file, key_stats=stats, value_stats=stats, value_stats_cols=("s",))
    predicate = bind(Leaf("=", "s", ("a",)), table.schema.fields)
    assert len(prune_files(table.store, [replace(entry, file=file)], predicate)) == kept
