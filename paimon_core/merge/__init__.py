"""Merging: sorted runs to one, rows of one key to a row. Knows Arrow and names, no files.

The registry of merge engines: an engine is a module with a function that makes its fold, and a line here.
"""

from collections.abc import Callable

from paimon_core.errors import UnsupportedError
from paimon_core.merge.deduplicate import deduplicate
from paimon_core.merge.fold import Fold
from paimon_core.options.merge import IGNORE_DELETE, MERGE_ENGINE
from paimon_core.options.option import Options

__all__ = ["MERGE_ENGINES", "merge_fold"]

MERGE_ENGINES: dict[str, Callable[[Options], Fold]] = {
    "deduplicate": lambda options: deduplicate(ignore_delete=options.value(IGNORE_DELETE)),
}


def merge_fold(options: Options) -> Fold:
    """The fold a table's options ask for. UnsupportedError names a merge engine that is not in the registry."""
    engine = options.value(MERGE_ENGINE)
    if engine not in MERGE_ENGINES:
        raise UnsupportedError(
            f"Table option 'merge-engine' is {engine!r}; this engine merges by {', '.join(MERGE_ENGINES)} only."
        )
    return MERGE_ENGINES[engine](options)
