"""The last bytes of an ORC file, checked before the C++ libraries rely on them.

Some numbers end the process: the ORC library takes the size of a compressed block as it is, even some exabytes, and
Arrow aborts for a decimal of more than 38 digits. Apache ORC defines the messages in `orc_proto.proto`.
"""

from collections.abc import Iterator
from typing import Any, Final

from pyarrow import orc

_FOOTER_LENGTH, _BLOCK_SIZE, _METADATA_LENGTH = 1, 3, 5
_FOOTER = 2
_TYPES = 4
_KIND, _PRECISION = 1, 5
_DECIMAL, _MOST_DIGITS = 14, 38
_MOST_BLOCK_SIZE: Final = 1 << 26
"""The largest size of a compressed block, in bytes: more than the three bytes of a block's header can hold."""

_TAIL_BYTES: Final = 1 << 14  # as many as the library reads next, so a read-ahead window has them


def open_orc(source: Any) -> Any:
    """Return the `pyarrow.orc.ORCFile` of an open file.

    Raises ValueError as `check_tail`, ValueError for a decimal of more than 38 digits, and the library's errors.
    """
    check_tail(source)
    file = orc.ORCFile(source)
    _check_types(bytes(file.reader.serialized_file_tail()))
    return file


def check_tail(source: Any) -> None:
    """Raise ValueError for a file whose tail has lengths that it cannot have. ``source``: a seekable file."""
    end = source.seek(0, 2)
    source.seek(max(0, end - _TAIL_BYTES))
    tail = source.read(_TAIL_BYTES)
    source.seek(0)
    size = tail[-1] if tail else 0
    numbers = _numbers(bytes(tail[-1 - size : -1]))
    if numbers.get(_BLOCK_SIZE, 0) > _MOST_BLOCK_SIZE:
        raise ValueError(f"a compressed block of {numbers[_BLOCK_SIZE]} bytes")
    if numbers.get(_FOOTER_LENGTH, 0) + numbers.get(_METADATA_LENGTH, 0) > end:
        raise ValueError(f"a footer that is longer than the {end} bytes of the file")


def _check_types(tail: bytes) -> None:
    """Raise ValueError for a file that has decimals of more than 38 digits. ``tail``: a message `FileTail`."""
    footers = (value for field, value in _fields(tail) if field == _FOOTER and isinstance(value, bytes))
    types = {value for footer in footers for field, value in _fields(footer) if field == _TYPES}
    for stored in types:  # columns of the same type have equal bytes
        numbers = _numbers(stored) if isinstance(stored, bytes) else {}
        if numbers.get(_KIND) == _DECIMAL and numbers.get(_PRECISION, 0) > _MOST_DIGITS:
            raise ValueError(f"a decimal of {numbers[_PRECISION]} digits, more than {_MOST_DIGITS}")


def _numbers(message: bytes) -> dict[int, int]:
    """Return the numbers of a message of Protocol Buffers by their ids. Raises ValueError for other bytes."""
    return {field: value for field, value in _fields(message) if isinstance(value, int)}


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield the ids and values of a message of Protocol Buffers. Raises ValueError for other bytes."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        match key & 7:
            case 0:
                value, at = _varint(message, at)
                yield key >> 3, value
            case 2:
                length, at = _varint(message, at)
                yield key >> 3, message[at : at + length]
                at += length
            case 1 | 5:
                at += 8 if key & 7 == 1 else 4
            case kind:
                raise ValueError(f"a field of the unknown kind {kind} in the last bytes of the file")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    if at < len(data) and data[at] < 0x80:  # most of them
        return data[at], at + 1
    value = shift = 0
    while True:
        if at == len(data):
            raise ValueError("the last bytes of the file are cut off")
        value |= (data[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 0x80:
            return value, at
