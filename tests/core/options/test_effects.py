"""Options whose effect no other test looks at: each changes something."""

import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paimon_core.commit.publisher import Publisher
from paimon_core.errors import InvalidInputError, UnsupportedError
from paimon_core.schema.schema import Schema
from paimon_core.table import Table
from tests.support.tables import append_table, keyed_table, orders


def told(path, **options):
    table = keyed_table(path / "t", **{"bucket": "1", "changelog-producer": "input"}, **options)
    with table.writer() as writer:
        writer.write(orders(*((k, f"v{k}", k) for k in range(100))))
        (message,) = writer.prepare_commit()
        table.committer().commit([message])
    (file,) = message.changelog_files
    return file, next((path / "t").rglob(file.file_name))


def test_changelog_files_have_prefix_codec_and_statistics_of_their_own(tmp_path):
    plain, where = told(tmp_path / "plain")
    assert plain.file_name.startswith("changelog-")
    assert pq.read_metadata(where).row_group(0).column(0).compression == "ZSTD"
    options = {"changelog-file.prefix": "told-", "changelog-file.compression": "snappy",
               "changelog-file.stats-mode": "none"}  # fmt: skip
    other, where = told(tmp_path / "other", **options)
    assert other.file_name.startswith("told-")
    assert pq.read_metadata(where).row_group(0).column(0).compression == "SNAPPY"
    assert plain.value_stats.min_values != other.value_stats.min_values


def test_files_are_compressed_at_level_of_zstd_that_option_says(tmp_path):
    rows = orders(*((k, f"some text of row {k * k % 7919}", k) for k in range(5000)))
    sizes = []
    for level in ("1", "19"):
        table = append_table(tmp_path / level, **{"file.compression.zstd-level": level})
        table.write(rows)
        sizes.append(sum(f.file_size for split in table.scan().plan().splits for f in split.files))
    assert sizes[1] != sizes[0]


def test_generated_users_begin_with_prefix(tmp_path):
    table = append_table(tmp_path / "t", **{"commit.user-prefix": "nightly"})
    assert re.fullmatch(r"nightly_[0-9a-f-]{36}", table.write(orders((1, "a", 1))).commit_user)


def test_time_for_attempts_is_bounded(tmp_path):
    table = append_table(tmp_path / "t", **{"commit.timeout": "3 s"})
    assert Publisher(table.store)._retry.timeout == pytest.approx(3)


@pytest.mark.parametrize(("text", "left"), [("true", {1, 9}), ("TRUE", {1, 9}), ("false", {9}), (None, {9})])
def test_overwrite_replaces_partitions_of_its_rows_if_option_is_true(tmp_path, text, left):
    rows = pa.table({"p": ["a", "b"], "v": pa.array([1, 2], pa.int64())})
    options = {} if text is None else {"dynamic-partition-overwrite": text}
    table = Table.create(str(tmp_path / "t"), Schema(rows.schema, partition_keys=["p"], options=options))
    table.write(rows)
    table.overwrite(pa.table({"p": ["b"], "v": pa.array([9], pa.int64())}))
    assert set(table.to_arrow()["v"].to_pylist()) == left


def test_overwrite_refuses_option_that_is_neither_true_nor_false(tmp_path):
    table = append_table(tmp_path / "t")
    table.write(orders((1, "a", 1)))
    with pytest.raises(InvalidInputError, match="'dynamic-partition-overwrite' is 'yes': must be true or false"):
        table.with_options({"dynamic-partition-overwrite": "yes"}).overwrite(orders((2, "b", 1)))


@pytest.mark.parametrize("key", ["file.format", "changelog-file.format"])
def test_format_is_named_in_any_case_and_unknown_one_is_refused(tmp_path, key):
    changes = {"bucket": "1", "changelog-producer": "input"}
    keyed_table(tmp_path / "orc", **changes, **{key: " ORC "}).write(orders((1, "a", 1)))
    assert any((tmp_path / "orc").rglob("*.orc"))
    with pytest.raises(UnsupportedError, match=f"option '{key}' = 'lance' is not supported"):
        keyed_table(tmp_path / "new", **changes, **{key: "lance"}).write(orders((1, "a", 1)))
