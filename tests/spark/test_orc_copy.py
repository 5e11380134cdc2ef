"""A copy of ORC files keeps every value and all that says what it means: Arrow and ORC's own reader read sources and outputs."""

from __future__ import annotations

from pathlib import Path
from typing import List, Sequence

import pyarrow as pa
import pyarrow.orc as po
import pytest

from hivekeeper.cluster.physical_copy import Answer, CopyTask, PhysicalCopy
from support import hostile_files, orc_bombs, orc_files
from support.data_files import listed
from support.foreign_files import ODD_NAN


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


def test_an_hour_that_comes_twice_stays_two_hours(gateway, copier, tmp_path):
    """A writer's zone is kept: in UTC, 05:30 and 06:30 of this night would both become 01:30 in New York."""
    source = tmp_path / "u"
    orc_files.write_java(
        gateway, source, 1, 2, schema="struct<id:int,at:timestamp>", zone="America/New_York", start=1604208600000, step=3600_000
    )
    copy_and_prove(copier, source)
    said = orc_files.fixture(gateway).read(f"file:{output_of(source)}", "America/New_York")
    assert said.count("01:30:00") == 2
    assert said == orc_files.fixture(gateway).read(listed(source)[0].path, "America/New_York")


def test_bounds_of_timestamps_are_those_of_the_wall_clock(gateway, copier, tmp_path):
    """Summer in New York; the library alone would compute them in UTC, an hour off."""
    source = tmp_path / "u"
    schema = "struct<id:int,at:timestamp>"
    orc_files.write_java(gateway, source, 1, 100, schema=schema, zone="America/New_York", start=1593604800000, step=1000)
    copy_and_prove(copier, source)
    java = orc_files.fixture(gateway)
    assert java.statistics(f"file:{output_of(source)}", 2) == java.statistics(listed(source)[0].path, 2)


@pytest.mark.parametrize("codec", ["none", "snappy", "zlib", "lz4", "zstd"])
def test_codecs_and_stripes_are_as_requested(gateway, copier, tmp_path, codec):
    source = tmp_path / "u"
    orc_files.write_java(gateway, source, rows=150_000, schema="struct<id:bigint,wide:double>")
    copy_and_prove(copier, source, codec, row_group_bytes=1 << 20)
    output = po.ORCFile(output_of(source))
    assert output.compression == ("UNCOMPRESSED" if codec == "none" else codec.upper())
    # A stripe is as large as its buffers, which are compressed.
    assert output.nstripes > (1 if codec == "none" else 0)
    assert orc_files.fixture(gateway).describe(f"file:{output_of(source)}").count("[ 1]") == output.nstripes


def test_long_files_are_streamed(gateway, copier, tmp_path):
    source = tmp_path / "u"
    orc_files.write_java(gateway, source)
    copier._jobs.setWindow(10)
    try:
        copy_and_prove(copier, source)
    finally:
        copier._jobs.setWindow(64 << 20)


def test_a_nan_that_the_library_does_not_write_costs_its_own_output(copier, tmp_path):
    orc_files.write_arrow(tmp_path / "odd", {"a": pa.array([1.0, ODD_NAN])}, [0])
    orc_files.write_arrow(tmp_path / "usual", {"a": pa.array([1.0, float("nan")])}, [0])
    odd, usual = copy_all(copier, [tmp_path / "odd", tmp_path / "usual"])
    assert "NaN" in odd.failed
    assert (usual.failed, usual.digest.rows) == ("", 2)
    odd, usual = copier.digest([listed(tmp_path / name) for name in ("odd", "usual")], format="orc")
    assert odd.failed == ""
    assert odd.digest != usual.digest


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32()])
@pytest.mark.parametrize("first", [0.0, -0.0])
def test_filters_find_zeros_of_either_sign_in_a_copy(spark, copier, tmp_path, kind, first):
    """Its readers take 0.0 for more than -0.0, so the one that came first must not be both bounds of a stripe with the other."""
    source = tmp_path / "u"
    source.mkdir()
    for name, zero in (("0.orc", first), ("1.orc", -first)):
        po.write_table(pa.table({"x": pa.array([zero] * 5, kind)}), source / name)
    copy_and_prove(copier, source)
    for literal in ("0", "-0.0"):
        for sign in ("=", ">=", "<="):
            condition = f"x {sign} {'double' if kind == pa.float64() else 'float'}('{literal}')"
            assert spark.read.orc(f"file:{output_of(source)}").where(condition).count() == 10, condition


