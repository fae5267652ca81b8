"""A bar where somebody looks at it: on a terminal and in a notebook."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module

from paimon_core.maintenance.execute import Progress


def is_interactive() -> bool:
    """Whether what is written here is seen while it is written."""
    return "ipykernel" in sys.modules or (sys.stderr is not None and sys.stderr.isatty())


@contextmanager
def progress_bar(progress: Progress | bool | None, what: str) -> Iterator[Progress | None]:
    """Whom to tell of progress: the caller's own function, a bar named `what`, or nobody.

    None means a bar where somebody looks; True one in any case; False none.
    """
    if callable(progress):
        yield progress
    elif progress is False or (progress is None and not is_interactive()):
        yield None
    else:
        # loaded when there is something to show: this package is imported by every process that plans a query
        with import_module("tqdm.auto").tqdm(desc=what, unit="B", unit_scale=True) as bar:

            def show(done: int, total: int) -> None:
                bar.total = total
                bar.n = done
                bar.refresh()

            yield show
