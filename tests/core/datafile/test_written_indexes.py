"""Indexes are written with every file, small indexes in the metadata, and are deleted with their file."""

import pyarrow as pa
import pytest

import paimon_core
from paimon_core.errors import InvalidInputError
from paimon_core.manifest.bucket import BucketRef
from paimon_core.scan.entries import live_entries
from tests.support.index_files import unpack


def made(tmp_path, options, keys=()):
    fields = pa.schema(
        [pa.field("k", pa.int32(), nullable=False), ("s", pa.string()), ("m", pa.map_(pa.string(), pa.int64()))]
    )
    options = {**({"bucket": "1"} if keys else {}), **options}
    return paimon_core.Table.create(str(tmp_path / "t"), paimon_core.Schema(fields, keys, options=options))


def rows(*numbers):
    maps = pa.array([[("a", n)] if n % 2 else None for n in numbers], pa.map_(pa.string(), pa.int64()))
    return pa.table({"k": pa.array(numbers, pa.int32()), "s": [f"s{n % 3}" for n in numbers], "m": maps})


def files(table):
    return [e.file for e in live_entries(table.store, table.snapshot()).live]


def on_disk(tmp_path):
    return {p.name for p in (tmp_path / "t").rglob("data-*")}


BITMAPS = {"file-index.bitmap.columns": "s,m[a]", "file-index.bsi.columns": "k"}


def test_small_indexes_are_stored_in_metadata(tmp_path):
    table = made(tmp_path, BITMAPS)
    table.write(rows(1, 2, 3))
    (file,) = files(table)
    assert set(unpack(file.embedded_index, "here")) == {"k", "s", "m[a]"}
    assert file.extra_files == ()
    assert on_disk(tmp_path) == {file.file_name}


def test_large_indexes_are_separate_files(tmp_path):
    table = made(tmp_path, {**BITMAPS, "file-index.in-manifest-threshold": "10 b"})
    table.write(rows(1, 2, 3))
    (file,) = files(table)
    assert file.embedded_index is None
    assert file.extra_files == (f"{file.file_name}.index",)
    assert on_disk(tmp_path) == {file.file_name, f"{file.file_name}.index"}


@pytest.mark.parametrize("keys", [("k",), ()])
def test_compaction_rebuilds_indexes_and_failure_leaves_no_file(tmp_path, keys):
    table = made(tmp_path, {**BITMAPS, "file-index.in-manifest-threshold": "10 b", "write-only": "true"}, keys)
    for n in range(4):
        table.write(rows(n, n + 10))
    table = table.with_options({"write-only": "false"})
    table.compact(full=True)
    (file,) = files(table)
    data = table.store.io.read(table.store.deletable_paths(BucketRef(b"\0" * 12, 0), file)[1])
    assert file.row_count == 8
    assert set(unpack(data, "here")) == {"k", "s", "m[a]"}
    before = on_disk(tmp_path)
    writer = table.writer()
    writer.write(rows(7, 8).to_batches()[0])
    messages = writer.prepare_commit()
    assert len(on_disk(tmp_path) - before) == 2
    table.committer().abort(messages)
    assert on_disk(tmp_path) == before
    other = table.writer()
    other.write(rows(*range(3000)).to_batches()[0])
    other.abort()
    assert on_disk(tmp_path) == before


def test_columns_without_index_are_refused_at_creation(tmp_path):
    with pytest.raises(InvalidInputError, match="'m' cannot have this index"):
        made(tmp_path, {"file-index.bitmap.columns": "m"})