def texts_of(*values: bytes) -> pa.Array:
    """Not all of them in UTF-8."""
    return pa.Array.from_buffers(pa.string(), len(values), pa.array(values).buffers())


@pytest.mark.parametrize(
    ("values", "condition", "rows"),
    [
        (lambda: texts_of(b"\xff\xfe", b"b", b"c"), "x >= 'b'", 3),
        (lambda: texts_of(b"\xff\xfe", b"b", b"c"), "x = 'b'", 1),
        (lambda: pa.array([float("nan"), 1.0, 2.0]), "x >= double(1)", 3),
        (lambda: pa.array([1.0, float("nan"), 2.0]), "x = double('NaN')", 1),
    ],
    ids=["texts from one on", "a text", "numbers from one on", "a NaN"],
)
def test_filters_find_all_rows_of_a_column_whose_bounds_say_nothing(spark, copier, tmp_path, values, condition, rows):
    """ORC 1.7, in Spark 3.3, takes a column without bounds for one of NULLs only."""
    orc_files.write_arrow(tmp_path / "u", {"x": values()}, [0])
    copy_and_prove(copier, tmp_path / "u")
    assert spark.read.orc(f"file:{output_of(tmp_path / 'u')}").where(condition).count() == rows


@pytest.mark.parametrize(
    ("one", "other"),
    [("\uff21", "\U0001f600"), ("a\uff21", "a\U0001f600"), ("x", "y" * 1021 + "\uffff" * 20)],
    ids=["bounds", "inside bounds", "cut bounds"],
)
def test_filters_find_texts_whose_order_in_java_is_not_that_of_their_bytes(spark, copier, tmp_path, one, other):
    """ORC's writers order texts by their UTF-8, its Java reader by its UTF-16, where U+1F600 (an emoji) comes before U+FF21 (a wide A)."""
    source = tmp_path / "u"
    source.mkdir()
    texts = [*[one] * 5, *[other] * 5, one[:-1], "zz"]
    for number, some in enumerate((texts[:5], texts[5:10], texts[10:])):
        po.write_table(pa.table({"x": some}), source / f"{number}.orc")
    copy_and_prove(copier, source)
    for text in (one, other):
        by_bytes = [(each.encode() > text.encode()) - (each.encode() < text.encode()) for each in texts]
        for sign, wanted in (("=", (0,)), (">=", (0, 1)), ("<=", (-1, 0))):
            found = spark.read.orc(f"file:{output_of(source)}").where(f"x {sign} '{text}'").count()
            assert found == sum(order in wanted for order in by_bytes), (text[:5], sign)


def test_a_decimal_that_the_library_takes_for_null_costs_its_own_output(copier, tmp_path):
    """Arrow reads it, and would find NULL in a copy."""
    for name, number in (("sound", 2**127 - 1), ("lost", -(2**127))):
        values = pa.py_buffer(b"".join(value.to_bytes(16, "little", signed=True) for value in (7, number, 0)))
        nulls = pa.py_buffer(b"\x03")
        column = pa.Array.from_buffers(pa.decimal128(38, 0), 3, [nulls, values])
        orc_files.write_arrow(tmp_path / name, {"a": column}, [0])
    sound, lost = copy_all(copier, [tmp_path / "sound", tmp_path / "lost"])
    assert (sound.failed, sound.digest.rows) == ("", 3)
    assert "a decimal that the ORC library takes for NULL" in lost.failed


