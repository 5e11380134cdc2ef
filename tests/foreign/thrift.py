"""Thrift's compact protocol, as far as Parquet's footers need it: any struct read and written back, unknown fields included.

A struct is {field id: (kind, value)}. A value is a number, a bool, bytes, a struct, or for a list (kind of its elements, [values]).
"""

from __future__ import annotations

from typing import Any, Dict, List, Tuple

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)
DOUBLE_SIZE = 8
SHORT_LIST, SHORT_STEP = 15, 15

Struct = Dict[int, Tuple[int, Any]]


class Reader:
    def __init__(self, content: bytes) -> None:
        self._content, self._at = content, 0

    def struct(self) -> Struct:
        fields: Struct = {}
        number = 0
        while True:
            head = self._byte()
            if head == 0:
                return fields
            kind, step = head & 0x0F, head >> 4
            number = number + step if step else self._signed()
            fields[number] = (kind, kind == TRUE) if kind in (TRUE, FALSE) else (kind, self._value(kind))

    def _value(self, kind: int) -> Any:
        if kind in (I16, I32, I64):
            return self._signed()
        if kind == STRUCT:
            return self.struct()
        if kind == BINARY:
            return self._take(self._unsigned())
        if kind in (LIST, SET):
            return self._list()
        if kind == DOUBLE:
            return self._take(DOUBLE_SIZE)
        if kind in (TRUE, FALSE, BYTE):
            return self._byte()
        raise ValueError(f"a footer holds a field of the kind {kind}")

    def _list(self) -> Tuple[int, List[Any]]:
        head = self._byte()
        size = head >> 4 if head >> 4 != SHORT_LIST else self._unsigned()
        return head & 0x0F, [self._value(head & 0x0F) for _ in range(size)]

    def _byte(self) -> int:
        return self._take(1)[0]

    def _take(self, size: int) -> bytes:
        self._at += size
        return self._content[self._at - size : self._at]

    def _unsigned(self) -> int:
        shift = number = 0
        while True:
            byte = self._byte()
            number |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return number

    def _signed(self) -> int:
        number = self._unsigned()
        return number >> 1 ^ -(number & 1)


def read_struct(content: bytes) -> Struct:
    return Reader(content).struct()


def write_struct(fields: Struct) -> bytes:
    out, before = b"", 0
    for number, (kind, value) in sorted(fields.items()):
        if kind in (TRUE, FALSE):
            out += _head(number, before, TRUE if value else FALSE)
        else:
            out += _head(number, before, kind) + _value(kind, value)
        before = number
    return out + b"\0"


def _head(number: int, before: int, kind: int) -> bytes:
    step = number - before
    return bytes([step << 4 | kind]) if 0 < step <= SHORT_STEP else bytes([kind]) + _signed(number)


def _value(kind: int, value: Any) -> bytes:
    if kind in (I16, I32, I64):
        return _signed(value)
    if kind == STRUCT:
        return write_struct(value)
    if kind == BINARY:
        return _unsigned(len(value)) + bytes(value)
    if kind in (LIST, SET):
        return _list(*value)
    return bytes(value) if kind == DOUBLE else bytes([value])


def _list(kind: int, values: List[Any]) -> bytes:
    size = len(values)
    head = bytes([size << 4 | kind]) if size < SHORT_LIST else bytes([SHORT_LIST << 4 | kind]) + _unsigned(size)
    return head + b"".join(_value(kind, value) for value in values)


def _unsigned(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def _signed(number: int) -> bytes:
    return _unsigned(number << 1 if number >= 0 else (-number << 1) - 1)
