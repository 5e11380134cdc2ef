"""What the session can do, as far as plans depend on it.

Pure values.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Engine:
    """The Spark that writes, and the time zone that it reads times in."""

    spark_version: str
    time_zone: str