# Kinds of columns, as in orc_proto.proto.
SHORT, INT, DECIMAL, DATE, VARCHAR, CHAR = 2, 3, 14, 15, 16, 17


@pytest.mark.parametrize(
    ("kind", "bits", "one"),
    [(SHORT, 16, "1S"), (INT, 32, "1"), (DATE, 32, "date('1970-01-02')")],
    ids=["smallint", "int", "date"],
)
def test_a_number_of_more_bits_than_its_type_has_is_not_copied(spark, copier, tmp_path, kind, bits, one):
    """Spark's and other readers cut it, so they find 1 in a source without bounds, and nothing by the bounds of a copy."""
    for name, number in (("wide", 2**bits + 1), ("lowest", -(2 ** (bits - 1)))):
        (tmp_path / name).mkdir()
        run = b"\x00\x00" + hostile_files.zigzag(number)
        (tmp_path / name / "a").write_bytes(orc_bombs.file_of(kind, {orc_bombs.DATA: run}))
    assert spark.read.orc(f"file:{tmp_path}/wide").where(f"id = {one}").count() == 3
    wide, lowest = copy_all(copier, [tmp_path / "wide", tmp_path / "lowest"])
    assert "which is none of the type" in wide.failed
    assert (lowest.failed, lowest.digest.rows) == ("", 3)


@pytest.mark.parametrize("kind", [VARCHAR, CHAR], ids=["varchar", "char"])
def test_a_text_of_more_characters_than_its_type_has_is_not_copied(spark, copier, tmp_path, kind):
    """Readers in Java cut it, so they find `abc` in a source without bounds, and nothing by the bounds of a copy."""
    for name, text in (("long", "abcdef"), ("wide", "äöü")):
        (tmp_path / name).mkdir()
        streams = {orc_bombs.DATA: text.encode() * 3, orc_bombs.LENGTH: orc_bombs.lengths(6, 6, 6)}
        (tmp_path / name / "a").write_bytes(orc_bombs.file_of(kind, streams, characters=3))
    assert spark.read.orc(f"file:{tmp_path}/long").where("id = 'abc'").count() == 3
    long, wide = copy_all(copier, [tmp_path / "long", tmp_path / "wide"])
    assert "more characters than its type" in long.failed
    assert (wide.failed, wide.digest.rows) == ("", 3)


def test_a_decimal_with_a_longer_fraction_than_its_type_has_is_not_copied(spark, copier, tmp_path):
    """Java rounds it, Arrow cuts it: Spark finds 2 in a source without bounds, and nothing by the bounds of a copy, which say 1.5."""
    for name, scale in (("longer", 1), ("whole", 0)):
        (tmp_path / name).mkdir()
        streams = {orc_bombs.DATA: hostile_files.zigzag(15) * 3, orc_bombs.SECONDARY: b"\x00\x00" + hostile_files.zigzag(scale)}
        (tmp_path / name / "a").write_bytes(orc_bombs.file_of(DECIMAL, streams, digits=(38, 0)))
    assert spark.read.orc(f"file:{tmp_path}/longer").where("id = 2BD").count() == 3
    longer, whole = copy_all(copier, [tmp_path / "longer", tmp_path / "whole"])
    assert "a decimal of more digits than its type has" in longer.failed
    assert (whole.failed, whole.digest.rows) == ("", 3)


