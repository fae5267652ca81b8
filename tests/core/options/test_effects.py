"""Options whose effect no other test looks at: each changes something."""

import re

import pyarrow.parquet as pq
import pytest

from paimon_core.commit.table_commit import TableCommit
from tests.support.tables import append_table, keyed_table, orders


def told(path, **options):
    table = keyed_table(path / "t", **{"bucket": "1", "changelog-producer": "input"}, **options)
    with table.writer() as writer:
        writer.write(orders(*((k, f"v{k}", k) for k in range(100))))
        (message,) = writer.prepare_commit()
        table.committer().commit([message])
    (file,) = message.changelog_files
    return file, next((path / "t").rglob(file.file_name))


def test_changelog_files_have_a_prefix_a_codec_and_statistics_of_their_own(tmp_path):
    plain, where = told(tmp_path / "plain")
    assert plain.file_name.startswith("changelog-")
    assert pq.read_metadata(where).row_group(0).column(0).compression == "ZSTD"
    options = {"changelog-file.prefix": "told-", "changelog-file.compression": "snappy",
               "changelog-file.stats-mode": "none"}  # fmt: skip
    other, where = told(tmp_path / "other", **options)
    assert other.file_name.startswith("told-")
    assert pq.read_metadata(where).row_group(0).column(0).compression == "SNAPPY"
    assert plain.value_stats.min_values != other.value_stats.min_values


def test_files_are_compressed_at_the_level_of_zstd_that_the_option_says(tmp_path):
    rows = orders(*((k, f"some text of row {k * k % 7919}", k) for k in range(5000)))
    sizes = []
    for level in ("1", "19"):
        table = append_table(tmp_path / level, **{"file.compression.zstd-level": level})
        table.write(rows)
        sizes.append(sum(f.file_size for split in table.scan().plan().splits for f in split.files))
    assert sizes[1] != sizes[0]


def test_generated_users_begin_with_the_prefix(tmp_path):
    table = append_table(tmp_path / "t", **{"commit.user-prefix": "nightly"})
    assert re.fullmatch(r"nightly_[0-9a-f-]{36}", table.write(orders((1, "a", 1))).commit_user)


def test_the_time_for_attempts_is_bounded(tmp_path):
    table = append_table(tmp_path / "t", **{"commit.timeout": "3 s"})
    assert TableCommit(table.store)._retry.timeout == pytest.approx(3)
