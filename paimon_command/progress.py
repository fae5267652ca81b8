"""A progress bar on a terminal."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import rich.progress
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn

from paimon_core.engine import Progress


@contextmanager
def progress_bar(what: str) -> Iterator[Progress | None]:
    """Yield a function that takes the bytes done and the total bytes; `None` if standard error is not a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with rich.progress.Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
