"""Table.advice: each kind is given in a case made for it, goes away when followed, and sound tables get none."""

import json
import os
import re
import shlex
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner

from paimon_command.main import command
from paimon_core import AddColumn, FileSystemCatalog, RemoveOption, Schema, SetOption, Table
from paimon_core.inspect.advice.advise import health
from paimon_core.inspect.advice.check_registry import KINDS
from paimon_core.inspect.advice.report import SEVERITIES, Advice, Measure, Scope
from paimon_core.inspect.advice.row_ranges import row_ranges, saved_files
from paimon_core.inspect.advice.table_facts import DEFAULT_LIMITS, Facts
from paimon_core.lsm.intervals import sections
from paimon_core.lsm.levels import Levels
from paimon_core.operations.analyze import TableStatistics, commit_statistics
from paimon_core.operations.jobs.task import PlanRequest
from paimon_core.operations.row_changes.data_evolution import plan_row_ranges
from paimon_core.scan.entries import live_entries
from paimon_core.snapshot.consumers import Consumers
from tests.support.advice_cases import (
    BY_COPYING,
    CASES,
    COLUMNS,
    LEFT_ALONE,
    backlog,
    consumer,
    dead_entries,
    later,
    made,
    merging,
    rows,
    small,
    streams,
)


def advice_of(table, kind, **limits):
    return [one for one in health(table.store, replace(DEFAULT_LIMITS, **limits)).advice if one.kind == kind]


def follow(table, advice, days):
    """Do what advice says, in one of its languages, and return the table as it then is."""
    if advice.command is not None:
        program, *arguments = shlex.split(advice.command)
        assert program == "paimon-spark"
        result = CliRunner().invoke(command, arguments)
        assert result.exit_code == 0, result.output
    elif advice.python is not None:
        eval(advice.python, {"table": table, "SetOption": SetOption, "RemoveOption": RemoveOption})
    else:
        assert advice.sql.startswith("ANALYZE TABLE db.t ")
        found = TableStatistics(table.snapshot().id, table.schema.id, record_count=table.to_arrow().num_rows)
        commit_statistics(table.store, found)
    return later(Table.open(table.path), days)


def test_each_kind_has_case():
    assert tuple(CASES) == KINDS


@pytest.mark.cases(12)
@pytest.mark.parametrize("kind", KINDS)
def test_advice_is_given_with_measure_and_goes_away_when_followed(tmp_path, kind):
    table, limits, days = CASES[kind](tmp_path)
    given = advice_of(later(table, days), kind, **limits)
    assert given
    for one in given:
        assert one.severity in SEVERITIES
        assert one.measure.value >= one.measure.threshold or kind == "bucket-number", str(one.measure)
        assert one.text.endswith(".")
    if kind in BY_COPYING:
        assert (given[0].command, given[0].sql, given[0].python) == (None, None, None)
        return
    before = table.to_arrow().num_rows
    for one in given:
        table = follow(table, one, days)
    assert not advice_of(table, kind, **limits)
    assert table.to_arrow().num_rows == before or kind in ("hidden-rows", "postponed-rows")


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in BY_COPYING])
@pytest.mark.more
def test_advice_followed_in_python_goes_away(tmp_path, kind):
    table, limits, days = CASES[kind](tmp_path)
    for one in advice_of(later(table, days), kind, **limits):
        table = follow(table, replace(one, command=None), days)
    assert not advice_of(table, kind, **limits)


def test_other_cases_of_some_kinds(tmp_path):
    table, limits, _ = dead_entries(tmp_path / "a")
    (one,) = advice_of(table, "many-manifests", **limits)
    assert one.measure.name == "entries of deleted files"
    assert not advice_of(follow(table, one, 0), "many-manifests", **limits)
    small_buckets = made(tmp_path / "b", bucket="20")
    small_buckets.write(rows(0, 100))
    assert not advice_of(small_buckets, "bucket-number")
    (one,) = advice_of(later(small_buckets, 8), "bucket-number")
    assert "call rescale" in one.command
    assert "bucket_num=1" in one.command
    table, limits, days = small(tmp_path / "c")
    assert advice_of(later(table, days), "never-compacted", **limits)


