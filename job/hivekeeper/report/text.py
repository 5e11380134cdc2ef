"""Format numbers, tables and bars as plain terminal text.

Pure: values in, text out. Sizes are powers of 1024 and labelled so (KiB, MiB, GiB). Names from a cluster are
cleaned, so that a partition value cannot control a terminal; colour is used only on request.
"""

from __future__ import annotations

import json
import re
import unicodedata
from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass, fields, is_dataclass, replace
from enum import Enum
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Collection, List, Sequence, Tuple

from hivekeeper.model import FileInfo, Snapshot

SIZE_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
GAP = "  "
SHORTEST_COLUMN = 8


@dataclass(frozen=True)
class Blocks:
    """The characters that bars are drawn with."""

    full: str
    light: str
    ellipsis: str


UNICODE = Blocks("█", "░", "…")
ASCII = Blocks("#", ".", "~")


def bytes_text(size_bytes: float) -> str:
    """`0 B`, `1.2 GiB`, `128 MiB`: one decimal below 100, none from 100 up and for exact multiples."""
    if size_bytes < 0:
        return "-" + bytes_text(-size_bytes)
    value, unit = float(size_bytes), 0
    # 1023.6 KiB would round to 1024 KiB, so it becomes 1.0 MiB.
    while value >= 1023.5 and unit < len(SIZE_UNITS) - 1:
        value, unit = value / 1024, unit + 1
    decimals = 0 if value >= 99.95 or value == int(value) else 1
    return f"{value:.{decimals}f} {SIZE_UNITS[unit]}"


def count_text(count: int) -> str:
    return f"{count:,}"


def age_text(age_ms: int) -> str:
    """`14 days`, `1 day`, `5 hours`, `20 minutes`, `0 minutes`: what fits into it whole."""
    for noun, length_ms in (("day", 86_400_000), ("hour", 3_600_000), ("minute", 60_000)):
        count = age_ms // length_ms
        if count or noun == "minute":
            break
    return f"{count_text(count)} {noun}{'' if count == 1 else 's'}"


def duration_text(seconds: float) -> str:
    """`3 ms`, `4.2 s`, `42 s`, `3 min 05 s`, `2 h 05 min`, `3 d 04 h`."""
    if round(seconds * 1000) < 1000:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    minutes = round(seconds / 60)
    if minutes < 24 * 60:
        return f"{minutes // 60} h {minutes % 60:02d} min"
    hours = round(seconds / 3600)
    return f"{hours // 24} d {hours % 24:02d} h"


def factor_text(before: float, after: float) -> str:
    """How many times fewer: `50x`, `1.5x`; `-` if there is nothing to divide by."""
    if after <= 0:
        return "-"
    factor = before / after
    return f"{factor:.0f}x" if factor >= 9.95 else f"{factor:.1f}x"


def escape_for_json(text: str, encoding: str = "utf-8") -> str:
    """A JSON text with escapes for what cannot be printed, or not in this encoding. For any other text they are as good as others."""
    return re.sub(r"[^\n -~]+", lambda match: _escape_word(match[0], encoding), text)


def _escape_word(word: str, encoding: str) -> str:
    """Whole, as a rule: a character by itself takes a hundred bytes."""
    if word.isprintable() and encoding.lower() in ("utf-8", "utf8"):
        return word
    return "".join(_escape_for_json(character, encoding) for character in word)


@lru_cache(maxsize=10_000)
def _escape_for_json(character: str, encoding: str) -> str:
    try:
        character.encode(encoding)
        return character if character.isprintable() else json.dumps(character)[1:-1]
    except UnicodeEncodeError:
        return json.dumps(character)[1:-1]


