"""Java's JDBC catalog in a process of its own, which gets options and words as commands."""

import hashlib
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.conformance.judge import DEFAULT_VERSION, classpath, resolve
from tests.support.servers import cache

_SOURCE = Path(__file__).parent / "JdbcJudge.java"
_DRIVERS = (
    ("org.xerial", "sqlite-jdbc", "3.50.3.0"),
    ("org.postgresql", "postgresql", "42.7.7"),
    ("com.mysql", "mysql-connector-j", "9.4.0"),
)


def drivers() -> list[str]:
    """Return the jars of the databases' drivers, which Maven brings on first use."""
    return [str(resolve(*driver)) for driver in _DRIVERS]


def s3_jar() -> str:
    """Return Java's file system of S3, which Maven brings on first use (92 MB)."""
    return str(resolve("org.apache.paimon", "paimon-s3", DEFAULT_VERSION))


def _class_path() -> str:
    """Return the class path, with the compiled program in the cache."""
    jars = [*classpath(DEFAULT_VERSION), *drivers()]
    key = hashlib.sha256(_SOURCE.read_bytes()).hexdigest()[:12]
    classes = cache() / f"jdbc-judge-{DEFAULT_VERSION}-{key}"
    if not (classes / "JdbcJudge.class").exists():
        classes.mkdir(exist_ok=True)
        subprocess.run(["javac", "-cp", ":".join(jars), "-d", str(classes), str(_SOURCE)], check=True)
    return ":".join([str(classes), *jars])


def start(options: Mapping[str, str], *commands: str) -> "subprocess.Popen[str]":
    """Start Java with catalog options and commands; see ``JdbcJudge.java``."""
    words = [*(f"{key}={value}" for key, value in options.items()), "cache-enabled=false", *commands]
    command = [
        "java",
        "-Xmx400m",
        "--add-opens=java.base/java.nio=ALL-UNNAMED",
        "-cp",
        _class_path(),
        "JdbcJudge",
        *words,
    ]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def answers(process: "subprocess.Popen[str]", seconds: float = 300) -> list[str]:
    """Wait for the end of Java, and return its answers; raise with its output if it failed."""
    output, _ = process.communicate(timeout=seconds)
    assert process.returncode == 0, output[-3000:]
    return [line.removeprefix("java: ") for line in output.splitlines() if line.startswith("java: ")]


def java(options: Mapping[str, str], *commands: str) -> list[str]:
    """Run Java, and return its answers."""
    return answers(start(options, *commands))
