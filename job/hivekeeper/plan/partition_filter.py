"""Read the `--where` language and decide which partitions it selects.

Pure: a text and the partition columns in, a predicate over partition values out. It never guesses: a value or
a literal that cannot be read as its column's type is an error, not a silent mismatch.
"""

from __future__ import annotations

import operator
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any, Callable, Dict, FrozenSet, List, Mapping, Optional, Sequence, Tuple, Type

from hivekeeper.errors import Refused, UsageError
from hivekeeper.model import Column
from hivekeeper.quoting import HIVE_NULL
from hivekeeper.reasons import Code

# More nesting than anybody writes; keeps the parser's recursion far from Python's limit.
MAX_DEPTH = 50

TOKEN = re.compile(
    r"""(?P<blank>\s+)
      | (?P<string>'(?:[^'\\]|''|\\.)*' | "(?:[^"\\]|""|\\.)*")
      | (?P<quoted>`(?:[^`]|``)+`)
      | (?P<number>[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?![\w.]))
      | (?P<word>[^\W\d]\w*)
      | (?P<operator><=|>=|<>|!=|==|[=<>])
      | (?P<mark>[(),])""",
    re.VERBOSE | re.DOTALL,
)
INTEGER = re.compile(r"[+-]?[0-9]+")
NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
DAY = re.compile(r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})")
TIME = re.compile(rf"{DAY.pattern}(?:[ T]([0-9]{{1,2}}):([0-9]{{1,2}}):([0-9]{{1,2}})(?:\.([0-9]{{1,9}}))?)?")
INTEGER_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "integer": 32, "bigint": 64}
TEXT_TYPES = ("string", "varchar", "char")

OPERATORS: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "==": operator.eq,
    "!=": operator.ne,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}

# The kinds of literals, which a column of one type or another can be compared with.
LITERALS = ("string", "number", "boolean", "date", "timestamp")

# SQL's three truth values: True, False, and None for unknown.
Truth = Optional[bool]


class OtherColumns(UsageError):
    """The text is about partition columns of other names or types than these; another table may have them."""


@dataclass(frozen=True)
class Token:
    """One word of the text; `kind` is a group of TOKEN, or `end`. `position` counts from 1."""

    kind: str
    text: str
    position: int

    def is_word(self, *words: str) -> bool:
        return self.kind == "word" and self.text.lower() in words


@dataclass(frozen=True)
class Kind:
    """How one Hive type is compared. The readers raise ValueError; their results can be ordered.

    `literals` are the kinds of literals that can be compared with such a column. A number is not allowed for a
    string column: Hive would compare the two as doubles, and '01' is not '1'.
    """

    name: str
    read_value: Callable[[str], Any]
    read_literal: Callable[[str], Any]
    literals: FrozenSet[str]
    example: str


@dataclass(frozen=True)
class Field:
    """A partition column and its place among the partition values."""

    name: str
    index: int
    kind: Kind

    def read(self, values: Sequence[str]) -> Any:
        """The value to compare, None for NULL. Raises Refused if it cannot be read as the column's type."""
        text = values[self.index]
        if text in ("", HIVE_NULL):
            return None
        try:
            return self.kind.read_value(text)
        except ValueError:
            raise Refused(
                f"partition value {self.name}={text} cannot be read as {self.kind.name}, so --where cannot tell whether it matches",
                code=Code.UNREADABLE_VALUE,
                next="repair or drop this partition, or select without this column",
            ) from None


class Predicate(ABC):
    """A condition on partition values.

    `matches` is true only if SQL's WHERE would keep the row: unknown is not a match. A value that cannot be
    read as its column's type raises Refused, unless other conditions determine the result.
    """

    def matches(self, values: Sequence[str]) -> bool:
        """`values` are unescaped, in the order of the columns given to `parse`."""
        return self.evaluate(values) is True

    @abstractmethod
    def evaluate(self, values: Sequence[str]) -> Truth: ...


@dataclass(frozen=True)
class Compare(Predicate):
    field: Field
    operator: str
    literal: Any

    def evaluate(self, values: Sequence[str]) -> Truth:
        value = self.field.read(values)
        return None if value is None else OPERATORS[self.operator](value, self.literal)


@dataclass(frozen=True)
class Among(Predicate):
    field: Field
    literals: Tuple[Any, ...]

    def evaluate(self, values: Sequence[str]) -> Truth:
        value = self.field.read(values)
        return None if value is None else value in self.literals


