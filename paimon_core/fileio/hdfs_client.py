"""Connections to HDFS through the package hdfs-native: options, time limits, and errors.

hdfs-native speaks the protocol of HDFS without Java. It reads ``core-site.xml`` and ``hdfs-site.xml`` in the directory
``HADOOP_CONF_DIR``; options take precedence. It waits without limit for a name node that accepts connections and does
not answer. So each call runs in another thread, which the caller leaves behind after a time limit.
"""

import errno
import os
import re
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as LateError
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, TypeVar

from paimon_core.errors import InvalidInputError, MissingDependencyError, UnsupportedError
from paimon_core.fileio.paths import scheme_of
from paimon_core.fileio.threads import SharedThreads, resolve

A = TypeVar("A")

PREFIXES: Final = ("dfs.", "hdfs.", "ipc.client.", "security.kerberos.", "hadoop-conf-dir")
"""The prefixes of options for HDFS, beside those for any store, such as ``fs.`` and ``hadoop.``."""

_HADOOP = ("dfs.", "fs.", "hadoop.", "io.", "ipc.")
_SPELLED = {
    "fs.defaultfs": "fs.defaultFS",
    "dfs.client.failover.resolver.usefqdn": "dfs.client.failover.resolver.useFQDN",
}
"""The names with capital letters, which options of Spark lose."""
_SIZES = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_SECONDS = 120.0
"""The time limit of a call, unless ``ipc.client.rpc-timeout.ms`` is set."""
_ATTEMPTS = "dfs.client.failover.max.attempts"
_FEW_ATTEMPTS = "4"
"""Attempts to connect to a single name node: about 17 seconds. With several name nodes, the default of Hadoop: 15."""

_RPC_ERROR = re.compile(r'RPCError\("([\w.$]+)", "(.*)', re.DOTALL)
_KIND_AND_TEXT = re.compile(r'RuntimeError: (\w+)\("(.*)"\)', re.DOTALL)
_GSS_ERROR = re.compile(r'RuntimeError: GSSAPIError\(.*?"(GSS_S_\w+)".*, "(.*)"\)', re.DOTALL)
_DATA_NODES = re.compile(r": \[DatanodeInfoProto \{.*", re.DOTALL)
_NO_CREDENTIALS = (
    "HDFS needs a Kerberos ticket (kinit), a keytab (security.kerberos.login.keytab) or a delegation token: "
)
_PROTECTION = "if they need it, set dfs.data.transfer.protection as in hdfs-site.xml of the cluster"
_HINTS = {
    "RPC listener disconnected": "if the name node needs Kerberos, set hadoop.security.authentication to kerberos",
    "All DataNodes failed": _PROTECTION,
    "All nodes failed for write": _PROTECTION,
}
"""Texts of hdfs-native that also a cluster with Kerberos causes, if a setting is missing; and what to do then."""
_ERRNOS = {
    "AccessControlException": errno.EACCES,
    "AuthorizationException": errno.EACCES,
    "DSQuotaExceededException": errno.EDQUOT,
    "NSQuotaExceededException": errno.EDQUOT,
    "ParentNotDirectoryException": errno.ENOTDIR,
    "PathIsNotEmptyDirectoryException": errno.ENOTEMPTY,
    "SafeModeException": errno.EROFS,
}


@dataclass(frozen=True, slots=True)
class HdfsSettings:
    """The options of a connection, checked.

    Fields:
        config: names and values in the style of ``hdfs-site.xml``.
        directory: the directory of the XML files; `None`: ``HADOOP_CONF_DIR``.
        user: the name of the user on clusters without Kerberos; `None`: the user of the environment.
        principal, keytab: the Kerberos principal and the file of its key; `None`: the ticket cache.
        replication: the number of copies of new files; `None`: the default of the name node.
        block_size: the size of blocks of new files in bytes; `None`: the default of the name node.
        umask: the permissions that new files and directories lack.
        seconds: the time limit of a call.
    """

    config: tuple[tuple[str, str], ...] = ()
    directory: str | None = None
    user: str | None = None
    principal: str | None = field(default=None, repr=False)
    keytab: str | None = field(default=None, repr=False)
    replication: int | None = None
    block_size: int | None = None
    umask: int = 0o022
    seconds: float = _SECONDS


