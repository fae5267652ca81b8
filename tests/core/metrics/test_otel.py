"""The exporter to OpenTelemetry, read back from the memory of its SDK."""

import builtins
import re
import sys
from pathlib import Path

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from paimon_core.commit.overwrite_partitions import replace_files
from paimon_core.errors import CommitConflictError, MissingDependencyError
from paimon_core.metrics import CommitMetrics, CompactionMetrics, ReadMetrics, ScanMetrics, otel
from paimon_core.metrics.values import MEASURE
from tests.support.tables import append_table, keyed_table, orders

ROWS = orders((1, "a", 1), (2, "b", 2), (2, "c", 3))
PAGE = Path(__file__).parents[3] / "docs" / "reference" / "metrics.md"


def points(reader: InMemoryMetricReader) -> dict[str, list]:
    data = reader.get_metrics_data()
    scopes = [] if data is None else [scope for resource in data.resource_metrics for scope in resource.scope_metrics]
    return {metric.name: list(metric.data.data_points) for scope in scopes for metric in scope.metrics}


def test_commits_and_compactions_become_instruments(tmp_path, reader):
    table = keyed_table(tmp_path / "t", bucket="1", write_only="true")
    table.write(ROWS)
    table.write(ROWS)
    table.with_options({"write-only": "false"}).compact(full=True)
    result = points(reader)
    rows = {p.attributes["paimon.commit.kind"]: p.value for p in result["paimon.commit.rows.added"]}
    assert rows == {"APPEND": 4, "COMPACT": 2}
    assert {p.attributes["paimon.table"] for p in result["paimon.commit.rows.added"]} == {table.path}
    durations = {p.attributes["paimon.commit.kind"]: p for p in result["paimon.commit.duration"]}
    assert (durations["APPEND"].count, durations["COMPACT"].count) == (2, 1)
    assert durations["APPEND"].explicit_bounds[0] == 0.005, "seconds, not milliseconds"
    assert {p.attributes["paimon.phase"] for p in result["paimon.commit.phase.duration"]} >= {"write", "publish"}
    [received] = result["paimon.commit.rows.received"]
    assert received.value == 6
    [dropped] = result["paimon.compaction.rows.in"]
    assert dropped.value == 4
    assert "paimon.scan.files" not in result
    table.to_arrow()
    result = points(reader)
    assert result["paimon.scan.files"][0].value == 1
    assert result["paimon.compaction.level_0_files.max"][0].value == 2
    assert result["paimon.read.rows"][0].value == 2
    assert result["paimon.read.duration"][0].count == 1
    phases = {point.attributes["paimon.phase"]: point.value for point in result["paimon.read.phase.time"]}
    assert phases["decode"] > 0
    assert "plan" not in phases, "no time was spent in it"


def test_failures_have_error_class(tmp_path, reader):
    table = append_table(tmp_path / "t")
    table.write(ROWS)
    with table.writer() as writer:
        writer.write(ROWS)
        messages = writer.prepare_commit()
    snapshot = table.snapshot()
    table.truncate()
    with pytest.raises(CommitConflictError):
        replace_files(table.committer().publisher, messages, read_at=snapshot)
    errors = [p.attributes.get("error.type") for p in points(reader)["paimon.commit.duration"]]
    assert sorted(map(str, errors)) == ["CommitConflictError", "None", "None"]


def test_second_install_replaces_first(tmp_path, reader):
    other = InMemoryMetricReader()
    otel.install(MeterProvider([other]))
    table = append_table(tmp_path / "t")
    table.write(ROWS)
    assert points(reader) == {}
    assert points(other)["paimon.commit.rows.added"][0].value == 3
    otel.uninstall()
    table.write(ROWS)
    assert points(other)["paimon.commit.rows.added"][0].value == 3


def test_missing_package_error_names_extra(monkeypatch):
    real = builtins.__import__

    def absent(name, *arguments):
        if name.startswith("opentelemetry"):
            raise ImportError(name)
        return real(name, *arguments)

    monkeypatch.delitem(sys.modules, "opentelemetry.metrics", raising=False)
    monkeypatch.setattr(builtins, "__import__", absent)
    with pytest.raises(MissingDependencyError, match=r"pyspark-paimon\[otel\]"):
        otel.install()


def test_docs_list_every_instrument():
    fields = [
        (kind.event, field.metadata[MEASURE])
        for kind in (CommitMetrics, CompactionMetrics, ScanMetrics, ReadMetrics)
        for field in kind.__dataclass_fields__.values()
        if field.metadata and field.metadata[MEASURE].kind != "attribute"
    ]
    instruments = {(f"paimon.{event}.{m.name}", m.kind, m.unit) for event, m in fields}
    assert set(re.findall(r"^\| `(paimon\.[\w.]+)` \| (\w+) \| `([^`]+)` \|", PAGE.read_text(), re.M)) == instruments
