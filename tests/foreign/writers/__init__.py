"""All cases, in a fixed order."""

from __future__ import annotations

from dataclasses import replace
from typing import Mapping, Tuple

from foreign.cases import COMPACTED, Case
from foreign.writers import arrow, avro, bad, frames, hive, impersonated, mixed, orc, parquet_mr, spark

# What the libraries of other Sparks than the pinned one read less, or more: by minor version and case.
ELSEWHERE: Mapping[str, Mapping[str, str]] = {
    # parquet-mr 1.12 knows no LZ4_RAW, and reads no page with NULLs that is encoded as BYTE_STREAM_SPLIT.
    "3.3": {
        **dict.fromkeys(("pyarrow.codec-lz4", "pyarrow.plain-lz4_raw", "polars.lz4", "duckdb.lz4_raw"), bad.UNREADABLE),
        **dict.fromkeys(("parquet-mr.v1-lz4_raw", "parquet-mr.v2-lz4_raw"), bad.UNREADABLE),
        **dict.fromkeys(("pyarrow.byte-stream-split", "parquet-mr.byte-stream-split"), bad.UNFIT),
        **dict.fromkeys(("duckdb.version-2", "duckdb.version-2-simple"), bad.UNFIT),
        # Its decompressor of LZO may crash the JVM (aircompressor before 0.27).
        **dict.fromkeys(("spark.orc-codec-lzo", "orc.codec-lzo"), bad.UNREADABLE),
    },
    # parquet-mr 1.15 reads integers that are encoded as BYTE_STREAM_SPLIT, too.
    "4.0": {"pyarrow.byte-stream-split-of-integers": COMPACTED},
}


def _with_exceptions(case: Case) -> Case:
    return replace(case, expected_on={spark: of_spark[case.name] for spark, of_spark in ELSEWHERE.items() if case.name in of_spark})


CASES: Tuple[Case, ...] = tuple(
    _with_exceptions(case)
    for module in (arrow, frames, parquet_mr, spark, hive, avro, impersonated, mixed, orc, bad)
    for case in module.CASES
)
assert {name for of_spark in ELSEWHERE.values() for name in of_spark} <= {case.name for case in CASES}, "a case was renamed"
