"""Snapshots keep everything they carry, in the order of the format, and say what is wrong with a bad file."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon_core.errors import CorruptedError
from paimon_core.snapshot.snapshot import BATCH_COMMIT_IDENTIFIER, CommitKind, Snapshot

TWO_X = """{
  "version" : 3,
  "uuid" : "7a9ae639-f46c-46b4-ad75-bf0d7b5e9c4d",
  "id" : 1,
  "schemaId" : 0,
  "baseManifestList" : "manifest-list-4a72a8c7-0",
  "baseManifestListSize" : 1006,
  "deltaManifestList" : "manifest-list-4a72a8c7-1",
  "deltaManifestListSize" : 1126,
  "commitUser" : "f257904a-661d-4abc-8afe-178f3750b866",
  "commitIdentifier" : 9223372036854775807,
  "commitKind" : "APPEND",
  "timeMillis" : 1795223676308,
  "totalRecordCount" : 5,
  "deltaRecordCount" : 5,
  "nextRowId" : 0
}"""

ONE_X = """{
  "version" : 3, "id" : 2, "schemaId" : 0,
  "baseManifestList" : "b", "deltaManifestList" : "d", "changelogManifestList" : null,
  "commitUser" : "u", "commitIdentifier" : 7, "commitKind" : "COMPACT", "timeMillis" : 9,
  "logOffsets" : { }, "totalRecordCount" : 5, "deltaRecordCount" : -5, "changelogRecordCount" : 0,
  "watermark" : -9223372036854775808
}"""

_names = st.text().map(lambda text: "n-" + text.replace("/", "_").replace("\0", "_"))
MINIMAL = Snapshot(
    id=1,
    schema_id=0,
    base_manifest_list="b",
    delta_manifest_list="d",
    commit_user="u",
    commit_identifier=BATCH_COMMIT_IDENTIFIER,
    commit_kind=CommitKind.APPEND,
    time_millis=5,
)


def test_java_file_is_written_back_byte_for_byte():
    assert Snapshot.from_json(TWO_X.encode(), "p").to_json().decode() == TWO_X


def test_older_files_are_read():
    snapshot = Snapshot.from_json(ONE_X.encode(), "p")
    assert (snapshot.changelog_manifest_list, snapshot.delta_record_count, snapshot.log_offsets) == (None, -5, {})
    assert (snapshot.next_row_id, snapshot.watermark) == (None, -(2**63))
    assert "nextRowId" not in json.loads(snapshot.to_json())


def test_new_snapshot_writes_row_id_and_omits_absent_keys():
    written = json.loads(replace(MINIMAL, properties={}).to_json())
    assert list(written) == [
        *("version", "id", "schemaId", "baseManifestList", "deltaManifestList", "commitUser"),
        *("commitIdentifier", "commitKind", "timeMillis", "nextRowId"),
    ]
    assert written["nextRowId"] == 0


def test_unknown_keys_are_preserved():
    record = {**json.loads(TWO_X), "fromTheFuture": {"a": [1]}, "another": None}
    snapshot = Snapshot.from_json(json.dumps(record).encode(), "p")
    assert json.loads(replace(snapshot, id=2).to_json()) == {**record, "id": 2}


longs = st.integers(-(2**63), 2**63 - 1)


@given(
    st.builds(
        Snapshot,
        version=st.just(3),
        id=longs,
        schema_id=longs,
        base_manifest_list=_names,
        delta_manifest_list=_names,
        commit_user=st.text(),
        commit_identifier=longs,
        commit_kind=st.sampled_from(["APPEND", "COMPACT"]),
        time_millis=st.integers(-(10**15), 10**15),
        uuid=st.none() | st.text(),
        watermark=st.none() | longs,
        next_row_id=st.none() | longs,
        statistics=st.none() | _names,
        properties=st.none() | st.dictionaries(st.text(), st.text(), min_size=1),
        extra=st.dictionaries(st.text(min_size=1).map("x".__add__), st.none() | st.integers() | st.text()),
    )
)
def test_reading_undoes_writing(snapshot):
    assert Snapshot.from_json(snapshot.to_json(), "p") == snapshot
    hash(snapshot)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"\xff\xfe{", "not JSON"),
        (b"[1]", "expected a JSON object, found list"),
        (b"{}", "'id'"),
        (TWO_X.replace('"id" : 1', '"id" : "1"').encode(), "'id' must be a whole number, found '1'"),
        (TWO_X.replace('"id" : 1', '"id" : true').encode(), "'id' must be a whole number"),
        (TWO_X.replace('"APPEND"', "5").encode(), "'commitKind' must be a string"),
    ],
)
def test_garbage_raises_corrupted_error_with_file(data, reason):
    with pytest.raises(CorruptedError, match=f"^/t/snapshot/snapshot-1: .*{reason}"):
        Snapshot.from_json(data, "/t/snapshot/snapshot-1")
