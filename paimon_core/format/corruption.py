"""Telling a damaged file from a failing disk."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

import fastavro
import pyarrow as pa

from paimon_core.errors import CorruptedError

T = TypeVar("T")
_ASKED = re.compile(r"size (\d+) failed")
_NO_MACHINE_HAS = 1 << 40
"""Bytes that are asked for at once only where a length in a file is not true."""
_FOUND = (
    pa.ArrowException,
    fastavro.schema.SchemaParseException,
    ValueError,
    IndexError,
    KeyError,
    OverflowError,
    RecursionError,
)


@contextmanager
def as_corrupted(path: str) -> Iterator[None]:
    """Decoder errors inside become CorruptedError naming the file; errors of the storage pass as they are.

    A decoder reports damage as ArrowInvalid, or as an OSError without an error number; the system's own have one,
    if only in the message.
    """
    try:
        yield
    except MemoryError as cause:  # pyarrow's is an ArrowException as well
        asked = _ASKED.search(str(cause))
        if asked is None or int(asked[1]) < _NO_MACHINE_HAS:
            raise
        raise _damaged(path, cause) from cause
    except OSError as cause:
        if cause.errno is not None or type(cause) is not OSError or "[Errno " in str(cause):
            raise
        raise _damaged(path, cause) from cause
    except _FOUND as cause:
        if isinstance(cause, CorruptedError):
            raise
        raise _damaged(path, cause) from cause


def decoded(batches: Iterator[T], path: str) -> Iterator[T]:
    """The items of a decoder's iterator, its errors turned as in `as_corrupted`."""
    while True:
        with as_corrupted(path):
            try:
                item = next(batches)
            except StopIteration:
                return
        yield item


def _damaged(path: str, cause: Exception) -> CorruptedError:
    return CorruptedError(f"{path or 'the data file'} is damaged or incomplete: {cause}")
