"""Manifest entries to test with."""

import itertools

import pyarrow as pa
from hypothesis import strategies as st

from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.manifest.entry import ADD, ManifestEntry
from paimon_core.manifest.manifests import Manifests
from paimon_core.manifest.stats import EMPTY_STATS, SimpleStats
from paimon_core.options.option import Options
from paimon_core.row.binary_row import serialize
from paimon_core.snapshot.snapshot import BATCH_COMMIT_IDENTIFIER, CommitKind, Snapshot
from tests.support.faulty_io import MemoryIO

PARTITION = pa.schema([("p", pa.int32())])
KEY = pa.schema([pa.field("k", pa.int64(), nullable=False)])
DECODERS = ((0, 10**9), (0, 0), (10**9, 10**9))
"""Values of ``_MIN_ENTRIES`` and ``_MIN_BLOCKS``: entries are decoded at once, or else side by side; or one by one."""


def data_file(name="f", low=0, high=9, *, level=0, sequence=(0, 9), stats=EMPTY_STATS, **more):
    """A file holding keys from ``low`` to ``high``."""
    return DataFileMeta(
        file_name=name,
        file_size=more.pop("file_size", 1000),
        row_count=high - low + 1,
        min_key=serialize((low,), KEY),
        max_key=serialize((high,), KEY),
        key_stats=stats,
        value_stats=stats,
        min_sequence_number=sequence[0],
        max_sequence_number=sequence[1],
        schema_id=0,
        level=level,
        **more,
    )


def entry(name="f", kind=ADD, *, p=None, bucket=0, **more):
    """An entry of a table partitioned by an INT."""
    return ManifestEntry(kind, serialize((p,), PARTITION), bucket, 4, data_file(name, **more))


def snapshot(number, **more):
    """A snapshot; ``more`` replaces fields. Its manifest lists do not exist."""
    fields = {
        "schema_id": 0,
        "base_manifest_list": f"base-{number}",
        "delta_manifest_list": f"delta-{number}",
        "commit_user": "user",
        "commit_identifier": BATCH_COMMIT_IDENTIFIER,
        "commit_kind": CommitKind.APPEND,
        "time_millis": 1_000 * number,
    }
    return Snapshot(id=number, **{**fields, **more})


def manifests(io=None, *, partition_schema=PARTITION, **options):
    """Manifests in memory; option names with _ for . and -."""
    names = itertools.count()
    given = Options({key.replace("_", "-").replace("manifest-", "manifest.", 1): v for key, v in options.items()})
    return Manifests(io or MemoryIO(), "/t/manifest", given, partition_schema, lambda: f"u{next(names)}")


_longs = st.one_of(st.integers(-70, 70), st.integers(-(2**63), 2**63 - 1))
_ints = st.one_of(st.integers(-70, 70), st.integers(-(2**31), 2**31 - 1))
_blobs = st.binary(max_size=200)
_texts = st.text(max_size=12)
_stats = st.builds(SimpleStats, _blobs, _blobs, st.lists(st.none() | _longs, max_size=3).map(tuple))
_names = st.lists(_texts, max_size=3).map(tuple)
_file_names = _texts.map(lambda text: "f-" + text.replace("/", "_").replace("\0", "_"))

data_files = st.builds(
    DataFileMeta,
    file_name=_file_names,
    file_size=_longs,
    row_count=_longs,
    min_key=_blobs,
    max_key=_blobs,
    key_stats=_stats,
    value_stats=_stats,
    min_sequence_number=_longs,
    max_sequence_number=_longs,
    schema_id=_longs,
    level=_ints,
    extra_files=st.lists(_file_names, max_size=3).map(tuple),
    creation_time=st.none() | _longs,
    delete_row_count=st.none() | _longs,
    embedded_index=st.none() | _blobs,
    file_source=st.none() | _ints,
    value_stats_cols=st.none() | _names,
    external_path=st.none() | _texts,
    first_row_id=st.none() | _longs,
    write_cols=st.none() | _names,
    write_cols_sequences=st.none() | st.lists(_longs, max_size=3).map(tuple),
)
entries = st.builds(ManifestEntry, st.sampled_from((0, 1)), _blobs, _ints, _ints, data_files)
