"""A copy of ORC files keeps every value and all that says what it means: Arrow and ORC's own reader read sources and outputs."""

from __future__ import annotations

from pathlib import Path
from typing import List, Sequence

import pyarrow as pa
import pyarrow.orc as po
import pytest

from hivekeeper.cluster.physical_copy import Answer, CopyTask, PhysicalCopy
from support import orc_files
from support.data_files import listed


@pytest.fixture
def copier(gateway):
    return PhysicalCopy(gateway)


def copy_all(copier: PhysicalCopy, sources: Sequence[Path], codec: str = "zlib", **more: object) -> List[Answer]:
    tasks = [CopyTask(f"file:{output_of(source)}", listed(source), codec, format="orc", **more) for source in sources]
    return copier.copy(f"file:{sources[0].parent}/attempts", tasks)


def output_of(source: Path) -> Path:
    return source.parent / "out" / source.name / "part-0.orc"


def copy_and_prove(copier: PhysicalCopy, source: Path, codec: str = "zlib", **more: object) -> Answer:
    """Copy a directory; the output's digest and identity are those of its sources."""
    (answer,) = copy_all(copier, [source], codec, **more)
    assert answer.failed == ""
    assert copier.digest([listed(source)], format="orc") == [answer]
    assert copier.digest([listed(output_of(source).parent)], check_claims=True, format="orc") == [answer]
    return answer


def arrow_rows(*paths: Path) -> List[str]:
    tables = [po.ORCFile(path).read() for path in paths]
    # Python's own times have no nanoseconds.
    numbers = [[column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column for column in table.columns] for table in tables]
    return [repr(row) for columns in numbers for row in zip(*(column.to_pylist() for column in columns))]


def test_files_of_arrow_are_copied(copier, tmp_path):
    source = tmp_path / "u"
    orc_files.write_arrow(source, orc_files.arrow_columns())
    copy_and_prove(copier, source)
    assert arrow_rows(output_of(source)) == arrow_rows(source / "0.orc", source / "1.orc")
    assert po.ORCFile(output_of(source)).schema == po.ORCFile(source / "0.orc").schema


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Australia/Lord_Howe"])
@pytest.mark.parametrize("proleptic", [False, True])
def test_every_type_is_copied_with_what_says_how_to_read_it(gateway, copier, tmp_path, zone, proleptic):
    source = tmp_path / "u"
    orc_files.write_java(gateway, source, zone=zone, proleptic=proleptic)
    assert copy_and_prove(copier, source).digest.rows == 6000
    java, paths = orc_files.fixture(gateway), [file.path for file in listed(source)]
    for reader in ("UTC", "America/New_York", "Europe/Berlin"):
        assert java.read(f"file:{output_of(source)}", reader) == java.read("\n".join(paths), reader)
    assert java.describe(f"file:{output_of(source)}") == java.describe(paths[0])
