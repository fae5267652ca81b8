"""Drive the official Java Paimon engine from Python: one long-lived process, one JSON command per call.

    with Judge("some/warehouse") as j:
        j.call("create_table", table="db.t", fields=[["k", "BIGINT NOT NULL"], ["v", "STRING"]],
               primary_keys=["k"], options={"bucket": "2"})
        j.call("write", table="db.t", rows=[["+I", {"k": 1, "v": "a"}]])
        print(j.call("read", table="db.t")["rows"])          # [["+I", 1, "a"]]

Jars come from Maven Central through ``mvn`` (cached in the local repository); ``java/Judge.java`` is compiled
once per engine version into a cache directory. Needs ``java``, ``javac`` and ``mvn`` on the path, no Python library.
"""

import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

DEFAULT_VERSION = "1.4.2"
HERE = pathlib.Path(__file__).resolve().parent / "java"

_HADOOP = "3.3.6"
_SHARED = [
    ("org.apache.hadoop", "hadoop-client-api", _HADOOP),
    ("org.apache.hadoop", "hadoop-client-runtime", _HADOOP),
    ("org.slf4j", "slf4j-api", "1.7.36"),
    ("org.slf4j", "slf4j-nop", "1.7.36"),
    ("commons-logging", "commons-logging", "1.2"),
    ("org.xerial.snappy", "snappy-java", "1.1.10.5"),
    ("org.lz4", "lz4-java", "1.8.0"),
    ("org.tukaani", "xz", "1.9"),
    ("com.ververica", "frocksdbjni", "6.20.3-ververica-2.0"),  # cross-partition upsert only
]


class JudgeError(RuntimeError):
    """The engine refused a command. ``error``, ``causes`` and ``trace`` hold what it said."""

    def __init__(self, command: str, answer: dict[str, Any]) -> None:
        self.error = answer.get("error", "")
        self.causes = answer.get("causes", [])
        self.trace = answer.get("trace", "")
        super().__init__(f"{command}: {self.error}" + (f" | caused by {self.causes[-1]}" if self.causes else ""))


def cache_dir() -> pathlib.Path:
    """Where compiled classes go: ``$PAIMON_JUDGE_CACHE``, else the user's cache directory."""
    root = os.environ.get("PAIMON_JUDGE_CACHE")
    return pathlib.Path(root) if root else pathlib.Path.home() / ".cache" / "paimon-conformance"


def _repository() -> pathlib.Path:
    return pathlib.Path(os.environ.get("MAVEN_REPOSITORY", pathlib.Path.home() / ".m2" / "repository"))


def resolve(group: str, artifact: str, version: str) -> pathlib.Path:
    """Path of a jar in the local Maven repository, downloading it with ``mvn`` when absent."""
    jar = _repository() / group.replace(".", "/") / artifact / version / f"{artifact}-{version}.jar"
    if not jar.exists():
        done = subprocess.run(
            [
                "mvn",
                "-q",
                "-B",
                f"-Dmaven.repo.local={_repository()}",
                "dependency:get",
                f"-Dartifact={group}:{artifact}:{version}",
                "-Dtransitive=false",
            ],
            capture_output=True,
            text=True,
        )
        if not jar.exists():
            raise RuntimeError(
                f"mvn could not get {group}:{artifact}:{version}:\n{done.stdout[-2000:]}{done.stderr[-500:]}"
            )
    return jar


def unavailable(version: str = DEFAULT_VERSION) -> str | None:
    """Why no judge can be had on this machine, in one line; None when one can."""
    missing = [tool for tool in ("java", "javac") if shutil.which(tool) is None]
    if missing:
        return f"{' and '.join(missing)} not found on PATH: install a JDK 17 or 21"
    try:
        compile_judge(version)
    except FileNotFoundError as error:
        return f"{error.filename} not found on PATH: install Maven, it brings the engine's jar"
    except RuntimeError as error:
        return str(error)
    return None


def classpath(version: str) -> list[str]:
    """Class path of the engine; ``version`` is a Paimon release or a path to a bundle jar."""
    jar = pathlib.Path(version) if version.endswith(".jar") else resolve("org.apache.paimon", "paimon-bundle", version)
    return [str(jar)] + [str(resolve(*c)) for c in _SHARED]


