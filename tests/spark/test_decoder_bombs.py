"""Small files that make decoders ask for more memory than there is: each costs its own unit, and is refused before the memory is taken.

The session's heap is 1 GiB, and two tasks run at a time: a share is an eighth of it, a quarter for a task that runs alone.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import random
import re
import struct
import time
from dataclasses import replace
from pathlib import Path
from typing import Callable, List, Mapping, NamedTuple, Sequence

import pyarrow as pa
import pyarrow.orc as po
import pyarrow.parquet as pq
import pytest

from foreign import footers, thrift
from hivekeeper import names
from hivekeeper.cluster.physical_copy import Answer, CopyTask, PhysicalCopy
from hivekeeper.cluster.rows import SparkRows
from hivekeeper.plan.verify import Proof
from hivekeeper.ports import RowsError
from hivekeeper.reasons import Code
from hivekeeper.steps.verify import ROWS, Prover
from support import decoder_bombs, hostile_files, orc_bombs
from support.data_files import batch_of, listed
from support.driver_cpu import cpu_seconds
from support.file_systems import configuration_with

# As in the format's CompressionCodec.
ZSTD = 6
REFUSED = r" claims | takes \d+ bytes|does not fit into the file|has levels in the encoding|malformed|is not where it may be"


@pytest.fixture
def copier(gateway):
    return PhysicalCopy(gateway)


@pytest.fixture
def rows(gateway):
    return SparkRows(gateway)


def copy_all(copier: PhysicalCopy, sources: Sequence[Path], format: str = "parquet") -> List[Answer]:
    tasks = [CopyTask(f"file:{source.parent}/out/{source.name}/a", listed(source), "zstd", format=format) for source in sources]
    return copier.copy(f"file:{sources[0].parent}/attempts", tasks)


def write_each(directory: Path, kinds: Mapping[str, Callable[[], bytes]]) -> List[Path]:
    for name, make in kinds.items():
        (directory / name).mkdir()
        (directory / name / "a").write_bytes(make())
    return [directory / name for name in kinds]


@pytest.mark.parametrize("window", [64 << 20, 10], ids=["in memory", "streamed"])
@pytest.mark.parametrize(("format", "files"), [("parquet", decoder_bombs), ("orc", orc_bombs)], ids=["parquet", "orc"])
def test_what_a_file_of_a_hundred_bytes_claims_is_not_allocated(copier, tmp_path, format, files, window):
    sources = write_each(tmp_path, {**files.SOUND, **files.BOMBS})
    copier._jobs.setWindow(window)
    answers = {source.name: answer for source, answer in zip(sources, copy_all(copier, sources, format))}
    assert {name: answer.digest.rows for name, answer in answers.items() if not answer.failed} == dict.fromkeys(files.SOUND, 3)
    for name in files.BOMBS:
        assert re.search(REFUSED, answers[name].failed), (name, answers[name].failed)


def write_pages(path: Path, columns: Mapping[str, pa.Array], **options: object) -> Path:
    """One page for each column."""
    path.mkdir()
    plain = {"use_dictionary": False, "compression": "zstd", "data_page_size": 1 << 30, "store_schema": False}
    pq.write_table(pa.table(columns), path / "a", **{**plain, **options})
    return path


def test_a_long_file_of_tiny_row_groups_is_not_opened_for_each_of_them(gateway, copier, tmp_path):
    """A footer may claim a million: on HDFS each costs the NameNode a call, and a new connection."""
    source = write_pages(tmp_path / "u", {"a": pa.array(range(500), pa.int64())}, compression="none", row_group_size=1)
    copier._jobs.setWindow(10)
    before = bytes_read(gateway)
    (answer,) = copy_all(copier, [source])
    assert (answer.failed, answer.digest.rows) == ("", 500)
    assert bytes_read(gateway) - before < 20 * (source / "a").stat().st_size


def test_a_long_file_of_many_streams_is_not_opened_for_each_of_them(copier, tmp_path):
    """Each stripe of ORC has some for each column: on HDFS each cost the NameNode a call, and a new connection."""
    (tmp_path / "u").mkdir()
    texts = pa.array([str(row) for row in range(200)])
    po.write_table(pa.table({f"c{number}": texts for number in range(100)}), str(tmp_path / "u" / "a"), batch_size=1, stripe_size=1)
    assert po.ORCFile(tmp_path / "u" / "a").nstripes == 200
    spent = {}
    for window in (64 << 20, 10, 64 << 20, 10):
        copier._jobs.setWindow(window)
        started = time.monotonic()
        (answer,) = copier.digest([listed(tmp_path / "u")], format="orc")
        spent[window] = time.monotonic() - started
        assert (answer.failed, answer.digest.rows) == ("", 200)
    assert spent[10] < 2 * spent[64 << 20] + 1, spent


def test_streams_of_numbers_of_a_long_file_are_read_twice(gateway, copier, tmp_path):
    """By our own code and by the library: on HDFS to go back takes a new connection."""
    (tmp_path / "u").mkdir()
    rng = random.Random(1)
    times = {f"c{number}": pa.array([rng.getrandbits(50) for _ in range(5000)], pa.timestamp("us")) for number in range(10)}
    po.write_table(pa.table(times), str(tmp_path / "u" / "a"))
    copier._jobs.setWindow(10)
    before = bytes_read(gateway)
    (answer,) = copier.digest([listed(tmp_path / "u")], format="orc")
    assert (answer.failed, answer.digest.rows) == ("", 5000)
    assert bytes_read(gateway) - before < 2.5 * (tmp_path / "u" / "a").stat().st_size


def bytes_read(gateway):
    """Of local files, by Hadoop."""
    known = gateway.jvm.org.apache.hadoop.fs.FileSystem.getAllStatistics()
    return sum(one.getBytesRead() for one in known if one.getScheme() == "file")


def test_a_page_of_more_than_a_share_is_read_by_a_task_that_runs_alone(copier, tmp_path):
    values = pa.array([bytes(4 << 20)] * 32, pa.large_binary())
    (answer,) = copy_all(copier, [write_pages(tmp_path / "one", {"a": values})])
    assert (answer.failed, answer.digest.rows) == ("", 32)


@pytest.mark.thorough
def test_a_page_of_more_than_a_share_behind_more_values_than_expected_is_read_by_a_task_that_runs_alone(copier, tmp_path):
    nulls, long = pa.nulls(1 << 22, pa.large_binary()), pa.array([bytes(4 << 20)] * 32, pa.large_binary())
    source, schema = tmp_path / "one" / "a", pa.schema({"a": pa.large_binary()})
    source.parent.mkdir()
    with pq.ParquetWriter(source, schema, compression="zstd", use_dictionary=False, data_page_size=1 << 30, store_schema=False) as writer:
        for column in (*[nulls] * 8, long):
            writer.write_table(pa.table({"a": column}), row_group_size=1 << 22)
    (answer,) = copier.digest([listed(source.parent)])
    assert (answer.failed, answer.digest.rows) == ("", 8 * (1 << 22) + 32)


def test_the_pages_of_all_columns_together_are_bounded(copier, tmp_path):
    zeros = pa.repeat(0, 4 << 20)
    (answer,) = copy_all(copier, [write_pages(tmp_path / "wide", {f"c{number}": zeros for number in range(40)})])
    assert re.search(r"a page takes \d+ bytes of memory", answer.failed)


def test_a_value_that_is_long_and_often_repeated_is_bounded(copier, tmp_path):
    """In memory, values of a dictionary are one object; the output's columns hold each, once it has given up its own dictionary."""
    values = pa.DictionaryArray.from_arrays(pa.repeat(0, 1 << 20).cast(pa.int32()), pa.array([bytes(40 << 20)]))
    # Arrow would compare them all for its statistics.
    source = write_pages(tmp_path / "long", {"a": values}, use_dictionary=True, dictionary_pagesize_limit=1 << 30, write_statistics=False)
    (answer,) = copy_all(copier, [source])
    assert re.search(r"a batch of rows takes \d+ bytes of memory", answer.failed)


