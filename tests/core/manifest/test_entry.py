import pickle
from dataclasses import FrozenInstanceError, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon_core.errors import CorruptedError, InvalidInputError
from paimon_core.manifest.commit_message import CommitMessage
from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.manifest.entry import ADD, DELETE, files_by_bucket, merge_entries
from paimon_core.manifest.fast_constructor import fast_constructor, fast_list_constructor
from paimon_core.manifest.index_entry import DELETION_VECTORS, HASH, DeletionRange, IndexManifestEntry
from paimon_core.manifest.stats import EMPTY_STATS
from tests.support.draws import draws
from tests.support.manifests import data_file, data_files, entry


def test_deletion_cancels_addition_before_it():
    a, b = entry("a"), entry("b")
    assert merge_entries([a, b, replace(a, kind=DELETE)]) == [b]


def test_lone_deletion_stays():
    gone = entry("a", DELETE)
    assert merge_entries([gone, entry("b")]) == [gone, entry("b")]


def test_file_moved_to_another_level_has_two_identities():
    low, high = entry("a", level=0), entry("a", level=5)
    assert merge_entries([low, replace(low, kind=DELETE), high]) == [high]
    assert merge_entries([replace(low, kind=DELETE), high]) == [replace(low, kind=DELETE), high]


@pytest.mark.parametrize(
    "other",
    [{"p": 1}, {"bucket": 1}, {"level": 1}, {"extra_files": ("x",)}, {"embedded_index": b""}, {"external_path": "/x"}],
)
def test_every_part_of_identity_counts(other):
    one = entry("a", p=0, embedded_index=None)
    two = entry("a", **{"p": 0, **other})
    assert one.identity != two.identity
    assert merge_entries([one, two, replace(two, kind=DELETE)]) == [one]


def test_statistics_are_not_part_of_identity():
    one = entry("a")
    gone = replace(one, kind=DELETE, file=one.file.without_stats())
    assert merge_entries([one, gone]) == []


@pytest.mark.parametrize("before", [ADD, DELETE])
def test_file_cannot_be_added_twice(before):
    with pytest.raises(CorruptedError, match="add the file a "):
        merge_entries([entry("a", before), entry("a")])


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 1)), max_size=30), st.integers(0, 30))
def test_merging_a_part_first_changes_nothing(steps, cut):
    history, live = [], set()
    for name, level in steps:  # each step adds the file, or deletes it if it is there
        kind = DELETE if (name, level) in live else ADD
        live ^= {(name, level)}
        history.append(entry(name, kind, level=level))
    merged = merge_entries([*history[:cut], *merge_entries(history[cut:])]) if _legal(history[cut:]) else None
    whole = merge_entries(history)
    assert {(e.file.file_name, e.file.level) for e in whole} == live
    if merged is not None:
        assert {e.identity for e in merged} == {e.identity for e in whole}


def _legal(part):
    first = {}
    for e in part:
        first.setdefault(e.identity, e.kind)
    return all(kind == ADD or sum(e.identity == i for e in part) == 1 for i, kind in first.items())


def test_fast_constructor_makes_equal_values():
    values = [getattr(data_file(), name) for name in DataFileMeta.__slots__]
    made = fast_constructor(DataFileMeta)(*values)
    assert fast_list_constructor(DataFileMeta)(*([value] * 2 for value in values)) == [made, made]
    assert type(made) is DataFileMeta
    assert made == data_file()
    assert hash(made) == hash(data_file())
    assert pickle.loads(pickle.dumps(made)) == made
    assert replace(made, level=3).level == 3
    with pytest.raises(FrozenInstanceError):
        made.level = 1


def test_file_without_statistics_lists_no_columns():
    bare = data_file(value_stats_cols=("a",)).without_stats()
    assert (bare.key_stats, bare.value_stats, bare.value_stats_cols) == (EMPTY_STATS, EMPTY_STATS, ())


VECTORS = IndexManifestEntry(
    ADD,
    b"p",
    3,
    DELETION_VECTORS,
    "index-1",
    29,
    2,
    (DeletionRange("a", 1, 24, 2), DeletionRange("b", 33, 24)),
    "x://y",
)
HASHES = IndexManifestEntry(ADD, b"p", 3, HASH, "index-2", 8, 2)


@draws(20)
@given(
    st.lists(st.lists(data_files, max_size=1).map(tuple), min_size=6, max_size=6),
    st.lists(st.sampled_from([(), (VECTORS,), (HASHES, VECTORS)]), min_size=4, max_size=4),
)
def test_commit_message_survives_serialisation(files, indexes):
    message = CommitMessage(b"p", 3, -1, *files, *indexes)
    assert CommitMessage.from_bytes(message.to_bytes()) == message
    assert pickle.loads(pickle.dumps(message)) == message
    assert message.is_empty == (not any(files) and not any(indexes))


def test_damaged_commit_messages_are_refused():
    data = CommitMessage(b"p", 3, -1, (data_file(),)).to_bytes()
    for bad in (b"", b"x" + data, data[:-1], data + b"\0"):
        with pytest.raises(InvalidInputError, match="CommitMessage"):
            CommitMessage.from_bytes(bad)


def test_files_of_bucket_are_grouped_in_order_of_first_file():
    places = [(1, 0), (1, 1), (1, 1), (None, 0), (1, 0)]
    lines = [entry(str(i), p=p, bucket=bucket) for i, (p, bucket) in enumerate(places)]
    groups = files_by_bucket(iter(lines))
    assert list(groups) == [lines[0].location, lines[1].location, lines[3].location]
    assert [[file.file_name for file in files] for files in groups.values()] == [["0", "4"], ["1", "2"], ["3"]]
