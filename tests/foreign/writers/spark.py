"""Spark: the one of the tests, with the settings that change its files, and the pinned and other versions where they have been set up."""

from __future__ import annotations

import shutil
import sys
from functools import partial
from pathlib import Path
from typing import Any, Mapping

from foreign.cases import ORC, PARQUET, Case, Unavailable
from foreign.tools import PINNED_SPARK, run_elsewhere

COLUMNS = "id BIGINT, s STRING, at TIMESTAMP, day DATE, dec DECIMAL(10,2), words ARRAY<STRING>"
ROWS = """SELECT id, concat('row ', id) AS s,
 IF(id % 5 = 0, NULL, TIMESTAMP '{year}-03-31 02:30:00.123456' + make_interval(0, 0, 0, id)) AS at,
 DATE '{year}-02-28' + CAST(id AS INT) AS day, CAST(id - 10.25 AS DECIMAL(10,2)) AS dec, CAST(id AS TINYINT) AS tiny,
 IF(id % 3 = 0, double('NaN'), double('-0.0')) AS db, array('a', NULL, concat('b', id)) AS words, map('z', id, 'a', NULL) AS mp,
 named_struct('x', id, 'y', array(map('k', id))) AS st, CAST('x' AS BINARY) AS bin FROM range(0, 36, 1, 3)"""
INT96, MICROS, MILLIS = "INT96", "TIMESTAMP_MICROS", "TIMESTAMP_MILLIS"
REBASE = ("spark.sql.parquet.int96RebaseModeInWrite", "spark.sql.parquet.datetimeRebaseModeInWrite")


def write_rows(session: Any, target: str, format: str, settings: Mapping[str, str], options: Mapping[str, str], year: str) -> None:
    for key, value in settings.items():
        session.conf.set(key, value)
    session.sql(ROWS.format(year=year)).write.mode("append").format(format).options(**options).save(target)


def write(
    directory: Path,
    tools: Any,
    format: str = PARQUET,
    settings: Mapping[str, str] = {},  # noqa: B006 - a constant
    options: Mapping[str, str] = {},  # noqa: B006 - a constant
    year: str = "2024",
) -> None:
    if options.get("compression") == "lz4_raw" and tools.spark.version.startswith("3.3."):
        raise Unavailable("Spark 3.3 does not write lz4_raw")
    write_rows(tools.spark.newSession(), str(directory), format, settings, options, year)
    _remove_traces(directory)


def write_elsewhere(directory: Path, tools: Any, version: str, format: str) -> None:
    """In a process of that Spark's own Python, which runs this file; once, because a session takes long to start."""

    def write_once(place: Path) -> None:
        run_elsewhere(version, __file__, str(place), format)
        _remove_traces(place)

    for path in tools.made_once(f"spark {version} {format}", write_once):
        shutil.copyfile(path, directory / path.name)


def _remove_traces(directory: Path) -> None:
    for path in directory.iterdir():
        if path.name.startswith((".", "_")):
            path.unlink()


def _times(kind: str, mode: str = "CORRECTED") -> Mapping[str, str]:
    return {"spark.sql.parquet.outputTimestampType": kind, **dict.fromkeys(REBASE, mode)}


def _case(name: str, format: str = PARQUET, expected: str = "compacted", is_quick: bool = False, **options: Any) -> Case:
    return Case(f"spark.{name}", format, COLUMNS, partial(write, format=format, **options), expected, is_quick)


OTHERS = ("3.3.4", PINNED_SPARK, "4.0.1")
LEGACY_FORMAT = {"spark.sql.parquet.writeLegacyFormat": "true"}
# An ORC file carries its writer's zone, which is this session's.
CASES = (
    _case("plain"),
    _case("int96", settings=_times(INT96)),
    _case("int96-ancient", settings=_times(INT96), year="1001"),
    _case("int96-ancient-legacy", settings=_times(INT96, "LEGACY"), year="1001"),
    _case("micros-ancient", settings=_times(MICROS), year="1001"),
    _case("micros-ancient-legacy", settings=_times(MICROS, "LEGACY"), year="1001"),
    _case("millis", settings=_times(MILLIS)),
    _case("legacy-format", settings=LEGACY_FORMAT),
    _case("legacy-format-int96", settings={**LEGACY_FORMAT, **_times(INT96)}),
    *(_case(f"codec-{codec}", options={"compression": codec}) for codec in ("none", "gzip", "zstd", "lz4_raw")),
    _case("blooms", options={"parquet.bloom.filter.enabled#id": "true"}),
    _case("pages-v2", options={"parquet.writer.version": "v2"}),
    _case("orc-plain", ORC),
    _case("orc-ancient", ORC, year="1001"),
    *(_case(f"orc-codec-{codec}", ORC, options={"compression": codec}) for codec in ("none", "zlib", "zstd", "lz4")),
    _case("orc-codec-lzo", ORC, "not-faithful", options={"compression": "lzo"}),
    *(
        Case(f"spark{version[0]}{version[2]}.{format}", format, COLUMNS, partial(write_elsewhere, version=version, format=format))
        for version in OTHERS
        for format in (PARQUET, ORC)
    ),
)


def main(target: str, format: str) -> None:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    session = builder.config("spark.driver.extraJavaOptions", "-Duser.timezone=UTC").getOrCreate()
    write_rows(session, target, format, {}, {}, "2024")
    session.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