@dataclass(frozen=True)
class Like(Predicate):
    field: Field
    pattern: re.Pattern[str]

    def evaluate(self, values: Sequence[str]) -> Truth:
        value = self.field.read(values)
        return None if value is None else self.pattern.fullmatch(value) is not None


@dataclass(frozen=True)
class IsNull(Predicate):
    field: Field

    def evaluate(self, values: Sequence[str]) -> Truth:
        return values[self.field.index] in ("", HIVE_NULL)


@dataclass(frozen=True)
class Not(Predicate):
    part: Predicate

    def evaluate(self, values: Sequence[str]) -> Truth:
        truth = self.part.evaluate(values)
        return None if truth is None else not truth


@dataclass(frozen=True)
class Junction(Predicate):
    """AND (`settled` is False) or OR (`settled` is True): one part with that truth settles the whole."""

    parts: Tuple[Predicate, ...]
    settled: bool

    def evaluate(self, values: Sequence[str]) -> Truth:
        unreadable, unknown = None, False
        for part in self.parts:
            try:
                truth = part.evaluate(values)
            except Refused as error:
                # A later part may determine the result whatever this value means; the order must not matter.
                unreadable = unreadable or error
                continue
            if truth is self.settled:
                return truth
            unknown = unknown or truth is None
        if unreadable is not None:
            raise unreadable
        return None if unknown else not self.settled


def parse(text: str, columns: Sequence[Column]) -> Predicate:
    """Read a `--where` text for a table with these partition columns.

    Raises UsageError with the position, what was expected there, and the columns that exist: OtherColumns, if it is these that do not fit.
    """
    return Parser(text, columns).parse_all()


