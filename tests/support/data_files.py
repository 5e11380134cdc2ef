"""Data files on the local disk for tests of `cluster/rows.py`: written by Spark or Arrow, read back by Arrow."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, List, Sequence, Tuple

import pyarrow as pa
import pyarrow.orc as po
import pyarrow.parquet as pq

from hivekeeper import names
from hivekeeper.model import FileInfo, Form, StageBatch, StageOutput, StageUnit

RUN = "20260101t020304z-1f0c"


def listed(directory: Path) -> Tuple[FileInfo, ...]:
    found = sorted(path for path in directory.iterdir() if not path.name.startswith((".", "_")))
    return tuple(FileInfo(f"file:{path}", path.stat().st_size, 0, path.is_dir(), 0) for path in found)


def form_of(rows: Any, format: str, directory: Path, by_identity: bool = False) -> Form:
    footers = rows.footers(format, {"u": listed(directory)}, by_identity)["u"]
    assert footers.unreadable == ()
    (group,) = footers.groups
    return group.form


def batch_of(rows: Any, format: str, target: Path, units: Sequence[Path], outputs: int = 1, **more: Any) -> StageBatch:
    """Each unit's files of one form, divided among so many outputs."""
    form = form_of(rows, format, units[0])
    codec = more.pop("codec", form.codec)
    staged = []
    for number, directory in enumerate(units, start=1):
        files = listed(directory)
        bins = [min(index * outputs // len(files), outputs - 1) for index in range(len(files))]
        members = [tuple(file for file, found in zip(files, bins) if found == wanted) for wanted in range(outputs)]
        staged.append(StageUnit(number, tuple(StageOutput(of_output, form, codec) for of_output in members)))
    return StageBatch(format, f"file:{target}", tuple(staged), RUN, **more)


def stage_directory(batch: StageBatch, number: int) -> Path:
    return Path(batch.target[len("file:") :]) / f"{names.UNIT_COLUMN}={number}"


def outputs(batch: StageBatch, number: int) -> List[Path]:
    return sorted(path for path in stage_directory(batch, number).iterdir() if not path.name.startswith("."))


def arrow_table(format: str, paths: Sequence[Path]) -> pa.Table:
    read = (lambda path: pq.ParquetFile(path).read()) if format == "parquet" else (lambda path: po.ORCFile(path).read())
    return pa.concat_tables([read(path) for path in paths])


def arrow_rows(format: str, paths: Sequence[Path]) -> List[str]:
    """Each row as text, NaN and -0.0 included, in the files' order."""
    return [repr(row) for row in arrow_table(format, paths).to_pylist()]


def write_arrow(path: Path, columns: Dict[str, Any], **options: Any) -> None:
    """A Parquet file written by Arrow, without the metadata keys that say so."""
    path.parent.mkdir(parents=True, exist_ok=True)
    schema = options.pop("schema", None)
    pq.write_table(pa.table(columns, schema=schema), path, store_schema=False, **{"compression": "snappy", **options})


def bits(column: pa.ChunkedArray) -> object:
    """Equal only if the bits of floating-point numbers are equal."""
    whole = column.combine_chunks()
    kinds = {pa.float64(): pa.int64(), pa.float32(): pa.int32(), pa.float16(): pa.int16()}
    return whole.view(kinds[whole.type]) if whole.type in kinds else whole


# For a table with an id and columns of several types; none of its rows fits the second one.
QUESTIONS = ("text = 'é13'", "text = 'none of them'", "id between 700 and 720", "id = 440", "amount > 120", "odd >= 4", "text is null")


def ask_spark(spark: Any, format: str, place: Path) -> List[str]:
    """All rows of such a table, and what filters on statistics, Bloom filters and page indexes find."""
    table = spark.read.format(format).load(str(place))
    found = table.selectExpr("'all' question", "id", "crc32(encode(to_json(struct(*)), 'utf-8')) row")
    for question in QUESTIONS:
        found = found.union(table.where(question).selectExpr(f'"{question}"', "id", "0"))
    return sorted(map(repr, found.coalesce(1).collect()))
