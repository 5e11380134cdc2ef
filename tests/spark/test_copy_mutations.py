"""Each fault built into the copier is found: by its own checks, or because the output's digest is not that of the source."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hivekeeper.cluster.gateway import Gateway
from hivekeeper.cluster.java_classes import JavaPackage, compiled, read_sources
from hivekeeper.cluster.physical_copy import CopyTask, PhysicalCopy, ship
from support import foreign_files, orc_files
from support.data_files import listed

WRITE = "      if (writer != null) writer.write(value, repetition, level);\n"
ZEROS = "Binary.fromConstantByteArray(new byte[value.length()])"

# What is built in: the class, its text, and the text in place of it.
FAULTS = {
    "a-changed-bit": ("ColumnCopier", f"{WRITE}      return value;", f"{WRITE}      return value;".replace("(value,", "(value ^ 1,")),
    "a-wrong-level": ("ColumnCopier", "writer.writeNull(repetition, level)", "writer.writeNull(repetition, Math.max(0, level - 1))"),
    "a-wrong-repetition": ("ColumnCopier", "writer.writeNull(repetition, level)", "writer.writeNull(0, level)"),
    "other-bytes": ("ColumnCopier", f"{WRITE[2:]}    return hash", f"{WRITE[2:]}    return hash".replace("(value,", f"({ZEROS},")),
    "a-nan-made-canonical": ("NanPlainWriter", "doubleToRawLongBits", "doubleToLongBits"),
    "an-odd-nan-not-seen": ("ColumnCopier", "value != value && bits != CANONICAL_DOUBLE", "false"),
    "swapped-columns": ("ParquetMerge", "merged.column(i)", "merged.column(i < 2 ? 1 - i : i)"),
    "a-skipped-page": ("ParquetMerge", "merged == null ?", "merged == null || i == 1 && digest.rows > 0 ?"),
    "the-last-row-not-read": ("ParquetMerge", "pages.getRowCount()", "pages.getRowCount() - 1"),
    "the-last-row-not-written": ("ParquetMerge", "merged.endRows(rows)", "merged.endRows(rows - 1)"),
    "a-row-group-not-read": ("ParquetMerge", "getRowCount() == 0) {", "getRowCount() == 0 || declared > 300) {"),
    "a-row-group-not-written": ("MergedFile", "if (rows > 0) {", "if (rows > 4000) {"),
    "a-file-not-read": ("CopyTask", "merge.add(path,", 'if (!path.endsWith("b")) merge.add(path,'),
    "all-but-the-first-file-not-read": ("CopyTask", "merge.add(path,", "if (merge.digest.rows == 0) merge.add(path,"),
    "the-librarys-own-footer": ("MergedFile", "new RawFooter(own).withMeaningOf(source.raw)", "own"),
}


BATCH = "writer.addRowBatch(batch);"

ORC_FAULTS = {
    "a-batch-not-written": ("OrcMerge", BATCH, f"if (digest.rows > 1024) {BATCH}"),
    "a-row-not-written": ("OrcMerge", BATCH, f"batch.size -= digest.rows > 1024 ? 1 : 0; {BATCH}"),
    "columns-swapped": ("OrcMerge", BATCH, f"batch.cols[0] = batch.cols[1]; {BATCH}"),
    "another-bit": ("OrcColumn", "      add(hashes, i, value);", "      add(hashes, i, value); vector.vector[places[i]] ^= 1;"),
    "a-null-lost": ("OrcColumn", "    if (found > 0)", "    if (id == 4) vector.noNulls = true;\n    if (found > 0)"),
    "a-file-skipped": ("CopyTask", "merge.add(path,", 'if (path.endsWith("0.orc")) merge.add(path,'),
    "a-stripe-not-read": ("OrcMerge", "source.reader.getStripes())", "source.reader.getStripes().subList(0, 0))"),
    "chars-trimmed": ("OrcSource", 'kind.equals("CHAR") || ', ""),
    "another-zone": ("OrcOutput", "footer.setWriterTimezone(zone.id)", 'footer.setWriterTimezone("UTC")'),
    "bounds-not-of-the-wall-clock": ("OrcOutput", "zone.correct(statistics)", "zone.correct(OrcProto.ColumnStatistics.newBuilder())"),
    "no-user-metadata": ("OrcOutput", ".addAllMetadata(source.footer.getMetadataList())", ""),
    "another-calendar": ("OrcOutput", "if (source.footer.hasCalendar())", "if (false)"),
}


class MutatedCopy(PhysicalCopy):
    """The copier with one fault, in a package of its own."""

    def __init__(self, gateway: Gateway, name: str) -> None:
        super().__init__(gateway)
        file, right, wrong = {**FAULTS, **ORC_FAULTS}[name]
        sources = read_sources("copy")
        changed = [one._replace(text=one.text.replace(right, wrong)) if one.name == f"{file}.java" else one for one in sources]
        assert sum(one != other for one, other in zip(sources, changed)) == 1
        self.package = JavaPackage(gateway.jvm, f"hivekeeper.{name.replace('-', '_')}", changed, compiled(gateway.java_gateway).loader)

    @cached_property
    def _jobs(self) -> Any:
        self.jar = ship(self.gateway, [self.package])
        return compiled(self.gateway.java_gateway).factory.make(self.package.find("CopyJobs"), self.gateway.spark.sparkContext._jsc)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two files of 600 and 300 rows, in row groups of 150."""
    content = {
        "a": pa.array(range(600)),
        "b": pa.array(range(600, 1200)),
        "text": pa.array(["x", None, "yz"] * 200),
        "lists": pa.array([[1, None, 2], [None], None] * 200),
        "doubles": pa.array([foreign_files.ODD_NAN, 1.0, -0.0] * 200),
    }
    directory = tmp_path_factory.mktemp("copied") / "u"
    foreign_files.write_two(directory, pa.table(content))
    return directory


