"""Pruning of files by statistics: the cases of `file_filter.txt`, and statistics that other engines write."""

import re
from dataclasses import replace

import pyarrow as pa
import pytest

from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.manifest.entry import ADD, ManifestEntry
from paimon_core.manifest.stats import EMPTY_STATS, SimpleStats, stats_schema
from paimon_core.options.merge import DELETION_VECTORS_ENABLED
from paimon_core.predicate.expr import Leaf
from paimon_core.predicate.parse import parse_predicate
from paimon_core.predicate.rewrite import bind
from paimon_core.row.binary_row import serialize
from paimon_core.scan.entries import live_entries
from paimon_core.scan.file_filter import prune_files
from paimon_core.schema.schema import Schema
from paimon_core.schema.table_schema import TableSchema
from paimon_core.store.create import create_table
from paimon_core.store.file_store import FileStore
from paimon_core.table import Table
from paimon_core.types.datatype import AtomicType, DataField
from tests.support.faulty_io import MemoryIO
from tests.support.text_cases import text_cases
from tests.support.text_tables import TextTable, text_file, text_files

ROOT = "memory://w/t"


def read_files(text: str) -> str:
    """Return the output for a case of `file_filter.txt`."""
    first, *lines = text.splitlines()
    table, entries, answers = TextTable(first), [], []
    disjoint = table.store.options.value(DELETION_VECTORS_ENABLED)
    for line in lines:
        word, _, rest = line.partition(" ")
        if word == "file":
            for _, name, given in text_files(rest):
                file = with_stats(text_file(name, given), given, table.store.schema)
                entries.append(ManifestEntry(ADD, *table.bucket(given), file))
        else:
            predicate = bind(parse_predicate(rest), table.store.schema.fields)
            kept, _ = prune_files(table.store, entries, predicate, disjoint=disjoint)
            answers.append(f"{rest}: {' '.join(e.file.file_name for e in kept) or 'none'}")
    return "\n".join(answers)


def with_stats(file: DataFileMeta, given: dict[str, str], schema: TableSchema) -> DataFileMeta:
    """Return the file with the statistics in its attributes: `v 1..5/2` is bounds and nulls, `v ?..?/10` no bounds."""

    def stats(fields):
        if not fields:
            return EMPTY_STATS
        columns = [re.fullmatch(r"(.+)\.\.(.+)/(.+)", given.get(f.name, "?..?/?")).groups() for f in fields]
        low, high, nulls = zip(*columns, strict=True)
        kinds = stats_schema(fields)

        def bounds(texts):
            return serialize([value(text, kind) for text, kind in zip(texts, kinds.types, strict=True)], kinds)

        return SimpleStats(bounds(low), bounds(high), tuple(value(text, pa.int64()) for text in nulls))

    return replace(file, key_stats=stats(schema.key_fields), value_stats=stats(schema.fields))


def value(text: str, kind: pa.DataType) -> object:
    return None if text == "?" else text if kind == pa.string() else int(text)


@text_cases(__file__, "file_filter.txt")
def test_file_filter_text_cases(case, check_case):
    check_case(case, read_files)


PADDED = pa.schema([("s", pa.string())])


@pytest.mark.parametrize(("root", "kept"), [("CHAR", 1), ("VARCHAR", 0)])
@pytest.mark.parametrize("keys", [(), ("s",)])
def test_padded_char_bounds_prune_no_file(root, kept, keys):
    """Java pads CHAR in ORC files and in their bounds, so 'a' is less than its lower bound."""
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
    assert len(prune_files(table.store, [replace(entry, file=file)], predicate)[0]) == kept