def test_rows_are_compared_only_if_our_own_reader_can_read_them(rows, tmp_path):
    """Spark SQL knows none of the bounds: each of these would end the comparison of the whole table, or the executor."""
    places = write_each(tmp_path, {"sound": decoder_bombs.SOUND["plain"], **decoder_bombs.BOMBS})
    sides = {place.name: tuple(listed(place)) for place in places}
    found = Prover(rows, "parquet", ROWS).compare({name: Proof(files, (), files, files) for name, files in sides.items()})
    assert (found["sound"].why, found["sound"].rows) == (None, 3)
    for name in decoder_bombs.BOMBS:
        assert (name, found[name].why.code) == (name, Code.UNREADABLE_FILE)


# parquet-mr 1.12 (Spark 3.3) cannot read a footer that names it.
@pytest.mark.parametrize("codec", decoder_bombs.CODECS)
def test_a_page_that_is_not_as_long_as_it_says_fails_its_unit(copier, tmp_path, codec):
    """The library's decompressors of Snappy and LZ4_RAW wait for ever for what a short page lacks, and task after task never ended."""
    sound = decoder_bombs.pages_with(codec, decoder_bombs.packed(codec, decoder_bombs.NUMBERS))
    sources = write_each(tmp_path, {kind: lambda body=body: body for kind, body in sound.items()})
    for answer in copier.digest([listed(source) for source in sources]):
        assert (answer.failed, answer.digest.rows) == ("", 3) or codec == "lz4_raw" and "codec:null" in answer.failed
    kinds = {
        f"{kind}, {name}": content
        for name, body in decoder_bombs.bodies(codec).items()
        for kind, content in decoder_bombs.pages_with(codec, body).items()
    }
    sources = write_each(tmp_path, {kind: lambda body=body: body for kind, body in kinds.items()})
    answers = copier.digest([listed(source) for source in sources])
    assert [source.name for source, answer in zip(sources, answers) if not answer.failed] == []


def test_timestamps_are_checked_only_if_our_own_reader_can_read_their_files(rows, tmp_path):
    """Spark's does so while a run with `sort_columns` is planned, before anything else reads their pages: with parquet-mr before 1.15 it
    waits for ever for what a short one lacks.
    """
    times = b"".join(struct.pack("<qi", nanoseconds, 2_440_588) for nanoseconds in (0, 1_000, 1))
    pages = {
        "short": decoder_bombs.page(decoder_bombs.packed("snappy", times[:24]), size=36),
        "sound": decoder_bombs.page(decoder_bombs.packed("snappy", times), size=36),
    }
    int96 = 3
    files = {name: decoder_bombs.file_of(body, int96, codec=decoder_bombs.SNAPPY) for name, body in pages.items()}
    places = write_each(tmp_path, {name: lambda body=body: body for name, body in files.items()})
    groups = {name: found.groups[0] for name, found in rows.footers("parquet", {place.name: listed(place) for place in places}).items()}
    found = rows.hazards("parquet", groups)
    assert re.search("a page of 36 bytes claims 24 bytes inside", found["short"])
    assert re.search("have nanoseconds", found["sound"])


def test_the_length_that_a_footer_claims_for_all_values_is_not_allocated(rows, tmp_path):
    """Whether the library can decode such a column is asked of it when footers are read."""
    (tmp_path / "u").mkdir()
    path = tmp_path / "u" / "a"
    path.write_bytes(decoder_bombs.file_of(decoder_bombs.page(b""), footers.FIXED, optional=True))

    def claim(footer: thrift.Struct) -> None:
        list(footers.elements(footer))[1][footers.TYPE_LENGTH] = (thrift.I32, 2**31 - 1)
        for chunk in footers.chunks(footer):
            chunk[2] = (thrift.LIST, (thrift.I32, [decoder_bombs.BYTE_STREAM_SPLIT]))

    footers.change(path, claim)
    assert rows.footers("parquet", {"u": listed(path.parent)})["u"].unreadable == ()


def test_values_do_not_hold_the_pages_that_they_came_from(copier, tmp_path):
    """Forty pages of 40 MiB, nearly all of which lies behind the values; what is kept of each are its lowest value and the highest."""
    source = tmp_path / "u"
    source.mkdir()
    pages, rows = b"", 20_000
    for number in range(40):
        body = b"".join(struct.pack("<i", 8) + b"%08d" % value for value in (2 * number, 2 * number + 1)) + bytes(40 << 20)
        pages += decoder_bombs.page(pa.compress(body, "zstd", asbytes=True), rows=rows, size=len(body))
    (source / "a").write_bytes(decoder_bombs.file_of(pages, decoder_bombs.BYTE_ARRAY, codec=ZSTD, rows=40 * rows))
    (answer,) = copy_all(copier, [source])
    assert (answer.failed, answer.digest.rows) == ("", 40 * rows)


def test_a_list_of_many_pages_is_bounded(copier, tmp_path):
    source = tmp_path / "u"
    source.mkdir()
    (source / "a").write_bytes(decoder_bombs.file_of(decoder_bombs.page(b"", rows=0) * 600_000 + decoder_bombs.page(decoder_bombs.NUMBERS)))
    (answer,) = copy_all(copier, [source])
    assert re.search(r"the list of the pages of id takes \d+ bytes of memory", answer.failed)


def test_columns_are_bounded(copier, tmp_path):
    one = pa.array([1])
    (answer,) = copy_all(copier, [write_pages(tmp_path / "u", {f"c{number}": one for number in range(20_000)})])
    assert re.search(r"20000 columns takes \d+ bytes of memory", answer.failed)


@pytest.mark.thorough
def test_columns_are_bounded_before_anything_is_made_for_each(copier, tmp_path):
    """Also if there is no row group, or no stripe."""
    names = [b"%d" % number for number in range(300_000)]
    (tmp_path / "parquet").mkdir()
    (tmp_path / "parquet" / "a").write_bytes(hostile_files.has_columns(names))
    (tmp_path / "orc").mkdir()
    hostile_files.write_orc_of_a_long_name(tmp_path / "orc" / "a", 1, len(names))
    for format in ("parquet", "orc"):
        (answer,) = copy_all(copier, [tmp_path / format], format)
        assert re.search(r"30000\d columns takes \d+ bytes of memory", answer.failed), answer.failed


@pytest.mark.parametrize(
    ("is_whole", "says"),
    [(True, r"a row group as it is stored takes \d+ bytes of memory"), (False, r"a page header claims \d+ in its field 3")],
    ids=["the column says all of it", "the column says the header"],
)
def test_a_row_group_is_bounded_as_it_is_stored(copier, tmp_path, is_whole, says):
    """Most of the file is a hole. The library reads a page to its end, also beyond its column."""
    source, size = tmp_path / "u", 600 << 20
    source.mkdir()
    head = decoder_bombs.page(b"", size=size, compressed=size)
    whole = decoder_bombs.file_of(head, length=len(head) + (size if is_whole else 0))
    with open(source / "a", "wb") as file:
        file.write(whole[: 4 + len(head)])
        file.seek(size, os.SEEK_CUR)
        file.write(whole[4 + len(head) :])
    (answer,) = copy_all(copier, [source])
    assert re.search(says, answer.failed)


