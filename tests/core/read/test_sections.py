"""Merging runs by their age, without sequence numbers, equals merging them by sequence numbers."""

import random

import pyarrow as pa
import pytest

from paimon_core.lsm.intervals import sections
from paimon_core.merge.deduplicate import deduplicate
from paimon_core.merge.engine import MergeEngine
from paimon_core.options.option import Options
from paimon_core.read.sections import by_age, file_reader, merge_section
from paimon_core.types.system_fields import SEQUENCE_NUMBER, VALUE_KIND
from paimon_core.write.table_write import WriterRole
from tests.support.tables import keyed_table, orders, rows_of

SETTINGS = [{}, {"sequence.field": "n"}, {"sequence.field": "n", "sequence.field.sort-order": "descending"}]


def _history(table, rng, commits=6):
    """Return upserts and deletes of a few keys, one run per commit; the newest row of a key is often a delete."""
    for _ in range(commits):
        ids = [0, 11, *rng.sample(range(1, 11), 4)]  # all runs overlap: none is packed behind another
        kinds = rng.choices(["+I", "+U", "-D"], k=6)
        table.write(orders(*((i, f"v{rng.random()}", rng.randrange(3)) for i in ids)), kinds)


def _runs(table):
    splits = [s for s in table.scan().plan().splits if not s.raw_convertible]
    return [(s, runs) for s in splits for runs in sections(s.files, table.schema.key_arrow) if len(runs) > 1]


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("seed", range(5))
def test_merge_by_age_equals_merge_by_sequence_number(tmp_path, settings, seed):
    table = keyed_table(tmp_path / "t", bucket="1", **settings)
    _history(table, random.Random(seed))
    overlapping = _runs(table)
    assert overlapping
    fields, order = table.schema.fields, table.store.traits.merge_order()
    for split, runs in overlapping:
        aged = by_age(runs)
        assert aged is not None
        short = file_reader(table.store, split.bucket_ref, (*fields, VALUE_KIND))
        full = file_reader(table.store, split.bucket_ref, (*fields, SEQUENCE_NUMBER, VALUE_KIND))
        by_run = type(order)(order.key, order.sequence_fields, order.descending, by_run=True)
        got = pa.concat_tables(merge_section(aged, short, by_run, MergeEngine(deduplicate()), Options({})))
        expected = pa.concat_tables(merge_section(runs, full, order, MergeEngine(deduplicate()), Options({})))
        assert got.equals(expected.drop_columns([SEQUENCE_NUMBER.name]))


def test_interleaved_runs_are_merged_by_sequence_number(tmp_path):
    table = keyed_table(tmp_path / "t", bucket="1")
    writers = [table.writer(role=WriterRole(i, 2)) for i in range(2)]
    writers[0].write(orders((1, "a0", 0), (2, "a1", 0), (3, "a2", 0)))
    writers[1].write(orders((3, "b0", 0), (2, "b1", 0), (1, "b2", 0)))
    table.committer().commit([message for writer in writers for message in writer.prepare_commit()])
    assert [by_age(runs) for _, runs in _runs(table)] == [None]
    assert [r["v"] for r in rows_of(table.to_arrow())] == ["b2", "b1", "a2"]


def test_newer_delete_hides_older_row(tmp_path):
    table = keyed_table(tmp_path / "t", bucket="1")
    table.write(orders((1, "old", 0), (2, "kept", 0)))
    table.write(orders((1, "gone", 0), (3, "new", 0)), ["-D", "+I"])
    assert [r["id"] for r in rows_of(table.to_arrow())] == [2, 3]