class Parser:
    """Recursive descent over the tokens; one method per rule of the grammar."""

    def __init__(self, text: str, columns: Sequence[Column]) -> None:
        self.columns = columns
        self.indexes: Dict[str, int] = {column.name.lower(): index for index, column in enumerate(columns)}
        self.tokens = self.split_tokens(text)
        self.place = 0
        self.depth = 0

    @property
    def token(self) -> Token:
        return self.tokens[self.place]

    def advance(self) -> Token:
        self.place += 1
        return self.tokens[self.place - 1]

    def take_word(self, *words: str) -> bool:
        found = self.token.is_word(*words)
        self.place += found
        return found

    def split_tokens(self, text: str) -> List[Token]:
        tokens, at = [], 0
        while at < len(text):
            match = TOKEN.match(text, at)
            if match is None:
                unclosed = text[at] in "'\"`"
                expected = "a closing quote" if unclosed else "a column, a value in single quotes, a number or an operator"
                raise self.mistake(Token("text", text[at:], at + 1), expected)
            if match.lastgroup != "blank":
                tokens.append(Token(str(match.lastgroup), match.group(), at + 1))
            at = match.end()
        return [*tokens, Token("end", "", len(text) + 1)]

    def mistake(self, token: Token, expected: str, error: Type[UsageError] = UsageError) -> UsageError:
        found = "the end" if token.kind == "end" else token.text if len(token.text) <= 40 else token.text[:37] + "..."
        known = ", ".join(f"{column.name} ({column.type})" for column in self.columns) or "none, the table is not partitioned"
        return error(
            f"--where, position {token.position}: expected {expected}, found {found}",
            code=Code.WRONG_FILTER,
            next=f"correct --where; the partition columns are: {known}",
        )

    def expect_mark(self, mark: str, expected: str) -> None:
        if self.token.text != mark or self.token.kind != "mark":
            raise self.mistake(self.token, expected)
        self.advance()

    def parse_all(self) -> Predicate:
        predicate = self.parse_or()
        if self.token.kind != "end":
            raise self.mistake(self.token, "and, or, or the end")
        return predicate

    def parse_or(self) -> Predicate:
        parts = [self.parse_and()]
        while self.take_word("or"):
            parts.append(self.parse_and())
        return parts[0] if len(parts) == 1 else Junction(tuple(parts), settled=True)

    def parse_and(self) -> Predicate:
        parts = [self.parse_not()]
        while self.take_word("and"):
            parts.append(self.parse_not())
        return parts[0] if len(parts) == 1 else Junction(tuple(parts), settled=False)

    def parse_not(self) -> Predicate:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.mistake(self.token, f"at most {MAX_DEPTH} levels of nesting")
        if self.take_word("not"):
            predicate: Predicate = Not(self.parse_not())
        elif self.token.kind == "mark" and self.token.text == "(":
            self.advance()
            predicate = self.parse_or()
            self.expect_mark(")", "and, or, or )")
        else:
            predicate = self.parse_condition()
        self.depth -= 1
        return predicate

    def parse_condition(self) -> Predicate:
        field = self.parse_column()
        if self.token.kind == "operator":
            sign = self.advance().text
            return Compare(field, sign, self.parse_literal(field))
        if self.take_word("is"):
            negated = self.take_word("not")
            if not self.take_word("null"):
                raise self.mistake(self.token, "null")
            return Not(IsNull(field)) if negated else IsNull(field)
        negated = self.take_word("not")
        predicate = self.parse_set(field)
        return Not(predicate) if negated else predicate

    def parse_set(self, field: Field) -> Predicate:
        if self.take_word("in"):
            return self.parse_in(field)
        if self.take_word("between"):
            low = self.parse_literal(field)
            if not self.take_word("and"):
                raise self.mistake(self.token, "and, with the upper bound of between")
            return Junction((Compare(field, ">=", low), Compare(field, "<=", self.parse_literal(field))), settled=False)
        if self.take_word("like"):
            return self.parse_like(field)
        raise self.mistake(self.token, "an operator (= != <> < <= > >=), in, between, like or is")

    def parse_in(self, field: Field) -> Predicate:
        self.expect_mark("(", "( with the list of values")
        literals = [self.parse_literal(field)]
        while self.token.kind == "mark" and self.token.text == ",":
            self.advance()
            literals.append(self.parse_literal(field))
        self.expect_mark(")", ", or )")
        return Among(field, tuple(literals))

    def parse_like(self, field: Field) -> Predicate:
        token = self.token
        if not field.kind.name.startswith(TEXT_TYPES):
            raise self.mistake(token, f"no like here, because {field.name} is {field.kind.name} (use between)", OtherColumns)
        if token.kind != "string":
            raise self.mistake(token, "a pattern in single quotes")
        self.advance()
        return Like(field, self.compile_pattern(token, self.unquote(token)))

    def parse_column(self) -> Field:
        token = self.advance()
        if token.kind not in ("word", "quoted"):
            raise self.mistake(token, "a partition column")
        name = token.text[1:-1].replace("``", "`") if token.kind == "quoted" else token.text
        index = self.indexes.get(name.lower())
        if index is None:
            raise self.mistake(token, "a partition column", OtherColumns)
        column = self.columns[index]
        kind = find_kind(column.type)
        if kind is None:
            raise self.mistake(token, f"a column of another type (--where cannot compare {column.type})", OtherColumns)
        return Field(column.name, index, kind)

    def parse_literal(self, field: Field) -> Any:
        """A value to compare with the column, read as the column's type."""
        start, kind = self.token, self.token.kind
        if start.is_word("null"):
            raise self.mistake(start, f"a value (write: {field.name} is null)")
        if start.is_word("date", "timestamp"):
            kind = self.advance().text.lower()
            if self.token.kind != "string":
                raise self.mistake(self.token, f"a string after {kind}")
        elif start.is_word("true", "false"):
            kind = "boolean"
        expected = f"a value like {field.kind.example}, because {field.name} is {field.kind.name}"
        if kind not in field.kind.literals:
            raise self.mistake(start, expected, OtherColumns if kind in LITERALS else UsageError)
        token = self.advance()
        text = self.unquote(token) if token.kind == "string" else token.text
        if text in ("", HIVE_NULL):
            raise self.mistake(token, f"a value (Hive keeps '' and NULL as one partition; write: {field.name} is null)")
        try:
            return read_date_literal(text, field.kind) if kind == "date" else field.kind.read_literal(text)
        except ValueError:
            raise self.mistake(token, expected, OtherColumns) from None

    def unquote(self, token: Token) -> str:
        r"""The text of a string literal: the quote doubled or \', and \\; \% and \_ stay, for like."""
        quote = token.text[0]

        def undo(match: re.Match[str]) -> str:
            found = match.group()
            if found in (quote * 2, "\\'", '\\"', "\\\\"):
                return found[1]
            if found in (r"\%", r"\_"):
                return found
            raise self.mistake(token, "each back-slash doubled")

        return re.sub(rf"{quote}{quote}|\\.", undo, token.text[1:-1], flags=re.DOTALL)

    def compile_pattern(self, token: Token, text: str) -> re.Pattern[str]:
        parts = [""]
        for piece in re.findall(r"\\.|.", text, flags=re.DOTALL):
            if piece[0] == "\\" and piece not in (r"\%", r"\_", "\\\\"):
                raise self.mistake(token, r"only \%, \_ or \\\\ after a back-slash in a pattern")
            if piece == "%":
                parts.append("")
            else:
                parts[-1] += "." if piece == "_" else re.escape(piece[-1])
        return re.compile(_join_parts(parts), re.DOTALL)


