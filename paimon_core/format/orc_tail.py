"""The last bytes of an ORC file, checked before the C++ library reads them.

The library takes the size of a compressed block from the file as it is. A size of some exabytes ends the process.
"""

from typing import Any, Final

from pyarrow import orc

_FOOTER_LENGTH, _BLOCK_SIZE, _METADATA_LENGTH = 1, 3, 5
_MOST_BLOCK_SIZE: Final = 1 << 26
"""The largest size of a compressed block, in bytes: more than the three bytes of a block's header can hold."""

_TAIL_BYTES: Final = 1 << 14  # as many as the library reads next, so a read-ahead window has them


def open_orc(source: Any) -> Any:
    """Return the `pyarrow.orc.ORCFile` of an open file. Raises ValueError as `check_tail`, and the library's errors."""
    check_tail(source)
    return orc.ORCFile(source)


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


def _numbers(postscript: bytes) -> dict[int, int]:
    """Return the numbers of a message of Protocol Buffers by their ids. Raises ValueError for other bytes."""
    numbers, at = dict[int, int](), 0
    while at < len(postscript):
        key, at = _varint(postscript, at)
        match key & 7:
            case 0:
                numbers[key >> 3], at = _varint(postscript, at)
            case 2:
                length, at = _varint(postscript, at)
                at += length
            case 1 | 5:
                at += 8 if key & 7 == 1 else 4
            case kind:
                raise ValueError(f"a postscript with a field of the unknown kind {kind}")
    return numbers


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at == len(data):
            raise ValueError("a postscript that is cut off")
        value |= (data[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 0x80:
            return value, at