def test_the_streams_of_a_stripe_are_bounded_where_they_lie(copier, tmp_path):
    """The stripe says that its data are three bytes, and the stream that it takes the index, too, which is a hole in the file."""
    hole, head = 600 << 20, 3 + len(orc_bombs.NUMBERS)
    streams = {orc_bombs.DATA: orc_bombs.NUMBERS}
    whole = orc_bombs.file_of(orc_bombs.BIGINT, streams, stream_size=hole + len(orc_bombs.NUMBERS), index_size=hole)
    (tmp_path / "u").mkdir()
    with open(tmp_path / "u" / "a", "wb") as file:
        file.write(whole[:head])
        file.seek(hole, os.SEEK_CUR)
        file.write(whole[head:])
    (answer,) = copier.digest([listed(tmp_path / "u")], format="orc")
    assert re.search(r"a stripe as it is stored takes \d+ bytes of memory", answer.failed), answer.failed


def test_a_column_may_leave_out_the_header_of_its_dictionary(copier, tmp_path):
    """parquet-mr before 1.3 did not count it (IMPALA-694)."""
    source = tmp_path / "u"
    source.mkdir()
    places = b"\x02" + decoder_bombs.EIGHT + b"\x24" + bytes(50)
    pages = decoder_bombs.dictionary(decoder_bombs.NUMBERS, 3) + decoder_bombs.page(places, decoder_bombs.DICTIONARY)
    (source / "a").write_bytes(decoder_bombs.file_of(pages, length=len(pages) - 20))
    (answer,) = copy_all(copier, [source])
    assert (answer.failed, answer.digest.rows) == ("", 3)


def test_a_length_in_a_page_of_several_buffers_is_not_allocated(spark, copier, tmp_path):
    source = tmp_path / "u"
    source.mkdir()
    body = struct.pack("<i", decoder_bombs.LONG) + bytes(100)
    (source / "a").write_bytes(decoder_bombs.file_of(decoder_bombs.page(body), decoder_bombs.BYTE_ARRAY))
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()
    hadoop.set("parquet.read.allocation.size", "16")
    try:
        (answer,) = copy_all(copier, [source])
    finally:
        hadoop.unset("parquet.read.allocation.size")
    assert f"claims {decoder_bombs.LONG} bytes of a text" in answer.failed


@pytest.mark.parametrize(
    ("format", "files"),
    [pytest.param("parquet", decoder_bombs, id="parquet"), pytest.param("orc", orc_bombs, id="orc", marks=pytest.mark.thorough)],
)
def test_rows_that_take_no_bytes_are_bounded(copier, rows, tmp_path, format, files):
    """Each of these would be read for hours, or for ever."""
    sources = write_each(tmp_path, files.ENDLESS)
    for source, answer in zip(sources, copier.digest([listed(source) for source in sources], format=format)):
        assert re.search(r"more values than .* can be expected to hold", answer.failed), (source.name, answer.failed)
    for unit in rows.footers(format, {source.name: listed(source) for source in sources}).values():
        assert re.search(r"more values than .* can be expected to hold", unit.unreadable[0][1])


def test_batches_of_few_rows_are_bounded(copier, tmp_path):
    """By what some of these files say of their texts, a row takes more than a batch. The first of a call has room for more in any case."""
    rows, sizes = 1 << 19, {"few": 0, "many": 1 << 60, "too many": 1 << 60}
    kinds = {name: lambda size=size: orc_bombs.file_without_columns(rows, size) for name, size in sizes.items()}
    copier._jobs.setMoreValues(1)
    *read, last = copier.digest([listed(source) for source in write_each(tmp_path, kinds)], format="orc")
    assert [(answer.failed, answer.digest.rows) for answer in read] == [("", rows)] * 2
    assert re.search("more values than .* can be expected to hold", last.failed)


NULLS = 1 << 22


@pytest.fixture
def runs_of_nulls(tmp_path):
    """Three directories, each with two files of a few hundred bytes."""
    run = decoder_bombs.page(decoder_bombs.with_length(decoder_bombs.varint(NULLS << 1) + b"\0"), rows=NULLS)
    units = [tmp_path / f"u{number}" for number in range(3)]
    for unit in units:
        unit.mkdir()
        for name in "ab":
            (unit / name).write_bytes(decoder_bombs.file_of(run, optional=True, rows=NULLS))
    return units


def test_values_without_bytes_are_read_as_far_as_the_command_has_room_for_them(copier, runs_of_nulls):
    """One after the other; the first of a call has room in any case."""
    sets = [listed(unit)[:1] for unit in runs_of_nulls]
    copier._jobs.setMoreValues(1)
    first, *others = copier.digest(sets)
    assert (first.failed, first.digest.rows) == ("", NULLS)
    for other in others:
        assert re.search("can be expected to hold, and this command has read too many such files already$", other.failed)
    copier._jobs.setMoreValues(1 << 30)
    assert [answer.digest.rows for answer in copier.digest(sets)] == [NULLS] * 3


def test_a_planned_unit_has_room_for_what_its_footers_claim(rows, tmp_path, runs_of_nulls):
    footers = rows.footers("parquet", {unit: listed(unit) for unit in runs_of_nulls}, by_identity=True)
    assert [found.values for found in footers.values()] == [4 * NULLS] * 3
    batch = batch_of(rows, "parquet", tmp_path / "stage", runs_of_nulls, codec="snappy", is_copied=True)
    promised = replace(batch, units=tuple(replace(unit, bare_values=4 * NULLS) for unit in batch.units))
    rows.physical._jobs.setMoreValues(0)
    for found in (rows.write_stage(promised), rows.read_stage(promised)):
        assert [(content.failed, content.digest.rows) for content in found.values()] == [("", 2 * NULLS)] * 3


def test_an_output_is_not_written_beyond_what_its_sources_may_become(copier, tmp_path):
    """The library gives up its dictionary of 16 MiB, and then writes each value."""
    places = pa.array([number % 20 for number in range(2000)], pa.int32())
    values = pa.DictionaryArray.from_arrays(places, pa.array([bytes([number]) * (1 << 20) for number in range(20)]))
    source = write_pages(tmp_path / "long", {"a": values}, use_dictionary=True, dictionary_pagesize_limit=1 << 30)
    (answer,) = copier.copy(f"file:{tmp_path}/attempts", [CopyTask(f"file:{tmp_path}/out/a", listed(source), "none")])
    assert re.search(r"copy would become more than \d+", answer.failed)


@pytest.mark.parametrize(
    "values",
    [
        pytest.param(lambda count: pa.array(hostile_files.names_of_one_hash(count)), id="texts"),
        pytest.param(
            lambda count: pa.array(hostile_files.numbers_of_one_place(count), pa.int64()), id="numbers", marks=pytest.mark.thorough
        ),
    ],
)
def test_values_of_one_hash_are_not_compared_with_one_another(gateway, copier, tmp_path, values):
    """A hundred thousand texts, in a file of 60 KB, took three minutes. After a first page of one value there is a dictionary."""
    chosen = values(300_000)
    source = write_pages(tmp_path / "u", {"a": pa.concat_arrays([chosen.slice(0, 1)] * 25_000 + [chosen])})
    before = cpu_seconds(gateway)
    (answer,) = copy_all(copier, [source])
    assert (answer.failed, answer.digest.rows) == ("", 325_000)
    assert cpu_seconds(gateway) - before < 60
    assert pq.read_metadata(tmp_path / "out" / "u" / "a").row_group(0).column(0).has_dictionary_page
    assert pq.read_table(tmp_path / "out" / "u" / "a").equals(pq.read_table(source / "a"))


