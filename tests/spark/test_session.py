"""`session`: the settings of a new session, the worker Python, and the check of other interpreters."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import paimon_spark
from paimon_core.errors import InvalidInputError, MissingDependencyError, UnsupportedError
from paimon_spark import PaimonTable, session_start, worker_python
from paimon_spark.internals import WorkerPython, worker_pythons
from tests.spark.conftest import MODE, ROOT

LINE = 'os.environ["PYSPARK_PYTHON"] = sys.executable'
ADVICE = f"restart Python, and before the session starts: {LINE}"


class Builder:
    """A builder that records its settings, and starts an object that is no classic session."""

    def __init__(self, **settings):
        self._options = {key.replace("_", "."): value for key, value in settings.items()}
        self.started = False

    def config(self, key, value):
        self._options[key] = value
        return self

    def getOrCreate(self):
        self.started = True
        return SimpleNamespace(sql=None)


@pytest.fixture(autouse=True)
def environment(monkeypatch, tmp_path):
    """No variables of Spark, no settings in files, and no running session."""
    for name in [n for n in os.environ if n.startswith(("PYSPARK_", "SPARK_")) and n != "SPARK_LOCAL_IP"]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PYSPARK_PYTHON", "to be removed at the end")
    monkeypatch.delenv("PYSPARK_PYTHON")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path / "conf"))
    monkeypatch.setattr(session_start, "has_context", lambda: False)


def test_new_session_has_worker_python_and_quiet_log():
    builder = Builder()
    paimon_spark.session(builder, config={"spark.sql.shuffle.partitions": 8})
    assert os.environ["PYSPARK_PYTHON"] == sys.executable
    assert builder._options == {
        "spark.sql.shuffle.partitions": 8,
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
    }


def test_python_of_user_stays(monkeypatch):
    paimon_spark.session(Builder(spark_pyspark_python="/usr/bin/python3.9"))
    assert os.environ["PYSPARK_PYTHON"] == "/usr/bin/python3.9"
    monkeypatch.setenv("PYSPARK_DRIVER_PYTHON", "jupyter")
    paimon_spark.session(Builder())
    assert os.environ["PYSPARK_PYTHON"] == "/usr/bin/python3.9"
    assert os.environ["PYSPARK_DRIVER_PYTHON"] == sys.executable


def test_settings_of_user_stay(monkeypatch, tmp_path):
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "spark-defaults.conf").write_text("# a comment\nspark.log.level   INFO  # not a comment\n")
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--conf spark.ui.showConsoleProgress=true pyspark-shell")
    builder = Builder()
    paimon_spark.session(builder)
    assert builder._options == {}


@pytest.mark.parametrize("source", ["builder", "submit", "file", "gateway"])
def test_cluster_keeps_its_python(monkeypatch, tmp_path, source):
    builder = Builder(**({"spark_master": "spark://master:7077"} if source == "builder" else {}))
    if source == "submit":
        monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--master yarn pyspark-shell")
    if source == "file":
        (tmp_path / "conf").mkdir()
        (tmp_path / "conf" / "spark-defaults.conf").write_text("spark.master=k8s://host\n")
    if source == "gateway":
        monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    paimon_spark.session(builder)
    assert "PYSPARK_PYTHON" not in os.environ


def test_running_session_keeps_its_log(monkeypatch):
    monkeypatch.setattr(session_start, "has_context", lambda: True)
    builder = Builder()
    paimon_spark.session(builder)
    assert builder._options == {}


def test_connect_server_gets_no_settings_but_remote():
    builder = Builder()
    paimon_spark.session(builder, remote="sc://localhost")
    assert builder._options == {"spark.remote": "sc://localhost"}
    assert "PYSPARK_PYTHON" not in os.environ


def test_local_connect_server_gets_worker_python():
    builder = Builder()
    paimon_spark.session(builder, remote="local[2]")
    assert os.environ["PYSPARK_PYTHON"] == sys.executable
    assert builder._options["spark.log.level"] == "ERROR"


@pytest.mark.parametrize("variable", ["SPARK_REMOTE", "SPARK_API_MODE", "SPARK_CONNECT_MODE_ENABLED"])
def test_catalog_over_connect_is_refused_before_start(monkeypatch, variable):
    monkeypatch.setenv(variable, "connect")
    builder = Builder()
    with pytest.raises(UnsupportedError, match="a catalog needs a classic session"):
        paimon_spark.session(builder, warehouse="/tmp/warehouse")
    assert not builder.started


@pytest.mark.parametrize(
    "enter", [paimon_spark.catalog, paimon_spark.serve, paimon_spark.register, PaimonTable.forPath]
)
def test_other_objects_as_session_are_refused(enter):
    arguments = () if enter in (paimon_spark.serve, paimon_spark.register) else ("name",)
    with pytest.raises(InvalidInputError, match="must be a SparkSession, but is '/tmp/warehouse', a str"):
        enter("/tmp/warehouse", *arguments)


def test_running_session_as_builder_is_refused():
    with pytest.raises(InvalidInputError, match=r"takes a SparkSession.Builder, not object: .*paimon_spark.catalog"):
        paimon_spark.session(object())


# ---- the check of interpreters


class Context:
    """A context of a local session."""


class Classic:
    """A classic session that is local."""

    _jsparkSession = None

    def __init__(self):
        self.sparkContext = Context()


def interpreter(folder, body):
    """Write a program that answers the check; return it as the interpreter of workers."""
    path = folder / "python-of-workers"
    path.write_text(f"#!/bin/sh\necho asked >> {folder}/asked\n{body}\n")
    path.chmod(0o755)
    return WorkerPython(path.name, "PYSPARK_PYTHON", {"PATH": str(folder)}, str(folder))


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ("echo 3 11 False", "which lacks pyspark-paimon"),
        ("echo 2 7 True", "which is Python 2.7, not {}.{}"),
    ],
)
def test_unfit_worker_python_is_refused(monkeypatch, tmp_path, body, fault):
    python, spark = interpreter(tmp_path, body), Classic()
    monkeypatch.setattr(worker_python, "worker_pythons", lambda context: [python])
    for _ in range(2):
        with pytest.raises(MissingDependencyError) as caught:
            worker_python.check_worker_python(spark)
    shown = fault.format(*sys.version_info[:2])
    assert str(caught.value) == (
        f"the workers of this session run python-of-workers ({tmp_path}/python-of-workers), {shown}: {ADVICE}"
    )
    assert (tmp_path / "asked").read_text() == "asked\n"


@pytest.mark.parametrize("body", ["exit 1", "echo 3 11", "echo an answer", "echo 3 11 maybe", "", "exec /bin/sleep 30"])
def test_worker_python_without_answer_passes(monkeypatch, tmp_path, body):
    python = interpreter(tmp_path, body)
    monkeypatch.setattr(worker_python, "worker_pythons", lambda context: [python])
    monkeypatch.setattr(worker_python, "_SECONDS", 0.5)
    worker_python.check_worker_python(Classic())


def test_missing_worker_python_passes(monkeypatch, tmp_path):
    python = WorkerPython("no-python", "PYSPARK_PYTHON", {"PATH": str(tmp_path)}, str(tmp_path))
    monkeypatch.setattr(worker_python, "worker_pythons", lambda context: [python])
    worker_python.check_worker_python(Classic())


def test_interpreter_of_this_process_is_not_started(monkeypatch, tmp_path):
    names = [sys.executable, str(Path(sys.executable).with_name("python3"))]
    pythons = [WorkerPython(name, "PYSPARK_PYTHON", {}, str(tmp_path)) for name in names]
    monkeypatch.setattr(worker_python, "worker_pythons", lambda context: pythons)
    monkeypatch.setattr(subprocess, "run", None)
    worker_python.check_worker_python(Classic())


@pytest.mark.spark
@pytest.mark.skipif(MODE != "classic", reason="only local sessions are checked")
def test_each_entrance_checks_worker_python(spark, tmp_path, monkeypatch):
    context = spark.sparkContext
    assert [Path(python.command) for python in worker_pythons(context)] == [Path(sys.executable)] * 2
    monkeypatch.setattr(context, "pythonExec", str(tmp_path / interpreter(tmp_path, "echo 3 11 False").command))
    monkeypatch.setattr(worker_python, "_faults", {})
    monkeypatch.setattr(session_start, "has_context", lambda: True)  # the session of the tests keeps its log level
    entrances = [
        lambda: paimon_spark.session(),
        lambda: paimon_spark.register(spark),
        lambda: paimon_spark.catalog(spark, "unfit", warehouse=str(tmp_path / "w")),
        lambda: paimon_spark.PaimonTable.forPath(spark, str(tmp_path)),
    ]
    for enter in entrances:
        with pytest.raises(MissingDependencyError, match="which lacks pyspark-paimon"):
            enter()
    assert not (tmp_path / "w").exists()


FRESH = """
import sys
sys.path.insert(0, {root!r})
import paimon_spark
spark = paimon_spark.session(warehouse={warehouse!r}, config={{"spark.ui.enabled": "false"}})
spark.sql("CREATE TABLE paimon.default.t (id BIGINT, v STRING) TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '1')")
spark.range(3).selectExpr("id", "string(id) AS v").write.format("paimon").mode("append").save({warehouse!r} + "/x.db/t")
print(spark.read.format("paimon").load({warehouse!r} + "/x.db/t").count())
"""


@pytest.mark.spark
@pytest.mark.more
def test_session_without_activated_environment_works(tmp_path):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYSPARK_")}
    environment |= {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT), "SPARK_LOCAL_IP": "127.0.0.1"}
    if "JAVA_HOME" not in environment:
        environment["PATH"] = os.environ["PATH"]
    code = FRESH.format(root=str(ROOT), warehouse=str(tmp_path / "w"))
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "3"
    assert "new and empty" in done.stderr
    assert " WARN " not in done.stderr.split("new and empty")[1]
