"""Progress bars, shown on terminals and in notebooks."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module

from paimon_core.engine import Progress


def is_interactive() -> bool:
    """Return True if this process has a terminal or runs in a notebook."""
    return "ipykernel" in sys.modules or (sys.stderr is not None and sys.stderr.isatty())


@contextmanager
def progress_bar(progress: Progress | bool | None, what: str) -> Iterator[Progress | None]:
    """Yield the function that receives progress: the caller's function, the function of a bar named `what`, or `None`.

    `progress`: a function; True: a bar; False: no bar; `None`: a bar on terminals and in notebooks.
    """
    if callable(progress):
        yield progress
    elif progress is False or (progress is None and not is_interactive()):
        yield None
    else:
        # imported only to show a bar, because every process that plans a query imports this module
        with import_module("tqdm.auto").tqdm(desc=what, unit="B", unit_scale=True) as bar:

            def show(done: int, total: int) -> None:
                bar.total = total
                bar.n = done
                bar.refresh()

            yield show
