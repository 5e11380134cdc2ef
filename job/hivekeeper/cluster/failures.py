"""Puts the failure of a Spark job into one line that an operator understands.

Pure but for reading the Java exception. What it does not know it quotes.
"""

from __future__ import annotations

import re
from typing import Sequence

from hivekeeper.cluster.gateway import Cause, first_line, java_causes

_GONE = (
    r"Path does not exist: (.+?)\.?(?:\n|$)",
    r"File does not exist: (.+?)(?:\n|$)",
    r"File (\w+:/.+?) does not exist",
)
_LOST = r"ExecutorLostFailure|ExecutorDeadException|Lost executor|MetadataFetchFailedException|FetchFailedException"

# What a class name or a message holds → our words; {0} is the pattern's group, {first} the innermost message.
_KNOWN = (
    (
        r"SparkUpgradeException|INCONSISTENT_BEHAVIOR_CROSS_VERSION",
        "it holds dates before 1582-10-15 or timestamps before 1900-01-01, and the files do not say in which calendar",
    ),
    *((pattern, "a file is gone: {0}") for pattern in _GONE),
    (r"DSQuotaExceededException|NSQuotaExceededException|QuotaExceededException", "a quota of the directory is used up"),
    (r"No space left on device|could only be written to 0 of|DiskOutOfSpaceException", "there is no space left"),
    (_LOST, "executors were lost: {first}"),
    (r"OutOfMemoryError", "the driver or an executor ran out of memory"),
    (r"(rows of an unknown file: \S+)", "{0}"),
    (r"BlockMissingException", "a block of a file cannot be read: {first}"),
    (r"AccessControlException|Permission denied", "access was denied: {first}"),
)
_NOISE = re.compile(r"^(?:\[[A-Z_.]+\]\s*)?")


def cause_of(error: Exception) -> str:
    causes = java_causes(error)
    if not causes:
        return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    return explain(causes)


def explain(causes: Sequence[Cause]) -> str:
    """The first thing in a chain of Java exceptions that we have words for, else its innermost message."""
    text = "\n".join(f"{cause.name}: {cause.message}" for cause in causes)
    first = _innermost(causes)
    for pattern, words in _KNOWN:
        match = re.search(pattern, text)
        if match:
            return words.format(*match.groups(), first=first)
    return first


def _innermost(causes: Sequence[Cause]) -> str:
    return _NOISE.sub("", first_line(causes))[:300]
