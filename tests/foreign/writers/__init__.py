"""All cases, in a fixed order."""

from __future__ import annotations

from typing import Tuple

from foreign.cases import Case
from foreign.writers import arrow, avro, bad, frames, hive, impersonated, mixed, orc, parquet_mr, spark

CASES: Tuple[Case, ...] = tuple(
    case for module in (arrow, frames, parquet_mr, spark, hive, avro, impersonated, mixed, orc, bad) for case in module.CASES
)
