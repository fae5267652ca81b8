from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon_core.errors import CorruptedError
from paimon_core.format.avro_container import ContainerWriter
from paimon_core.manifest.entry import ADD, DELETE, merge_entries
from paimon_core.manifest.merge_manifests import merge_manifests
from paimon_core.manifest.serializers import DATA_FILE_SCHEMA, ENTRY, MANIFEST_SCHEMA
from tests.support.draws import draws
from tests.support.faulty_io import FaultyIO
from tests.support.manifests import entry, manifests

EAGER = {"manifest_target_file_size": "1 b", "manifest_full_compaction_threshold_size": "1 b"}


def live(m, metas):
    return [e.identity for e in merge_entries([e for meta in metas for e in m.read(meta.file_name)])]


@st.composite
def histories(draw):
    """Commits, each a list of entries, as a table could have made them."""
    present, commits, fresh = [], [], 0
    for _ in range(draw(st.integers(0, 10))):
        gone = draw(st.lists(st.sampled_from(present), unique_by=id, max_size=3)) if present else []
        present = [e for e in present if e not in gone]
        commit = [replace(e, kind=DELETE) for e in gone]
        moved = [replace(e, file=replace(e.file, level=e.file.level + 1)) for e in gone if draw(st.booleans())]
        added = draw(st.integers(0 if commit else 1, 3))
        new = [entry(f"f{fresh + i}", p=draw(st.none() | st.integers(0, 4))) for i in range(added)]
        fresh += added
        present += moved + new
        commits.append(commit + moved + new)
    return commits


@draws(40)
@given(
    histories(),
    st.sampled_from(["1 b", "3 kb", "6 kb", "8 mb"]),
    st.sampled_from(["1 b", "20 kb", "16 mb"]),
    st.integers(1, 8),
)
def test_merged_manifests_replay_to_the_same_files_in_the_same_order(commits, target, threshold, min_count):
    m = manifests(
        manifest_target_file_size=target,
        manifest_full_compaction_threshold_size=threshold,
        manifest_merge_min_count=str(min_count),
    )
    metas = [meta for commit in commits for meta in m.write(commit)]
    before = dict(m.io.files)
    merged, written = merge_manifests(m, metas)
    assert live(m, merged) == live(m, metas)
    assert {m.path(name) for name in written} == set(m.io.files) - set(before)
    assert set(written) <= {meta.file_name for meta in merged}
    assert before.items() <= m.io.files.items()


def commit_sizes(m, *sizes):
    return [meta for n, size in enumerate(sizes) for meta in m.write([entry(f"{n}-{i}", p=n) for i in range(size)])]


def test_few_small_manifests_are_left_alone():
    m = manifests()
    metas = commit_sizes(m, *[1] * 29)
    assert merge_manifests(m, metas) == (metas, [])
    assert merge_manifests(m, []) == ([], [])


def test_thirty_small_manifests_are_merged():
    m = manifests()
    merged, written = merge_manifests(m, commit_sizes(m, *[1] * 30))
    assert [meta.file_name for meta in merged] == written
    assert [meta.num_added_files for meta in merged] == [30]


def test_small_ones_that_fill_manifest_are_merged_and_tail_waits():
    m = manifests(manifest_compression="null")
    metas = commit_sizes(m, 10, 10, 10, 1)
    size = sum(meta.file_size for meta in metas[:3])
    m = manifests(m.io, manifest_target_file_size=f"{size} b", manifest_compression="null")
    m._new_name = lambda: "other"
    merged, written = merge_manifests(m, metas)
    assert len(written) == 1
    assert [meta.num_added_files for meta in merged] == [30, 1]
    assert merged[1] == metas[3]


def test_group_whose_entries_all_cancel_leaves_no_manifest():
    m = manifests(manifest_merge_min_count="2")
    metas = [*m.write([entry("a")]), *m.write([entry("a", DELETE)])]
    assert merge_manifests(m, metas) == ([], [])


def test_lone_deletion_survives_minor_merge():
    m = manifests(manifest_merge_min_count="2")
    metas = [*m.write([entry("b", DELETE)]), *m.write([entry("a")])]
    merged, _ = merge_manifests(m, metas)
    assert [e.kind for e in m.read(merged[0].file_name)] == [DELETE, ADD]


def test_full_merge_keeps_manifests_without_deletions():
    m = manifests(**EAGER)
    (untouched,) = m.write([entry("a", p=1)])
    (same_partition,) = m.write([entry("b", p=2)])
    (victim,) = m.write([entry("c", p=3), entry("d", p=3)])
    (gone,) = m.write([entry("c", DELETE, p=3), entry("x", DELETE, p=2), entry("e", p=9)])
    merged, written = merge_manifests(m, [untouched, same_partition, victim, gone])
    assert merged[:2] == [untouched, same_partition]
    assert [meta.file_name for meta in merged[2:]] == written
    assert [e.file.file_name for meta in merged[2:] for e in m.read(meta.file_name)] == ["d", "e"]


def test_full_merge_of_single_manifest_is_skipped():
    m = manifests(**EAGER)
    metas = [*m.write([entry("a", p=1)]), *m.write([entry("b", DELETE, p=7)])]
    assert merge_manifests(m, metas) == (metas, [])


def test_deletions_in_null_partitions_find_their_files():
    m = manifests(**EAGER)
    metas = [*m.write([entry("a")]), *m.write([entry("b", p=1)]), *m.write([entry("a", DELETE)])]
    merged, _ = merge_manifests(m, metas)
    assert [e.file.file_name for meta in merged for e in m.read(meta.file_name)] == ["b"]


def test_manifests_of_newer_versions_are_not_rewritten():
    m = manifests(manifest_merge_min_count="2")
    metas = commit_sizes(m, 2, 2)
    file = {**DATA_FILE_SCHEMA, "fields": [*DATA_FILE_SCHEMA["fields"], {"name": "_NEW", "type": "int"}]}
    schema = {**MANIFEST_SCHEMA, "fields": [*MANIFEST_SCHEMA["fields"][:-1], {"name": "_FILE", "type": file}]}
    record = ENTRY.to_record(entry("n"))
    with m.io.create(m.path("new")) as sink:
        ContainerWriter(sink, schema, "null", 1).write([{**record, "_FILE": {**record["_FILE"], "_NEW": 1}}])
    newer = replace(metas[0], file_name="new", file_size=len(m.io.read(m.path("new"))))
    assert merge_manifests(m, [*metas, newer]) == ([*metas, newer], [])


def test_failed_merge_leaves_nothing_new():
    metas = commit_sizes(m := manifests(**EAGER), *[1] * 5) + m.write([entry("0-0", DELETE, p=0)])
    before = dict(m.io.files)
    counted = FaultyIO(m.io.copy())
    merge_manifests(manifests(counted, **EAGER), metas)
    for at in range(counted.calls):
        faulty = manifests(FaultyIO(m.io, at=at), **EAGER)
        faulty._new_name = lambda: "other"
        with pytest.raises(OSError):  # the fault of the test's own storage
            merge_manifests(faulty, metas)
        assert m.io.files == before


def test_file_added_twice_stops_merge():
    m = manifests(manifest_merge_min_count="2")
    with pytest.raises(CorruptedError, match="add the file a"):
        merge_manifests(m, [*m.write([entry("a")]), *m.write([entry("a")])])