def is_found(gateway: Gateway, copier: PhysicalCopy, source: Path, target: Path) -> bool:
    """Whether anything differs that the plan compares: the footers' rows, and digest and identity of source and output."""
    (answer,) = copier.copy(f"file:{target / 'attempts'}", [CopyTask(f"file:{target / 'out' / 'a'}", listed(source), "snappy")])
    if answer.failed or answer.digest.rows != 900:
        return True
    return PhysicalCopy(gateway).digest([listed(target / "out")]) != [answer]


def test_without_a_fault_nothing_is_found(gateway, source, tmp_path):
    assert not is_found(gateway, PhysicalCopy(gateway), source, tmp_path)
    assert pq.read_metadata(tmp_path / "out" / "a").num_rows == 900


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_in_the_copier_is_found(gateway, source, tmp_path, name):
    PhysicalCopy(gateway).digest([listed(source)])
    assert is_found(gateway, MutatedCopy(gateway, name), source, tmp_path)


@pytest.fixture(scope="module")
def orc_source(gateway: Gateway, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two files of 3,000 rows."""
    directory = tmp_path_factory.mktemp("copied") / "u"
    schema = "struct<id:bigint,other:bigint,at:timestamp,name:string,fixed:char(5)>"
    orc_files.write_java(gateway, directory, schema=schema, zone="America/New_York", step=60_000)
    return directory


def is_found_in_orc(gateway: Gateway, copier: PhysicalCopy, source: Path, target: Path) -> bool:
    task = CopyTask(f"file:{target / 'out' / 'a'}", listed(source), "snappy", format="orc")
    (answer,) = copier.copy(f"file:{target / 'attempts'}", [task])
    if answer.failed or answer.digest.rows != 6000:
        return True
    return PhysicalCopy(gateway).digest([listed(target / "out")], check_claims=True, format="orc") != [answer]


def test_without_a_fault_nothing_is_found_in_orc(gateway, orc_source, tmp_path):
    assert not is_found_in_orc(gateway, PhysicalCopy(gateway), orc_source, tmp_path)


@pytest.mark.parametrize("name", ORC_FAULTS)
def test_a_fault_in_the_orc_copier_is_found(gateway, orc_source, tmp_path, name):
    PhysicalCopy(gateway).digest([listed(orc_source)], format="orc")
    assert is_found_in_orc(gateway, MutatedCopy(gateway, name), orc_source, tmp_path)
