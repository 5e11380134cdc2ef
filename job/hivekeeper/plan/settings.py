"""What a plan depends on besides what was observed: the configuration of one table, and the session's abilities.

Pure values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional, Tuple

MIB = 2**20


@dataclass(frozen=True)
class Settings:
    """What of the configuration bears on the compaction of one table. Sizes in bytes, times in milliseconds."""

    block_bytes: int = 128 * MIB
    ratio: float = 10.0
    min_quiet_ms: int = 15 * 60_000
    compression: str = "source"
    sort_columns: Tuple[str, ...] = ()
    analyze_stats: bool = False
    max_units: Optional[int] = None
    max_bytes: Optional[int] = None
    quarantine_after: int = 3
    quarantine_for_ms: int = 7 * 86_400_000
    max_backup_bytes: Optional[int] = None
    max_backup_objects: Optional[int] = None
    quota_directories: Tuple[str, ...] = ()
    batch_bytes: int = 8 * 1024 * MIB
    batch_units: int = 500
    hive_lock: bool = True
    hive_lock_wait_s: float = 5.0
    owner: str = "require"
    backup_table: bool = True
    backup_prefix: str = "__bkp_"
    backup_database: Optional[str] = None
    discard: str = "delete"


@dataclass(frozen=True)
class Engine:
    """What the session can do, as far as plans depend on it."""

    spark_version: str
    time_zone: str
