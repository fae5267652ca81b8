"""The check that the Python of Spark's workers has this package.

Spark runs workers with ``PYSPARK_PYTHON``, or with the first ``python3`` on the ``PATH``, as they were when the JVM
started. A worker without the package ends in DATA_SOURCE_NOT_FOUND, long after the mistake.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from weakref import WeakKeyDictionary

from pyspark import SparkContext
from pyspark.sql import SparkSession

from paimon_core.errors import MissingDependencyError
from paimon_spark.internals import WorkerPython, is_classic, worker_pythons

WORKER_PYTHON = "PYSPARK_PYTHON"
DRIVER_PYTHON = "PYSPARK_DRIVER_PYTHON"
_PROBE = "import importlib.util as u, sys; print(*sys.version_info[:2], u.find_spec('paimon_spark') is not None)"
_SECONDS = 20.0
"""The time for the answer of an interpreter; without an answer, the check passes."""

_faults: "WeakKeyDictionary[SparkContext, str | None]" = WeakKeyDictionary()
"""The result of the check for each context; `None`: no fault."""


def advice(variable: str = WORKER_PYTHON) -> str:
    """Return the advice to set a variable before the JVM starts."""
    return f'restart Python, and before the session starts: os.environ["{variable}"] = sys.executable'


def check_worker_python(spark: SparkSession) -> None:
    """Raise MissingDependencyError if workers cannot import this package, or run another minor version of Python.

    Only local sessions are checked, once each. Any doubt passes: an interpreter that does not answer, or files that
    Spark sends to workers. Cost: none if workers run this interpreter, else a start of the other interpreter.
    """
    if not is_classic(spark):
        return
    context = spark.sparkContext
    if context not in _faults:
        _faults[context] = next(filter(None, map(_fault, worker_pythons(context))), None)
    fault = _faults[context]
    if fault is not None:
        raise MissingDependencyError(fault)


def _fault(python: WorkerPython) -> str | None:
    """Return the error for an interpreter; `None`: it fits, or the answer is not certain."""
    path = _resolved(python)
    if path is None or _is_this(path):
        return None
    try:
        answer = _answer(path, python.environment, python.directory)
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    version, has_package = answer
    name = python.command if python.command == path else f"{python.command} ({path})"
    shown = f"the workers of this session run {name}, which"
    if not has_package:
        return f"{shown} lacks pyspark-paimon: {advice(python.variable)}"
    if version != sys.version_info[:2]:
        mine = ".".join(map(str, sys.version_info[:2]))
        return f"{shown} is Python {'.'.join(map(str, version))}, not {mine}: {advice(python.variable)}"
    return None


def _resolved(python: WorkerPython) -> str | None:
    """Return the path of an interpreter as the JVM resolves it; `None`: there is no such file."""
    command = python.command
    if os.path.dirname(command):
        command = os.path.join(python.directory, command)
    return shutil.which(command, path=python.environment.get("PATH"))


def _is_this(path: str) -> bool:
    """Return True if a path is the interpreter of this process, or another name of it in the same directory."""
    first, second = Path(os.path.abspath(path)), Path(os.path.abspath(sys.executable))
    return first == second or (first.parent == second.parent and first.resolve() == second.resolve())


def _answer(path: str, environment: Mapping[str, str], directory: str) -> tuple[tuple[int, ...], bool]:
    """Ask an interpreter for its minor version, and whether it finds this package.

    Raises OSError, ValueError or SubprocessError if it does not answer.
    """
    done = subprocess.run(
        [path, "-c", _PROBE],
        cwd=directory,
        env={**environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=True,
    )
    major, minor, found = done.stdout.split()[-3:]
    if found not in ("True", "False"):
        raise ValueError(found)
    return (int(major), int(minor)), found == "True"