def hdfs_settings(options: Mapping[str, Any]) -> HdfsSettings:
    """Return the settings of storage options: names of Hadoop's files, and of Paimon's Java engine.

    Raises InvalidInputError for an unknown option or a wrong value.
    """
    config: dict[str, str] = {}
    own: dict[str, str] = {}
    for key, value in options.items():
        name = _plain(key)
        text = str(value).lower() if isinstance(value, bool) else str(value)
        if name in _OWN:
            own[name] = text
        elif name.startswith(_HADOOP):
            config[name] = text
        else:
            raise InvalidInputError(
                f"storage option {key!r} is not known for HDFS; accepted: {', '.join(_OWN)}, and options of "
                f"Hadoop that begin with {', '.join(_HADOOP)}"
            )
    keytab = own.get("security.kerberos.login.keytab")
    principal = own.get("security.kerberos.login.principal")
    if (keytab is None) != (principal is None):
        raise InvalidInputError(
            "security.kerberos.login.principal and security.kerberos.login.keytab must be set together. Without both, "
            "the ticket cache of the process is used (kinit)"
        )
    if own.get("security.kerberos.login.use-ticket-cache", "true").lower() != "true" and keytab is None:
        raise InvalidInputError(
            "security.kerberos.login.use-ticket-cache must be true unless security.kerberos.login.keytab is set"
        )
    milliseconds = _number("ipc.client.rpc-timeout.ms", own, 1)
    umask = own.get("fs.permissions.umask-mode", "022")
    if not re.fullmatch("0?[0-7]{3}", umask):
        raise InvalidInputError(f"fs.permissions.umask-mode must be three octal digits, not {umask!r}")
    return HdfsSettings(
        config=tuple(sorted(config.items())),
        directory=own.get("hadoop-conf-dir"),
        user=own.get("hdfs.user"),
        principal=principal,
        keytab=keytab,
        replication=_number("dfs.replication", own, 1),
        block_size=_number("dfs.blocksize", own, 512),
        umask=int(umask, 8),
        seconds=milliseconds / 1000 if milliseconds else _SECONDS,
    )


_OWN: Final = (
    "hadoop-conf-dir",
    "hdfs.user",
    "security.kerberos.login.principal",
    "security.kerberos.login.keytab",
    "security.kerberos.login.use-ticket-cache",
    "dfs.replication",
    "dfs.blocksize",
    "fs.permissions.umask-mode",
    "ipc.client.rpc-timeout.ms",
)


def _plain(key: str) -> str:
    """Return the name of an option as Hadoop spells it, without the prefixes of Spark and Paimon's Java engine."""
    name = key[len("spark.hadoop.") :] if key.lower().startswith("spark.hadoop.") else key
    inner = name[len("hadoop.") :] if name.startswith("hadoop.") else ""
    name = inner if inner.startswith(_HADOOP) else name
    if name.endswith(".linkfallback"):
        return name.removesuffix("fallback") + "Fallback"
    return name.lower() if name.lower() in _OWN else _SPELLED.get(name, name)


def _number(name: str, own: Mapping[str, str], least: int) -> int | None:
    text = own.get(name)
    if text is None:
        return None
    match = re.fullmatch(r"(\d+)([kmg]?)", text.strip().lower())
    number = int(match[1]) * _SIZES[match[2]] if match else 0
    if number < least:
        raise InvalidInputError(f"storage option {name!r} must be a number from {least}, not {text!r}")
    return number


class HdfsClient:
    """A client of one name service, for all threads of a process. Every failure is an ``OSError`` that names a path.

    Args:
        url: the scheme and authority, such as ``hdfs://host:8020`` or ``hdfs://name-service``.
        settings: the settings.
    """

    def __init__(self, url: str, settings: HdfsSettings) -> None:
        self.settings = settings
        self._url = url
        self._client = self._connect()

    def call(self, path: str, function: Callable[[Any], A]) -> A:
        """Return the result of a function of hdfs-native's client.

        Raises TimeoutError if it does not return within the limit. Then its effect may still happen.
        """
        return self.bounded(path, partial(function, self._client))

    def bounded(self, path: str, function: Callable[[], A]) -> A:
        """Return the result of a function within the time limit; see `call`."""
        future: Future[A] = Future()
        with hdfs_errors(path):
            if not _threads.start(partial(resolve, future, function)):
                resolve(future, function)
            try:
                return future.result(self.settings.seconds)
            except LateError:
                if future.done():
                    raise
        self._client = self._connect()  # the old connection would hold up later calls
        text = f"HDFS did not answer within {self.settings.seconds:g} seconds (ipc.client.rpc-timeout.ms)"
        raise TimeoutError(errno.ETIMEDOUT, text, path)

    def write_options(self) -> Any:
        """Return the options of a new file, whose directory must exist."""
        settings = self.settings
        return _package().WriteOptions(
            block_size=settings.block_size,
            replication=settings.replication,
            permission=0o666 & ~settings.umask,
            overwrite=True,
            create_parent=False,
        )

    def _connect(self) -> Any:
        settings = self.settings
        config = dict(settings.config)
        if re.search(r":\d+$", self._url):
            config.setdefault(_ATTEMPTS, _FEW_ATTEMPTS)
        kerberos = {"kerberos_principal": settings.principal, "kerberos_keytab": settings.keytab}
        given = {name: value for name, value in kerberos.items() if value is not None}
        with hdfs_errors(self._url):
            return _package().Client(self._url, config, settings.directory, **given)


