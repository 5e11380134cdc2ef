"""ORC files that are made of whole files by concatenation show each reader the rows of those that their last footer is about."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

import pyarrow as pa
import pyarrow.orc as po
import pytest

from hivekeeper.cluster.physical_copy import CopyTask
from hivekeeper.cluster.rows import SparkRows
from hivekeeper.model import Ends
from support import orc_files
from support.data_files import QUESTIONS, ask_spark, listed
from support.orc_bombs import message

ROWS = 9000
# Each file has several stripes, so that each split and each filter has some to leave out.
SMALL = {
    "orc.stripe.size": "4096",
    "orc.stripe.row.count": "1000",
    "orc.compress.size": "1024",
    "orc.rows.between.memory.checks": "500",
    "orc.bloom.filter.columns": "id",
}
# With a vectorized reader or without; the size of a split.
READERS = [("true", "20000"), ("false", "134217728")]


class Made(NamedTuple):
    """The files of each stage of an exchange and of a rollback: the sources, and one file each with old rows, none, and those of a copy."""

    sources: List[Path]
    without_rows: Path
    exchanged: Path
    rolled_back: Path
    alone: Path
    copy_bytes: int


@pytest.fixture(scope="module")
def rows(gateway) -> SparkRows:
    return SparkRows(gateway)


def make(rows: SparkRows, source: Path, codec: str = "zlib") -> Made:
    top = source.parent
    copy, files = top / "copied" / "copy.orc", listed(source)
    assert rows.find_unlike("orc", {1: files}) == {}
    (answer,) = rows.physical.copy(f"file:{top}/attempts", [CopyTask(f"file:{copy}", files, codec, row_group_bytes=1 << 20, format="orc")])
    assert answer.failed == ""
    (of_copy,) = listed(copy.parent)
    places = {name: top / name / f"{name}.orc" for name in ("without_rows", "exchanged", "rolled_back", "alone")}
    for place in places.values():
        place.parent.mkdir()
    assert rows.write_ends("orc", {1: Ends(of_copy, f"file:{top}/end", f"file:{top}/tail", f"file:{places['alone']}")}) == {}
    sources = [Path(file.path[len("file:") :]) for file in files]
    places["without_rows"].write_bytes(copy.read_bytes() + (top / "end").read_bytes())
    inner = [source.read_bytes() for source in sources]
    places["exchanged"].write_bytes(b"".join([places["without_rows"].read_bytes(), *inner, (top / "tail").read_bytes()]))
    holder = listed(places["exchanged"].parent)[0]._replace(file_id=places["exchanged"].stat().st_ino)
    begin = places["without_rows"].stat().st_size
    rows.write_restored("orc", holder, begin, [len(one) for one in inner], f"file:{places['rolled_back']}")
    return Made(sources, copy_bytes=of_copy.length, **places)


@pytest.fixture(scope="module")
def by_spark(spark, rows, tmp_path_factory) -> Made:
    place = tmp_path_factory.mktemp("joined") / "u"
    content = spark.range(ROWS).selectExpr(
        "id",
        "if(id % 7 = 0, null, concat('é', id % 97)) text",
        "cast(id as decimal(18, 3)) / 7 amount",
        "timestamp_seconds(id * 977) at",
        "transform(sequence(0, id % 4), n -> named_struct('n', n, 'm', map(cast(n as string), id))) nested",
        "if(id = 5, double('nan'), cast(id % 5 as double)) odd",
        "id % 2 = 0 even",
        "date_add(date'2020-01-01', cast(id as int)) day",
        "encode(cast(id as string), 'utf-8') raw",
    )
    content.repartition(3).sortWithinPartitions("id").write.options(**SMALL).orc(str(place))
    return make(rows, place)


def put(directory: Path, *contents: bytes) -> Path:
    directory.mkdir()
    for number, content in enumerate(contents):
        (directory / f"part-{number}.orc").write_bytes(content)
    return directory


@pytest.mark.parametrize(("vectorized", "split"), READERS)
def test_spark_sees_every_row_once_at_every_stage(spark, by_spark, tmp_path, vectorized, split):
    options = {
        "spark.sql.orc.enableVectorizedReader": vectorized,
        "spark.sql.orc.enableNestedColumnVectorizedReader": vectorized,
        "spark.sql.files.maxPartitionBytes": split,
    }
    before = {name: spark.conf.get(name) for name in options}
    try:
        for name, value in options.items():
            spark.conf.set(name, value)
        sources = [source.read_bytes() for source in by_spark.sources]
        expected = ask_spark(spark, "orc", put(tmp_path / "before", *sources))
        assert sum("'all'" in row for row in expected) == ROWS
        assert len({row.split(",")[0] for row in expected}) == len(QUESTIONS), "all questions but that for none"
        exchanged = by_spark.exchanged.read_bytes()
        for stage, contents in {
            "overlap": [*sources, by_spark.without_rows.read_bytes()],
            "exchanged": [exchanged],
            "rolled back": [by_spark.rolled_back.read_bytes()],
            "cleaned up": [exchanged[: by_spark.copy_bytes]],
            "beside": [exchanged, by_spark.alone.read_bytes()],
        }.items():
            assert ask_spark(spark, "orc", put(tmp_path / stage, *contents)) == expected, stage
        assert spark.read.orc(str(put(tmp_path / "none", by_spark.without_rows.read_bytes()))).count() == 0
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


@pytest.mark.parametrize("compression", ["uncompressed", "zlib", "zstd"])
def test_arrow_sees_every_value_at_every_stage(rows, tmp_path, compression):
    source = tmp_path / "u"
    source.mkdir()
    # Buffers so small that a footer takes several of them.
    options: Dict[str, Any] = {"compression": compression, "compression_block_size": 1024, "stripe_size": 4096}
    tables = [pa.table({f"column_{n}": pa.array(range(first, first + 2000)) for n in range(60)}) for first in (0, 5000, 70_000)]
    for number, table in enumerate(tables):
        po.write_table(table, source / f"{number}.orc", **options)
    made = make(rows, source, codec="none" if compression == "uncompressed" else compression)
    for file in (made.exchanged, made.rolled_back):
        assert po.read_table(file) == pa.concat_tables(tables), file
    for file in (made.without_rows, made.alone):
        assert po.read_table(file) == tables[0].slice(0, 0), file


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
@pytest.mark.parametrize("proleptic", [False, True])
def test_orcs_own_reader_sees_every_type_in_its_zone_and_calendar(gateway, rows, tmp_path, zone, proleptic):
    source = tmp_path / "u"
    orc_files.write_java(gateway, source, zone=zone, proleptic=proleptic)
    made, java = make(rows, source), orc_files.fixture(gateway)
    sources = "\n".join(f"file:{path}" for path in made.sources)
    for file in (made.exchanged, made.rolled_back):
        for reader in ("UTC", "Europe/Berlin"):
            assert java.read(f"file:{file}", reader) == java.read(sources, reader)
        # With the zone of each stripe at its end.
        assert java.describe(f"file:{file}").startswith(java.describe(f"file:{made.sources[0]}"))
    assert java.read(f"file:{made.without_rows}", "UTC") == ""
    forms = [
        [(group.form.identity, group.row_count) for group in of_file.groups]
        for of_file in rows.footers("orc", {0: listed(source), 1: listed(made.rolled_back.parent)}, by_identity=True).values()
    ]
    assert forms[0] == forms[1]


def test_a_footer_over_sources_has_their_statistics(gateway, rows, by_spark):
    read = rows.footers("orc", {"sources": listed(by_spark.sources[0].parent), "one": listed(by_spark.rolled_back.parent)})
    (sources,), (one,) = read["sources"].groups, read["one"].groups
    known = dict(one.columns)
    # One of the sources has a NaN.
    assert known.pop("odd").low is None
    assert known == {name: facts for name, facts in sources.columns.items() if name != "odd"}
    assert known["id"].high == str(ROWS - 1)
    assert bounds_of_stripes(gateway, by_spark.rolled_back) == [
        bounds for source in by_spark.sources for bounds in bounds_of_stripes(gateway, source)
    ]
    assert len(bounds_of_stripes(gateway, by_spark.rolled_back)) > 2 * len(by_spark.sources)


@pytest.mark.parametrize("first", [0, 1])
def test_no_bounds_are_better_than_those_of_some_files(spark, rows, tmp_path, first):
    """The library's own merge takes the bounds of one file for those of both, if the other has none."""
    source = tmp_path / "u"
    source.mkdir()
    po.write_table(pa.table({"x": [float("nan"), 7e9]}), source / f"{first}.orc")
    po.write_table(pa.table({"x": [1.0, 2.0]}), source / f"{1 - first}.orc")
    made = make(rows, source)
    (group,) = rows.footers("orc", {0: listed(made.rolled_back.parent)})[0].groups
    assert (group.columns["x"].low, group.columns["x"].high, group.columns["x"].nulls) == (None, None, 0)
    assert spark.read.orc(str(made.rolled_back)).where("x > 1e9 and not isnan(x)").count() == 1