# ---- sound tables

SOUND = {
    "fixed": {"bucket": "2"},
    "dynamic": {"bucket": "-1"},
    "postponed": {"bucket": "-2"},
    "orc": {"bucket": "1", "file.format": "orc"},
    "vectors": {"bucket": "1", "deletion-vectors.enabled": "true"},
    "first-row": {"bucket": "1", "merge-engine": "first-row", "changelog-producer": "lookup"},
    "full-compaction": {"bucket": "1", "merge-engine": "partial-update", "changelog-producer": "full-compaction"},
    "input": {"bucket": "1", "changelog-producer": "input"},
    "indexed": {"bucket": "1", "file-index.bloom-filter.columns": "v"},
    "append": {},
    "append buckets": {"bucket": "3", "bucket-key": "id"},
    "append vectors": {"deletion-vectors.enabled": "true"},
    "append indexed": {"file-index.bitmap.columns": "v"},
    "tracked": {"row-tracking.enabled": "true"},
    "evolved": {"row-tracking.enabled": "true", "data-evolution.enabled": "true"},
}


@pytest.mark.cases(4)
@pytest.mark.parametrize("kind", SOUND)
@pytest.mark.parametrize("partitioned", [False, True])
def test_fresh_tables_get_no_advice(tmp_path, kind, partitioned):
    keyed = not kind.startswith("append") and kind not in ("tracked", "evolved")
    parts = ["dt"] if partitioned else []
    table = made(tmp_path, [*parts, "id"] if keyed else (), parts, **SOUND[kind])
    assert table.advice() == []
    assert table.health().buckets.num_rows == 0
    for number in range(3):
        table.write(rows(10 * number))
        assert [str(one) for one in table.advice()] == []
    assert table.health().buckets["rows"].to_pylist() != []


def test_table_in_daily_use_gets_no_advice(tmp_path):
    """Upserts whose compactions keep up, with the defaults of the options."""
    table = made(tmp_path, bucket="1")
    for number in range(12):
        table.write(rows(number))
        assert [str(one) for one in table.advice()] == []


# ---- what it says of where


def test_advice_names_partition_and_bucket(tmp_path):
    table, limits, _ = merging(tmp_path)
    (one,) = advice_of(table, "merging-reads", **limits)
    assert (one.scope, str(one.scope)) == (Scope("dt=d2", 0), "dt=d2 bucket 0")
    assert one.command == f"paimon-spark compact {table.path} --full --partition dt=d2"
    assert one.sql == "CALL sys.compact(table => 'db.t', compact_strategy => 'full', partitions => 'dt=d2')"
    assert one.python == "table.compact(full=True, partitions=[{'dt': 'd2'}])"


def test_advice_for_many_partitions_is_one(tmp_path):
    table = made(tmp_path, partitions=["dt"], keys=["dt", "id"], bucket="1", **LEFT_ALONE)
    for number in range(7):
        table.write(pa.concat_tables([rows(number, 1, f"d{i}") for i in range(12)]))
    (one,) = advice_of(table, "compaction-backlog")
    assert (one.scope, "12 buckets" in one.text, "--partition" in one.command) == (Scope(), True, False)


@pytest.mark.cases(1)
@pytest.mark.parametrize("value", ["a,b", "x' OR 'y", "", " a", None, "__DEFAULT_PARTITION__", "$(rm -r x)", "ä=ö;"])
def test_command_names_partition_of_any_text(tmp_path, value):
    table = made(tmp_path, keys=(), partitions=["dt"], **LEFT_ALONE)
    for number in range(12):
        table.write(rows(number, 2, value))
    (one,) = advice_of(table, "small-files")
    assert one.python == f"table.compact(full=True, partitions=[{{'dt': {value!r}}}])"
    text = f"dt='{value.replace(chr(39), 2 * chr(39))}'" if value is not None else "dt=__DEFAULT_PARTITION__"
    assert one.command.endswith(f"--partition {shlex.quote(text)}")
    assert not advice_of(follow(table, one, 0), "small-files")


