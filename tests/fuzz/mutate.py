"""Changes of inputs that keep their structure: JSON, records and blocks of Avro, checksums, words of texts."""

import io
import json
import random
import struct
import zlib
from collections.abc import Callable, Sequence
from typing import Any

from paimon_core.fileindex.index_file import pack
from paimon_core.format.avro_container import Container, ContainerWriter, encode_long
from paimon_core.format.codec import avro_codec
from tests.support.avro import read_avro
from tests.support.index_files import unpack

MAX_BYTES = 1 << 15
"""The size that no mutation exceeds, unless a seed is larger."""
NUMBERS = (0, 1, 2, 3, 7, 8, 16, 127, 128, 255, 256, 4096, 2**15, 2**16, 2**24, 2**31 - 1, 2**31, 2**32 - 1, 2**32)
NUMBERS += (
    2**53,
    2**62,
    2**63 - 1,
    2**63,
    2**64 - 1,
    2**64,
    10**30,
    *(-n - 1 for n in (0, 1, 127, 2**31 - 1, 2**63 - 1)),
)
TEXTS = (
    "",
    " ",
    "..",
    "../../x",
    "/etc/passwd",
    "a/b",
    "\0",
    "\ud800",
    "ä",
    "-1",
    "NULL",
    "1e400",
    "x" * 300,
    "$",
    "`",
)
VALUES = (None, True, False, 0.5, 1e308, float("inf"), float("nan"), [], {}, [[]], [None], {"type": "INT"}, {"": {}})

Mutator = Callable[[bytes, random.Random, Sequence[bytes]], bytes]


# ---- bytes


def of_bytes(data: bytes, rng: random.Random, others: Sequence[bytes]) -> bytes:
    """Change some bytes: bits, numbers of all widths, cuts, repeats, and pieces of another input."""
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        _BYTE_CHANGES[rng.randrange(len(_BYTE_CHANGES))](out, rng, others)
    return bytes(out)


def _flip(out: bytearray, rng: random.Random, others: Sequence[bytes]) -> None:
    if out:
        out[rng.randrange(len(out))] ^= 1 << rng.randrange(8)


def _set_byte(out: bytearray, rng: random.Random, others: Sequence[bytes]) -> None:
    if out:
        out[rng.randrange(len(out))] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))


def _set_number(out: bytearray, rng: random.Random, others: Sequence[bytes]) -> None:
    width = rng.choice((1, 2, 4, 4, 4, 8))
    if len(out) >= width:
        at = rng.randrange(len(out) - width + 1)
        number = rng.choice(NUMBERS) & (256**width - 1)
        out[at : at + width] = number.to_bytes(width, rng.choice(("big", "little")))


def _add_to_number(out: bytearray, rng: random.Random, others: Sequence[bytes]) -> None:
    width, order = rng.choice((1, 2, 4)), rng.choice(("big", "little"))
    if len(out) >= width:
        at = rng.randrange(len(out) - width + 1)
        number = int.from_bytes(out[at : at + width], order) + rng.choice((-2, -1, 1, 2, 16))
        out[at : at + width] = (number & (256**width - 1)).to_bytes(width, order)


def _set_varint(out: bytearray, rng: random.Random, others: Sequence[bytes]) -> None:
    at = rng.randrange(len(out) + 1)
    number = max(-(2**63), min(2**63 - 1, rng.choice(NUMBERS)))
    out[at : at + rng.randrange(3)] = encode_long(number)


def _cut(out: bytearray, rng: random.Random, others: Sequence[bytes]) -> None:
    at = rng.randrange(len(out) + 1)
    del out[at : at + rng.choice((1, 2, 4, 8, len(out)))]


def _insert(out: bytearray, rng: random.Random, others: Sequence[bytes]) -> None:
    at = rng.randrange(len(out) + 1)
    out[at:at] = rng.randbytes(rng.choice((1, 2, 4, 8, 32)))


def _repeat(out: bytearray, rng: random.Random, others: Sequence[bytes]) -> None:
    at = rng.randrange(len(out) + 1)
    piece = out[at : at + rng.choice((1, 4, 8, 64))]
    out[at:at] = piece * rng.choice((1, 1, 2, 16))