@pytest.mark.parametrize("first", [0, 1])
def test_files_come_back_although_one_says_nothing_of_its_numbers(spark, rows, tmp_path, first):
    """Trino's writer leaves out the statistics of numbers of a column with a NaN."""
    source = tmp_path / "u"
    source.mkdir()
    for number, values in ((first, [1.0, 2.0]), (1 - first, [float("nan"), 7e9])):
        po.write_table(pa.table({"x": values}), source / f"{number}.orc", compression="uncompressed")
    file = source / f"{1 - first}.orc"
    file.write_bytes(with_tail(file.read_bytes(), statistics=[message((1, 2), (10, 0))] * 2))
    made = make(rows, source, codec="none")
    (group,) = rows.footers("orc", {0: listed(made.rolled_back.parent)})[0].groups
    assert (group.columns["x"].low, group.columns["x"].high, group.columns["x"].nulls) == (None, None, 0)
    assert spark.read.orc(str(made.rolled_back)).where("x > 1e9 and not isnan(x)").count() == 1


def test_files_that_count_nothing_are_read_in_full(spark, rows, tmp_path):
    """ORC's Java writer says 0 values of every column if it writes no index."""
    source = tmp_path / "u"
    spark.range(0, 90, 1, 3).write.option("orc.create.index", "false").orc(str(source))
    made = make(rows, source)
    read = rows.footers("orc", {"sources": listed(source), "one": listed(made.rolled_back.parent)})
    assert read["one"].groups[0].columns == read["sources"].groups[0].columns
    assert spark.read.orc(str(made.rolled_back)).where("id in (5, 45, 85)").count() == 3