def test_names_with_spaces_and_quotes_are_quoted(tmp_path):
    catalog = FileSystemCatalog(str(tmp_path / "it's here"))
    catalog.create_database("my db")
    table = catalog.create_table("`my db`.`a-b`", Schema(COLUMNS, options=LEFT_ALONE))
    for number in range(12):
        table.write(rows(number))
    (one,) = advice_of(table, "small-files")
    assert one.sql == "CALL sys.compact(table => '`my db`.`a-b`', compact_strategy => 'full')"
    assert not advice_of(follow(table, one, 0), "small-files")


def test_table_outside_of_catalog_has_no_sql(tmp_path):
    table = Table.create(str(tmp_path / "t"), Schema(COLUMNS, options=LEFT_ALONE))
    for number in range(12):
        table.write(rows(number))
    (one,) = advice_of(table, "small-files")
    assert (one.sql, one.command) == (None, f"paimon-spark compact {tmp_path}/t --full")


def test_branch_gets_its_own_advice(tmp_path):
    table, _, _ = backlog(tmp_path)
    table.tags.create("now")
    table.branches.create("b", "now")
    table.compact(full=True)
    branch = Table.open(table.path, branch="b")
    (one,) = advice_of(branch, "compaction-backlog")
    assert "$branch_b" in one.command
    follow(table, one, 0)
    assert not advice_of(Table.open(table.path, branch="b"), "compaction-backlog")


def test_advice_is_about_newest_schema(tmp_path):
    table = made(tmp_path, bucket="4")
    table.write(rows(0))
    mine = table.with_options({"num-sorted-run.compaction-trigger": "2", "write-only": "true"})
    table.maintenance.rescale(2)
    assert Table.open(table.path).schema.options["bucket"] == "2"
    assert table.advice() == mine.advice() == []
    for number in range(3):
        Table.open(table.path).with_options({"write-only": "true"}).write(rows(number))
    assert table.advice() == []
    assert [one.kind for one in mine.advice()] == ["compaction-backlog"]


def test_damaged_metadata_are_error_that_names_file(tmp_path):
    table, _, _ = backlog(tmp_path)
    for path in (Path(table.path) / "manifest").glob("manifest-[0-9a-f]*"):
        os.truncate(path, 10)
    with pytest.raises(Exception, match="manifest-"):
        table.advice()


# ---- the measures of buckets, compared with a plain computation


def test_measures_equal_plain_computation(tmp_path):
    generator = np.random.default_rng(5)
    table = made(tmp_path, bucket="3", **LEFT_ALONE)
    for number in range(14):
        ids = np.unique(generator.integers(0, 5000, 40)) if number % 3 else np.arange(200 * number, 200 * number + 30)
        table.write(pa.table({"id": ids, "v": ["x"] * len(ids), "dt": ["d"] * len(ids)}))
        if number == 5:
            table.compact(full=True)
    snapshot, store = table.snapshot(), table.store
    measures = {row["bucket"]: row for row in table.health().buckets.to_pylist()}
    assert len(measures) == 3
    for number, row in measures.items():
        files = [e.file for e in live_entries(store, snapshot).live if e.bucket == number]
        cut = sections(files, store.schema.key_arrow)
        assert row["merged_runs"] == max(map(len, cut))
        assert row["sorted_runs"] == len(Levels.of(files, store.schema.key_arrow, 6).runs)
        assert row["rows"] == sum(f.row_count for f in files)
        assert row["level_0_files"] == sum(f.level == 0 for f in files)


