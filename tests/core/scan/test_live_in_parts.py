"""The live files of a snapshot, read in parts, equal the files after merging all entries."""

from dataclasses import replace

import pytest

from paimon_core.manifest import manifests as module
from paimon_core.manifest.entry import ADD, DELETE
from paimon_core.scan.entries import live_entries, live_in_parts
from tests.support.tables import append_table, orders


def names(entries):
    return [entry.file.file_name for entry in entries]


@pytest.mark.parametrize("most", [0, 20_000])
def test_file_added_again_after_delete_is_live(tmp_path, monkeypatch, most):
    monkeypatch.setattr(module, "MAX_ENTRIES", most)
    table = append_table(tmp_path / "t")
    table.write(orders((1, "a", 1)))
    store, snapshot = table.store, table.snapshot()
    (entry,) = live_entries(store, snapshot).live

    def line(kind, name, level=0):
        return replace(entry, kind=kind, file=replace(entry.file, file_name=name, level=level))

    base = [line(ADD, "again"), line(ADD, "gone"), line(DELETE, "again"), line(ADD, "stays"), line(ADD, "up")]
    delta = [line(DELETE, "gone"), line(ADD, "again"), line(DELETE, "up"), line(ADD, "up", 5)]
    lists = [store.manifests.write_list(store.manifests.write(lines)) for lines in (base, delta)]
    made = replace(
        snapshot,
        base_manifest_list=lists[0][0],
        base_manifest_list_size=lists[0][1],
        delta_manifest_list=lists[1][0],
        delta_manifest_list_size=lists[1][1],
    )
    result = [entry for part in live_in_parts(store, made) for entry in part]
    assert names(result) == ["stays", "again", "up"]
    assert sorted(names(result)) == sorted(names(live_entries(store, made).live))
    assert names(e for part in live_in_parts(store, made, levels=[5]) for e in part) == ["up"]
    assert names(e for part in live_in_parts(store, made, buckets=[1]) for e in part) == []
