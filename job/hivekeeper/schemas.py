"""Read back the schema texts of a Form: Parquet's message type and ORC's type description.

Pure. Raises SchemaTextError for a text that it does not understand; nothing is guessed. Column names are quoted unless they consist of
letters, digits and underscores, so that a name cannot be mistaken for a part of the schema.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Iterable, Iterator, List, Optional, Tuple

from hivekeeper.reasons import shorten

# Of what was not understood; the rest of a schema may have megabytes.
MOST_QUOTED = 100

PARQUET, ORC = "parquet", "orc"


class SchemaTextError(Exception):
    """A schema text is not in the form that the format's library prints; the message is the part that is not."""

    def __init__(self, part: str) -> None:
        super().__init__(shorten(part, MOST_QUOTED))


@dataclass(frozen=True)
class ParquetField:
    """A field of a Parquet schema. `physical` is `group`, `int32`, …, `fixed_len_byte_array(5)`."""

    name: str
    repetition: str
    physical: str
    annotation: str = ""
    field_id: Optional[int] = None
    children: Tuple[ParquetField, ...] = ()

    @property
    def leaves(self) -> Iterator[ParquetField]:
        """This field and all below it that are not groups."""
        if self.physical != "group":
            yield self
        for child in self.children:
            yield from child.leaves


@dataclass(frozen=True)
class OrcType:
    """A type of an ORC schema. `kind` is `struct`, `int`, `decimal(10,2)`, …; `names` are a struct's field names."""

    kind: str
    children: Tuple[OrcType, ...] = ()
    names: Tuple[str, ...] = ()

    @property
    def all(self) -> Iterator[OrcType]:
        yield self
        for child in self.children:
            yield from child.all


_PARQUET_LINE = re.compile(
    r" *(?P<repetition>optional|required|repeated) "
    r"(?P<physical>group|boolean|int32|int64|int96|float|double|binary|fixed_len_byte_array\(\d+\)) "
    r"(?P<name>[A-Za-z0-9_]+|\"[^\"\\]*(?:\\.[^\"\\]*)*\")"
    r"(?: \((?P<annotation>[A-Z][A-Z0-9_]*(?:\([^()]*\))?)\))?"
    r"(?: = (?P<id>\d+))?"
    r"(?P<end> \{|;)"
)


def parse_parquet(text: str) -> Tuple[ParquetField, ...]:
    """The top-level fields of a message type, in the text that ParquetFooters.java writes."""
    lines = text.split("\n")
    if lines[0] != "message schema {":
        raise SchemaTextError(lines[0])
    fields, rest = _parquet_fields(lines, 1)
    if rest != len(lines):
        raise SchemaTextError(lines[rest])
    return fields


def _parquet_fields(lines: List[str], at: int) -> Tuple[Tuple[ParquetField, ...], int]:
    """The fields up to the closing brace, and the index of the line after it."""
    fields: List[ParquetField] = []
    while at < len(lines) and lines[at].strip() != "}":
        match = _PARQUET_LINE.fullmatch(lines[at])
        if match is None or (match["physical"] == "group") != (match["end"] == " {"):
            raise SchemaTextError(lines[at].strip())
        at += 1
        children: Tuple[ParquetField, ...] = ()
        if match["physical"] == "group":
            children, at = _parquet_fields(lines, at)
        field_id = int(match["id"]) if match["id"] else None
        name = _parquet_name(match["name"])
        fields.append(ParquetField(name, match["repetition"], match["physical"], match["annotation"] or "", field_id, children))
    if at >= len(lines):
        raise SchemaTextError("the schema text ends too early")
    return tuple(fields), at + 1


def _parquet_name(text: str) -> str:
    """A name, as a JSON string if it is not plain."""
    if not text.startswith('"'):
        return text
    try:
        return str(json.loads(text))
    except ValueError as error:
        raise SchemaTextError(text) from error


def needs_legacy_decimals(leaves: Iterable[ParquetField]) -> bool:
    """Whether small decimals are fixed-length arrays, as Hive and Impala write them: Spark does so only in its legacy format."""
    return any(leaf.physical.startswith("fixed") and _precision(leaf) <= 18 for leaf in leaves)


def _precision(leaf: ParquetField) -> int:
    match = re.match(r"DECIMAL\((\d+),", leaf.annotation)
    return int(match[1]) if match else 99


def timestamp_encoding(leaf: ParquetField) -> str:
    """INT96, MICROS or MILLIS for a timestamp that is an instant; else empty. Spark always writes the others as micros."""
    if leaf.physical == "int96":
        return "INT96"
    match = re.fullmatch(r"TIMESTAMP\((MICROS|MILLIS),true\)", leaf.annotation)
    return match[1] if match else ""


_ORC_ATTRIBUTE = " /"
_ORC_TOKEN = re.compile(
    r"timestamp with local time zone"
    r"|[a-zA-Z0-9_]+(?:\(\d+(?:,\d+)?\))?"
    r"|`[^`]*(?:``[^`]*)*`"
    r"|[<>,:]"
)


def parse_orc(text: str) -> Tuple[OrcType, Tuple[str, ...]]:
    """The type of the whole file, and the attributes that follow it, each after ` /`; a name that contains this is quoted."""
    tokens: List[str] = []
    at = 0
    while at < len(text) and not text.startswith(_ORC_ATTRIBUTE, at):
        match = _ORC_TOKEN.match(text, at)
        if match is None:
            raise SchemaTextError(text[at:])
        tokens.append(match[0])
        at = match.end()
    parsed, rest = _orc_type(tokens, 0)
    if rest != len(tokens):
        raise SchemaTextError("".join(tokens[rest:]))
    return parsed, tuple(text[at:].split(_ORC_ATTRIBUTE)[1:])


def _orc_type(tokens: List[str], at: int) -> Tuple[OrcType, int]:
    kind = _token(tokens, at)
    at += 1
    if at >= len(tokens) or tokens[at] != "<":
        return OrcType(kind), at
    children: List[OrcType] = []
    names: List[str] = []
    at += 1
    while _token(tokens, at) != ">":
        if tokens[at] == ",":
            at += 1
        if kind == "struct":
            names.append(_unquote(_token(tokens, at)))
            if _token(tokens, at + 1) != ":":
                raise SchemaTextError("".join(tokens[at:]))
            at += 2
        child, at = _orc_type(tokens, at)
        children.append(child)
    return OrcType(kind, tuple(children), tuple(names)), at + 1


def _token(tokens: List[str], at: int) -> str:
    if at >= len(tokens):
        raise SchemaTextError("the schema text ends too early")
    return tokens[at]


def _unquote(name: str) -> str:
    return name[1:-1].replace("``", "`") if name.startswith("`") else name