def _splice(out: bytearray, rng: random.Random, others: Sequence[bytes]) -> None:
    other = rng.choice(others) if others else b""
    start, at = rng.randrange(len(other) + 1), rng.randrange(len(out) + 1)
    piece = other[start : start + rng.choice((1, 4, 16, 256, len(other)))]
    out[at : at + rng.choice((0, len(piece)))] = piece


_BYTE_CHANGES = (
    _flip,
    _set_byte,
    _set_number,
    _set_number,
    _add_to_number,
    _set_varint,
    _cut,
    _insert,
    _repeat,
    _splice,
)


# ---- JSON and texts


def of_json(data: bytes, rng: random.Random, others: Sequence[bytes]) -> bytes:
    """Change a value, a key or the nesting of a JSON document; now and then its bytes."""
    if rng.random() < 0.1:
        return of_bytes(data, rng, others)
    try:
        document = json.loads(data)
        for _ in range(rng.choice((1, 1, 2, 4))):
            document = changed_value(document, rng)
        if rng.random() < 0.01:
            return b"[" * 30_000 + b"]" * 2
        return json.dumps(document, ensure_ascii=rng.random() < 0.5).encode("utf-8", "surrogatepass")
    except (ValueError, RecursionError):
        return of_bytes(data, rng, others)


def changed_value(document: Any, rng: random.Random) -> Any:
    """Return a JSON value with one change at a random depth."""
    if isinstance(document, dict) and document and rng.random() < 0.85:
        key = rng.choice(list(document))
        match rng.randrange(12):
            case 0:
                return {k: v for k, v in document.items() if k != key}
            case 1:
                return {(rng.choice(TEXTS) if k == key else k): v for k, v in document.items()}
            case 2:
                return {**document, key: document[rng.choice(list(document))]}
        return {**document, key: changed_value(document[key], rng)}
    if isinstance(document, list) and document and rng.random() < 0.85:
        at = rng.randrange(len(document))
        match rng.randrange(10):
            case 0:
                return document[:at] + document[at + 1 :]
            case 1:
                return document[:at] + document[at : at + 1] * 2 + document[at + 1 :]
        return [*document[:at], changed_value(document[at], rng), *document[at + 1 :]]
    if isinstance(document, str) and rng.random() < 0.5:
        return changed_text(document, rng, ())
    if isinstance(document, int) and rng.random() < 0.5:
        return document + rng.choice((-1, 1, 2**31, -document, -1 - 2 * document))
    return rng.choice((rng.choice(NUMBERS), rng.choice(TEXTS), rng.choice(VALUES), {"a": document}, [document]))


def changed_text(text: str, rng: random.Random, tokens: Sequence[str]) -> str:
    """Return a text with a part cut, repeated or replaced by a word, a number or a sign."""
    low = rng.randrange(len(text) + 1)
    high = min(len(text), low + rng.choice((0, 1, 2, 5, len(text))))
    words = (*tokens, *tokens, *TEXTS, *map(str, NUMBERS), *"()[]{}<>,;'\"`\\=*%.-:", text[low:high] * 2, "(" * 200)
    return text[:low] + rng.choice(("", " ")) + rng.choice(words) + rng.choice(("", " ")) + text[high:]


def of_text(data: bytes, rng: random.Random, others: Sequence[bytes], tokens: Sequence[str] = ()) -> bytes:
    """Change the words of a text; now and then its bytes."""
    if rng.random() < 0.1:
        return of_bytes(data, rng, others)
    text = data.decode("utf-8", "replace")
    for _ in range(rng.choice((1, 1, 2, 3))):
        text = changed_text(text, rng, tokens)
    return text.encode("utf-8", "surrogatepass")


# ---- Avro


def of_avro(data: bytes, rng: random.Random, others: Sequence[bytes]) -> bytes:
    """Change values, the schema, the blocks or the bytes of an Avro container, which stays one if possible."""
    kind = rng.random()
    if kind < 0.25:
        return of_bytes(data, rng, others)
    try:
        if kind < 0.7:
            return _with_other_records(data, rng)
        return _with_other_frame(data, rng, others, schema=kind < 0.85)
    except Exception:
        return of_bytes(data, rng, others)


