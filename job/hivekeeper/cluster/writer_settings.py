"""Decides the settings with which Spark reads and writes files of one form.

Pure: a form in, configuration out. Anything that a site may have changed is set here or guarded in `session.py`.
"""

from __future__ import annotations

from typing import Dict, Mapping

from hivekeeper.model import Form
from hivekeeper.schemas import PARQUET, needs_legacy_decimals, parse_parquet, timestamp_encoding

# Larger than any file, so that one task reads a file from its first row to its last.
_WHOLE = str(1 << 60)


def session_settings(format: str, form: Form) -> Dict[str, str]:
    """The settings of every job on files of this form."""
    settings = {
        # The plan's tasks are the output files: nothing may merge, split or re-sort them.
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.optimizer.plannedWrite.enabled": "false",
        # Digests per unit are a few hundred small rows; the write sets its own number of tasks.
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.ansi.enabled": "false",
        "spark.sql.maxConcurrentOutputFileWriters": "0",
    }
    if format == PARQUET:
        settings.update(_parquet_settings(form))
    return settings


def whole_file_settings() -> Dict[str, str]:
    """Settings that make each read one task, which reads whole files."""
    return {"spark.sql.files.maxPartitionBytes": _WHOLE, "spark.sql.files.minPartitionNum": "1"}


def _parquet_settings(form: Form) -> Dict[str, str]:
    leaves = [leaf for field in parse_parquet(form.schema) for leaf in field.leaves]
    encoding = next((found for found in map(timestamp_encoding, leaves) if found), "INT96")
    # Files that state their calendar are written in the same; with others an ancient value fails the job.
    rebase = "CORRECTED" if form.calendar == "corrected" else "EXCEPTION"
    return {
        "spark.sql.parquet.outputTimestampType": encoding if encoding == "INT96" else f"TIMESTAMP_{encoding}",
        "spark.sql.parquet.writeLegacyFormat": str(needs_legacy_decimals(leaves)).lower(),
        "spark.sql.parquet.datetimeRebaseModeInWrite": rebase,
        "spark.sql.parquet.int96RebaseModeInWrite": rebase,
    }


def writer_options(format: str, form: Form, codec: str) -> Mapping[str, str]:
    options = {"compression": codec}
    if format == PARQUET:
        options.update({f"parquet.bloom.filter.enabled#{column}": "true" for column in form.blooms})
        if form.blooms:
            # The number of distinct values is unknown: without this each filter takes its maximum size.
            options["parquet.bloom.filter.adaptive.enabled"] = "true"
    elif form.blooms:
        options["orc.bloom.filter.columns"] = ",".join(form.blooms)
    return options
