"""The part of Thrift's compact protocol that is needed to change a few integers in a Parquet footer.

Values keep their encoded form: integers are raw variable-length numbers, so an unchanged value is written as it was
read. See the protocol's own specification for the codes.

Written by hand: a Thrift library decodes by a schema and drops every field that is not in the schema, but a footer must
keep the fields of later Parquet versions.
"""

from dataclasses import dataclass, field
from typing import Any

_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)


@dataclass(slots=True)
class Struct:
    """A structure: its fields by id, each as (type code, value)."""

    fields: dict[int, tuple[int, Any]] = field(default_factory=dict)

    def get_int(self, field_id: int) -> int | None:
        """Return a signed integer field, or `None` if it is absent."""
        if field_id not in self.fields:
            return None
        raw: int = self.fields[field_id][1]
        return (raw >> 1) ^ -(raw & 1)

    def set_int(self, field_id: int, value: int) -> None:
        """Set a 32-bit integer field."""
        self.fields[field_id] = (_I32, (value << 1) ^ (value >> 63))

    def drop(self, field_id: int) -> None:
        """Remove a field if it is present."""
        self.fields.pop(field_id, None)

    def struct(self, field_id: int) -> "Struct":
        """Return a field that is a structure; an empty structure if the field is absent."""
        value = self.fields.get(field_id, (_STRUCT, None))[1]
        return value if isinstance(value, Struct) else Struct()

    def structs(self, field_id: int) -> list["Struct"]:
        """Return a field that is a list of structures; an empty list if the field is absent."""
        value = self.fields.get(field_id, (_LIST, (_STRUCT, [])))[1]
        return [item for item in value[1] if isinstance(item, Struct)]


def decode(data: bytes) -> Struct:
    """Return the structure at the beginning of the bytes. Raises IndexError or ValueError for other bytes."""
    return _Reader(data).struct()


def encode(value: Struct) -> bytes:
    """Return the bytes of a structure."""
    out = bytearray()
    _write_struct(out, value)
    return bytes(out)


class _Reader:
    """A decoder of the values in bytes, one after another."""

    def __init__(self, data: bytes) -> None:
        self._data, self._offset = data, 0

    def _byte(self) -> int:
        self._offset += 1
        return self._data[self._offset - 1]

    def _raw(self, size: int) -> bytes:
        self._offset += size
        if self._offset > len(self._data):
            raise ValueError("a Thrift value extends beyond the end")
        return self._data[self._offset - size : self._offset]

    def _number(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    def struct(self) -> Struct:
        result, last = Struct(), 0
        while (head := self._byte()) != 0:
            kind, step = head & 0x0F, head >> 4
            if step:
                last += step
            else:
                raw = self._number()
                last = (raw >> 1) ^ -(raw & 1)
            result.fields[last] = (kind, None if kind in (_TRUE, _FALSE) else self._value(kind))
        return result

    def _value(self, kind: int) -> Any:
        if kind in (_TRUE, _FALSE, _BYTE):  # a boolean inside a list is a byte
            return self._raw(1)
        if kind in (_I16, _I32, _I64):
            return self._number()
        if kind == _DOUBLE:
            return self._raw(8)
        if kind == _BINARY:
            return self._raw(self._number())
        if kind in (_LIST, _SET):
            head = self._byte()
            count = head >> 4 if head >> 4 < 15 else self._number()
            return head & 0x0F, [self._value(head & 0x0F) for _ in range(count)]
        if kind == _STRUCT:
            return self.struct()
        raise ValueError(f"a Thrift value of kind {kind} is not expected in a footer")


def _write_number(out: bytearray, value: int) -> None:
    while value > 0x7F:
        out.append((value & 0x7F) | 0x80)
        value >>= 7
    out.append(value)


def _write_struct(out: bytearray, value: Struct) -> None:
    last = 0
    for field_id, (kind, item) in sorted(value.fields.items()):
        step = field_id - last
        if 0 < step < 16:
            out.append(step << 4 | kind)
        else:
            out.append(kind)
            _write_number(out, (field_id << 1) ^ (field_id >> 63))
        last = field_id
        if kind not in (_TRUE, _FALSE):
            _write_value(out, kind, item)
    out.append(0)


def _write_value(out: bytearray, kind: int, value: Any) -> None:
    if kind in (_I16, _I32, _I64):
        _write_number(out, value)
    elif kind == _BINARY:
        _write_number(out, len(value))
        out += value
    elif kind in (_LIST, _SET):
        inner, items = value
        out.append(min(len(items), 15) << 4 | inner)
        if len(items) >= 15:
            _write_number(out, len(items))
        for item in items:
            _write_value(out, inner, item)
    elif kind == _STRUCT:
        _write_struct(out, value)
    else:
        out += value
