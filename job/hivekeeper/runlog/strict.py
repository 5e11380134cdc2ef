"""Reads the JSON of our records strictly: checks every type, range and size, and accepts nothing that we do not write.

Pure. Anyone who may write to a table may write below its control directory, while Hivekeeper runs with rights on all tables: a record is
evidence, not an order. Raises ForeignRecord for anything else; it names the file, the field and the reason.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, Dict, FrozenSet, Iterable, Iterator, List, NoReturn, Optional, Pattern, Tuple, Union

from hivekeeper import names

# The range of numbers in the log and the file system.
LOWEST, HIGHEST = -(2**63), 2**63 - 1

MOST_DIGITS = 20
MOST_WORD = 4096
MOST_TEXT = 2**24
# A run's log line about a million units, at about 250 characters each.
MOST_LINE = 2**28
MOST_ITEMS = 100_000
MOST_DEPTH = 4
LONG_TEXT = 2**20
_ALL_DIGITS_AS_ONE = bytes.maketrans(b"123456789", b"000000000")
# With a sign, one digit fewer is allowed.
_LONG_NUMBER = b"0" * MOST_DIGITS

# Half of a surrogate pair, escaped or literal.
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]|[\ud800-\udfff]")


class UnreadableRecord(Exception):
    """A record that cannot be read; the message says which and why."""


class ForeignRecord(UnreadableRecord):
    """A record that we did not write."""


class NewerRecord(UnreadableRecord):
    """A record in a format of a newer version that this one does not know."""


class _StrangeError(ValueError):
    """Valid JSON that we never write."""


def parse(text: str, where: str) -> Any:
    """Parse a JSON text; `where` names its file. Raises UnreadableRecord, ForeignRecord."""
    try:
        found = (_STRICT if _may_have_long_number(text) else _QUICK).decode(text)
        if ("\\u" in text or not text.isascii()) and _SURROGATE.search(text):
            _refuse_surrogates(found)
        return found
    except _StrangeError as strange:
        raise foreign(where, "", str(strange)) from strange
    except RecursionError as error:
        raise foreign(where, "", "it is nested too deeply") from error
    except MemoryError as error:
        raise UnreadableRecord(f"{where} cannot be read (it is too large)") from error
    except ValueError as error:
        raise UnreadableRecord(f"{where} cannot be read ({error})") from error


def lines_of(pieces: Iterable[str], where: str) -> Iterator[str]:
    """The lines of a text given in pieces. Only a line feed ends one: JSON strings may contain what Python takes for others."""
    begun: List[str] = []
    length = 0
    for piece in pieces:
        *whole, last = piece.split("\n")
        for line in whole:
            yield "".join([*begun, line])
            begun, length = [], 0
        begun.append(last)
        length += len(last)
        if length > MOST_LINE:
            raise foreign(where, "", f"a line has more than {MOST_LINE} characters")
    yield "".join(begun)


def foreign(where: str, field: str, why: str) -> ForeignRecord:
    return ForeignRecord(f"{where} is not what Hivekeeper writes: {field + ': ' if field else ''}{why}")


def _object(pairs: List[Tuple[str, Any]]) -> Dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _StrangeError("a key stands twice in one object")
    return found


def _whole(text: str) -> int:
    # Python's conversion takes time quadratic in the number of digits.
    if len(text) > MOST_DIGITS:
        raise _StrangeError(f"a number of {len(text)} digits")
    return int(text)


def _number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise _StrangeError("a number that is not finite")
    return value


def _constant(text: str) -> NoReturn:
    raise _StrangeError(f"{text} is no number of JSON")


def _may_have_long_number(text: str) -> bool:
    """False only if no number in it has too many digits: asking each of 400,000 numbers of 65,000 files takes long. Bounded in memory."""
    return len(text) > LONG_TEXT or _LONG_NUMBER in text.encode("utf-8", "surrogatepass").translate(_ALL_DIGITS_AS_ONE)


# Created once: a log has a line for each file.
_QUICK = json.JSONDecoder(object_pairs_hook=_object, parse_float=_number, parse_constant=_constant)
_STRICT = json.JSONDecoder(object_pairs_hook=_object, parse_int=_whole, parse_float=_number, parse_constant=_constant)


def _refuse_surrogates(value: Any) -> None:
    """A string with half a surrogate pair can be neither printed nor written."""
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError as error:
        raise _StrangeError("half a character") from error


class Node:
    """One value of a record; `name` is its path, such as `units[3].live`."""

    __slots__ = ("_key", "_parent", "value", "where")

    def __init__(self, value: Any, where: str, parent: Optional[Node] = None, key: Union[str, int] = "") -> None:
        self.value = value
        self.where = where
        self._parent = parent
        self._key = key

    @property
    def name(self) -> str:
        above = self._parent.name if self._parent else ""
        if isinstance(self._key, int):
            return f"{above}[{self._key}]"
        return f"{above}.{self._key}" if above else self._key

    def refuse(self, why: str) -> NoReturn:
        raise foreign(self.where, self.name, why)

    def refuse_where(self, condition: bool, why: str) -> None:
        if condition:
            self.refuse(why)

    def quoted(self) -> str:
        """The value for a message: on one line, and cut if long."""
        shown = repr(self.value)
        return shown if len(shown) <= 100 else shown[:97] + "..."

    # -- objects and lists

    def __getitem__(self, key: str) -> Node:
        if key not in self._object():
            self.refuse(f"it has no {key!r}")
        return Node(self.value[key], self.where, self, key)

    def get(self, key: str) -> Optional[Node]:
        """The value of a key, None if missing or null."""
        return self[key] if self._object().get(key) is not None else None

    def only(self, keys: FrozenSet[str]) -> Node:
        """The object itself, which must have exactly these keys."""
        found = self._object().keys()
        for key in sorted(keys - found):
            self.refuse(f"it has no {key!r}")
        for key in sorted(found - keys):
            self.refuse(f"it has an unknown key {key[:100]!r}")
        return self

    def each(self, most: int = MOST_ITEMS) -> Iterator[Node]:
        if type(self.value) is not list:
            self.refuse("it is no list")
        self.refuse_where(len(self.value) > most, f"it has {len(self.value)} items, more than {most}")
        return (Node(value, self.where, self, index) for index, value in enumerate(self.value))

    def _object(self) -> Dict[str, Any]:
        if type(self.value) is not dict:
            self.refuse("it is no object")
        found: Dict[str, Any] = self.value
        return found

    # -- single values

    def text(self, most: int = MOST_WORD) -> str:
        if type(self.value) is not str:
            self.refuse("it is no text")
        self.refuse_where(len(self.value) > most, f"it has {len(self.value)} characters, more than {most}")
        return str(self.value)

    def matching(self, pattern: Pattern[str], what: str) -> str:
        text = self.text()
        self.refuse_where(pattern.fullmatch(text) is None, f"{self.quoted()} is not {what}")
        return text

    def one_of(self, words: Iterable[str]) -> str:
        text, words = self.text(), sorted(words)
        self.refuse_where(text not in words, f"{self.quoted()} is not one of {', '.join(word or 'nothing' for word in words)}")
        return text

    def whole(self, least: int = 0, most: int = HIGHEST) -> int:
        # In Python, bool is a subclass of int.
        if type(self.value) is not int:
            self.refuse("it is no whole number")
        self.refuse_where(not least <= self.value <= most, f"{self.value} is not within {least} and {most}")
        return int(self.value)

    def number(self) -> float:
        if type(self.value) not in (int, float):
            self.refuse("it is no number")
        return float(self.value)

    def flag(self) -> bool:
        if type(self.value) is not bool:
            self.refuse("it is neither true nor false")
        return bool(self.value)

    # -- many values

    def texts(self, most: int = MOST_ITEMS) -> Tuple[str, ...]:
        return tuple(item.text() for item in self.each(most))

    def properties(self) -> Dict[str, str]:
        """The metastore's properties: text to text."""
        self.refuse_where(len(self._object()) > MOST_ITEMS, f"it has more than {MOST_ITEMS} keys")
        return {key: self[key].text(MOST_TEXT) for key in self.value}

    def plain(self, depth: int = MOST_DEPTH) -> Any:
        """Any value that is neither deep nor long, for values that are only shown."""
        if type(self.value) is dict:
            self.refuse_where(not depth or len(self.value) > MOST_WORD, "it is nested too deeply, or too long")
            return {key: self[key].plain(depth - 1) for key in self.value}
        if type(self.value) is list:
            self.refuse_where(not depth, "it is nested too deeply")
            return [item.plain(depth - 1) for item in self.each(MOST_WORD)]
        return self.text(MOST_TEXT) if type(self.value) is str else self.value


def file_name_from(node: Node) -> str:
    text = node.text()
    node.refuse_where(not names.is_file_name(text), f"{node.quoted()} is no file name")
    return text
