"""The only place that quotes text for another language (Spark SQL, Hive partition names, a shell)."""

from __future__ import annotations

import re
import shlex
from typing import Dict, Sequence
from urllib.parse import quote

# The characters that Hive escapes in partition directory names (FileUtils.charToEscape, Hive 2 and 3).
HIVE_ESCAPED = frozenset([chr(code) for code in range(32)] + list("\"#%'*/:=?\\\x7f{[]^"))

# Hive's directory name for a NULL or empty partition value (hive.exec.default.partition.name).
HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"


def identifier(name: str) -> str:
    """A Spark SQL identifier: any name, back-quotes doubled."""
    return "`" + name.replace("`", "``") + "`"


def literal(text: str) -> str:
    """A Spark SQL string literal.

    Spark's parser undoes back-slash escapes while `spark.sql.parser.escapedStringLiterals` is false,
    which is the default and what our session sets.
    """
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def is_plain(text: str) -> bool:
    """Whether a statement for an operator to copy may have this text in quotes.

    Beeline ends one at a semicolon, and leaves out comments, also in quotes that it does not know, and replaces variables in all.
    """
    return text.isprintable() and not re.search(r"[;`'\"\\]|--|/\*|\$\{", text)


def log_field(table: str) -> str:
    """A table's full name as a word of its own, which neither says other fields of a log line nor reads like a partition of another table:
    Hive 4 allows blanks, `=` and `/` in it.
    """
    return "".join(quote(char, safe="") if char.isspace() or char in "/=%" else char for char in table)


def shell(path: str) -> str:
    """An argument of a command that a message shows for an operator to copy.

    Output shows what cannot be printed as an escape, so that is one of Bash's: in other quotes a tab would become `\\t`, to `hdfs dfs` a t.
    """
    # No argument can have a zero, which would end it.
    path = path.replace("\0", "\ufffd")
    return shlex.quote(path) if path.isprintable() else "$'" + "".join(map(_escape_for_bash, path)) + "'"


def _escape_for_bash(char: str) -> str:
    if char in "'\\":
        return "\\" + char
    return char if char.isprintable() else "".join(f"\\x{byte:02x}" for byte in char.encode("utf-8", "surrogatepass"))


def hdfs(path: str, pattern: str = "") -> str:
    """The same of an `hdfs dfs` command, for which each path is a pattern: whoever names a directory could otherwise mean those of others.

    `pattern`: what follows the path and is meant as one.
    """
    return shell(re.sub(r"[\\*?{}\[\]]", r"\\\g<0>", path) + pattern)


def partition_name(columns: Sequence[str], values: Sequence[str]) -> str:
    """Hive's name of a partition, `dt=2026-01-01/ref=F R`, escaped as Hive's makePartName does."""
    return "/".join(f"{escape(column.lower())}={escape(value or HIVE_NULL)}" for column, value in zip(columns, values))


def escape(text: str) -> str:
    """One component of a partition name, escaped by Hive's rules."""
    return "".join(f"%{ord(char):02X}" if char in HIVE_ESCAPED else char for char in text)


def unescape(text: str) -> str:
    """The unescaped value of one component of a partition name."""
    return re.sub("%([0-9a-fA-F]{2})", lambda match: chr(int(match[1], 16)), text)


def partition_values(name: str) -> Dict[str, str]:
    """The columns and values of a partition name, in its order."""
    pairs = (part.partition("=") for part in name.split("/"))
    return {unescape(column): unescape(value) for column, _, value in pairs}