def hdfs_client(url: str, settings: HdfsSettings) -> HdfsClient:
    """Return the client of a name service, the same one for equal arguments in one process.

    Raises MissingDependencyError if hdfs-native is not installed, InvalidInputError for a user that cannot be used,
    UnsupportedError in a process that was forked after the first use.
    """
    if "@" in url:
        raise InvalidInputError(
            f"{scheme_of(url)}:// paths cannot name a user before @: set the option hdfs.user or the environment "
            "variable HADOOP_USER_NAME"
        )
    _package()
    if _inherited:
        raise UnsupportedError(
            "this process was forked from one that had used HDFS, whose connections it would share: start it by "
            "multiprocessing.get_context('spawn'), or fork before the first use of HDFS"
        )
    if settings.user is not None:
        _act_as(settings.user)
    key = (url, settings)
    client = _clients.get(key)
    return client or _clients.setdefault(key, HdfsClient(url, settings))


def _act_as(user: str) -> None:
    """Set the user of this process. hdfs-native takes it from the environment whenever it connects."""
    current = os.environ.setdefault("HADOOP_USER_NAME", user)
    if current != user:
        raise InvalidInputError(
            f"hdfs.user is {user!r}, but this process acts as the user {current!r} on HDFS (HADOOP_USER_NAME): use one "
            "user in a process"
        )


@contextmanager
def hdfs_errors(path: str) -> Iterator[None]:
    """Raise every failure of hdfs-native as an ``OSError`` that names the path, without the stack trace of Java."""
    try:
        yield
    except (GeneratorExit, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic of hdfs-native is not an Exception
        number, text = _described(error)
        raise OSError(number, text, path) from error


def _described(error: BaseException) -> tuple[int, str]:
    """Return the error number and the first line of an error of hdfs-native."""
    if isinstance(error, NotImplementedError):
        return errno.ENOTSUP, f"hdfs-native does not support this: {error}"
    name = ""
    text = str(error.strerror or error) if isinstance(error, OSError) else f"{type(error).__name__}: {error}"
    found = _RPC_ERROR.search(text)
    if found:
        name = found[1].rpartition(".")[2]
        text = f"{name}: {found[2].rstrip(')').rstrip(chr(34))}"
    refused = _GSS_ERROR.search(text)
    if refused:
        missing = refused[1] == "GSS_S_NO_CRED"
        return (
            (errno.EACCES, _NO_CREDENTIALS + refused[2]) if missing else (errno.EIO, f"Kerberos failed: {refused[2]}")
        )
    text = _DATA_NODES.sub("", _KIND_AND_TEXT.sub(r"\2", text))
    text = re.split(r"(\\n|\n)(\\t|\t)at ", text, maxsplit=1)[0]
    if "(is not a directory)" in text:
        return errno.ENOTDIR, text
    if isinstance(error, FileNotFoundError):
        return errno.ENOENT, text
    if isinstance(error, FileExistsError):
        return errno.EEXIST, text
    text = "; ".join([text, *(hint for found, hint in _HINTS.items() if found in text)])
    number = error.errno if isinstance(error, OSError) else None
    return number or _ERRNOS.get(name, errno.EIO), text


def _package() -> Any:
    try:
        import hdfs_native  # noqa: PLC0415 - only tables on HDFS need it
    except ImportError as error:
        raise MissingDependencyError(
            f"a package for hdfs:// paths is missing: pip install 'pyspark-paimon[hdfs]' ({error})"
        ) from error
    return hdfs_native


_threads = SharedThreads()
_clients: dict[tuple[str, HdfsSettings], HdfsClient] = {}
_inherited: list[object] = []


def _after_fork() -> None:
    global _threads, _clients
    if _clients:
        _inherited.append(_clients)  # a client's threads are in the parent, and its destructor would wait for them
    _threads, _clients = SharedThreads(), {}


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
