"""Bloom filters in a copy hide no row from readers that trust them, and cost no more than their values need."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Sequence

import pyarrow as pa
import pyarrow.orc as po
import pyarrow.parquet as pq
import pytest

from foreign import footers
from hivekeeper.cluster.physical_copy import CopyTask, PhysicalCopy, as_asked
from support.data_files import listed

BLOOM_FILTER = 14
ROWS = 40_000


@pytest.fixture
def copier(gateway):
    return PhysicalCopy(gateway)


def copy_with_blooms(copier: PhysicalCopy, columns: pa.Table, source: Path, blooms: Sequence[str], **options: object) -> Path:
    source.mkdir()
    pq.write_table(columns, source / "a", use_dictionary=False, compression="zstd", **options)
    target = source.parent / "out" / "a"
    (answer,) = copier.copy(f"file:{source.parent}/attempts", [CopyTask(f"file:{target}", listed(source), "zstd", blooms)])
    assert answer.failed == ""
    return target


def filtered(path: Path) -> Sequence[str]:
    _, footer = footers.split(path.read_bytes())
    return [chunk[3][1][1][0].decode() for chunk in footers.chunks(footer) if BLOOM_FILTER in chunk]


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32()])
@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_filters_find_zeros_of_either_sign(spark, copier, tmp_path, kind, zero):
    """Writers leave out the filters of some row groups, so a source may have had none for this one."""
    numbers = [zero, -1.0, *(row / 3 for row in range(3, ROWS))]
    target = copy_with_blooms(copier, pa.table({"x": pa.array(numbers, kind)}), tmp_path / "u", ["x"])
    assert filtered(target) == ["x"]
    for sign in ("", "-"):
        condition = f"x = {sign}{'double' if kind == pa.float64() else 'float'}(0)"
        assert [spark.read.parquet(f"file:{place}").where(condition).count() for place in (tmp_path / "u", target)] == [1, 1]


@pytest.mark.parametrize(("kind", "bits"), [(pa.float64(), 0xFFF8000000000001), (pa.float32(), 0xFFC00001)])
def test_filters_find_a_nan_of_any_bits(spark, copier, tmp_path, kind, bits):
    """Readers look for the canonical one."""
    whole = pa.uint64() if kind == pa.float64() else pa.uint32()
    numbers = pa.concat_arrays([pa.array([bits], whole).view(kind), pa.array(range(3, ROWS), kind)])
    target = copy_with_blooms(copier, pa.table({"x": numbers}), tmp_path / "u", ["x"], write_statistics=False)
    assert filtered(target) == ["x"]
    condition = f"x = {'double' if kind == pa.float64() else 'float'}('NaN')"
    assert [spark.read.parquet(f"file:{place}").where(condition).count() for place in (tmp_path / "u", target)] == [1, 1]


def test_every_value_is_found_and_few_others(spark, copier, tmp_path):
    target = copy_with_blooms(copier, pa.table({"x": [str(row) for row in range(0, 3 * ROWS, 3)]}), tmp_path / "u", ["x"])
    assert filtered(target) == ["x"]
    parquet, place = spark._jvm.org.apache.parquet, spark._jvm.org.apache.hadoop.fs.Path(f"file:{target}")
    reader = parquet.hadoop.ParquetFileReader.open(spark._jsc.hadoopConfiguration(), place)
    bloom = reader.readBloomFilter(reader.getRowGroups().get(0).getColumns().get(0))
    reader.close()
    assert bloom.getBitsetSize() == 64 << 10
    found = [bloom.findHash(bloom.hash(parquet.io.api.Binary.fromString(str(number)))) for number in range(3000)]
    assert all(found[::3])
    assert sum(found) < 1100


def test_a_boolean_has_no_filter(copier, tmp_path):
    """The library adds no boolean, so readers would find neither value in it."""
    numbers = pa.table({"b": [True, False] * (ROWS // 2), "x": pa.array(range(ROWS))})
    assert filtered(copy_with_blooms(copier, numbers, tmp_path / "u", ["b", "x"])) == ["x"]


def test_a_boolean_has_no_filter_in_place_of_another_column(copier, tmp_path):
    """The library cuts a name at its dots, so it takes `b.` for `b`."""
    numbers = pa.table({"b": [True, False] * (ROWS // 2), "b.": pa.array(range(ROWS)), "x": pa.array(range(ROWS))})
    assert filtered(copy_with_blooms(copier, numbers, tmp_path / "u", ["b.", "x"])) == ["x"]


def test_many_filters_of_few_values_are_small(copier, tmp_path):
    """A mebibyte for each column would be more than a copy may become larger than its source."""
    names = [f"c{number}" for number in range(40)]
    target = copy_with_blooms(copier, pa.table({name: pa.array(range(500)) for name in names}), tmp_path / "u", names)
    assert sorted(filtered(target)) == sorted(names)
    assert target.stat().st_size < 1 << 20


def test_the_filters_that_a_footer_claims_are_bounded_together(copier, tmp_path):
    """The session's heap is 1 GiB."""
    names = [f"c{number}" for number in range(2000)]
    copy_with_blooms(copier, pa.table({name: [1] for name in names}), tmp_path / "u", names)


def test_the_filters_of_row_groups_that_end_early_count_as_values(copier, tmp_path):
    """With numbers of 8 bits there are 128 categories to a row group, however few rows that has."""
    (tmp_path / "u").mkdir()
    for number in range(3):
        column = pa.DictionaryArray.from_arrays(pa.array(range(100), pa.int8()), [f"{number} {name}" for name in range(100)])
        pq.write_table(pa.table({"x": column}), tmp_path / "u" / f"{number}")
    unread = []
    for name, blooms in (("with", ["x"]), ("without", [])):
        files = listed(tmp_path / "u")
        asked = {**CopyTask(f"file:{tmp_path}/out/{name}", files, "zstd", blooms)._asdict(), "files": list(map(as_asked, files))}
        (answer,) = json.loads(copier._jobs.copy(f"file:{tmp_path}/attempts", json.dumps([{**asked, "values": 1 << 30}])))
        assert pq.read_metadata(tmp_path / "out" / name).num_row_groups == 3
        unread.append(answer["unread"])
    assert unread[1] - unread[0] == 2 * (1 << 20) // 64


def test_filters_of_orc_are_not_made_for_as_many_rows_as_a_footer_claims(copier, tmp_path):
    """Each would take 240 MB, and the session's heap is 1 GiB."""
    (tmp_path / "u").mkdir()
    numbers = pa.table({f"c{number}": [number] for number in range(3)})
    po.write_table(numbers, str(tmp_path / "u" / "a"), row_index_stride=200_000_000, bloom_filter_columns=[1, 2, 3], compression="zlib")
    target = f"file:{tmp_path}/out/a"
    (answer,) = copier.copy(f"file:{tmp_path}/attempts", [CopyTask(target, listed(tmp_path / "u"), "zlib", format="orc")])
    assert (answer.failed, answer.digest.rows) == ("", 1)
    assert po.ORCFile(tmp_path / "out" / "a").row_index_stride == 1 << 20