@pytest.mark.parametrize("target", ["1 kb", "4 kb", "128 mb"])
def test_files_saved_by_joining_row_ranges_agree_with_compaction(tmp_path, target):
    options = {"row-tracking.enabled": "true", "data-evolution.enabled": "true", "target-file-size": target}
    table = made(tmp_path, keys=(), partitions=["dt"], **options, **LEFT_ALONE)
    for number in range(8):
        table.write(pa.concat_tables([rows(number, 5, "d1"), rows(number, 3 + number, "d2")]))
    table.update_columns(pa.table({"_ROW_ID": [0, 9, 40], "v": ["a", "b", "c"]}))
    facts = Facts(table.store, table.snapshot())
    ranges = row_ranges(facts.files)
    planned = plan_row_ranges(table.store, PlanRequest(full=True))
    joined = [(len(t.files), sum(f.file_size for f in t.files)) for t in planned]
    size = facts.kind.policy.target_size
    saved = saved_files(ranges, facts.kind.policy, len(facts.files.buckets))
    assert saved.sum() == sum(files - max(1, -(-stored // size)) for files, stored in joined)
    assert max(table.health().buckets["merged_runs"].to_pylist()) == 2
    assert len(advice_of(table, "small-files", saved_files=1, share=0)) == (saved > 0).sum()


def test_row_ranges_with_other_blobs_are_not_joined(tmp_path):
    columns = pa.schema([("id", pa.int64()), ("image", pa.large_binary())])
    options = {"row-tracking.enabled": "true", "data-evolution.enabled": "true", "blob-field": "image", **LEFT_ALONE}
    table = Table.create(str(tmp_path / "t"), Schema(columns, options=options))
    for number in range(3):
        table.write(pa.table({"id": [number], "image": pa.array([b"x"], pa.large_binary())}))
    table = table.alter([AddColumn("more", "INT")])
    for number in range(3):
        table.write(pa.table({"id": [number], "image": pa.array([b"x"], pa.large_binary()), "more": [1]}))
    facts = Facts(table.store, table.snapshot())
    planned = plan_row_ranges(table.store, PlanRequest(full=True))
    assert [len(t.files) for t in planned] == [3, 3]
    assert saved_files(row_ranges(facts.files), facts.kind.policy, 1).tolist() == [4]


def test_active_consumer_gets_no_advice(tmp_path):
    table, limits, days = consumer(tmp_path)
    seen = later(table, days)
    path = Consumers(table.store.io, table.store.branch_root).path("gone")
    os.utime(path, (seen.store.now() / 1000, seen.store.now() / 1000))
    assert not advice_of(seen, "waiting-consumer", **limits)


def test_page_names_every_kind_and_every_column(tmp_path):
    page = (Path(__file__).parents[4] / "docs" / "guides" / "advice.md").read_text()
    kinds, columns = page.split("## Measures of each bucket")
    first = re.findall(r"^\| (`.*?) \|", kinds, re.MULTILINE)
    assert tuple(kind for row in first for kind in re.findall(r"`([a-z-]+)`", row)) == KINDS
    first = re.findall(r"^\| (`.*?) \|", columns, re.MULTILINE)
    named = [name for row in first for name in re.findall(r"`([a-z_0-9]+)`", row)]
    assert named == made(tmp_path).health().buckets.column_names


def test_command_exits_with_1_if_something_is_severe(tmp_path):
    table, _, _ = backlog(tmp_path / "a")
    result = CliRunner().invoke(command, ["advice", table.path])
    assert (result.exit_code, result.stdout.startswith("severe compaction-backlog (table): ")) == (1, True)
    table, _, _ = streams(tmp_path / "b")
    result = CliRunner().invoke(command, ["advice", table.path, "--json"])
    (one,) = json.loads(result.stdout)
    assert (result.exit_code, one["kind"], one["severity"]) == (0, "no-changelog", "hint")
    assert one["scope"] == {"partition": None, "bucket": None}
    assert one["measure"]["value"] == 1


def test_text_of_advice_has_command():
    one = Advice("small-files", "hint", Scope(), "Text.", Measure("files", 12, "files", 10), "paimon-spark compact t")
    assert str(one) == "hint small-files (table): Text.\n    paimon-spark compact t"
    assert str(one.measure) == "files: 12 files, advised from 10"
    with pytest.raises(ValueError, match="not a severity"):
        replace(one, severity="bad")