def unreadable_orc(rows: SparkRows, directory: Path, kinds: Mapping[str, bytes]) -> Mapping[str, str]:
    """Why these ORC files cannot be read, "" for those that can."""
    places = write_each(directory, {name: lambda data=data: data for name, data in kinds.items()})
    found = rows.footers("orc", {place.name: listed(place) for place in places})
    return {name: "".join(why for _, why in unit.unreadable) for name, unit in found.items()}


def test_the_blocks_that_an_end_claims_are_not_allocated(rows, tmp_path):
    """Each such file of a hundred bytes would cost the driver two full garbage collections."""
    numbers = {orc_bombs.DATA: orc_bombs.NUMBERS}
    sizes = (1 << 23, orc_bombs.LARGE)
    kinds = {
        str(size): lambda size=size: orc_bombs.file_of(orc_bombs.BIGINT, numbers, codec=orc_bombs.ZLIB, block_size=size) for size in sizes
    }
    sources = write_each(tmp_path, kinds)
    files = {source.name: listed(source) for source in sources}
    large, longest = str(orc_bombs.LARGE), str(1 << 23)
    refused = f"it claims blocks of {large} bytes"
    found = rows.footers("orc", files)
    assert (found[longest].unreadable, refused in found[large].unreadable[0][1]) == ((), True)
    unlike = rows.find_unlike("orc", files)
    assert (list(unlike), refused in unlike[large]) == ([large], True)


@pytest.mark.parametrize("of_stripes", [False, True], ids=["footer", "statistics of stripes"])
def test_the_end_of_a_file_does_not_become_a_gigabyte(rows, tmp_path, of_stripes):
    sources = write_each(tmp_path, {str(size): lambda size=size: orc_bombs.file_with_a_long_end(size, of_stripes) for size in (1, 256)})
    files = {source.name: listed(source) for source in sources}
    assert files["256"][0].length < 1 << 19
    unreadable = {name: unit.unreadable for name, unit in rows.footers("orc", files).items()}
    unlike = rows.find_unlike("orc", files)
    assert (unreadable["1"], list(unlike)) == ((), ["256"])
    # For a footer the statistics of stripes are not decompressed.
    refused = [unlike["256"], *([] if of_stripes else [unreadable["256"][0][1]])]
    assert all(re.search(r"takes? more than 67\d+ ", why) for why in refused)