def _with_other_records(data: bytes, rng: random.Random) -> bytes:
    schema, records = read_avro(data)
    at = rng.randrange(len(records))
    records[at] = _changed_leaf(records[at], rng)
    if rng.random() < 0.1:
        records *= rng.choice((2, 70))
    sink = io.BytesIO()
    ContainerWriter(sink, schema, avro_codec(rng.choice(("none", "zstd", "snappy"))), 1).write(records)
    return sink.getvalue()


def _changed_leaf(value: Any, rng: random.Random) -> Any:
    """Return an Avro value with one leaf changed to another value of the same type."""
    if isinstance(value, dict) and value:
        key = rng.choice(list(value))
        return {**value, key: _changed_leaf(value[key], rng)}
    if isinstance(value, list) and value:
        at = rng.randrange(len(value))
        return [*value[:at], _changed_leaf(value[at], rng), *value[at + 1 :]] if rng.random() < 0.8 else value * 2
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return max(-(2**63), min(2**63 - 1, rng.choice((*NUMBERS, value + 1, value - 1, -value))))
    if isinstance(value, str):
        return rng.choice((*TEXTS, changed_text(value, rng, ()))).encode("utf-8", "replace").decode()
    if isinstance(value, bytes):
        return of_bytes(value, rng, (value,))
    return rng.choice((None, None, 0, [], "x", b"", {}))


def _with_other_frame(data: bytes, rng: random.Random, others: Sequence[bytes], *, schema: bool) -> bytes:
    container = Container(io.BytesIO(data))
    blocks, text = list(container.blocks()), container.header.schema
    sink = io.BytesIO()
    codec = rng.choice(("null", "deflate", "zstandard", "snappy"))
    writer = ContainerWriter(sink, "null", codec, 1)
    text = json.dumps(changed_value(text, rng) if schema else text).encode()
    head = sink.getvalue().replace(b'"null"', text, 1)
    head = head.replace(b"avro.schema" + encode_long(6), b"avro.schema" + encode_long(len(text)), 1)
    out = [head]
    for count, content in blocks:
        if not schema:
            content = of_bytes(content, rng, (content,))
            count = rng.choice((count, count, count, count + 1, 0, -1, 2**40))
        packed = writer._compress(content, 1)
        out += [encode_long(count), encode_long(len(packed)), packed, writer._sync]
    return b"".join(out)


# ---- checksums and containers


def of_vector(data: bytes, rng: random.Random, others: Sequence[bytes]) -> bytes:
    """Change the bitmap of a deletion vector (format 8.3), and correct its length and checksum."""
    if rng.random() < 0.1 or len(data) < 9:
        return of_bytes(data, rng, others)
    body = data[4:-4]
    body = body[:4] + of_bytes(body[4:], rng, others) if rng.random() < 0.9 else of_bytes(body, rng, others)
    return struct.pack(">i", len(body)) + body + struct.pack(">I", zlib.crc32(body))


def of_index(data: bytes, rng: random.Random, others: Sequence[bytes]) -> bytes:
    """Change the body of one index of a container (format 9.2), whose head stays right."""
    if rng.random() < 0.3:
        return of_bytes(data, rng, others)
    try:
        indexes = unpack(data, "")
        column = rng.choice(list(indexes))
        kind = rng.choice(list(indexes[column]))
        return pack({**indexes, column: {**indexes[column], kind: of_bytes(indexes[column][kind], rng, others)}})
    except Exception:
        return of_bytes(data, rng, others)


def of_selected(data: bytes, rng: random.Random, others: Sequence[bytes]) -> bytes:
    """Change the bytes behind the first one, which selects a type, and now and then the first one."""
    head = data[:1] if rng.random() < 0.9 else bytes([rng.randrange(32)])
    return head + of_bytes(data[1:], rng, others)


SHAPES: dict[str, Mutator] = {
    "bytes": of_bytes,
    "json": of_json,
    "text": of_text,
    "avro": of_avro,
    "vector": of_vector,
    "index": of_index,
    "selected": of_selected,
}