def test_decimals_are_copied_if_their_type_has_as_many_digits_before_and_behind_the_point(copier, tmp_path):
    sources, beyond = [], set()
    for unscaled, scale, precision, most, fits in [
        (0, 0, 5, 5, True),
        (0, 5, 5, 5, True),
        (1, 5, 5, 5, True),
        (-99999, 5, 5, 5, True),
        (1, 0, 5, 5, False),
        (999, 0, 5, 2, True),
        (99900, 2, 5, 2, True),
        (-1000, 0, 5, 2, False),
        # Zeros at the end of the fraction are none of its digits.
        (150000, 5, 5, 2, True),
        (150100, 5, 5, 2, False),
        (10**38 - 1, 0, 38, 0, True),
        (10**38 - 1, 38, 38, 38, True),
        (10**37, 0, 38, 1, False),
    ]:
        source = tmp_path / f"{unscaled} {scale} {precision} {most}"
        source.mkdir()
        streams = {orc_bombs.DATA: hostile_files.zigzag(unscaled) * 3, orc_bombs.SECONDARY: b"\x00\x00" + hostile_files.zigzag(scale)}
        (source / "a").write_bytes(orc_bombs.file_of(DECIMAL, streams, digits=(precision, most)))
        sources.append(source)
        beyond.update(set() if fits else {source.name})
    failed = {source.name: answer.failed for source, answer in zip(sources, copy_all(copier, sources)) if answer.failed}
    assert set(failed) == beyond, failed


@pytest.mark.parametrize("codec", [orc_bombs.NONE, orc_bombs.ZLIB], ids=["not compressed", "zlib"])
def test_rows_that_are_null_as_a_whole_are_refused(copier, tmp_path, codec):
    """ORC's Java library does not look; for its C++ library the second row is NULL, and the third has the second number."""
    for name, bits in (("all", b"\xff\xe0"), ("two", b"\xff\xa0")):
        (tmp_path / name).mkdir()
        content = orc_bombs.file_of(orc_bombs.BIGINT, {orc_bombs.DATA: orc_bombs.NUMBERS}, rows_there=bits, codec=codec)
        (tmp_path / name / "a").write_bytes(content)
    assert po.read_table(tmp_path / "all" / "a").column(0).to_pylist() == [5, 6, 7]
    whole, two = copy_all(copier, [tmp_path / "all", tmp_path / "two"])
    assert (whole.failed, whole.digest.rows) == ("", 3)
    assert "NULL as a whole" in two.failed


def test_a_stream_that_is_there_twice_is_refused(copier, tmp_path):
    """ORC's Java library reads the second one, its C++ library the first."""
    (tmp_path / "u").mkdir()
    streams = [(orc_bombs.DATA, orc_bombs.NUMBERS), (orc_bombs.DATA, orc_bombs.ONES)]
    (tmp_path / "u" / "a").write_bytes(orc_bombs.file_of(orc_bombs.BIGINT, streams))
    (answer,) = copy_all(copier, [tmp_path / "u"])
    assert "twice" in answer.failed


@pytest.mark.parametrize("other", [orc_bombs.ROW_INDEX, orc_bombs.FILE_STATISTICS, 99], ids=["index", "statistics", "unknown"])
def test_streams_that_readers_look_for_in_different_places_are_refused(copier, tmp_path, other):
    """ORC's C++ library takes them as the footer lists them, its Java library those of the index first, and some not at all or twice."""
    (tmp_path / "u").mkdir()
    streams = [(orc_bombs.DATA, orc_bombs.NUMBERS), (other, orc_bombs.ONES)]
    if other != orc_bombs.ROW_INDEX:
        streams.reverse()
    (tmp_path / "u" / "a").write_bytes(orc_bombs.file_of(orc_bombs.BIGINT, streams))
    (answer,) = copy_all(copier, [tmp_path / "u"])
    assert "in another place" in answer.failed


