"""Reads and writes the text of settings: sizes, times, numbers, choices.

Pure. Each type describes what it allows, and raises ValueError for anything else; it never guesses.
Inside the program sizes are bytes and times are milliseconds.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, Callable, Mapping, Optional, Sequence, Union

from hivekeeper.config.codecs import list_codecs

SIZES = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40, "p": 2**50}
TIMES_MS = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}

MIB = 2**20

# What a long of Java holds: Spark and HDFS take no larger number, and a record of ours that has one is not read again.
MOST = 2**63 - 1


def _write_plain(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


@dataclass(frozen=True)
class ValueType:
    """How values of one type are read and written, a description of what is allowed, and the program's unit."""

    allowed: str
    parse: Callable[[str], Any]
    write_one: Callable[[Any], str] = _write_plain
    unit: str = ""
    is_list: bool = False

    def read(self, raw: Union[str, Sequence[str]]) -> Any:
        """The value of a text, or of a list of texts if the type is a list. Raises ValueError."""
        if self.is_list:
            parts = raw.split(",") if isinstance(raw, str) else raw
            return tuple(self.parse(part.strip()) for part in parts if part.strip())
        if not isinstance(raw, str):
            raise ValueError(raw)
        return self.parse(raw.strip())

    def write(self, value: Any) -> str:
        """The text of a value as in a configuration file; "" for None."""
        if value is None:
            return ""
        return ", ".join(map(self.write_one, value)) if self.is_list else self.write_one(value)


def parse_size(text: str) -> int:
    """Bytes of `1024`, `512m`, `8 GB`, `2TiB`; units are powers of 1024."""
    match = _match(r"(\d+)\s*([kmgtp]?)(?:i?b)?", text.lower())
    return _bounded(int(match[1]) * SIZES[match[2]], text)


def write_size(size: int) -> str:
    return _write_in_units(size, SIZES)


def parse_duration(text: str) -> int:
    """Milliseconds of `90s`, `15m`, `4h`, `7d`. Only zero needs no unit."""
    if text == "0":
        return 0
    match = _match(r"(\d+)\s*([smhd])", text.lower())
    return _bounded(int(match[1]) * TIMES_MS[match[2]], text)


def parse_expiry(text: str) -> Optional[int]:
    """Milliseconds of `500ms`, `12h`, `30d`; None, never, for nothing, zero and negative times."""
    match = _match(r"(-?\d+)\s*(ms|[smhd])?", text.lower()) if text else None
    if match is None or int(match[1]) <= 0:
        return None
    if match[2] is None:
        raise ValueError(text)
    return _bounded(int(match[1]) * {"ms": 1, **TIMES_MS}[match[2]], text)


def write_expiry(duration_ms: int) -> str:
    return _write_in_units(duration_ms, {"ms": 1, **TIMES_MS})


def write_duration(duration_ms: int) -> str:
    return _write_in_units(duration_ms, TIMES_MS) if duration_ms else "0s"


def _write_in_units(value: int, units: Mapping[str, int]) -> str:
    """The value in the largest unit that divides it evenly."""
    name, length = max((unit for unit in units.items() if value and value % unit[1] == 0), key=lambda unit: unit[1], default=("", 1))
    return f"{value // length}{name}"


def parse_flag(text: str) -> bool:
    word = text.lower()
    if word not in ("true", "yes", "on", "false", "no", "off"):
        raise ValueError(text)
    return word in ("true", "yes", "on")


def optional(of: ValueType) -> ValueType:
    """The same type, but an empty text removes the value of a lower layer."""
    return replace(of, allowed=f"{of.allowed}, or nothing", parse=lambda text: of.parse(text) if text else None)


def choice(*words: str) -> ValueType:
    def parse(text: str) -> str:
        if text.lower() not in words:
            raise ValueError(text)
        return text.lower()

    return ValueType(", ".join(words), parse)


def _match(pattern: str, text: str) -> re.Match[str]:
    match = re.fullmatch(pattern, text, re.ASCII)
    if match is None:
        raise ValueError(text)
    return match


def _at_least(least: int, parse: Callable[[str], int]) -> Callable[[str], int]:
    def checked(text: str) -> int:
        value = parse(text)
        if value < least:
            raise ValueError(text)
        return value

    return checked


def _parse_whole(text: str) -> int:
    return _bounded(int(_match(r"\d+", text)[0]), text)


def _bounded(value: int, text: str) -> int:
    if value > MOST:
        raise ValueError(text)
    return value


def _parse_ratio(text: str) -> float:
    number = float(_match(r"\d+(\.\d+)?", text)[0])
    if number < 1:
        raise ValueError(text)
    return number


def _parse_text(text: str) -> str:
    if not text or not text.isprintable():
        raise ValueError(text)
    return text


def _parse_property(text: str) -> str:
    if "\0" in text:
        raise ValueError(text)
    return text


def _pattern(allowed: str, pattern: str) -> ValueType:
    return ValueType(allowed, lambda text: _match(pattern, text)[0])


def _size(allowed: str, least: int) -> ValueType:
    return ValueType(allowed, _at_least(least, parse_size), write_size, "bytes")


COUNT = ValueType("a whole number, 1 or more", _at_least(1, _parse_whole))
WHOLE = ValueType("a whole number, 0 or more", _parse_whole)
RATIO = ValueType("a number, 1 or more", _parse_ratio, lambda ratio: f"{ratio:g}")
SIZE = _size("a size such as 512m, 8g or 2TB", 1)
# A plain number would be bytes: 256 is refused, so that nobody gets files of 256 bytes.
BLOCK_SIZE = _size("a size of 1m or more, such as 128m", MIB)
MEBIBYTES = ValueType("a whole number of MiB, 1 or more", lambda text: COUNT.parse(text) * MIB, write_size, "bytes")
DURATION = ValueType("a time such as 90s, 15m, 4h or 7d", parse_duration, write_duration, "ms")
# A rule that is set and keeps nothing would look like one that does.
PERIOD = replace(DURATION, allowed="a time such as 90s, 15m, 4h or 7d, not 0", parse=_at_least(1, parse_duration))
# At least a day, longer than a writer's job runs: anything younger may belong to a running writer.
DAYS = replace(DURATION, allowed="a time of 1d or more, such as 7d", parse=_at_least(TIMES_MS["d"], parse_duration))
EXPIRY = ValueType("a time such as 500ms, 12h or 30d; nothing, 0 or a negative time for never", parse_expiry, write_expiry, "ms")
FLAG = ValueType("true or false", parse_flag)
TEXT = ValueType("a text of one line", _parse_text)
PROPERTY = ValueType("a text", _parse_property)
# Joined to a directory, it leads to one in it.
DIRECTORY = _pattern("the name of a directory", r"(?!\.\.?$)[^/\s:]+")
NAME = _pattern("letters, digits and _, not beginning with a digit", r"[A-Za-z_]\w*")
MEMORY = _pattern("a size as Spark writes it, such as 512m or 4g", r"[1-9]\d*[kmgtKMGT][bB]?")
MASTER = _pattern("local, local[N], local[*] or yarn", r"local|local\[(?:[1-9]\d*|\*)\]|yarn")
CODEC = choice("source", "table", *list_codecs())
WORDS = replace(TEXT, allowed="a list of words", is_list=True)
