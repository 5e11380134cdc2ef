"""The settings without which rows are lost while all counts match: written down once more, so that none is lost from the list."""

from __future__ import annotations

import pytest

from hivekeeper.cluster.session import configuration

# What a site may set, and what then happens.
ROWS_WOULD_BE_LOST = {
    "spark.files.ignoreCorruptFiles": "false",
    "spark.files.ignoreMissingFiles": "false",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.files.maxRecordsPerFile": "0",
    "spark.hadoop.mapreduce.fileoutputcommitter.algorithm.version": "1",
    "spark.speculation": "false",
}
VALUES_WOULD_CHANGE = {
    "spark.sql.caseSensitive": "true",
    "spark.sql.legacy.parquet.nanosAsLong": "false",
    "spark.sql.orc.mergeSchema": "false",
    "spark.sql.parquet.binaryAsString": "false",
    "spark.sql.parquet.datetimeRebaseModeInRead": "EXCEPTION",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "EXCEPTION",
    "spark.sql.parquet.inferTimestampNTZ.enabled": "true",
    "spark.sql.parquet.int96AsTimestamp": "true",
    "spark.sql.parquet.int96RebaseModeInRead": "EXCEPTION",
    "spark.sql.parquet.int96RebaseModeInWrite": "EXCEPTION",
    "spark.sql.parquet.int96TimestampConversion": "false",
    "spark.sql.parquet.mergeSchema": "false",
    "spark.sql.parquet.respectSummaryFiles": "false",
    "spark.sql.readSideCharPadding": "false",
    "spark.sql.legacy.charVarcharAsString": "false",
}


@pytest.mark.parametrize(("key", "value"), {**ROWS_WOULD_BE_LOST, **VALUES_WOULD_CHANGE}.items())
def test_no_site_can_change_what_is_read_or_written(key, value):
    assert configuration()[key] == value
