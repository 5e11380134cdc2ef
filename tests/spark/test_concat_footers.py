"""Files that are made of whole files by concatenation show each reader the rows of those that their last footer is about, and no others."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any, List, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from foreign import footers, thrift
from hivekeeper.cluster.physical_copy import CopyTask, PhysicalCopy
from hivekeeper.cluster.rows import SparkRows
from support import foreign_files
from support.data_files import ask_spark, bits, listed
from support.pandas_files import counted, said_of, write_labelled

# Pages of Spark's tests are small, so that each split and each filter has pages and row groups to leave out.
SMALL = {"parquet.page.size": "2000", "parquet.block.row.count.limit": "100"}
# For as many values as a row group has: by default each has a filter of a megabyte, and the small splits below would be a thousand tasks.
WITH_BLOOM = {
    "parquet.bloom.filter.enabled#id": "true",
    "parquet.bloom.filter.expected.ndv#id": "100",
    "parquet.enable.dictionary#id": "false",
}
ROWS = 900
# Of a column chunk's metadata, of a column chunk (both page indexes), of a row group and its type.
DICTIONARY, BLOOM, INDEXES, ORDINAL, I16 = 11, 14, {4, 5, 6, 7}, 7, 4
MOST_ORDINAL = 32_767
# With a vectorized reader or without; the size of a split.
READERS = [("true", "10000"), ("false", "134217728")]


class Made(NamedTuple):
    """The bytes of each stage of an exchange, and of a rollback: the sources, their compacted copy, and files that are made of these."""

    sources: List[bytes]
    copy: bytes
    without_rows: bytes
    exchanged: bytes
    rolled_back: bytes


def footer_of(content: bytes) -> bytes:
    size = struct.unpack("<I", content[-footers.TAIL : -4])[0]
    return content[-footers.TAIL - size : -footers.TAIL]


def make(gateway: Any, source: Path) -> Made:
    target = source.parent / "copied" / "part-0.parquet"
    copier = PhysicalCopy(gateway)
    (answer,) = copier.copy(
        f"file:{source.parent}/attempts", [CopyTask(f"file:{target}", listed(source), "snappy", row_group_bytes=1 << 20)]
    )
    assert answer.failed == ""
    copy, sources = target.read_bytes(), [Path(file.path[len("file:") :]).read_bytes() for file in listed(source)]
    of_copy, made = gateway.helper("concat.JoinedParquetFooters"), gateway.helper("concat.JoinedParquetFooters")
    of_copy.add(footer_of(copy), 0)
    without_rows = copy + bytes(of_copy.withoutRows())
    exchanged = b"".join([without_rows, *sources, copy[len(footers.split(copy)[0]) :]])
    start = len(without_rows)
    for one in sources:
        made.add(footer_of(one), start)
        start += len(one)
    return Made(sources, copy, without_rows, exchanged, exchanged + bytes(made.over()))


@pytest.fixture(scope="module")
def by_spark(spark, gateway, tmp_path_factory) -> Made:
    place = tmp_path_factory.mktemp("concat") / "u"
    rows = spark.range(ROWS).selectExpr(
        "id",
        "if(id % 7 = 0, null, concat('é', id % 97)) text",
        "cast(id as decimal(18, 3)) / 7 amount",
        "timestamp_seconds(id * 977) at",
        "transform(sequence(0, id % 4), n -> named_struct('n', n, 'm', map(cast(n as string), id))) nested",
        "cast(id % 5 as double) odd",
    )
    rows.repartition(3).sortWithinPartitions("id").write.options(**SMALL, **WITH_BLOOM).parquet(str(place))
    return make(gateway, place)


def groups_of(footer: thrift.Struct) -> List[thrift.Struct]:
    return list(footer[footers.ROW_GROUPS][1][1])


def chunks_of(footer: thrift.Struct) -> List[thrift.Struct]:
    return [chunk for group in groups_of(footer) for chunk in group[footers.COLUMNS][1][1]]


def put(directory: Path, *contents: bytes) -> Path:
    directory.mkdir()
    for number, content in enumerate(contents):
        (directory / f"part-{number}.parquet").write_bytes(content)
    return directory


@pytest.mark.parametrize(("vectorized", "split"), READERS)
def test_spark_sees_every_row_once_at_every_stage(spark, by_spark, tmp_path, vectorized, split):
    options = {"spark.sql.parquet.enableVectorizedReader": vectorized, "spark.sql.files.maxPartitionBytes": split}
    before = {name: spark.conf.get(name) for name in options}
    try:
        for name, value in options.items():
            spark.conf.set(name, value)
        expected = ask_spark(spark, "parquet", put(tmp_path / "before", *by_spark.sources))
        assert sum("'all'" in row for row in expected) == ROWS
        for stage, contents in {
            "overlap": [*by_spark.sources, by_spark.without_rows],
            "exchanged": [by_spark.exchanged],
            "rolled back": [by_spark.rolled_back],
            "cleaned up": [by_spark.exchanged[: len(by_spark.copy)]],
        }.items():
            assert ask_spark(spark, "parquet", put(tmp_path / stage, *contents)) == expected, stage
        assert spark.read.parquet(str(put(tmp_path / "none", by_spark.without_rows))).count() == 0
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


@pytest.mark.parametrize("writer", ["plain", "v2-pages", "zstd"])
def test_arrow_sees_every_value_of_every_type_at_every_stage(gateway, tmp_path, writer):
    foreign_files.write_two(tmp_path / "u", foreign_files.table(), **foreign_files.WRITERS[writer], row_group_size=90)
    made = make(gateway, tmp_path / "u")
    expected = [pq.read_table(pa.BufferReader(one)) for one in made.sources]
    for content in (made.exchanged, made.rolled_back):
        found = pq.read_table(pa.BufferReader(content))
        assert found.schema.equals(expected[0].schema, check_metadata=True)
        for name, column in zip(found.column_names, pa.concat_tables(expected).columns):
            assert bits(found[name]).equals(bits(column)), name
    assert pq.read_table(pa.BufferReader(made.without_rows)).num_rows == 0
    assert made.exchanged[: len(made.copy)] == made.copy


def test_a_footer_over_sources_names_their_own_bytes(by_spark):
    """Every chunk, dictionary and Bloom filter is where the source has it; what cannot be moved is left out."""
    _, over = footers.split(by_spark.rolled_back)
    before = [(source, footers.split(source)[1]) for source in by_spark.sources]
    originals = [(source, chunk) for source, footer in before for chunk in chunks_of(footer)]
    blooms = 0
    assert len(chunks_of(over)) == len(originals) > 20
    for chunk, (source, original) in zip(chunks_of(over), originals):
        moved, was = chunk[footers.META][1], original[footers.META][1]
        for offset in (footers.DATA_PAGE, DICTIONARY, BLOOM):
            assert (offset in moved) == (offset in was)
            if offset in moved:
                at, there = moved[offset][1], was[offset][1]
                assert by_spark.rolled_back[at : at + 20] == source[there : there + 20]
        blooms += BLOOM in moved
        assert INDEXES & original.keys() and not INDEXES & chunk.keys()
    assert blooms > 0
    ordinals = [ORDINAL in group for _, footer in before for group in groups_of(footer)]
    assert [group[ORDINAL][1] for group in groups_of(over) if ORDINAL in group] == [at for at, has in enumerate(ordinals) if has]


def changed(content: bytes, change: Any) -> bytes:
    body, footer = footers.split(content)
    change(footer)
    return footer_of(footers.join(body, footer))


def rename(footer: thrift.Struct) -> None:
    footer[footers.CREATED_BY] = (thrift.BINARY, b"somebody")


def move_out(footer: thrift.Struct) -> None:
    chunks_of(footer)[0][1] = (thrift.BINARY, b"elsewhere.parquet")


def encrypt(footer: thrift.Struct) -> None:
    chunks_of(footer)[0][9] = (thrift.BINARY, b"?")


def take_metadata(footer: thrift.Struct) -> None:
    del chunks_of(footer)[0][footers.META]


@pytest.mark.parametrize(
    ("change", "why"), [(rename, "differ"), (move_out, "another file"), (encrypt, "encrypted"), (take_metadata, "without metadata")]
)
def test_what_cannot_stand_in_one_footer_is_refused(gateway, by_spark, change, why):
    made = gateway.helper("concat.JoinedParquetFooters")
    made.add(footer_of(by_spark.sources[0]), 0)
    with pytest.raises(Exception, match=why):
        made.add(changed(by_spark.sources[1], change), 10_000)


def give_version_2(footer: thrift.Struct) -> None:
    footer[1] = (thrift.I32, 2 if footer[1][1] == 1 else 1)


def drop_column_orders(footer: thrift.Struct) -> None:
    del footer[7]


def add_field(footer: thrift.Struct) -> None:
    footer[3000] = (thrift.BINARY, b"new")


@pytest.mark.parametrize("change", [give_version_2, drop_column_orders, add_field])
def test_files_that_differ_in_more_than_rows_are_known_before_they_are_copied(gateway, tmp_path, change):
    """Their rows may become one file, but no footer can be about both as they are."""
    for rows in (10, 20, 30):
        pq.write_table(pa.table({"a": range(rows)}), tmp_path / f"{rows}.parquet")
    body, footer = footers.split((tmp_path / "20.parquet").read_bytes())
    change(footer)
    (tmp_path / "20.parquet").write_bytes(footers.join(body, footer))
    found = SparkRows(gateway).footers("parquet", {0: listed(tmp_path)}, by_identity=True)[0].groups
    assert [sorted(group.rows.values()) for group in found] == [[10, 30], [20]]
    assert found[0].form.identity == found[1].form.identity
    assert found[0].form.layout != found[1].form.layout


def test_files_of_pandas_with_other_numbers_of_rows_stand_in_one_footer(gateway, tmp_path):
    for rows in (10, 99, 45):
        write_labelled(tmp_path / "u", rows, [counted(rows)])
    made = make(gateway, tmp_path / "u")
    (group,) = SparkRows(gateway).footers("parquet", {0: listed(tmp_path / "u")}, by_identity=True)[0].groups
    assert group.row_count == 154
    (tmp_path / "rolled-back.parquet").write_bytes(made.rolled_back)
    assert [said["index_columns"] for said in said_of(tmp_path / "rolled-back.parquet")] == [[], []]
    assert pq.read_table(tmp_path / "rolled-back.parquet").num_rows == 154


def test_fields_of_a_later_format_stay_and_an_ordinal_of_16_bits_ends(gateway):
    def add_fields(footer: thrift.Struct) -> None:
        footer[3000] = (thrift.BINARY, b"new")
        for number, group in enumerate(groups_of(footer)):
            group[ORDINAL] = (I16, number)
            group[40] = (thrift.I32, 7)

    written = pa.BufferOutputStream()
    pq.write_table(pa.table({"a": range(500)}), written, row_group_size=1, write_statistics=False, use_dictionary=False)
    source, made = changed(written.getvalue().to_pybytes(), add_fields), gateway.helper("concat.JoinedParquetFooters")
    for _ in range(MOST_ORDINAL // 500 + 1):
        made.add(source, 4)
    _, over = footers.split(b"PAR1" + bytes(made.over()))
    assert over[3000] == (thrift.BINARY, b"new")
    assert all(group[40] == (thrift.I32, 7) for group in groups_of(over))
    assert [ORDINAL in group for group in groups_of(over)[MOST_ORDINAL:][:2]] == [True, False]
