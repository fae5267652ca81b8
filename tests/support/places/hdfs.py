"""HDFS on this machine: a name node and a data node in one Java process, from the jars of Hadoop 3.3.6.

The jars (88 MB) come from Maven once, into `servers.cache`. The process needs 11 s to start and about 300 MB.
"""

import hashlib
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.support.places.kerberos import REALM, SERVICE, Kerberos
from tests.support.servers import cache, free_port, server

SOURCE = Path(__file__).parent / "java" / "Hdfs.java"
JARS = (
    "org.apache.hadoop:hadoop-client-minicluster:3.3.6",
    "ch.qos.reload4j:reload4j:1.2.25",
    "org.slf4j:slf4j-simple:1.7.36",
    "javax.xml.bind:jaxb-api:2.3.1",  # Java 17 has no JAXB, which the web pages of the nodes need
    "org.glassfish.jaxb:jaxb-runtime:2.3.1",
)
_DEPENDENCY = "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency>"
_PROJECT = (
    '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion><groupId>places</groupId>'
    "<artifactId>hdfs</artifactId><version>1</version><dependencies>{}</dependencies></project>"
)


def class_path() -> str:
    """Return the class path of the server; download and compile what is missing.

    Raises RuntimeError with the reason if that fails.
    """
    key = hashlib.sha256("".join(JARS).encode() + SOURCE.read_bytes()).hexdigest()[:12]
    home = cache() / f"hdfs-{key}"
    jars = f"{home}/lib/*"
    if not (home / "classes" / "Hdfs.class").exists():
        home.mkdir(exist_ok=True)
        dependencies = "".join(_DEPENDENCY.format(*jar.split(":")) for jar in JARS)
        (home / "pom.xml").write_text(_PROJECT.format(dependencies))
        _run("mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=lib", directory=home)
        _run("javac", "-cp", jars, "-d", "classes", str(SOURCE), directory=home)
    return f"{home}/classes:{jars}"


def _run(*command: str, directory: Path) -> None:
    try:
        done = subprocess.run(command, cwd=directory, capture_output=True, text=True)
    except FileNotFoundError as error:
        raise RuntimeError(f"{error.filename} is not installed") from error
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed: {done.stdout[-1000:]}{done.stderr[-1000:]}")


QUICK = {"dfs.namenode.file.close.num-committed-allowed": "1"}
"""Settings with which a file is closed at once. A client else asks again after 0.5 s until the blocks are known."""


def client_settings(protection: str) -> dict[str, str]:
    """Return the settings with which a client reaches an HDFS with Kerberos; see `secure_settings`."""
    return {
        "hadoop.security.authentication": "kerberos",
        "dfs.namenode.kerberos.principal": f"hdfs/_HOST@{REALM}",
        "hadoop.rpc.protection": protection,
        "dfs.data.transfer.protection": protection,
    }


def secure_settings(kerberos: Kerberos, protection: str) -> dict[str, str]:
    """Return the settings of an HDFS with Kerberos. ``protection``: "authentication", "integrity" or "privacy"."""
    keytab = str(kerberos.keytab("hdfs"))
    return {
        **client_settings(protection),
        **QUICK,
        "hadoop.security.authorization": "true",
        "dfs.namenode.kerberos.principal": SERVICE,
        "dfs.namenode.keytab.file": keytab,
        "dfs.datanode.kerberos.principal": SERVICE,
        "dfs.datanode.keytab.file": keytab,
        "dfs.web.authentication.kerberos.principal": f"HTTP/localhost@{REALM}",
        "dfs.web.authentication.kerberos.keytab": keytab,
        "dfs.block.access.token.enable": "true",
        "ignore.secure.ports.for.testing": "true",  # else the data node needs TLS or a port below 1024
    }


@contextmanager
def hdfs_server(
    directory: Path, settings: Mapping[str, str] | None = None, kerberos: Kerberos | None = None
) -> Iterator[tuple[str, int]]:
    """Start HDFS with its data in a directory; yield its URL ``hdfs://localhost:port`` and its process id.

    ``settings``: further settings of ``hdfs-site.xml``; ``kerberos``: its Kerberos server, see `secure_settings`.
    """
    port = free_port()
    log = directory / "hdfs.log"
    command = [
        *("java", "-Xmx400m", "-XX:TieredStopAtLevel=1", "--add-opens", "java.base/java.lang=ALL-UNNAMED"),
        *([f"-Djava.security.krb5.conf={kerberos.configuration}"] if kerberos else []),
        *("-cp", class_path(), "Hdfs", str(directory / "data"), str(port)),
        *(f"{name}={value}" for name, value in (settings or {}).items()),
    ]
    with server(command, log, lambda: b"READY" in log.read_bytes()) as process:
        yield f"hdfs://localhost:{port}", process.pid