def with_tail(content: bytes, metadata_bytes: Optional[int] = None, statistics: Optional[Sequence[bytes]] = None) -> bytes:
    """The same ORC file, which is not compressed, with fewer bytes of what it says of each stripe, or other statistics of its columns."""
    tail = dict(fields(content[-1 - content[-1] : -1]))
    before_footer = len(content) - 1 - content[-1] - number_in(tail[FOOTER_LENGTH])
    footer = content[before_footer : -1 - content[-1]]
    if statistics is not None:
        kept = b"".join(field for number, field in fields(footer) if number != STATISTICS)
        footer = kept + message(*[(STATISTICS, one) for one in statistics])
    known_bytes = number_in(tail[METADATA_LENGTH])
    left = known_bytes if metadata_bytes is None else metadata_bytes
    tail.update({FOOTER_LENGTH: message((FOOTER_LENGTH, len(footer))), METADATA_LENGTH: message((METADATA_LENGTH, left))})
    postscript = b"".join(tail.values())
    before_metadata = before_footer - known_bytes
    return content[: before_metadata + left] + footer + postscript + bytes([len(postscript)])


# In `orc_proto.proto`: of a postscript, and of a footer.
FOOTER_LENGTH, METADATA_LENGTH = 1, 5
STATISTICS = 7


def fields(content: bytes) -> List[Tuple[int, bytes]]:
    """Those of a message, each with its number and as it is stored."""
    found, at = [], 0
    while at < len(content):
        begin = at
        tag, at = varint(content, at)
        size, after = varint(content, at)
        at = after + size if tag & 7 == 2 else after
        found.append((tag >> 3, content[begin:at]))
    return found


def number_in(field: bytes) -> int:
    return varint(field, varint(field, 0)[1])[0]


def varint(content: bytes, at: int) -> Tuple[int, int]:
    value = shift = 0
    while True:
        value |= (content[at] & 127) << shift
        shift, at = shift + 7, at + 1
        if content[at - 1] < 128:
            return value, at


def open_file(gateway: Any, file: Path) -> Any:
    options = gateway.jvm.org.apache.orc.OrcFile.readerOptions(gateway.hadoop_conf)
    return gateway.jvm.org.apache.orc.OrcFile.createReader(gateway.jvm.org.apache.hadoop.fs.Path(f"file:{file}"), options)


def bounds_of_stripes(gateway: Any, file: Path) -> List[Tuple[int, int]]:
    reader = open_file(gateway, file)
    found = [stripe.getColStats(1).getIntStatistics() for stripe in reader.getOrcProtoStripeStatistics()]
    reader.close()
    return [(bounds.getMinimum(), bounds.getMaximum()) for bounds in found]


@pytest.mark.parametrize("without", [(), (0,), (1,)])
def test_statistics_of_stripes_are_left_out_where_a_file_has_none(gateway, rows, tmp_path, without):
    """Readers, such as Hive's, find them by the number of the stripe, so those of one file would be taken for those of another."""
    source = tmp_path / "u"
    source.mkdir()
    for number, values in enumerate([[1, 2], [7, 8]]):
        file = source / f"{number}.orc"
        po.write_table(pa.table({"x": values}), file, compression="uncompressed")
        if number in without:
            file.write_bytes(with_tail(file.read_bytes(), metadata_bytes=0))
    made = make(rows, source, codec="none")
    assert bounds_of_stripes(gateway, made.rolled_back) == ([] if without else [(1, 2), (7, 8)])
    assert po.read_table(made.rolled_back)["x"].to_pylist() == [1, 2, 7, 8]