def compile_judge(version: str) -> tuple[pathlib.Path, list[str]]:
    """Compile the program once for this engine version; returns (class directory, class path)."""
    cp = classpath(version)
    sources = [HERE / "Judge.java", HERE / "DiskLoader.java"]
    key = hashlib.sha256(b"".join(file.read_bytes() for file in sources) + cp[0].encode()).hexdigest()[:16]
    out = cache_dir() / key
    if not (out / "Judge.class").exists():
        out.parent.mkdir(parents=True, exist_ok=True)
        work = pathlib.Path(tempfile.mkdtemp(dir=out.parent))
        done = subprocess.run(
            ["javac", "-nowarn", "-proc:none", "-cp", os.pathsep.join(cp), "-d", str(work), *map(str, sources)],
            capture_output=True,
            text=True,
        )
        if done.returncode:
            shutil.rmtree(work)
            raise RuntimeError(f"Judge.java does not compile against Paimon {version}:\n{done.stderr[-4000:]}")
        try:
            work.rename(out)
        except OSError:  # another process was faster
            shutil.rmtree(work)
    return out, cp


class Judge:
    """A running engine over one warehouse: a directory, created when missing, or a URL. Use as a context manager.

    ``options``: more options of its catalog, such as the address of a metastore; ``jars``: more jars on its class path;
    ``linked``: True runs the program compiled for `DEFAULT_VERSION` with the engine of ``version``, which may be older:
    a command fails only if it calls a method that this version lacks. ``disk``: how files of a local warehouse are
    renamed. The engine's own rename may replace a snapshot that another process has just created; ``link`` never does.
    The path of a directory: its files name the renames that wait, see ``HoldingFileIO``.
    """

    def __init__(
        self,
        warehouse: str | os.PathLike,
        version: str = DEFAULT_VERSION,
        heap: str = "1g",
        time_zone: str = "UTC",
        jvm: tuple[str, ...] = (),
        options: Mapping[str, str] | None = None,
        jars: Sequence[str] = (),
        linked: bool = False,
        disk: str = "",
    ):
        classes, cp = compile_judge(DEFAULT_VERSION if linked else version)
        if linked:  # the verifier would load every class that the program names
            cp = classpath(version)
            jvm = (*jvm, "-XX:+UnlockDiagnosticVMOptions", "-XX:-BytecodeVerificationRemote")
        self.version = version
        if "://" in str(warehouse):
            self.warehouse: Any = str(warehouse)
        else:
            self.warehouse = pathlib.Path(warehouse).resolve()
            self.warehouse.mkdir(parents=True, exist_ok=True)
        self._tmp = tempfile.mkdtemp(prefix="paimon-conformance-")
        opens = [
            f"--add-opens=java.base/{p}=ALL-UNNAMED"
            for p in ("java.lang", "java.nio", "java.util", "sun.nio.ch", "java.net", "java.io")
        ]
        command = [
            "java",
            f"-Xmx{heap}",
            "-XX:+UseParallelGC",
            f"-Duser.timezone={time_zone}",
            *opens,
            *jvm,
            "-cp",
            os.pathsep.join([str(classes), *cp, *jars]),
            "Judge",
            "--warehouse",
            f"file:{self.warehouse}" if disk else str(self.warehouse),
            "--tmp",
            self._tmp,
            *(["--disk", disk] if disk else []),
            *(text for key, value in (options or {}).items() for text in ("--option", f"{key}={value}")),
        ]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8"
        )
        self._stderr: deque[str] = deque(maxlen=200)
        threading.Thread(target=self._drain, daemon=True).start()

    def _drain(self) -> None:
        for line in self._process.stderr:
            self._stderr.append(line)

    def call(self, cmd: str, **args: Any) -> Any:
        """Run one command and return its result; raises :class:`JudgeError` when the engine refuses."""
        self._process.stdin.write(json.dumps({"cmd": cmd, **args}, allow_nan=False) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the engine died on {cmd!r}:\n" + "".join(self._stderr))
        answer = json.loads(line)
        if not answer["ok"]:
            raise JudgeError(cmd, answer)
        return answer["result"]

    def close(self) -> None:
        """Let the engine finish and remove its temporary files."""
        if self._process.poll() is None:
            self._process.stdin.close()
            try:
                self._process.wait(60)
            except subprocess.TimeoutExpired:
                self._process.kill()
        shutil.rmtree(self._tmp, ignore_errors=True)

    def __enter__(self) -> "Judge":
        return self

    def __exit__(self, *exc) -> None:
        self.close()


if __name__ == "__main__":  # download and compile what several processes of tests need
    sys.exit(unavailable())
