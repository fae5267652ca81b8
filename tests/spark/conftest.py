"""One Spark session for the whole run, of the kind the environment variable PAIMON_SPARK_MODE names.

classic: local[2]; connect: a Connect server and its client; cluster: local-cluster, two executor processes; standalone:
a master and two workers started from pyspark's own distribution.
"""

import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from paimon_spark import frame_write
from paimon_spark.sql.format import install_format
from paimon_spark.sql.session_options import NATIVE_READS, NATIVE_WRITES
from tests.support import session_settings
from tests.support.standalone import StandaloneCluster

ROOT = Path(__file__).parent.parent.parent
MODE = os.environ.get("PAIMON_SPARK_MODE", "classic")
QUICK_JVM = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC"
SEARCHED = ("py4j", "PythonUtils", "java")
"""Names that PySpark looks up at each error or query, which makes Java search all jars: the tests do it once."""
SETTINGS = {
    "spark.ui.enabled": "false",
    # A test is over before optimising compilers pay: without them the same statements take half the CPU time.
    "spark.driver.extraJavaOptions": QUICK_JVM,
    "spark.executor.extraJavaOptions": QUICK_JVM,
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.session.timeZone": "UTC",
    "spark.log.level": "OFF",
    "spark.ui.showConsoleProgress": "false",
    "spark.executorEnv.PYTHONPATH": str(ROOT),
    "spark.sql.warehouse.dir": "/tmp/paimon-spark-tests",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
}


@pytest.fixture(scope="session")
def standalone(tmp_path_factory):
    """The address of a standalone cluster of two one-core workers."""
    with StandaloneCluster(tmp_path_factory.mktemp("standalone")) as cluster:
        yield cluster.url


@pytest.fixture(scope="session")
def spark(request):
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    builder = SparkSession.builder
    if MODE == "connect":
        builder = builder.remote("local[2,3]")
        if os.environ.get("PAIMON_ISOLATED") != "True":
            # Artifacts of its own make each session, and so each streaming query, start new Python daemons.
            builder = builder.config("spark.sql.artifact.isolation.enabled", "false")
    elif MODE == "cluster":
        builder = builder.master("local-cluster[2,1,1024]")
    elif MODE == "standalone":
        builder = builder.master(request.getfixturevalue("standalone")).config("spark.executor.memory", "700m")
    else:
        builder = builder.master("local[2,3]")
    for key, value in SETTINGS.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    install_format(session)  # in every test, not only after one that happens to install a catalog
    if MODE != "connect":
        session_settings.remember()
        view = session.sparkContext._jvm
        for name in SEARCHED:
            setattr(view, name, getattr(view, name))
    yield session
    session.stop()


@pytest.fixture
def python_reads(spark):
    """Batch reads by the Python data source, as over Spark Connect, for one test."""
    spark.conf.set(NATIVE_READS, "false")
    yield
    spark.conf.unset(NATIVE_READS)


@pytest.fixture
def python_writes(spark):
    """Batch writes by path by the Python data source, as over Spark Connect, for one test."""
    spark.conf.set(NATIVE_WRITES, "false")
    yield
    spark.conf.unset(NATIVE_WRITES)


@pytest.fixture
def writes_by_tasks(monkeypatch):
    """Writes by tasks for one test, also of few rows."""
    monkeypatch.setattr(frame_write, "FEW_ROWS", -1)


@pytest.fixture
def time_type(spark):
    """Spark's type TIME switched on for one test."""
    spark.conf.set("spark.sql.timeType.enabled", "true")
    yield
    spark.conf.unset("spark.sql.timeType.enabled")
