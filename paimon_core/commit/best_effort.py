"""Work after a commit whose errors are only logged, because no result depends on it."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from paimon_core.errors import hide_secrets

_log = logging.getLogger(__name__)


@contextmanager
def best_effort(work: str, errors: type[Exception] | tuple[type[Exception], ...] = OSError) -> Iterator[None]:
    """Log ``errors`` of the block instead of raising them. ``work``: a description of the block, for the message."""
    try:
        yield
    except errors as error:
        _log.warning(
            "failed, without harm to the table: %s: %s: %s", work, type(error).__name__, hide_secrets(str(error))
        )