def _join_parts(parts: Sequence[str]) -> str:
    """The expression for a pattern, from its parts between the %.

    Each part in the middle is taken where it occurs first (a lookahead is not tried again): whoever chooses the values could otherwise make
    it try the places of all parts with one another.
    """
    if len(parts) == 1:
        return parts[0]
    first, *middle, last = parts
    taken = "".join(f"(?=(?P<p{number}>.*?{part}))(?P=p{number})" for number, part in enumerate(middle) if part)
    return f"{first}{taken}.*{last}"


def find_kind(hive_type: str) -> Optional[Kind]:
    """How a Hive type is compared; None for an unsupported type (binary, intervals, timestamps with a zone)."""
    name = re.sub(r"\s+", " ", hive_type.strip().lower())
    base = name.partition("(")[0].strip()
    if base in INTEGER_BITS:
        return Kind(name, lambda text: read_integer(text, INTEGER_BITS[base]), read_number, frozenset({"number", "string"}), "2026")
    return {
        "string": Kind(name, str, str, frozenset({"string"}), "'eu'"),
        "varchar": Kind(name, str, str, frozenset({"string"}), "'eu'"),
        # Hive pads char, and compares it without trailing blanks.
        "char": Kind(name, strip_padding, strip_padding, frozenset({"string"}), "'eu'"),
        "date": Kind(name, read_date, read_date, frozenset({"string", "date"}), "'2026-01-31'"),
        "timestamp": Kind(name, read_time, read_time, frozenset({"string", "date", "timestamp"}), "'2026-01-31 23:59:59'"),
        "boolean": Kind(name, read_boolean, read_boolean, frozenset({"boolean", "string"}), "true"),
        "decimal": Kind(name, read_number, read_number, frozenset({"number", "string"}), "12.50"),
        "float": Kind(name, read_float, read_float, frozenset({"number", "string"}), "1.5"),
        "double": Kind(name, read_float, read_float, frozenset({"number", "string"}), "1.5"),
    }.get(base)


def read_integer(text: str, bits: int) -> int:
    if not INTEGER.fullmatch(text):
        raise ValueError(text)
    value = int(text)
    if not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
        raise ValueError(text)
    return value


def read_number(text: str) -> Decimal:
    """Exact, by value: 1.50 equals 1.5, and an integer column can be compared with 1.5."""
    if not NUMBER.fullmatch(text):
        raise ValueError(text)
    try:
        return Decimal(text)
    except InvalidOperation:
        raise ValueError(text) from None


def read_float(text: str) -> Tuple[bool, float]:
    """A sortable value: NaN equals itself and is greater than all others, as in Hive and Spark."""
    lowered = text.lower()
    if lowered in ("nan", "infinity", "-infinity"):
        return (True, 0.0) if lowered == "nan" else (False, float(lowered))
    if not NUMBER.fullmatch(text):
        raise ValueError(text)
    return False, float(text)


def read_boolean(text: str) -> bool:
    lowered = text.lower()
    if lowered not in ("true", "false"):
        raise ValueError(text)
    return lowered == "true"


def read_date(text: str) -> date:
    match = DAY.fullmatch(text)
    if match is None:
        raise ValueError(text)
    year, month, day = match.groups()
    return date(int(year), int(month), int(day))


def read_time(text: str) -> Tuple[datetime, int]:
    """A time without a zone, and its nanoseconds; a bare date means midnight."""
    match = TIME.fullmatch(text)
    if match is None:
        raise ValueError(text)
    numbers = [int(part or 0) for part in match.groups()[:6]]
    return datetime(*numbers), int((match[7] or "").ljust(9, "0"))  # type: ignore[arg-type]


def read_date_literal(text: str, kind: Kind) -> Any:
    """`date '…'` for a date or timestamp column: a day, without a time of day."""
    read_date(text)
    return kind.read_literal(text)


def strip_padding(text: str) -> str:
    return text.rstrip(" ")