def clean_text(text: str) -> str:
    """The text with control and direction characters shown as escapes."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def clean_names(value: Any) -> Any:
    """A result with every text cleaned, so that a name with a line end cannot start a line of its own wherever it is printed.

    Files of listings are left out: there may be very many, and no output shows them.
    """
    if isinstance(value, str):
        return value if value.isprintable() or isinstance(value, Enum) else clean_text(value)
    if isinstance(value, (FileInfo, Snapshot)):
        return value
    if isinstance(value, tuple):
        parts = [clean_names(each) for each in value]
        same = all(new is old for new, old in zip(parts, value))
        return value if same else type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    if isinstance(value, (dict, MappingProxyType)):
        pairs, alike = {}, Counter[str]()
        for key, each in value.items():
            shown = cleaned = clean_names(key)
            # Names may look alike, perhaps a million of them: none takes the place of another one.
            while isinstance(shown, str) and shown != key and (shown in value or shown in pairs):
                alike[cleaned] += 1
                shown = f"{cleaned}'{alike[cleaned] if alike[cleaned] > 1 else ''}"
            pairs[shown] = clean_names(each)
        same = all(pairs.get(key) is each for key, each in value.items())
        return value if same else pairs
    if is_dataclass(value) and not isinstance(value, type):
        known = {each.name: getattr(value, each.name) for each in fields(value) if each.init}
        cleaned = {name: clean_names(each) for name, each in known.items()}
        changed = {name: each for name, each in cleaned.items() if each is not known[name]}
        return replace(value, **changed) if changed else value
    return value


def measure_text(text: str) -> int:
    """Columns on a terminal: wide East Asian characters take two, combining ones none."""
    return sum(0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)


def shorten_text(text: str, width: int, blocks: Blocks = UNICODE) -> str:
    """Shorten to at most `width` columns by cutting the middle, because names of partitions differ at both ends."""
    if measure_text(text) <= width:
        return text
    if width <= 1:
        return blocks.ellipsis[:width]
    tail = _take_columns(text[::-1], (width - 1) // 2)[::-1]
    return _take_columns(text, width - 1 - measure_text(tail)) + blocks.ellipsis + tail


def _take_columns(text: str, width: int) -> str:
    taken, used = [], 0
    for char in text:
        used += measure_text(char)
        if used > width:
            break
        taken.append(char)
    return "".join(taken)


def pad_text(text: str, width: int, align: str) -> str:
    blanks = " " * (width - measure_text(text))
    return blanks + text if align == ">" else text + blanks


def table(rows: Sequence[Sequence[object]], headers: Sequence[str], align: str = "", width: int = 0, blocks: Blocks = UNICODE) -> str:
    """Columns with a header and a rule. `align` holds `<`, `>` or `=` for each column, padded with `<`.

    If the lines would be longer than `width` (0: no limit), the widest `<` columns are shortened; `=` columns are also
    left-aligned, but never shortened: they hold text that people type again, such as the id of a run.
    """
    align = align.ljust(len(headers), "<")
    cells = [[clean_text(str(cell)) for cell in row] for row in rows]
    widths = [max(measure_text(line[index]) for line in [list(headers), *cells]) for index in range(len(headers))]
    if width:
        _narrow_columns(widths, align, width)
    lines = [list(headers), ["-" * columns for columns in widths], *cells]
    return "\n".join(_join_cells(line, widths, align, blocks) for line in lines)


def _narrow_columns(widths: List[int], align: str, width: int) -> None:
    """Repeatedly shorten the widest column that may be shortened by one, never below a readable width."""
    excess = sum(widths) + len(GAP) * (len(widths) - 1) - width
    while excess > 0:
        candidates = [index for index, side in enumerate(align) if side == "<" and widths[index] > SHORTEST_COLUMN]
        if not candidates:
            return
        widths[max(candidates, key=lambda index: widths[index])] -= 1
        excess -= 1


def _join_cells(cells: Sequence[str], widths: Sequence[int], align: str, blocks: Blocks) -> str:
    padded = [pad_text(shorten_text(cell, columns, blocks), columns, side) for cell, columns, side in zip(cells, widths, align)]
    return GAP.join(padded).rstrip()


def bar(before: float, after: float, width: int, blocks: Blocks = UNICODE) -> str:
    """The remaining part of something as the full part of a bar: `██░░░░░░`. A small remainder still shows one block."""
    if before <= 0:
        return blocks.light * width
    full = min(width, round(width * after / before))
    if after > 0:
        full = max(1, full)
    return blocks.full * full + blocks.light * (width - full)


def histogram(sizes: Collection[Tuple[int, int]], bounds_bytes: Sequence[int], width: int, blocks: Blocks = UNICODE) -> str:
    """The number of files by size: one line for each range between ascending bounds, the longest bar `width` long.

    `sizes` says how many files have which size. Empty ranges below the smallest and above the largest file are left out.
    """
    if not sizes:
        return "no files"
    counts = [0] * (len(bounds_bytes) + 1)
    for size, count in sizes:
        counts[bisect_right(bounds_bytes, size)] += count
    labels = [f"below {bytes_text(bounds_bytes[0])}"]
    labels += [f"{bytes_text(low)} to {bytes_text(high)}" for low, high in zip(bounds_bytes, bounds_bytes[1:])]
    labels.append(f"from {bytes_text(bounds_bytes[-1])}")
    filled = [index for index, count in enumerate(counts) if count]
    labels, counts = labels[filled[0] : filled[-1] + 1], counts[filled[0] : filled[-1] + 1]
    most, label_width = max(counts), max(map(len, labels))
    count_width = len(count_text(most))
    return "\n".join(
        f"{label:>{label_width}}  {count_text(count):>{count_width}}  {blocks.full * _scale_count(count, most, width)}".rstrip()
        for label, count in zip(labels, counts)
    )


def _scale_count(count: int, most: int, width: int) -> int:
    return max(1, round(width * count / most)) if count else 0
