"""Names that are imported when they are first used.

Spark starts Python processes for the steps of a query, and each of them imports this package. So a module that offers
more than one step needs imports the rest through these functions. For type checkers, the same names are imported below
``if TYPE_CHECKING``; a test compares the two. Python's import lock protects an import that several threads need.
"""

import gc
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from importlib.util import find_spec
from threading import Lock
from types import ModuleType
from typing import Any

Getter = Callable[[str], Any]
Lister = Callable[[], Sequence[str]]

_MANY_OBJECTS = 10_000  # objects whose visit takes about 1 ms


def lazy_names(facade: str, names: Mapping[str, str], public: Sequence[str]) -> tuple[Getter, Lister]:
    """Return the functions ``__getattr__`` and ``__dir__`` of a module that offers names of other modules.

    Submodules of a package are attributes, too, and are imported when they are first used.

    Args:
        facade: the ``__name__`` of the module.
        names: for each module its names, separated by blanks; ``name=alias`` offers a name as ``alias``.
        public: the ``__all__`` of the module, which ``dir()`` returns.
    """
    sources = {}
    for module, text in names.items():
        for item in text.split():
            name, _, alias = item.partition("=")
            sources[alias or name] = module, name

    def get(name: str) -> Any:
        if name not in sources:
            return _submodule(facade, name)
        module, attribute = sources[name]
        value = getattr(_imported(module), attribute)
        setattr(sys.modules[facade], name, value)
        return value

    return get, lambda: sorted(public)


def _submodule(package: str, name: str) -> ModuleType:
    """Import a module of a package. Raise AttributeError if the package has no module of this name."""
    path = f"{package}.{name}"
    spec = None
    with suppress(ModuleNotFoundError):  # raised if `package` is a module without submodules
        spec = None if name.startswith("_") else find_spec(path)
    if spec is None:
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    return import_module(path)


def deferred(module: str, name: str) -> Callable[..., Any]:
    """Return a function that calls a function or class of another module, and imports the module on its first call."""

    def call(*arguments: Any, **options: Any) -> Any:
        return getattr(_imported(module), name)(*arguments, **options)

    return call


def _imported(module: str) -> ModuleType:
    if module in sys.modules:
        return import_module(module)  # waits if another thread is importing the module
    with collection_paused():
        return import_module(module)


@contextmanager
def collection_paused() -> Iterator[None]:
    """Pause garbage collection while many objects are created that stay alive: it would visit them again and again.

    Pauses of several threads may overlap. The last one starts collection again, if it ran before the first.
    """
    with _PAUSE:
        if not _PAUSE.depth:
            _PAUSE.collecting = gc.isenabled()
            gc.disable()
        _PAUSE.depth += 1
    try:
        yield
    finally:
        with _PAUSE:
            _PAUSE.depth -= 1
            if not _PAUSE.depth and _PAUSE.collecting:
                _age_objects()
                gc.enable()


def _age_objects() -> None:
    """Move new objects to the oldest generation if they are many, so that the next collection does not visit them.

    Freezing moves all objects to a permanent generation, and unfreezing moves them to the oldest one, both without a
    visit. Nothing happens if the application keeps frozen objects of its own.
    """
    if gc.get_count()[0] > _MANY_OBJECTS and not gc.get_freeze_count():
        gc.freeze()
        gc.unfreeze()


class _Pause:
    """The number of pauses at a time, and whether collection ran before the first."""

    def __init__(self) -> None:
        self.depth, self.collecting = 0, False
        self._lock = Lock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


_PAUSE = _Pause()
