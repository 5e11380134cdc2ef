"""How the text of a setting is read: sizes, times, numbers, choices.

Pure. Each kind knows what it allows, in words, and raises ValueError for anything else; it never guesses.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Callable, Sequence, Union

UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40, "p": 2**50}
SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


@dataclass(frozen=True)
class Kind:
    """How one kind of value is read, and the words for what is allowed."""

    allowed: str
    parse: Callable[[str], Any]
    is_list: bool = False

    def read(self, raw: Union[str, Sequence[str]]) -> Any:
        """The value of a text, or of a list of texts where the kind is a list."""
        if self.is_list:
            parts = raw.split(",") if isinstance(raw, str) else raw
            return tuple(self.parse(part.strip()) for part in parts if part.strip())
        if not isinstance(raw, str):
            raise ValueError(raw)
        return self.parse(raw.strip())


def parse_size(text: str) -> int:
    """Bytes of `1024`, `512m`, `8 GB`, `2TiB`; units are powers of 1024."""
    match = _match(r"(\d+)\s*([kmgtp]?)(?:i?b)?", text.lower())
    return int(match[1]) * UNITS[match[2]]


def parse_duration(text: str) -> int:
    """Seconds of `90s`, `15m`, `4h`, `7d`. Only zero needs no unit."""
    if text == "0":
        return 0
    match = _match(r"(\d+)\s*([smhd])", text.lower())
    return int(match[1]) * SECONDS[match[2]]


def parse_flag(text: str) -> bool:
    word = text.lower()
    if word not in ("true", "yes", "on", "false", "no", "off"):
        raise ValueError(text)
    return word in ("true", "yes", "on")


def optional(kind: Kind) -> Kind:
    """The same, where an empty text takes a value of a lower layer away."""
    return Kind(f"{kind.allowed}, or nothing", lambda text: kind.parse(text) if text else None, kind.is_list)


def choice(*words: str) -> Kind:
    def parse(text: str) -> str:
        if text.lower() not in words:
            raise ValueError(text)
        return text.lower()

    return Kind(", ".join(words), parse)


def _match(pattern: str, text: str) -> re.Match[str]:
    match = re.fullmatch(pattern, text, re.ASCII)
    if match is None:
        raise ValueError(text)
    return match


def _parse_count(text: str) -> int:
    number = int(_match(r"\d+", text)[0])
    if number < 1:
        raise ValueError(text)
    return number


def _parse_whole(text: str) -> int:
    return int(_match(r"\d+", text)[0])


def _parse_ratio(text: str) -> float:
    number = float(_match(r"\d+(\.\d+)?", text)[0])
    if number < 1:
        raise ValueError(text)
    return number


def _parse_positive_size(text: str) -> int:
    size = parse_size(text)
    if size < 1:
        raise ValueError(text)
    return size


def _parse_text(text: str) -> str:
    if not text or not text.isprintable():
        raise ValueError(text)
    return text


def _parse_property(text: str) -> str:
    if "\0" in text:
        raise ValueError(text)
    return text


def _pattern(allowed: str, pattern: str, is_list: bool = False) -> Kind:
    return Kind(allowed, lambda text: _match(pattern, text)[0], is_list)


COUNT = Kind("a whole number, 1 or more", _parse_count)
WHOLE = Kind("a whole number, 0 or more", _parse_whole)
RATIO = Kind("a number, 1 or more", _parse_ratio)
SIZE = Kind("a size such as 512m, 8g or 2TB", _parse_positive_size)
DURATION = Kind("a time such as 90s, 15m, 4h or 7d", parse_duration)
FLAG = Kind("true or false", parse_flag)
TEXT = Kind("a text of one line", _parse_text)
PROPERTY = Kind("a text", _parse_property)
NAME = _pattern("letters, digits and _, not beginning with a digit", r"[A-Za-z_]\w*")
MEMORY = _pattern("a size as Spark writes it, such as 512m or 4g", r"[1-9]\d*[kmgtKMGT][bB]?")
MASTER = _pattern("local, local[N], local[*] or yarn", r"local|local\[(?:[1-9]\d*|\*)\]|yarn")
CODEC = choice("source", "table", "none", "uncompressed", "snappy", "gzip", "zlib", "zstd", "lz4", "lz4_raw")
WORDS = Kind("a list of words", _parse_text, is_list=True)
