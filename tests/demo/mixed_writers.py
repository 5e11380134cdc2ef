"""Turn files that Spark wrote into files of Impala's and Hive's kinds, as they lie side by side where several engines write to one table.

Neither engine runs here: pyarrow writes the same rows as the engine stores them, then the footer gets what the engine says in it.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from foreign import footers  # noqa: E402 - a program, not a package

KINDS = ("spark", "impala", "hive")
NO_BUILD = "(build 0000000000000000000000000000000000000000)"
IMPALA = f"impala version 4.1.0-RELEASE {NO_BUILD}"
# Hive writes its zone since HIVE-21290, so that readers can undo how it moved INT96 timestamps to UTC.
HIVE = f"parquet-mr version 1.10.1 {NO_BUILD}"
HIVE_KEYS = {"writer.model.name": "3.1.3000", "writer.time.zone": "America/New_York", "writer.date.proleptic": "false"}


def share_out(spark: SparkSession, location: str) -> None:
    """Every third file of each partition below the location becomes Impala's, every third Hive's."""
    jvm: Any = spark._jvm
    top = jvm.org.apache.hadoop.fs.Path(location)
    files = top.getFileSystem(spark._jsc.hadoopConfiguration())
    for partition in files.globStatus(jvm.org.apache.hadoop.fs.Path(top, "*=*")):
        paths = [entry.getPath() for entry in files.listStatus(partition.getPath()) if not entry.getPath().getName().startswith(("_", "."))]
        for number, path in enumerate(sorted(paths, key=lambda path: path.getName())):
            kind = KINDS[number % len(KINDS)]
            if kind != "spark":
                _replace(jvm, files, path, kind, number)


def _replace(jvm: Any, files: Any, path: Any, kind: str, number: int) -> None:
    """Read and written by streams: Hadoop's copying commands need another local file system than the demo's."""
    name = f"{number:06d}_0" if kind == "hive" else f"{number:016x}_data.0.parq"
    source = files.open(path)
    content = bytes(jvm.org.apache.commons.io.IOUtils.toByteArray(source))
    source.close()
    rows = pq.ParquetFile(pa.BufferReader(content)).read().replace_schema_metadata(None)
    with tempfile.TemporaryDirectory() as place:
        local = Path(place, name)
        (write_impala if kind == "impala" else write_hive)(rows, local)
        target = files.create(jvm.org.apache.hadoop.fs.Path(path.getParent(), name), False)
        target.write(bytearray(local.read_bytes()))
        target.close()
    files.delete(path, False)


def write_impala(rows: pa.Table, path: Path) -> None:
    """Texts without an annotation: Impala writes none unless it is told to."""
    bare = pa.schema([field.with_type(pa.binary()) if pa.types.is_string(field.type) else field for field in rows.schema])
    _write(rows.cast(bare), path)
    footers.sign(path, IMPALA, {})


def write_hive(rows: pa.Table, path: Path) -> None:
    _write(rows, path)
    footers.sign(path, HIVE, HIVE_KEYS)


def _write(rows: pa.Table, path: Path) -> None:
    """INT96, and annotations from before 2018, as both engines write them."""
    pq.write_table(rows, path, use_deprecated_int96_timestamps=True, store_schema=False)
    footers.drop_annotations(path)
