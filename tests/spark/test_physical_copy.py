"""A physical copy keeps every value and all that says what it means: Arrow, whose readers differ, reads sources and outputs."""

from __future__ import annotations

from pathlib import Path
from typing import List, Sequence

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hivekeeper.cluster.physical_copy import Answer, CopyTask, PhysicalCopy
from support import foreign_files
from support.data_files import listed


@pytest.fixture
def copier(gateway):
    return PhysicalCopy(gateway)


def copy_one(copier: PhysicalCopy, source: Path, codec: str = "snappy", **more: object) -> Answer:
    (answer,) = copy_all(copier, [source], codec, **more)
    return answer


def copy_all(copier: PhysicalCopy, sources: Sequence[Path], codec: str = "snappy", **more: object) -> List[Answer]:
    tasks = [CopyTask(f"file:{output_of(source)}", listed(source), codec, **more) for source in sources]
    return copier.copy(f"file:{sources[0].parent}/attempts", tasks)


def output_of(source: Path) -> Path:
    return source.parent / "out" / source.name / "part-0.parquet"


def bits(column: pa.ChunkedArray) -> object:
    """Equal only if the bits of floating-point numbers are equal."""
    whole = column.combine_chunks()
    kinds = {pa.float64(): pa.int64(), pa.float32(): pa.int32(), pa.float16(): pa.int16()}
    return whole.view(kinds[whole.type]) if whole.type in kinds else whole


def assert_copied(source: Path) -> None:
    inputs = [pq.ParquetFile(file.path[len("file:") :]) for file in listed(source)]
    output = pq.ParquetFile(output_of(source))
    before, after = pa.concat_tables([file.read() for file in inputs]), output.read()
    assert after.schema.equals(before.schema, check_metadata=True)
    for name in before.schema.names:
        one, other = bits(before[name]), bits(after[name])
        assert one.equals(other) or repr(one.to_pylist()) == repr(other.to_pylist()), name
    assert output.schema.equals(inputs[0].schema)
    assert output.metadata.metadata == inputs[0].metadata.metadata
    assert output.metadata.created_by == inputs[0].metadata.created_by


def test_files_of_every_type_and_encoding_are_copied(copier, tmp_path):
    names = foreign_files.write_all(tmp_path)
    sources = [tmp_path / name for name in names]
    answers = copy_all(copier, sources)
    read = copier.digest([listed(output_of(source).parent) for source in sources])
    for source, answer, again in zip(sources, answers, read):
        assert answer.failed == "", source.name
        assert again == answer
        assert_copied(source)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*names, "out"])