WIDE = 2**32
TIMES = {"kind": orc_bombs.TIMESTAMP_INSTANT}
TEXTS = {"kind": orc_bombs.STRING}
BY_DICTIONARY = {**TEXTS, "encoding": orc_bombs.DICTIONARY, "dictionary_size": 3}
SECONDS, NO_NANOS = orc_bombs.lengths(2, 2, 2), orc_bombs.lengths(0, 0, 0)
LONG_NANOS, ZEROS = orc_bombs.lengths(8, (WIDE + 1) << 3, 8), orc_bombs.lengths(8, (WIDE // 256 + 1) << 3 | 7, 8)
LONG = orc_bombs.lengths(1, WIDE + 1, 1)
# As 32 bits, their sum is three.
LONG_TOGETHER = orc_bombs.lengths(1, 2**31 - 3, 2**31 - 3, 6, 2)


@pytest.mark.parametrize(
    ("described", "streams", "says"),
    [
        pytest.param(TIMES, {orc_bombs.DATA: SECONDS, orc_bombs.SECONDARY: LONG_NANOS}, "nanoseconds", id="nanoseconds"),
        pytest.param(TIMES, {orc_bombs.DATA: SECONDS, orc_bombs.SECONDARY: ZEROS}, "nanoseconds", id="nanoseconds with zeros"),
        pytest.param(
            TIMES, {orc_bombs.DATA: orc_bombs.lengths(2, 2**62 + 2, 2), orc_bombs.SECONDARY: NO_NANOS}, "of seconds", id="seconds"
        ),
        pytest.param(TEXTS, {orc_bombs.DATA: b"abc", orc_bombs.LENGTH: LONG}, "a length", id="length of a text"),
        pytest.param(
            BY_DICTIONARY,
            {orc_bombs.DATA: orc_bombs.PLACES, orc_bombs.LENGTH: LONG, orc_bombs.DICTIONARY_DATA: b"abc"},
            "a length",
            id="length in a dictionary",
        ),
        pytest.param(
            {**BY_DICTIONARY, "dictionary_size": 5},
            {orc_bombs.DATA: orc_bombs.lengths(0, 0, 4), orc_bombs.LENGTH: LONG_TOGETHER, orc_bombs.DICTIONARY_DATA: b"abc"},
            "a dictionary",
            id="lengths of a dictionary",
        ),
        pytest.param(
            BY_DICTIONARY,
            {orc_bombs.DATA: orc_bombs.lengths(0, 1, 3), orc_bombs.LENGTH: orc_bombs.ONES, orc_bombs.DICTIONARY_DATA: b"abc"},
            "a place in a dictionary",
            id="place behind a dictionary",
        ),
        pytest.param(BY_DICTIONARY, {orc_bombs.DATA: orc_bombs.PLACES}, "lacks its texts", id="dictionary without lengths"),
        pytest.param(
            BY_DICTIONARY,
            {orc_bombs.DATA: orc_bombs.PLACES, orc_bombs.LENGTH: orc_bombs.ONES},
            "lacks its texts",
            id="dictionary without texts",
        ),
        pytest.param({"kind": orc_bombs.BIGINT, "encodings": 1}, {orc_bombs.DATA: orc_bombs.NUMBERS}, "encodings of 3", id="encodings"),
    ],
)
def test_numbers_that_readers_take_differently_are_refused(copier, tmp_path, described, streams, says):
    """ORC's Java library cuts them to 32 bits or looks no further, its C++ library fails or has other values."""
    (tmp_path / "u").mkdir()
    (tmp_path / "u" / "a").write_bytes(orc_bombs.file_of(streams=streams, **described))
    (answer,) = copy_all(copier, [tmp_path / "u"])
    assert says in answer.failed


@pytest.mark.parametrize("made", [orc_bombs.SOUND[name] for name in orc_bombs.SOUND], ids=list(orc_bombs.SOUND))
def test_sound_streams_are_copied(copier, tmp_path, made):
    (tmp_path / "u").mkdir()
    (tmp_path / "u" / "a").write_bytes(made())
    copy_and_prove(copier, tmp_path / "u")
    assert arrow_rows(output_of(tmp_path / "u")) == arrow_rows(tmp_path / "u" / "a")


def test_the_negative_nanoseconds_of_arrow_are_copied(copier, tmp_path):
    """It writes times before 1970 so, and all readers take them as they are meant."""
    (tmp_path / "u").mkdir()
    times = pa.array([-1, -999_999_999, -(10**9), -1_500_000_000, -500, -(10**17) - 1, 1], pa.timestamp("ns"))
    po.write_table(pa.table({"t": times}), tmp_path / "u" / "a")
    copy_and_prove(copier, tmp_path / "u")
    assert arrow_rows(output_of(tmp_path / "u")) == arrow_rows(tmp_path / "u" / "a")


def concatenate(spark, target: Path, parts: Sequence[Path]) -> None:
    """The stripes of these files in one, as they are."""
    paths = spark._jvm.java.util.ArrayList()
    for part in parts:
        paths.add(spark._jvm.org.apache.hadoop.fs.Path(f"file:{part}"))
    orc = spark._jvm.org.apache.orc.OrcFile
    options = orc.writerOptions(spark._jsc.hadoopConfiguration())
    assert len(orc.mergeFiles(spark._jvm.org.apache.hadoop.fs.Path(f"file:{target}"), options, paths)) == len(parts)


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32()])
def test_bloom_filters_find_zeros_of_either_sign(spark, copier, tmp_path, kind):
    """Hive's CONCATENATE puts stripes into one file as they are, so a zero may lie in one that had no filter."""
    source = tmp_path / "u"
    source.mkdir()
    others = [float(number) for number in range(1, 1000)] + [-5.0]
    po.write_table(pa.table({"x": pa.array(others, kind)}), str(tmp_path / "0.orc"), bloom_filter_columns=[1], compression="zlib")
    po.write_table(pa.table({"x": pa.array([-0.0, *others], kind)}), str(tmp_path / "1.orc"), compression="zlib")
    concatenate(spark, source / "a", [tmp_path / "0.orc", tmp_path / "1.orc"])
    copy_and_prove(copier, source)
    for literal in ("0", "-0.0"):
        condition = f"x = {'double' if kind == pa.float64() else 'float'}('{literal}')"
        found = [spark.read.orc(f"file:{place}").where(condition).count() for place in (source, output_of(source))]
        assert found == [1, 1], condition


