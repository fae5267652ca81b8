"""Errors of the engine as a user's session gets them from Spark's Python workers."""

import os
from pathlib import Path

import pyarrow as pa
import pytest

from paimon_core.errors import InvalidInputError, MissingDependencyError, NotFoundError, UnsupportedError
from paimon_core.manifest import serializers
from paimon_core.schema.schema import Schema
from paimon_core.table import Table
from paimon_spark import PaimonTable, report
from paimon_spark.report import TRACE_LINES, message_first, reporting

HIDE = "SPARK_HIDE_TRACEBACK"
ROWS = pa.schema([pa.field("id", pa.int32(), False), pa.field("v", pa.string())])


@pytest.fixture
def path(warehouse):
    return f"{warehouse}/db.db/t"


def keyed(path):
    table = Table.create(path, Schema(ROWS, primary_keys=("id",), options={"bucket": "1"}))
    table.write(pa.Table.from_pylist([{"id": 1, "v": "a"}, {"id": 2, "v": "b"}], ROWS))
    return table


def load(spark, path, **options):
    return spark.read.format("paimon").options(**options).load(path)


def save(spark, path, rows, **options):
    frame = spark.createDataFrame(rows, "id int, v string")
    frame.write.format("paimon").mode("append").options(**options).save(path)


def no_table(spark, path):
    load(spark, path)


def no_table_in_a_task(spark, path):
    PaimonTable.forPath(spark, path).history().collect()


def damaged_manifests(spark, path):
    keyed(path)
    for file in Path(path, "manifest").glob("manifest-list-*"):
        file.write_bytes(b"x")
    load(spark, path).collect()


def manifests_of_a_later_version(spark, path):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(serializers.ENTRY, "version", 3)
        patch.setattr(serializers.MANIFEST_FILE, "version", 3)
        keyed(path)
    load(spark, path).collect()


def damaged_rows(spark, path):
    keyed(path)
    for file in Path(path, "bucket-0").iterdir():
        file.write_bytes(b"x" * 100)
    load(spark, path).collect()


def null_in_a_key(spark, path):
    keyed(path)
    save(spark, path, [(None, "c")])


def rows_that_others_changed(spark, path):
    keyed(path).write(pa.Table.from_pylist([{"id": 1, "v": "theirs"}], ROWS))
    save(spark, path, [(1, "ours")], **{"write.unchanged-since": "1"})


def stream_of_damaged_manifests(spark, path):
    table = keyed(path)
    for file in Path(path, "manifest").glob("manifest-list-*"):
        file.write_bytes(b"x")
    stream = spark.readStream.format("paimon").load(table.path).writeStream.format("noop")
    query = stream.option("checkpointLocation", f"{path}-checkpoint").trigger(availableNow=True).start()
    query.awaitTermination(60)


CASES = [
    (no_table, "NotFoundError: no table at "),
    (no_table_in_a_task, "NotFoundError: no table at "),
    (damaged_manifests, "CorruptedError: "),
    (manifests_of_a_later_version, "UnsupportedError: "),
    (damaged_rows, "CorruptedError: "),
    (null_in_a_key, "InvalidInputError: cannot write NULL to column 'id'"),
    (rows_that_others_changed, "CommitConflictError: "),
    (stream_of_damaged_manifests, "CorruptedError: "),
]


@pytest.mark.spark
@pytest.mark.versions
@pytest.mark.parametrize(("fail", "message"), CASES, ids=[case[0].__name__ for case in CASES])
@pytest.mark.cases(2)
def test_message_comes_before_few_lines_of_trace(spark, path, python_reads, fail, message):
    with pytest.raises(Exception) as caught:
        fail(spark, path)
    lines = str(caught.value).splitlines()
    at = next(i for i, line in enumerate(lines) if f"paimon_core.errors.{message}" in line)
    trace = [line for line in lines[at + 1 :] if line.startswith(("  at ", "  caused by "))]
    assert 1 <= len(trace) <= TRACE_LINES == 5
    assert lines[at + 1 : at + 1 + len(trace)] == trace
    assert not [line for line in lines if line.startswith(("Traceback", '  File "'))]


@pytest.fixture
def worker(monkeypatch):
    """This process, taken for one of Spark's workers."""
    monkeypatch.delenv(HIDE, raising=False)
    monkeypatch.setattr(report, "_in_worker", lambda: True)


@message_first
class Failing:
    def once(self, error):
        raise error

    def rows(self, error):
        yield 1
        yield from self.once(error)


@pytest.mark.parametrize("kind", [InvalidInputError, NotFoundError, UnsupportedError, MissingDependencyError])
def test_error_on_its_way_out_keeps_its_name_and_hides_trace_of_spark(worker, kind):
    seen = {}
    try:
        list(Failing().rows(kind("what was asked\nand found")))
    except Exception as error:
        seen = {"class": type(error), "text": str(error), "hide": os.environ[HIDE]}
    assert seen["hide"]
    assert (seen["class"].__module__, seen["class"].__qualname__) == ("paimon_core.errors", kind.__name__)
    assert not issubclass(seen["class"], NotImplementedError)
    assert seen["text"].startswith("what was asked\nand found\n  at ")
    assert HIDE not in os.environ  # nothing holds the error any longer


def test_users_setting_to_hide_traces_stays(worker, monkeypatch):
    monkeypatch.setenv(HIDE, "yes")
    with pytest.raises(Exception, match="asked"):
        Failing().once(InvalidInputError("asked"))
    assert os.environ[HIDE] == "yes"


def test_cause_is_named_without_passwords(worker):
    @reporting
    def fail():
        try:
            raise OSError("s3://KEY:SECRET@bucket/t is gone")
        except OSError as error:
            raise InvalidInputError("asked") from error

    with pytest.raises(Exception, match=r"asked\n  caused by builtins\.OSError: s3://\*{3}@bucket/t is gone\n  at "):
        fail()


def test_error_of_storage_begins_with_its_message(worker):
    error = PermissionError(13, "denied")
    with pytest.raises(report.PaimonError, match=r"\A\[Errno 13\] denied\n  at ") as caught:
        Failing().once(error)
    assert caught.value.__cause__ is error
    assert (type(caught.value).__module__, type(caught.value).__name__) == ("builtins", "PermissionError")


def test_other_exceptions_and_other_processes_are_unchanged(monkeypatch):
    monkeypatch.delenv(HIDE, raising=False)
    requested = UnsupportedError("asked")
    with pytest.raises(UnsupportedError) as caught:
        Failing().once(requested)
    assert caught.value is requested
    monkeypatch.setattr(report, "_in_worker", lambda: True)
    unexpected = ZeroDivisionError("x")
    with pytest.raises(ZeroDivisionError) as other:
        list(Failing().rows(unexpected))
    assert other.value is unexpected
    assert HIDE not in os.environ