@pytest.mark.parametrize("without", [(0,), (1,), (0, 1)])
@pytest.mark.parametrize("said", [[], [message((1, 0), (10, 0))] * 2])
def test_no_reader_takes_a_column_for_nulls_only_because_a_file_counts_nothing(gateway, rows, tmp_path, without, said):
    """ORC's C++ library (Impala) does if there may be NULLs, and no value is counted: its filters find nothing in such a file."""
    source = tmp_path / "u"
    source.mkdir()
    for number in (0, 1):
        file = source / f"{number}.orc"
        po.write_table(pa.table({"x": [number, None]}), file, compression="uncompressed")
        if number in without:
            file.write_bytes(with_tail(file.read_bytes(), statistics=said))
    made = make(rows, source, codec="none")
    reader = open_file(gateway, made.rolled_back)
    # Nor for one without NULLs, which Trino does if there are as many values as rows.
    assert reader.getOrcProtoFileStatistics().get(1).getNumberOfValues() == reader.getNumberOfRows() + 1 == 5
    reader.close()
    (group,) = rows.footers("orc", {0: listed(made.rolled_back.parent)})[0].groups
    assert group.columns["x"].nulls is None
    assert po.read_table(made.rolled_back)["x"].to_pylist() == [0, None, 1, None]


ENDLESS = 2**63
COUNTS = {
    "sound": [2, 1, 2, 5],
    "negative": [2, ENDLESS, 2, 5],
    "more than rows": [2, 3, 2, 5],
    "negative in a list": [2, 1, 2, ENDLESS + 1],
}


@pytest.mark.parametrize("counts", list(COUNTS.values()), ids=list(COUNTS))
def test_a_file_whose_counts_cannot_be_is_one_that_counts_nothing(gateway, rows, tmp_path, counts):
    """With another one's they could make up what there may be, so that a reader takes a column for NULLs only, or for one without any."""
    source = tmp_path / "u"
    source.mkdir()
    for number in (0, 1):
        po.write_table(pa.table({"x": [number, None], "l": [[1, 2, 3], [4, 5]]}), source / f"{number}.orc", compression="uncompressed")
    file = source / "1.orc"
    file.write_bytes(with_tail(file.read_bytes(), statistics=[message((1, count), (10, 1)) for count in counts]))
    made = make(rows, source, codec="none")
    reader = open_file(gateway, made.rolled_back)
    found = [column.getNumberOfValues() for column in reader.getOrcProtoFileStatistics()]
    reader.close()
    assert found == ([4, 2, 4, 10] if counts == COUNTS["sound"] else [5] * 4)


def test_files_whose_stripes_cannot_stand_in_one_footer_are_not_joined(rows, tmp_path):
    for number, options in enumerate([{}, {"compression": "zstd"}, {"compression_block_size": 4096}, {"row_index_stride": 5000}]):
        place = tmp_path / "u" / str(number)
        place.mkdir(parents=True)
        po.write_table(pa.table({"x": [number]}), place / "a.orc", **options)
    sets = {number: listed(tmp_path / "u" / str(number)) for number in range(4)}
    layouts = {of_set.groups[0].form.layout for of_set in rows.footers("orc", sets, by_identity=True).values()}
    assert len(layouts) == 4
    assert len({of_set.groups[0].form.identity for of_set in rows.footers("orc", sets, by_identity=True).values()}) == 1


def test_bounds_of_texts_that_are_not_utf8_are_left_out(gateway, rows, tmp_path):
    """ORC's Java library makes other characters of such bytes, which may lie below them: then readers skip the file."""
    source = tmp_path / "u"
    source.mkdir()
    for number, text in enumerate([b"a", b"\xff"]):
        texts = pa.StringArray.from_buffers(1, pa.array([0, len(text)], pa.int32()).buffers()[1], pa.py_buffer(text))
        po.write_table(pa.table({"x": texts}), source / f"{number}.orc", compression="uncompressed")
    made = make(rows, source, codec="none")
    said = [orc_files.fixture(gateway).statistics(f"file:{file}", 1) for file in (source / "1.orc", made.rolled_back)]
    assert ["maximum" in one for one in said] == [True, False]


@pytest.mark.parametrize(("values", "bounds"), [(([0.0, 5.0], [-0.0]), (-0.0, 5.0)), (([-5.0, -0.0], [0.0]), (-5.0, 0.0))])
def test_bounds_of_zero_include_both_zeros(gateway, rows, tmp_path, values, bounds):
    """Trino takes 0.0 for more than -0.0, and the library's merge keeps the one that came first."""
    source = tmp_path / "u"
    source.mkdir()
    for number, of_file in enumerate(values):
        po.write_table(pa.table({"x": of_file}), source / f"{number}.orc", compression="uncompressed")
    made = make(rows, source, codec="none")
    told = orc_files.fixture(gateway).statistics(f"file:{made.rolled_back}", 1)
    assert f"minimum: {bounds[0]}\n  maximum: {bounds[1]}\n" in told