def test_files_that_mean_different_things_are_not_merged(gateway, copier, tmp_path):
    for number, more in enumerate([{}, {"zone": "Asia/Tokyo"}, {"proleptic": True}, {"schema": "struct<id:int,at:timestamp>"}]):
        source = tmp_path / f"u{number}"
        orc_files.write_java(gateway, source, 1, 10, **{"schema": "struct<id:bigint,at:timestamp>", **more})
        orc_files.write_java(gateway, tmp_path / "one", 1, 10, schema="struct<id:bigint,at:timestamp>")
        (tmp_path / "one" / "0.orc").rename(source / "1.orc")
    answers = copy_all(copier, [tmp_path / f"u{number}" for number in range(4)])
    assert [bool(answer.failed) for answer in answers] == [False, True, True, True]
    assert all("differ from those of" in answer.failed for answer in answers[1:])


def test_a_damaged_file_costs_its_own_output(gateway, copier, tmp_path):
    for name in ("good", "cut", "flipped", "foreign", *hostile_files.ORC_TAILS):
        orc_files.write_java(gateway, tmp_path / name, rows=500)
    content = (tmp_path / "good" / "1.orc").read_bytes()
    (tmp_path / "cut" / "1.orc").write_bytes(content[:-1])
    (tmp_path / "flipped" / "1.orc").write_bytes(content[:2000] + bytes(1000) + content[3000:])
    (tmp_path / "foreign" / "1.orc").write_bytes(b"not ORC at all")
    for name, make in hostile_files.ORC_TAILS.items():
        make(tmp_path / name / "1.orc")
    names = ["good", "cut", "flipped", "foreign", *hostile_files.ORC_TAILS]
    answers = dict(zip(names, copy_all(copier, [tmp_path / name for name in names])))
    assert {name for name, answer in answers.items() if not answer.failed} == {"good"}
    assert all(answer.failed.startswith(f"file:{tmp_path / name / '1.orc'}: ") for name, answer in answers.items() if name != "good")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["good"]
