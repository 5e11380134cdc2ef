"""Which codecs are written, by format, and since which Spark version, whose libraries are used. The only list: settings and plans use it.

Parquet's `lz4` is Hadoop's own framing, which the format deprecates and other readers fail on (PARQUET-2032): `lz4_raw` replaces it.

Pure. tests/spark writes files with each of them.
"""

from __future__ import annotations

import re
from typing import Mapping, Tuple

Version = Tuple[int, int]

# Hivekeeper needs Spark 3.3; every later version writes these too.
_ALWAYS: Version = (3, 3)

SINCE: Mapping[str, Mapping[str, Version]] = {
    "parquet": {**dict.fromkeys(("none", "snappy", "gzip", "zstd"), _ALWAYS), "lz4_raw": (3, 5)},
    "orc": dict.fromkeys(("none", "snappy", "zlib", "zstd", "lz4"), _ALWAYS),
}

# Synonyms found in tables and settings.
SAME_AS = {"uncompressed": "none"}


def list_codecs() -> Tuple[str, ...]:
    """Every codec name that some Spark version writes in some format."""
    return tuple(dict.fromkeys([*(codec for codecs in SINCE.values() for codec in codecs), *SAME_AS]))


def list_writable(format: str, spark_version: str) -> Tuple[str, ...]:
    return tuple(codec for codec, since in SINCE.get(format, {}).items() if read_version(spark_version) >= since)


def read_version(text: str) -> Version:
    """Major and minor number of a Spark version, ignoring any distribution suffix."""
    major, minor = (re.findall(r"\d+", text) + ["0", "0"])[:2]
    return int(major), int(minor)
