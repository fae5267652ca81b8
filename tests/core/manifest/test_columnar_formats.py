"""Metadata in ORC and Parquet: the same values as in Avro, moments as numbers."""

import io
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import orc, parquet

from paimon_core.errors import CorruptedError, UnsupportedError
from paimon_core.manifest.decode import UnknownFieldsError, decode_entries, decode_records
from paimon_core.manifest.serializers import ENTRY, INDEX_ENTRY, MANIFEST_FILE
from tests.support.draws import draws
from tests.support.manifests import entries, entry, manifests

TEXTS = pa.list_(pa.string())
STATS = pa.struct([("_MIN_VALUES", pa.binary()), ("_MAX_VALUES", pa.binary()), ("_NULL_COUNTS", pa.list_(pa.int64()))])
TYPES = {
    "_KEY_STATS": STATS, "_VALUE_STATS": STATS, "_EXTRA_FILES": TEXTS, "_VALUE_STATS_COLS": TEXTS, "_WRITE_COLS": TEXTS,
    "_CREATION_TIME": pa.timestamp("ms"), "_MIN_KEY": pa.binary(), "_MAX_KEY": pa.binary(), "_FILE_NAME": pa.string(),
    "_EMBEDDED_FILE_INDEX": pa.binary(), "_EXTERNAL_PATH": pa.string(), "_LEVEL": pa.int32(),
    "_FILE_SOURCE": pa.int32(),
}  # fmt: skip
WRITERS = {"parquet": parquet.write_table, "orc": lambda table, sink: orc.write_table(table, sink)}
formats = pytest.mark.parametrize("name", sorted(WRITERS))


def columnar(name, given_entries):
    """A manifest as Java writes it in this format."""
    records = [ENTRY.to_record(e) for e in given_entries]
    names = [n for n in records[0]["_FILE"] if n != "_WRITE_COLS_SEQUENCES"]
    file = pa.struct([(n, TYPES.get(n, pa.int64())) for n in names])
    whole = {"_VERSION": pa.int32(), "_KIND": pa.int8(), "_PARTITION": pa.binary(), "_BUCKET": pa.int32()}
    schema = pa.schema({**whole, "_TOTAL_BUCKETS": pa.int32(), "_FILE": file})
    table = pa.Table.from_pylist([{**r, "_FILE": {n: r["_FILE"][n] for n in names}} for r in records], schema)
    sink = io.BytesIO()
    WRITERS[name](table, sink)
    return sink.getvalue()


def storable(found):
    moment = found.file.creation_time
    return replace(found, file=replace(found.file, write_cols_sequences=None, creation_time=moment and moment % 10**12))


@formats
@draws(25)
@given(given_entries=st.lists(entries.map(storable), min_size=1, max_size=5))
def test_columnar_entries_equal_avro_entries(name, given_entries):
    data = columnar(name, given_entries)
    assert decode_entries(data, "m") == given_entries
    bare = [replace(e, file=e.file.without_stats()) for e in given_entries]
    assert decode_entries(data, "m", with_stats=False) == bare


@formats
def test_columnar_manifests_are_never_rewritten(name):
    with pytest.raises(UnknownFieldsError, match="the-file"):
        decode_entries(columnar(name, [entry()]), "the-file", lossless=True)


@formats
def test_damaged_columnar_file_is_named_in_the_error(name):
    data = columnar(name, [entry(f"f{i}") for i in range(50)])
    for broken in (data[: len(data) // 2], data[:-20] + b"x" * 20):
        with pytest.raises(CorruptedError, match="the-file"):
            decode_entries(broken, "the-file")
    with pytest.raises(CorruptedError, match="the-file"):
        decode_records(data, "the-file", MANIFEST_FILE)
    with pytest.raises(UnsupportedError, match="version 2"):
        decode_records(data, "the-file", INDEX_ENTRY)


def test_avro_is_recognised_by_its_first_bytes():
    written = manifests()
    meta = written.write([entry()])[0]
    assert written.read(meta.file_name) == [entry()]
