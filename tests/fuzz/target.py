"""A target: a decoder or parser, the bytes that it is given, and the errors that it may raise."""

import os
import resource
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paimon_core.errors import PaimonError

ROOT = Path(__file__).parents[2]
CPU_SECONDS = 5.0
"""The CPU time that one input may take; every input is smaller than 64 kB."""
MEMORY = 256 << 20
"""The bytes by which one input may raise the peak of the process."""


@dataclass(frozen=True)
class Target:
    """A decoder or parser under test.

    ``shape``: the mutator of its inputs, a name in `tests.fuzz.mutate.SHAPES`. ``allowed``: other errors than
    errors of the engine that it may raise.
    """

    name: str
    shape: str
    seeds: Callable[[], list[bytes]]
    run: Callable[[bytes], Any]
    allowed: tuple[type[BaseException], ...] = ()
    tokens: tuple[str, ...] = ()
    """Words to insert into texts."""


class Escape(BaseException):
    """An access to a file outside of the table, or another action that no input may cause."""


class Excess(BaseException):
    """An input that took too much time or memory."""


@dataclass(frozen=True)
class Fault:
    """A broken promise: the error, and the line of the engine that raised it."""

    kind: str
    place: str
    trace: str

    @property
    def key(self) -> str:
        """Return the kind and the place as a file name."""
        return f"{self.kind}-{self.place}".replace("/", ".").replace(":", "-")


def check(target: Target, data: bytes, *, watched: bool = False) -> Fault | None:
    """Run a target on one input, and return the promise that it breaks; `None`: it breaks none.

    ``watched``: True to notice files that are opened or deleted on disk, by a hook that stays until the process ends.
    """
    before, begin = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.thread_time()
    try:
        with _watched() if watched else nullcontext():
            target.run(data)
    except (PaimonError, *target.allowed):
        pass
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return Fault(type(error).__name__, _place(error), traceback.format_exc())
    seconds = time.thread_time() - begin
    if seconds > CPU_SECONDS:
        return Fault("Slow", target.name, f"{seconds:.1f} s of CPU for {len(data)} bytes")
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10
    if grown > MEMORY:
        return Fault("Memory", target.name, f"{grown >> 20} MB for {len(data)} bytes")
    return None


def _place(error: BaseException) -> str:
    """Return the last line of the engine in a traceback, such as ``paimon_core/row/decode.py:64``."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [f for f in frames if f"{os.sep}paimon_" in f.filename] or frames
    name = ours[-1].filename
    return f"{name[name.find('paimon_') :] if 'paimon_' in name else Path(name).name}:{ours[-1].lineno}"


# ---- actions that no input may cause

_FORBIDDEN = frozenset(
    {
        "os.remove",
        "os.rename",
        "os.rmdir",
        "os.mkdir",
        "os.system",
        "subprocess.Popen",
        "socket.connect",
        "shutil.rmtree",
    }
)
_LIBRARIES = tuple({sys.prefix, sys.base_prefix, str(ROOT), "/usr/lib", "/usr/share", "/proc", "/sys", "/dev/null"})
_watching: list[bool] = []


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if not _watching:
        return
    if event in _FORBIDDEN:
        raise Escape(event, *arguments)
    if event == "open":
        path, _, flags = arguments
        writes = isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        if isinstance(path, str) and (writes or not os.path.abspath(path).startswith(_LIBRARIES)):
            raise Escape(event, *arguments)


@contextmanager
def _watched() -> Iterator[None]:
    """Raise `Escape` for files that are opened or deleted on disk, and for connections: inputs live in memory."""
    if not getattr(sys, "_fuzz_audited", False):
        sys.addaudithook(_audit)
        sys._fuzz_audited = True  # hooks cannot be removed
    _watching.append(True)
    try:
        yield
    finally:
        _watching.pop()
