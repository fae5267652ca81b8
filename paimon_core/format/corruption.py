"""Distinguish errors of damaged files from errors of the storage."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

import fastavro
import pyarrow as pa
import pyorc

from paimon_core.errors import CorruptedError, PaimonError, UnsupportedError

T = TypeVar("T")
_ALLOCATION = re.compile(r"size (\d+) failed")
_ABSURD_ALLOCATION = 1 << 40  # bytes; only a wrong length in a file leads to an allocation of this size
_DECODER_ERRORS = (
    pa.ArrowException,
    fastavro.schema.SchemaParseException,
    pyorc.ParseError,
    ValueError,
    IndexError,
    KeyError,
    OverflowError,
    RecursionError,
)


@contextmanager
def as_corrupted(path: str) -> Iterator[None]:
    """Turn a decoder's errors in the block into a CorruptedError that names the file; storage errors pass unchanged.

    A logical type that only newer versions of pyarrow know becomes an UnsupportedError.

    A decoder reports damage as ArrowInvalid, or as an OSError without an error number. Errors of the operating system
    have one, sometimes only in the message.
    """
    try:
        yield
    except MemoryError as cause:  # pyarrow's MemoryError is also an ArrowException
        allocation = _ALLOCATION.search(str(cause))
        if allocation is None or int(allocation[1]) < _ABSURD_ALLOCATION:
            raise
        raise _corrupted(path, cause) from cause
    except OSError as cause:
        if cause.errno is not None or type(cause) is not OSError or "[Errno " in str(cause):
            raise
        raise _corrupted(path, cause) from cause
    except _DECODER_ERRORS as cause:
        if isinstance(cause, (CorruptedError, UnsupportedError)):
            raise
        raise _corrupted(path, cause) from cause


def decoded(batches: Iterator[T], path: str) -> Iterator[T]:
    """Yield the items of a decoder's iterator and convert its errors as `as_corrupted` does."""
    while True:
        with as_corrupted(path):
            try:
                item = next(batches)
            except StopIteration:
                return
        yield item


def _corrupted(path: str, cause: Exception) -> PaimonError:
    if "LogicalType that is not recognized" in str(cause):
        return UnsupportedError(
            f"{path or 'the data file'} has a column of a type, such as VARIANT of Spark, that pyarrow "
            f"{pa.__version__} does not know: upgrade pyarrow to version 21 or later"
        )
    return CorruptedError(f"{path or 'the data file'} is damaged or incomplete: {cause}")
