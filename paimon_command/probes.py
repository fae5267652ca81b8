"""Check that a storage supports what commits need, with temporary files in a directory."""

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from threading import Barrier
from uuid import uuid4

from paimon_core.engine import UNKNOWN_MODIFIED, FileIO, join, parallel_map
from paimon_core.errors import PaimonError, UnsupportedError, hide_secrets

_SIZE = 1 << 16
_RACERS = 8
_CLOCK_MS = 60_000  # clocks that differ by more make ages of files and snapshots wrong

_NEEDED = {"list", "commit", "write"}  # without these the other checks would also fail
_NO_ACCESS = "check the path, the network and the rights; credentials and the endpoint go in --option"
_NO_PUT = (
    "two writers could both believe that they made the same snapshot: set nothing and write elsewhere, or use a store "
    "that supports conditional puts (If-None-Match) or hard links"
)


@dataclass(frozen=True, slots=True)
class Finding:
    """The outcome of one check.

    ``advice``: what to do, or an empty text. ``note``: True for a fact that no check is needed for.
    """

    check: str
    fine: bool
    found: str
    advice: str = ""
    note: bool = False


class _Failed(Exception):
    """A failed probe; the arguments are the finding and the advice."""


def probe(io: FileIO, root: str) -> Iterator[Finding]:
    """Yield a finding for each check in the directory ``root``; after a failed access the other checks are skipped.

    The first file creates a missing directory, which is deleted again if it is empty at the end.
    """
    existed = io.exists(root)
    if not existed:
        yield Finding("directory", True, "the directory does not exist yet", note=True)
    directory = join(root, f".doctor-{uuid4()}")
    path = join(directory, "probe")
    checks: tuple[tuple[str, Callable[[], str]], ...] = (
        ("list", lambda: f"{len(io.list(root))} entries"),
        ("commit", lambda: _can_commit(io)),
        ("write", lambda: _write(io, path)),
        ("listed at once", lambda: _listed(io, directory)),
        ("ranged read", lambda: _ranged_read(io, path)),
        ("put-if-absent", lambda: _put_if_absent(io, join(directory, "exclusive"))),
        ("put-if-absent, 8 at once", lambda: _race(io, join(directory, "race"))),
        ("clock", lambda: _clock(io, directory)),
        ("delete", lambda: _delete(io, path)),
    )
    try:
        for name, check in checks:
            finding = _tried(name, check)
            yield finding
            if not finding.fine and name in _NEEDED:
                return
    finally:
        with suppress(PaimonError, OSError):
            io.delete_directory(directory)
            if not existed:
                io.delete_empty_directory(root)


def _tried(name: str, check: Callable[[], str]) -> Finding:
    try:
        return Finding(name, True, check())
    except _Failed as failed:
        return Finding(name, False, *failed.args)
    except UnsupportedError as error:
        return Finding(name, False, str(error), "read here, and write on another store")
    except (PaimonError, OSError) as error:
        return Finding(name, False, hide_secrets(f"{type(error).__name__}: {error}"), _NO_ACCESS)


def _can_commit(io: FileIO) -> str:
    io.check_can_commit()
    return "a safe way to publish a snapshot is known for this store"


def _write(io: FileIO, path: str) -> str:
    io.write(path, _content())
    return f"{_SIZE} bytes"


def _content() -> bytes:
    return bytes(range(256)) * (_SIZE // 256)


def _listed(io: FileIO, directory: str) -> str:
    names = [one.name for one in io.list(directory)]
    if names != ["probe"]:
        raise _Failed(
            f"a new file is not in the listing: {names}", "the store must list every file that was written before"
        )
    return "a new file is in the listing"


def _ranged_read(io: FileIO, path: str) -> str:
    with io.open(path) as file:
        file.seek(1000)
        content = file.read(500)
    if content != _content()[1000:1500]:
        raise _Failed(
            "500 bytes from byte 1000 differ from the written bytes", "the store does not support ranged reads"
        )
    return "500 bytes from byte 1000"


def _put_if_absent(io: FileIO, path: str) -> str:
    first, second = io.create_exclusive(path, b"first"), io.create_exclusive(path, b"second")
    if not first or second or io.read(path) != b"first":
        raise _Failed("a second writer replaced a file that existed", _NO_PUT)
    return "a second writer is refused"


def _race(io: FileIO, path: str) -> str:
    barrier = Barrier(_RACERS)

    def one(number: int) -> bool:
        barrier.wait(30)
        return io.create_exclusive(path, str(number).encode())

    won = list(parallel_map(one, list(range(_RACERS)), threads=_RACERS))
    if sum(won) != 1 or io.read(path) != str(won.index(True)).encode():
        raise _Failed(f"{sum(won)} of {_RACERS} writers at the same time believe that they made the file", _NO_PUT)
    return "one writer wins"


def _clock(io: FileIO, directory: str) -> str:
    path = join(directory, "clock")
    before = time.time() * 1000
    io.write(path, b"")
    after = time.time() * 1000
    modified = next((file.modified_ms for file in io.list(directory) if file.name == "clock"), UNKNOWN_MODIFIED)
    if modified == UNKNOWN_MODIFIED:
        return "the store tells no times of files: orphan files are found by no age"
    skew = max(before - modified, modified - after, 0)
    text = f"the store and this machine differ by at most {skew / 1000:.1f} s"
    if skew > _CLOCK_MS:
        raise _Failed(
            f"the store and this machine differ by {skew / 1000:.0f} s",
            "set both by NTP: expiry, time travel and the age of orphan files compare their times",
        )
    return text


def _delete(io: FileIO, path: str) -> str:
    io.delete(path)
    if io.exists(path):
        raise _Failed("a deleted file is still there", "the store must show what was deleted before")
    return "a deleted file is gone"