def test_an_end_in_few_bytes_does_not_become_many_megabytes(rows, tmp_path):
    """Forty bytes for each block, in fewer blocks than are refused."""
    more = orc_bombs.block(pa.compress(b"\x30\x00" * (orc_bombs.BLOCK // 2), "zstd", asbytes=True))
    sound = orc_bombs.block(orc_bombs.FOOTER_WITHOUT_ROWS, is_compressed=False)
    kinds = {str(times): orc_bombs.file_with_blocks(sound + more * times, orc_bombs.ZSTD, orc_bombs.BLOCK) for times in (1, 100)}
    found = unreadable_orc(rows, tmp_path, kinds)
    assert found["1"] == ""
    assert re.search(r"takes more than \d+ when it is decompressed", found["100"])


def test_an_end_of_many_blocks_takes_no_new_buffer_for_each(rows, tmp_path):
    """Eight bytes cost the driver eight MiB: a file of 64 MB, hours."""
    nothing = orc_bombs.block(b"", is_compressed=False) + orc_bombs.block(orc_bombs.deflated(b""))
    kinds = {
        f"{times} of {size}": orc_bombs.file_with_blocks(
            nothing * times + orc_bombs.packed(orc_bombs.FOOTER_WITHOUT_ROWS), orc_bombs.ZLIB, size
        )
        for times, size in ((7, 1 << 23), (8, 1 << 23), (1000, 1 << 10), (100_000, 1 << 10), (100_000, 100))
    }
    found = unreadable_orc(rows, tmp_path, kinds)
    refused = {name for name, why in found.items() if re.search(r"the blocks of a section of .* bytes of buffers", why)}
    assert refused == {name for name, why in found.items() if why} == {"8 of 8388608", "100000 of 1024", "100000 of 100"}


def test_a_block_that_is_longer_than_an_end_claims_is_not_decompressed(rows, tmp_path):
    """ORC 1.7 never comes to its end."""
    packed, size = orc_bombs.packed(orc_bombs.FOOTER_WITHOUT_ROWS), len(orc_bombs.FOOTER_WITHOUT_ROWS)
    kinds = {str(claimed): orc_bombs.file_with_blocks(packed, orc_bombs.ZLIB, claimed) for claimed in (size, size - 1)}
    found = unreadable_orc(rows, tmp_path, kinds)
    assert found[str(size)] == ""
    assert f"becomes longer than the {size - 1} bytes that are claimed" in found[str(size - 1)]


MALFORMED_SNAPPY = {
    # It crashes the JVM with the library of Spark 3.3.
    "length that overflows": hostile_files.varint(64) + b"\xfc\xff\xff\xff\x7f" + b"a" * 40,
    "copy of nothing": hostile_files.varint(8) + b"\x0ca\x01\x08" + b"aaa",
    "copy from a distance of 0": hostile_files.varint(8) + b"\x0caaaa\x01\x00",
    "copy from before": hostile_files.varint(8) + b"\x0caaaa\x01\x05",
    "more than it says": hostile_files.varint(3) + b"\x0caaaa",
    "less than it says": hostile_files.varint(5) + b"\x0caaaa",
    "cut off": hostile_files.varint(4) + b"\xf4\x03",
    "without a length": b"\xff\xff",
}


def test_a_malformed_block_of_snappy_is_not_decompressed(rows, tmp_path):
    noise = b"".join(hashlib.sha256(b"%d" % number).digest() for number in range(3000))
    sound = {
        "short": orc_bombs.FOOTER_WITHOUT_ROWS,
        "copies": orc_bombs.FOOTER_WITHOUT_ROWS + b"\x30\x00" * 60_000,
        "long texts": orc_bombs.FOOTER_WITHOUT_ROWS + orc_bombs.message((5, orc_bombs.message((1, b"k"), (2, noise)))),
    }
    blocks = {name: orc_bombs.block(pa.compress(body, "snappy", asbytes=True)) for name, body in sound.items()}
    blocks.update((name, orc_bombs.block(body) + blocks["short"]) for name, body in MALFORMED_SNAPPY.items())
    kinds = {name: orc_bombs.file_with_blocks(body, orc_bombs.SNAPPY, orc_bombs.BLOCK) for name, body in blocks.items()}
    found = unreadable_orc(rows, tmp_path, kinds)
    assert {name for name, why in found.items() if why} == set(MALFORMED_SNAPPY)
    assert all(re.search(r"a compressed block is (malformed|cut off)", found[name]) for name in MALFORMED_SNAPPY)


NOISE = b"".join(hashlib.sha256(b"%d" % number).digest() for number in range(100))
PACK = {
    orc_bombs.ZLIB: orc_bombs.deflated,
    orc_bombs.SNAPPY: lambda body: pa.compress(body, "snappy", asbytes=True),
    orc_bombs.LZ4: lambda body: pa.compress(body, "lz4_raw", asbytes=True),
    orc_bombs.ZSTD: lambda body: pa.compress(body, "zstd", asbytes=True),
}
# A block of 8 MiB is taken for each second one.
NOTHING = orc_bombs.block(b"", is_compressed=False) + orc_bombs.block(orc_bombs.deflated(b""))
LARGEST = 1 << 23


# The copy finds what an earlier block left in the buffer.
LZ4_FROM_A_DISTANCE_OF_0 = b"\x10a\x00\x00\xc0" + b"\x00\x01\x00" * 4


def frame(body: bytes, head: bytes, is_repeated: bool = False) -> bytes:
    """Of Zstandard, with a block for each byte: as it is, or as a byte that is repeated once."""
    blocks = [(1 << 3 | is_repeated << 1 | (at == len(body))).to_bytes(3, "little") + body[at - 1 : at] for at in range(1, len(body) + 1)]
    return b"\x28\xb5\x2f\xfd" + head + b"".join(blocks)


def frames(body: bytes) -> Mapping[str, bytes]:
    """Sound ones, and what is none: `zstd` reads it, too."""
    size = len(body)
    heads = {"its size": bytes([32, size]), "a window": b"\x00\x58", "both": b"\x80\x58" + size.to_bytes(4, "little")}
    found = {f"sound frame with {name}": frame(body, head) for name, head in heads.items()}
    found["sound frame of 8 bytes of size"] = frame(body, b"\xc0\x58" + size.to_bytes(8, "little"), is_repeated=True)
    whole = found["sound frame with its size"]
    found["two frames"] = whole * 2
    found["nothing, then a frame"] = b"\x50\x2a\x4d\x18" + (3).to_bytes(4, "little") + b"abc" + whole
    found["frame, then nothing"] = whole + b"\x50\x2a\x4d\x18" + (0).to_bytes(4, "little")
    found["frame of version 0.7"] = b"\x27\xb5\x2f\xfd" + bytes([32, size, 64, 0, size]) + body + b"\xc0\x00\x00"
    return found


def test_what_zstandard_takes_besides_one_frame_of_today_becomes_no_other_values(copier, tmp_path):
    """In a page of Parquet, other readers may refuse an old format, several frames, or more than the page says. Hive and Spark read these
    by the library that a copy is made with: the copy has what they have found, in one frame.
    """
    whole = decoder_bombs.NUMBERS
    kinds = {**frames(whole), "halves": frames(whole[:6])["sound frame with its size"] + frames(whole[6:])["sound frame with its size"]}
    contents = {name: decoder_bombs.pages_with("zstd", body)["version 1"] for name, body in kinds.items()}
    sources = write_each(tmp_path, {name: lambda content=content: content for name, content in contents.items()})
    found = dict(zip(kinds, copier.digest([listed(source) for source in sources])))
    sound = found["sound frame with its size"].digest
    assert sound.rows == 3
    assert {name for name, answer in found.items() if not answer.failed and answer.digest != sound} == set()


class Blocks(NamedTuple):
    """Blocks before those of three numbers, and why they are not decompressed; the library's buffer has so many bytes."""

    body: bytes
    codec: int
    size: int = orc_bombs.BLOCK
    why: str = ""


def blocks_of_each_kind(unlike: bytes) -> Mapping[str, Blocks]:
    """For a section, or the stream, that has `unlike` as a sound part."""
    kinds = {f"sound {codec}": Blocks(orc_bombs.block(pack(unlike)), codec) for codec, pack in PACK.items()}
    kinds["two empty ones"] = Blocks(NOTHING * 2, orc_bombs.ZLIB, LARGEST)
    kinds["empty ones"] = Blocks(NOTHING * 50_000, orc_bombs.ZLIB, LARGEST, "take more than .* bytes of buffers|almost empty")
    for codec, pack in PACK.items():
        kinds[f"noise {codec}"] = Blocks(orc_bombs.block(NOISE), codec, why="compressed block")
        kinds[f"longer {codec}"] = Blocks(orc_bombs.block(pack(b"\x00" * 5000)), codec, 4096, "than the 4096 bytes that are claimed")
        # The library takes what it finds in a block of ZLIB that is cut off.
        if codec != orc_bombs.ZLIB:
            kinds[f"cut off {codec}"] = Blocks(orc_bombs.block(pack(NOISE)[:-40]), codec, why="a compressed block is (malformed|cut off)")
    # The library stops where ZLIB says it ends.
    too_long = "longer than the 1024 bytes that are claimed|Buffer size too small"
    kinds["end of ZLIB, then more"] = Blocks(orc_bombs.block(orc_bombs.deflated(unlike) + NOISE), orc_bombs.ZLIB, 1024, too_long)
    kinds["copy of LZ4 from a distance of 0"] = Blocks(
        orc_bombs.block(LZ4_FROM_A_DISTANCE_OF_0), orc_bombs.LZ4, why="a compressed block is malformed"
    )
    for name, body in frames(unlike).items():
        why = "" if name.startswith("sound") else "a compressed block is malformed: it is not one frame"
        kinds[name] = Blocks(orc_bombs.block(body), orc_bombs.ZSTD, why=why)
    for name, body in MALFORMED_SNAPPY.items():
        kinds[name] = Blocks(orc_bombs.block(body), orc_bombs.SNAPPY, why="a compressed block is (malformed|cut off)")
    return kinds


def require_refused(kinds: Mapping[str, Blocks], found: Mapping[str, str]) -> None:
    assert {name for name, why in found.items() if why} == {name for name, blocks in kinds.items() if blocks.why}
    for name, blocks in kinds.items():
        assert re.search(blocks.why, found[name]), (name, found[name])


def test_footers_of_stripes_are_not_decompressed_without_a_look(rows, tmp_path):
    """An unknown field is a sound part of one."""
    kinds = blocks_of_each_kind(orc_bombs.message((1000, b"unknown")))
    files = {
        name: orc_bombs.file_of(
            orc_bombs.BIGINT, {orc_bombs.DATA: orc_bombs.NUMBERS}, codec=blocks.codec, block_size=blocks.size, blocks_of_footer=blocks.body
        )
        for name, blocks in kinds.items()
    }
    require_refused(kinds, unreadable_orc(rows, tmp_path, files))


# By the library, and by our own reader of lengths.
@pytest.mark.parametrize("kind", [orc_bombs.BIGINT, orc_bombs.STRING], ids=["numbers", "lengths"])
def test_streams_are_not_decompressed_without_a_look(copier, tmp_path, kind):
    numbers = orc_bombs.NUMBERS if kind == orc_bombs.BIGINT else orc_bombs.ONES
    kinds = blocks_of_each_kind(numbers)

    def file_of(name: str, blocks: Blocks) -> bytes:
        body = blocks.body if name.startswith("sound") else blocks.body + orc_bombs.block(numbers, is_compressed=False)
        texts = orc_bombs.block(b"abc", is_compressed=False)
        streams = {orc_bombs.DATA: body} if kind == orc_bombs.BIGINT else {orc_bombs.DATA: texts, orc_bombs.LENGTH: body}
        return orc_bombs.file_of(kind, streams, codec=blocks.codec, block_size=blocks.size, is_blocks=True)

    sources = write_each(tmp_path, {name: lambda name=name, blocks=blocks: file_of(name, blocks) for name, blocks in kinds.items()})
    answers = copier.digest([listed(source) for source in sources], format="orc")
    require_refused(kinds, {source.name: answer.failed for source, answer in zip(sources, answers)})


def test_a_frame_of_zstandard_may_have_a_checksum(copier, tmp_path):
    checked = bytes.fromhex("28b52ffd045819000000010aad9ae499")
    body = orc_bombs.file_of(orc_bombs.BIGINT, {orc_bombs.DATA: orc_bombs.block(checked)}, codec=orc_bombs.ZSTD, is_blocks=True)
    (answer,) = copier.digest([listed(write_each(tmp_path, {"u": lambda: body})[0])], format="orc")
    assert (answer.failed, answer.digest.rows) == ("", 3)


def test_a_stream_of_short_blocks_is_read(copier, tmp_path):
    """ORC in C++ can begin a block with each row group. The library keeps its buffer for all of them."""
    blocks = b"".join(orc_bombs.block(orc_bombs.deflated(bytes([one]))) for one in orc_bombs.NUMBERS)
    body = orc_bombs.file_of(orc_bombs.BIGINT, {orc_bombs.DATA: blocks}, codec=orc_bombs.ZLIB, block_size=LARGEST, is_blocks=True)
    (answer,) = copier.digest([listed(write_each(tmp_path, {"u": lambda: body})[0])], format="orc")
    assert (answer.failed, answer.digest.rows) == ("", 3)


def test_an_end_that_does_not_say_how_long_blocks_become_means_what_others_take_it_for(rows, copier, spark, tmp_path):
    """Of 256 KiB: ORC in C++ and from 1.8 on. ORC 1.7 would decompress without end."""
    streams = {orc_bombs.DATA: orc_bombs.block(orc_bombs.deflated(orc_bombs.NUMBERS))}
    more = orc_bombs.block(orc_bombs.deflated(orc_bombs.message((1000, b"unknown"))))
    body = orc_bombs.file_of(orc_bombs.BIGINT, streams, codec=orc_bombs.ZLIB, block_size=0, is_blocks=True, blocks_of_footer=more)
    source = write_each(tmp_path, {"u": lambda: body})[0]
    (source / "b").write_bytes(body)
    assert po.read_table(source / "a").column(0).to_pylist() == [5, 6, 7]
    files = listed(source)
    (answer,) = copier.digest([files], format="orc")
    reasons = [
        answer.failed,
        *(why for _, why in rows.footers("orc", {1: files})[1].unreadable),
        *rows.find_unlike("orc", {1: files}).values(),
    ]
    if spark.version.startswith("3.3"):
        assert len(reasons) == 4 and all("it does not say how long its blocks are" in why for why in reasons)
    else:
        assert (reasons, answer.digest.rows) == ([""], 6)


def test_a_file_at_which_the_library_fails_is_closed(gateway, rows, tmp_path):
    """Its one row is of a type that is not there."""
    foot = orc_bombs.message((1, 3), (2, 0), (4, orc_bombs.message((1, orc_bombs.STRUCT), (2, b"\x05"), (3, b"id"))), (6, 0), (8, 0))
    assert unreadable_orc(rows, tmp_path, {"u": orc_bombs.file_with_blocks(foot, orc_bombs.NONE, 0)})["u"]
    descriptors = Path(f"/proc/{gateway.java_gateway.proc.pid}/fd")
    assert [place for place in map(os.path.realpath, descriptors.iterdir()) if place.startswith(str(tmp_path))] == []


def test_blocks_of_lzo_are_only_decompressed_where_they_cannot_crash_the_jvm(rows, spark, tmp_path):
    """No other decompressor reads them."""
    packed = bytes([17 + len(orc_bombs.FOOTER_WITHOUT_ROWS)]) + orc_bombs.FOOTER_WITHOUT_ROWS + b"\x11\x00\x00"
    found = unreadable_orc(rows, tmp_path, {"lzo": orc_bombs.file_with_blocks(orc_bombs.block(packed), orc_bombs.LZO, orc_bombs.BLOCK)})
    assert ("before 0.27" in found["lzo"]) == spark.version.startswith(("3.3", "3.4")), found
    assert "before 0.27" in found["lzo"] or not found["lzo"]


@pytest.mark.parametrize("claimed", [50 << 20, orc_bombs.LARGE, 1 << 63], ids=str)
def test_statistics_that_an_end_claims_are_not_allocated(rows, tmp_path, claimed):
    """Those of encrypted columns, which the library reads with the footer."""
    sound = orc_bombs.FOOTER_WITHOUT_ROWS
    kinds = {str(size): orc_bombs.file_with_blocks(sound, orc_bombs.NONE, orc_bombs.BLOCK, size) for size in (0, claimed)}
    found = unreadable_orc(rows, tmp_path, kinds)
    assert found["0"] == ""
    assert re.search(r"its end of \d+ bytes does not fit into|its footer takes -?\d+ bytes", found[str(claimed)])


def test_texts_of_a_dictionary_count_also_if_no_row_has_them(copier, tmp_path):
    """Two kilobytes for each stripe."""
    kinds = {str(count): lambda count=count: orc_bombs.file_of_dictionaries(count, 20_000_000) for count in (1, 80)}
    sources = write_each(tmp_path, kinds)
    few, many = copier.digest([listed(source) for source in sources], format="orc")
    assert (few.failed, few.digest.rows) == ("", 3)
    assert re.search(r"more values than .* can be expected to hold", many.failed)


# As a library does, it wraps the error.
STARVING = """package hivekeeper.tested;

import java.io.IOException;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;

public class Starving extends RawLocalFileSystem {
  public FSDataInputStream open(Path path, int bufferSize) throws IOException {
    if (!path.getName().startsWith("bomb")) return super.open(path, bufferSize);
    synchronized (Starving.class) {
      System.setProperty("tested.starved", String.valueOf(Integer.getInteger("tested.starved", 0) + 1));
    }
    throw new IOException("Problem reading file footer", new OutOfMemoryError("Java heap space"));
  }
}
"""


def test_footers_that_take_all_memory_are_tried_less_often_by_and_by_and_cost_no_other_table(gateway, tmp_path):
    for directory, bombs, sound in (("bombs", 60, 0), ("mixed", 3, 20), ("sound", 0, 20)):
        (tmp_path / directory).mkdir()
        for name in [*(f"bomb{number}" for number in range(bombs)), *(f"sound{number}" for number in range(sound))]:
            (tmp_path / directory / name).write_bytes(orc_bombs.SOUND["numbers"]())
    helper = gateway.helper("Footers", configuration_with(gateway, "file", "Starving", STARVING))
    starved, properties = [], gateway.jvm.java.lang.System
    properties.clearProperty("tested.starved")

    def unreadable(directory: str) -> List[str]:
        before = int(properties.getProperty("tested.starved", "0"))
        asked = json.dumps({"u": [[file.path, file.length, 0, 0] for file in listed(tmp_path / directory)]})
        found = json.loads(helper.read("orc", asked, False, 0, -1))["units"]["u"]["unreadable"]
        starved.append(int(properties.getProperty("tested.starved", "0")) - before)
        assert all("more memory than the driver has" in one["reason"] for one in found)
        return [names.base(one["path"]) for one in found]

    assert [len(unreadable("bombs")) for _ in range(3)] == [60] * 3
    # Footers.MOST_STARVED and MOST_STARVED_AGAIN; the others were begun in other threads.
    assert 32 + 4 <= starved[0] <= 32 + 15 + 4
    assert all(1 + 1 <= count <= 1 + 15 + 1 for count in starved[1:])
    # Some of the others were not tried any more.
    assert unreadable("mixed")[:3] == ["bomb0", "bomb1", "bomb2"]
    assert unreadable("sound") == []


def test_an_internal_error_of_the_jvm_costs_the_file_for_which_a_codec_throws_it(gateway, tmp_path):
    """Hadoop's native codecs do so for damaged data."""
    for name in ("bomb", "sound"):
        (tmp_path / name).write_bytes(orc_bombs.SOUND["numbers"]())
    error = 'throw new InternalError("LZ4_decompress_safe returned: -1")'
    source = re.sub(r"throw new IOException\(.*\)", error, STARVING)
    helper = gateway.helper("Footers", configuration_with(gateway, "file", "Starving", source))
    asked = json.dumps({"u": [[file.path, file.length, 0, 0] for file in listed(tmp_path)]})
    (unread,) = json.loads(helper.read("orc", asked, False, 0, -1))["units"]["u"]["unreadable"]
    assert unread["path"] == f"file:{tmp_path}/bomb"
    assert unread["reason"] == "InternalError: LZ4_decompress_safe returned: -1"


def test_sets_to_be_joined_whose_footers_take_all_memory_are_not_tried_for_ever(gateway, tmp_path):
    for name in ("sound", "bomb"):
        (tmp_path / name).write_bytes(orc_bombs.SOUND["numbers"]())
    properties = gateway.jvm.java.lang.System
    properties.clearProperty("tested.starved")
    helper = gateway.helper("concat.OrcEnds", configuration_with(gateway, "file", "Starving", STARVING))
    files = {file.name: [file.path, file.length, 0, 0] for file in listed(tmp_path)}
    found = json.loads(helper.findUnlike(json.dumps([[files[name]] for name in ["bomb"] * 31 + ["sound"] + ["bomb"] * 9])))
    # ConcatEnds.MOST_STARVED
    assert properties.getProperty("tested.starved") == "32"
    assert [why is None or "OutOfMemoryError" in why for why in found] == [True] * 33 + [False] * 8
    assert found[31] is None
    assert all("took more memory than the driver has" in why for why in found[33:])


def test_sets_whose_footers_take_all_memory_are_counted_for_the_whole_command(gateway, monkeypatch, tmp_path):
    (tmp_path / "bomb").write_bytes(orc_bombs.SOUND["numbers"]())
    properties = gateway.jvm.java.lang.System
    properties.clearProperty("tested.starved")
    monkeypatch.setattr(gateway, "hadoop_conf", configuration_with(gateway, "file", "Starving", STARVING))
    rows = SparkRows(gateway)
    tried = []
    for _ in range(3):
        assert len(rows.find_unlike("orc", {str(number): listed(tmp_path) for number in range(20)})) == 20
        tried.append(properties.getProperty("tested.starved"))
    # ConcatEnds.MOST_STARVED, and then one of each call.
    assert tried == ["20", "32", "33"]


def test_a_copy_that_runs_out_of_memory_beside_others_is_tried_alone_also_if_a_library_wraps_the_error(gateway, copier, tmp_path):
    (tmp_path / "bomb").write_bytes(orc_bombs.SOUND["numbers"]())
    properties = gateway.jvm.java.lang.System
    properties.clearProperty("tested.starved")
    starving = configuration_with(gateway, "file", "Starving", STARVING)
    conf = gateway.context._jsc.hadoopConfiguration()
    loader, names = conf.getClassLoader(), ("fs.file.impl", "fs.file.impl.disable.cache")
    before = {name: conf.get(name) for name in names}
    conf.setClassLoader(starving.getClassLoader())
    for name in names:
        conf.set(name, starving.get(name))
    try:
        (answer,) = copier.digest([listed(tmp_path)], format="orc")
    finally:
        conf.setClassLoader(loader)
        for name, value in before.items():
            conf.unset(name) if value is None else conf.set(name, value)
    assert "Problem reading file footer" in answer.failed
    assert properties.getProperty("tested.starved") == "2"


@pytest.mark.thorough
def test_footers_that_take_all_memory_together_cost_a_minute_and_not_one_each(rows, tmp_path):
    """Jackson writes six characters for each of the names' ones, so each schema has eight million, and no two are the same."""
    (tmp_path / "u").mkdir()
    for number in range(600):
        pq.write_table(pa.table({"\x01" * 1_300_000 + str(number): [1]}), tmp_path / "u" / str(number), store_schema=False)
    started = time.monotonic()
    try:
        found = rows.footers("parquet", {"u": listed(tmp_path / "u")})["u"].unreadable
        assert "more memory than the driver has" in found[0][1]
    except RowsError as error:
        assert "out of memory" in str(error)
    assert time.monotonic() - started < 180
    assert rows.footers("parquet", {"u": listed(tmp_path / "u")[:1]})["u"].unreadable == ()


# Of version 2: three numbers each.
RUNS = {
    "one number": b"\x00\x0a",
    "packed into bytes": b"\x4e\x02\x02\x04\x06",
    "packed into bits": b"\x44\x02\x53\x00",
    "one step": b"\xc0\x02\x0a\x02",
    "packed steps": b"\xce\x02\x0a\x02\x03",
    "patched": b"\x8e\x02\x07\xe1\x01\x01\x02\x03\x01\x01",
}


def test_runs_of_numbers_that_are_cut_off_are_not_waited_for(gateway, copier, tmp_path):
    """The library counts through all numbers of 32 bits, in some seconds, for each eight that are not there, and takes others for them."""
    kinds = {**RUNS, "after a whole one": RUNS["packed into bytes"]}
    kinds.update({f"{name} cut off": run[:-1] for name, run in RUNS.items()})
    kinds["after a whole one"] += b"\x4e\x02"
    kinds["many cut off"] = b"\x4f\xff"
    files = {name: orc_bombs.file_of(orc_bombs.BIGINT, {orc_bombs.DATA: run}, encoding=orc_bombs.DIRECT_V2) for name, run in kinds.items()}
    for name, length in {"lengths": b"\x4e\x02\x01\x01\x01", "lengths cut off": b"\x4f\xff\x01"}.items():
        streams = {orc_bombs.DATA: b"abc", orc_bombs.LENGTH: length}
        files[name] = orc_bombs.file_of(orc_bombs.STRING, streams, encoding=orc_bombs.DIRECT_V2)
        dictionary = {orc_bombs.DATA: length, orc_bombs.LENGTH: b"\x4e\x02\x01\x01\x01", orc_bombs.DICTIONARY_DATA: b"abc"}
        files[f"places like {name}"] = orc_bombs.file_of(orc_bombs.STRING, dictionary, encoding=orc_bombs.DICTIONARY_V2, dictionary_size=3)
        times = {orc_bombs.DATA: RUNS["one number"], orc_bombs.SECONDARY: length}
        files[f"nanoseconds like {name}"] = orc_bombs.file_of(orc_bombs.TIMESTAMP_INSTANT, times, encoding=orc_bombs.DIRECT_V2)
    sources = write_each(tmp_path, {name: lambda body=body: body for name, body in files.items()})
    before = cpu_seconds(gateway)
    answers = dict(zip(files, copier.digest([listed(source) for source in sources], format="orc")))
    assert cpu_seconds(gateway) - before < 30
    bad = {name for name in files if name.endswith("cut off") or name.startswith("after")}
    assert {name for name, answer in answers.items() if answer.failed} == bad
    assert all("ends inside a run of numbers" in answers[name].failed for name in bad)


def test_runs_of_numbers_of_each_width_are_whole(copier, tmp_path):
    """As Arrow writes them, and the library for a copy: packed, with outliers, in steps, and all the same."""
    rng = random.Random(1)
    columns = {}
    for bits in range(1, 64):
        columns[f"packed{bits}"] = [rng.getrandbits(bits) for _ in range(1500)]
        columns[f"patched{bits}"] = [rng.getrandbits(63 if rng.random() < 0.02 else bits) for _ in range(1500)]
        columns[f"steps{bits}"] = list(itertools.accumulate(rng.getrandbits(bits) >> 11 for _ in range(1500)))
    columns["same"] = [rng.getrandbits(1) << 40 for _ in range(300) for _ in range(5)]
    source = tmp_path / "u"
    source.mkdir()
    po.write_table(pa.table({name: pa.array(numbers, pa.int64()) for name, numbers in columns.items()}), str(source / "a"))
    (answer,) = copy_all(copier, [source], "orc")
    assert answer.failed == ""
    (again,) = copier.digest([listed(tmp_path / "out" / "u")], format="orc")
    assert again == answer


def frame_of_zeros(size: int) -> bytes:
    """With a window of 128 MiB, and without its size."""
    repeated = [(1 << 17 << 3 | 2).to_bytes(3, "little") + b"\x00"] * (size >> 17)
    return struct.pack("<I", 0xFD2FB528) + b"\x00\x88" + b"".join(repeated) + b"\x03\x00\x00\x00"


def direct_mib(gateway) -> int:
    """As Spark measures it: the Py4J of Spark 3.3 cannot ask the JVM's own beans, whose classes are not public."""
    measured = getattr(getattr(gateway.jvm.org.apache.spark.metrics, "DirectPoolMemory$"), "MODULE$")
    return int(measured.getMetricValue(None)) >> 20


def most_mib(gateway) -> int:
    """Of the process, since this was asked for last."""
    about = Path(f"/proc/{int(gateway.jvm.java.lang.ProcessHandle.current().pid())}")
    most = re.search(r"VmHWM:\s+(\d+) kB", (about / "status").read_text())
    (about / "clear_refs").write_text("5")
    return int(most.group(1)) >> 10 if most else 0


@pytest.mark.thorough
def test_pages_take_no_memory_outside_the_heap(gateway, copier, tmp_path):
    """YARN kills an executor that has more than its container, and ends the application after some of these. GZIP takes little, and fills
    the heap first.
    """
    size = 100 << 20
    bodies = {codec: decoder_bombs.packed(codec, bytes(size)) for codec in ("gzip", "snappy")}
    found = {}
    for codec, body in {"gzip": bodies["gzip"], "zstd": frame_of_zeros(size), "snappy": bodies["snappy"]}.items():
        content = decoder_bombs.file_of(decoder_bombs.page(body, size=size), codec=decoder_bombs.CODECS[codec])
        sources = write_each(
            tmp_path, {f"{codec}{number}": lambda content=content: content for number in range(30 if codec == "gzip" else 8)}
        )
        before = direct_mib(gateway)
        most_mib(gateway)
        answers = copier.digest([listed(source) for source in sources])
        assert {(answer.failed, answer.digest.rows) for answer in answers} == {("", 3)}
        found[codec] = (direct_mib(gateway) - before, most_mib(gateway))
    assert max(direct for direct, _ in found.values()) < 50
    assert found["zstd"][1] < found["gzip"][1] + 120


@pytest.mark.parametrize("codec", ["snappy", "lz4_raw"])
def test_pages_of_a_copy_take_no_memory_outside_the_heap(gateway, copier, tmp_path, codec):
    if codec.upper() not in map(str, gateway.jvm.org.apache.parquet.hadoop.metadata.CompressionCodecName.values()):
        pytest.skip("parquet-mr 1.12 (Spark 3.3) does not know this codec")
    source = write_pages(tmp_path / "u", {"a": pa.array([bytes(60 << 20)], pa.large_binary())})
    before = direct_mib(gateway)
    (answer,) = copier.copy(f"file:{tmp_path}/attempts", [CopyTask(f"file:{tmp_path}/out/a", listed(source), codec)])
    assert direct_mib(gateway) - before < 50
    assert (answer.failed, answer.digest.rows) == ("", 1)
    assert pq.read_table(f"{tmp_path}/out/a").column("a")[0].as_py() == bytes(60 << 20)
    assert copier.digest([listed(tmp_path / "out")]) == [answer]


@pytest.mark.parametrize("codec", ["snappy", "zstd", "gzip"])
def test_pages_whose_values_take_no_bytes_are_read(copier, tmp_path, codec):
    """Of NULLs only. In version 2 nothing is left to be compressed, and writers store nothing, or what becomes nothing."""
    (tmp_path / "u").mkdir()
    pq.write_table(pa.table({"a": pa.nulls(3, pa.int64())}), tmp_path / "u" / "a", data_page_version="2.0", compression=codec)
    kinds = {"nothing": b"", "packed": decoder_bombs.packed(codec, b"")}
    files = {
        name: decoder_bombs.file_of(decoder_bombs.page_v2(body, b"\x06\x00", size=0), optional=True, codec=decoder_bombs.CODECS[codec])
        for name, body in kinds.items()
    }
    sources = write_each(tmp_path, {name: lambda content=content: content for name, content in files.items()})
    answers = copier.digest([listed(source) for source in [tmp_path / "u", *sources]])
    assert [(answer.failed, answer.digest.rows) for answer in answers] == [("", 3)] * 3


TOO_MANY = r"more values than .* can be expected to hold"


def test_deltas_that_are_no_values_count(copier, tmp_path):
    """Twenty-five bytes for each page, and a block of deltas for it that may take all memory there is: of each all are decoded."""
    kinds = {str(pages): lambda pages=pages: decoder_bombs.file_of_blocks(pages, 1 << 19) for pages in (1, 2000)}
    copier._jobs.setMoreValues(1)
    few, many = copier.digest([listed(source) for source in write_each(tmp_path, kinds)])
    assert (few.failed, few.digest.rows) == ("", 3)
    assert re.search(TOO_MANY, many.failed)


def test_texts_of_a_dictionary_of_parquet_count_also_if_no_row_has_them(copier, tmp_path):
    """Some hundred bytes for each row group, in Zstandard."""
    kinds = {str(groups): lambda groups=groups: decoder_bombs.file_of_dictionaries(groups, 1_000_000) for groups in (1, 150)}
    copier._jobs.setMoreValues(1)
    few, many = copier.digest([listed(source) for source in write_each(tmp_path, kinds)])
    assert (few.failed, few.digest.rows) == ("", 1)
    assert re.search(TOO_MANY, many.failed)


@pytest.mark.thorough
def test_alternatives_that_no_row_has_count(copier, tmp_path):
    """The library goes through all rows for each alternative of a union."""
    kinds = {str(children): lambda children=children: orc_bombs.file_of_unions(children, 1, 1_000_000) for children in (3, 4000)}
    copier._jobs.setMoreValues(1)
    few, many = copier.digest([listed(source) for source in write_each(tmp_path, kinds)], format="orc")
    assert (few.failed, few.digest.rows) == ("", 1_000_000)
    assert re.search(TOO_MANY, many.failed)


@pytest.mark.thorough
def test_columns_of_each_stripe_count(copier, tmp_path):
    """The library begins each column anew; seventy bytes stand for a stripe of thousands that have no bytes."""
    kinds = {str(stripes): lambda stripes=stripes: orc_bombs.file_of_unions(7000, stripes, 1) for stripes in (1, 400)}
    copier._jobs.setMoreValues(1)
    few, many = copier.digest([listed(source) for source in write_each(tmp_path, kinds)], format="orc")
    assert (few.failed, few.digest.rows) == ("", 1)
    assert re.search(TOO_MANY, many.failed)


def test_footers_of_stripes_take_no_buffer_of_the_longest_block(gateway, rows, tmp_path):
    """Five bytes each, ten thousand of them, of which each took 8 MiB for a moment."""
    types = [orc_bombs.message((1, orc_bombs.STRUCT), (2, b"\x01"), (3, b"id")), orc_bombs.message((1, orc_bombs.TIMESTAMP))]
    footer = orc_bombs.block(orc_bombs.deflated(b""))
    bodies = {"u": orc_bombs.file_of_stripes(types, b"", footer, 10_000, size=(1 << 23) - 1)}
    before = cpu_seconds(gateway)
    assert unreadable_orc(rows, tmp_path, bodies) == {"u": ""}
    assert cpu_seconds(gateway) - before < 8


def test_statistics_of_columns_are_read_in_a_time_that_grows_with_their_number(gateway, rows, tmp_path):
    """The library looks for each column among all: a file of 160 KB took more than a minute, one of 2 MB hours."""
    before = cpu_seconds(gateway)
    assert unreadable_orc(rows, tmp_path, {"u": orc_bombs.file_of_columns(80_000)}) == {"u": ""}
    assert cpu_seconds(gateway) - before < 20
