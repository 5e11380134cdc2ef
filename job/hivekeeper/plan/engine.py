"""The properties of the Spark session that plans depend on.

Pure values.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Engine:
    """The version of Spark that writes, and the time zone in which it reads times."""

    spark_version: str
    time_zone: str
