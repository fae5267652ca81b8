"""Compiled Java classes in the cache directory of the user, so that only the first session compiles them.

Loading a class runs its code in the driver, so an entry is used only if no other user can have written it. The
directory and the entry must belong to this user, and no other user may have permission to write to them. An entry is
one file: its header names the key and the digest of the rest. So a damaged, truncated or renamed entry is not used.

The cache is optional. Any error of the file system means that the classes are compiled in this session.
"""

import hashlib
import json
import logging
import os
import re
import secrets
import stat
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

VARIABLE = "PAIMON_CACHE_DIR"
"""The environment variable that moves the cache to another directory, or switches it off."""

_OFF = "off"
_NAME = "pyspark-paimon"
_FOLDER = "java-classes"
_MAX_ENTRIES = 8
_MAX_BYTES = 1 << 24
_SECONDS_OF_A_WRITE = 3600.0
"""A partial file is older than this only if its process ended before it renamed the file."""

_ENTRY = re.compile(r"[0-9a-f]{64}\.classes")
_PARTIAL = re.compile(r"[0-9a-f]{64}\.[0-9a-f]{16}\.partial")
_log = logging.getLogger(__name__)


def cache_directory(environment: Mapping[str, str], platform: str = sys.platform) -> Path | None:
    """Return the directory of the cache; `None`: the cache is switched off, or there is no safe place for it.

    Args:
        environment: the environment variables. ``PAIMON_CACHE_DIR`` is a directory or ``off``; if it is not set,
            ``XDG_CACHE_HOME`` is the directory of all caches of this user.
        platform: the platform, as in `sys.platform`. Windows has no cache, because Python cannot check there who may
            write to a file.
    """
    if platform == "win32":
        return None
    chosen = environment.get(VARIABLE, "").strip()
    if chosen:
        return None if chosen.lower() == _OFF else Path(os.path.abspath(os.path.expanduser(chosen))) / _FOLDER
    caches, home = environment.get("XDG_CACHE_HOME", ""), environment.get("HOME", "")
    if not os.path.isabs(caches):  # the XDG specification says to ignore a relative path
        caches = os.path.join(home, "Library/Caches" if platform == "darwin" else ".cache")
    return Path(caches, _NAME, _FOLDER) if os.path.isabs(caches) else None


def class_key(sources: Mapping[str, str], runtime: Sequence[str]) -> str:
    """Return the key of compiled classes: a hash of the sources by file name, and of the Spark and Java versions."""
    return hashlib.sha256(json.dumps([sorted(sources.items()), list(runtime)]).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class ClassCache:
    """A cache of compiled classes. ``directory``: where the entries are; it is created on the first `store`."""

    directory: Path

    def load(self, key: str) -> bytes | None:
        """Return the classes of a key; `None`: they are not in the cache, or not safe to use."""
        try:
            with _private_directory(self.directory) as folder:
                data = _read_private(_entry_name(key), folder)
        except OSError as error:
            _log.debug("no compiled classes from %s: %s", self.directory, error)
            return None
        size = len(_header(key, b""))
        classes = data[size:]
        if data[:size] == _header(key, classes):
            return classes
        _log.debug("the compiled classes of %s in %s are damaged", key, self.directory)
        return None

    def store(self, key: str, classes: bytes) -> None:
        """Store the classes of a key, replacing any entry, and remove the entries that were not used for longest.

        Nothing is stored if the directory cannot be written or is not safe.
        """
        try:
            os.makedirs(self.directory, mode=0o700, exist_ok=True)
            with _private_directory(self.directory) as folder:
                _write_and_rename(_entry_name(key), key, classes, folder)
                _remove_old(folder)
        except OSError as error:
            _log.debug("compiled classes are not stored in %s: %s", self.directory, error)


def _entry_name(key: str) -> str:
    return f"{key}.classes"


def _header(key: str, classes: bytes) -> bytes:
    return f"paimon-classes 1 {key} {hashlib.sha256(classes).hexdigest()}\n".encode()


@contextmanager
def _private_directory(path: Path) -> Iterator[int]:
    """Open a directory and yield its descriptor. Raise PermissionError if another user owns it or may write to it."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        _check_private(os.fstat(descriptor))
        yield descriptor
    finally:
        os.close(descriptor)


def _check_private(status: os.stat_result) -> None:
    if status.st_uid != os.geteuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise PermissionError("another user owns it or may write to it")


def _read_private(name: str, folder: int) -> bytes:
    """Return the content of a regular file that only this user may write, and mark it as used now."""
    descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    with open(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        _check_private(status)
        if not stat.S_ISREG(status.st_mode) or status.st_size > _MAX_BYTES:
            raise OSError(f"{name} is not an entry")
        with suppress(OSError):
            os.utime(descriptor)
        return file.read()


def _write_and_rename(name: str, key: str, classes: bytes, folder: int) -> None:
    """Write an entry under another name and rename it, so that another process never reads half of it."""
    partial = f"{key}.{secrets.token_hex(8)}.partial"
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600, dir_fd=folder)
    try:
        with open(descriptor, "wb") as file:
            file.write(_header(key, classes) + classes)
        os.replace(partial, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        os.unlink(partial, dir_fd=folder)
        raise


def _remove_old(folder: int) -> None:
    """Keep the most recently used entries, and remove the partial files of processes that ended."""
    times: dict[str, float] = {}
    for name in os.listdir(folder):
        with suppress(FileNotFoundError):
            times[name] = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mtime
    entries = sorted(filter(_ENTRY.fullmatch, times), key=times.__getitem__, reverse=True)
    abandoned = time.time() - _SECONDS_OF_A_WRITE
    partials = [name for name in times if _PARTIAL.fullmatch(name) and times[name] < abandoned]
    for name in (*entries[_MAX_ENTRIES:], *partials):
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=folder)
