"""A physical copy keeps every value and all that says what it means: Arrow, whose readers differ, reads sources and outputs."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import re
import shutil
import struct
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Callable, List, Sequence

import pyarrow as pa
import pyarrow.orc as po
import pyarrow.parquet as pq
import pyspark
import pytest
from pyarrow import dataset

from foreign import footers, thrift
from hivekeeper.cluster import physical_copy
from hivekeeper.cluster.files import HadoopFiles
from hivekeeper.cluster.java_errors import CALL_ERRORS
from hivekeeper.cluster.physical_copy import Answer, CopyTask, PhysicalCopy, as_asked
from hivekeeper.cluster.rows import SparkRows
from hivekeeper.model import Digest
from hivekeeper.schemas import parse_parquet
from support import decoder_bombs, foreign_files, hostile_files
from support.data_files import batch_of, bits, form_of, listed
from support.pandas_files import counted, said_of, write_labelled

# A field of ColumnMetaData.
DICTIONARY_PAGE = 11


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
    if pyspark.__version__.startswith("3.3."):
        # parquet-mr 1.12 cannot read its pages with NULLs.
        assert "BYTE_STREAM_SPLIT" in copy_one(copier, tmp_path / names.pop(names.index("split"))).failed
        shutil.rmtree(tmp_path / "split")
    sources = [tmp_path / name for name in names]
    answers = copy_all(copier, sources)
    assert {source.name: answer.failed for source, answer in zip(sources, answers) if answer.failed} == {}
    read = copier.digest([listed(output_of(source).parent) for source in sources], check_claims=True)
    for source, answer, again in zip(sources, answers, read):
        assert again == answer
        assert_copied(source)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*names, "out"])


def test_codec_and_row_groups_are_as_requested_and_blooms_are_written(gateway, copier, tmp_path):
    foreign_files.write_two(tmp_path / "u", foreign_files.table())
    assert copy_one(copier, tmp_path / "u", codec="gzip", blooms=["fixed"], row_group_bytes=1 << 20).failed == ""
    rows = SparkRows(gateway)
    before, after = (form_of(rows, "parquet", place) for place in (tmp_path / "u", output_of(tmp_path / "u").parent))
    assert (after.codec, after.blooms) == ("gzip", ("fixed",))
    assert after == replace(before, codec="gzip", blooms=("fixed",))


def test_a_row_group_ends_at_the_requested_size(copier, tmp_path):
    foreign_files.write_two(tmp_path / "u", foreign_files.OTHERS["large-values"](), use_dictionary=False, compression="none")
    assert copy_one(copier, tmp_path / "u", codec="none", row_group_bytes=3 << 20).failed == ""
    groups = pq.ParquetFile(output_of(tmp_path / "u")).metadata
    assert [groups.row_group(number).num_rows for number in range(groups.num_row_groups)] == [5] * 6


def test_an_output_is_never_put_over_a_file_nor_visible_to_others(copier, tmp_path):
    foreign_files.write_two(tmp_path / "u", pa.table({"a": [1]}))
    assert copy_one(copier, tmp_path / "u").failed == ""
    assert output_of(tmp_path / "u").stat().st_mode & 0o777 == 0o600
    first = output_of(tmp_path / "u").read_bytes()
    again = copy_one(copier, tmp_path / "u", codec="gzip")
    assert str(output_of(tmp_path / "u")) in again.failed
    assert output_of(tmp_path / "u").read_bytes() == first
    assert not (tmp_path / "attempts").exists()


def test_what_somebody_has_put_in_the_place_of_the_attempts_is_not_deleted(gateway, copier, tmp_path):
    """Whoever may write to the table's root can have another table's directory there, when the job ends at the latest, by an exchange of
    the control directory.
    """
    foreign_files.write_two(tmp_path / "u", pa.table({"a": [1]}))
    named, held = tmp_path / "named", tmp_path / "held"
    for place in (tmp_path / "attempts", named / "_attempts"):
        (place / "dt=1").mkdir(parents=True, mode=0o700)
        (place / "dt=1" / "theirs").write_text("rows")
    with pytest.raises(CALL_ERRORS):
        copy_one(copier, tmp_path / "u")
    held.mkdir()
    rows = SparkRows(gateway, lambda path: path.replace(str(named), str(held)))
    assert rows.write_stage(batch_of(rows, "parquet", named, [tmp_path / "u"], is_copied=True))[1].failed == ""
    assert [(place / "dt=1" / "theirs").exists() for place in (tmp_path / "attempts", named / "_attempts")] == [True, True]
    assert not (held / "_attempts").exists()


def test_a_directory_that_cannot_be_made_costs_its_own_output(copier, tmp_path):
    foreign_files.write_two(tmp_path / "u", pa.table({"a": [1]}))
    (tmp_path / "taken").write_text("")
    tasks = [CopyTask(f"file:{tmp_path}/{place}/0", listed(tmp_path / "u"), "none") for place in ("taken", "free")]
    refused, done = copier.copy(f"file:{tmp_path}/attempts", tasks)
    assert (bool(refused.failed), done.failed) == (True, "")
    assert (tmp_path / "free" / "0").exists()


def test_long_files_are_streamed(copier, tmp_path):
    foreign_files.write_two(tmp_path / "u", foreign_files.table(), data_page_version="2.0")
    (tmp_path / "unknown").mkdir()
    for name in ("a", "b"):
        (tmp_path / "unknown" / name).write_bytes(hostile_files.annotates_unknown())
    sources = [tmp_path / "u", tmp_path / "unknown"]
    whole = copier.digest([listed(source) for source in sources])
    copier._jobs.setWindow(100)
    assert copier.digest([listed(source) for source in sources]) == whole
    assert copy_all(copier, sources) == whole
    assert_copied(tmp_path / "u")


@pytest.mark.parametrize("window", [64 << 20, 10], ids=["in memory", "streamed"])
@pytest.mark.parametrize("format", ["parquet", "orc"])
def test_a_file_that_was_put_in_the_place_of_the_listed_one_is_not_read(copier, tmp_path, format, window):
    """Whoever may rename a closed file into a partition of theirs could have it copied, and put the listed one back before the swap."""
    copier._jobs.setWindow(window)
    for name, first in (("u", 100), ("closed", 200)):
        (tmp_path / name).mkdir()
        values = pa.table({"a": pa.array(range(first, first + 20))})
        path = tmp_path / name / "0"
        pq.write_table(values, path, compression="none") if format == "parquet" else po.write_table(values, path)
    before = HadoopFiles(copier.gateway).look([f"file:{tmp_path}/u"])[f"file:{tmp_path}/u"].entries
    assert (tmp_path / "closed" / "0").stat().st_size == before[0].length
    tasks = [CopyTask(f"file:{tmp_path}/out/{number}", before, "none", format=format) for number in (1, 2)]
    assert copier.copy(f"file:{tmp_path}/attempts", tasks[:1]) == copier.digest([before], format=format)
    (tmp_path / "u" / "0").rename(tmp_path / "u" / "aside")
    (tmp_path / "closed" / "0").rename(tmp_path / "u" / "0")
    answers = [*copier.copy(f"file:{tmp_path}/attempts", tasks[1:]), *copier.digest([before], format=format)]
    assert all("another file is there" in answer.failed for answer in answers)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["1"]


def test_annotations_and_orders_of_a_later_format_are_copied_as_they_are(gateway, copier, tmp_path):
    (tmp_path / "u").mkdir()
    for name in ("a", "b"):
        (tmp_path / "u" / name).write_bytes(hostile_files.annotates_unknown())
    answer = copy_one(copier, tmp_path / "u")
    rows = SparkRows(gateway)
    before, after = (form_of(rows, "parquet", place, by_identity=True) for place in (tmp_path / "u", output_of(tmp_path / "u").parent))
    assert answer.digest.rows == 2
    assert before.identity == after.identity == answer.identity
    assert [field.annotation for field in parse_parquet(after.schema)] == ["UNKNOWN_99"]
    (group,) = rows.footers("parquet", {"u": listed(output_of(tmp_path / "u").parent)})["u"].groups
    assert (group.columns["id"].nulls, group.columns["id"].low, group.columns["id"].high) == (0, None, None)


@pytest.mark.parametrize("window", [64 << 20, 10])
def test_a_bad_file_costs_its_own_output_and_is_answered_with_a_reason(copier, tmp_path, window):
    kinds = {**hostile_files.FOOTERS, **hostile_files.CONTENTS, "good": hostile_files.good}
    for name, make in kinds.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "a").write_bytes(hostile_files.good())
        (tmp_path / name / "b").write_bytes(make())
    copier._jobs.setWindow(window)
    answers = dict(zip(kinds, copy_all(copier, [tmp_path / name for name in kinds])))
    assert {name for name, answer in answers.items() if not answer.failed} == {"good"}
    assert answers["good"].digest.rows == 2
    for name, answer in answers.items():
        assert name == "good" or answer.failed.startswith(f"file:{tmp_path / name / 'b'}: ")
        assert "\n" not in answer.failed
    assert list((tmp_path / "out").iterdir()) == [tmp_path / "out" / "good"]
    assert not (tmp_path / "attempts").exists()


def test_a_damaged_page_is_found_by_its_checksum(copier, tmp_path):
    values = pa.table({"a": list(range(1000))})
    foreign_files.write_two(tmp_path / "u", values, write_page_checksum=True, compression="none", use_dictionary=False)
    content = bytearray((tmp_path / "u" / "a").read_bytes())
    content[500] ^= 1
    (tmp_path / "u" / "a").write_bytes(content)
    assert "CRC" in copy_one(copier, tmp_path / "u").failed


@pytest.mark.parametrize("window", [64 << 20, 10], ids=["in memory", "streamed"])
def test_a_damaged_page_of_version_2_is_found_by_its_checksum(copier, tmp_path, window):
    """parquet-mr 1.13 does not look at its checksum; Arrow does, and a copy would have none."""
    copier._jobs.setWindow(window)
    foreign_files.write_two(tmp_path / "sound", foreign_files.table(), write_page_checksum=True, data_page_version="2.0")
    numbers = pa.table({"a": pa.array(range(1000, 2000))})
    plain = {"use_dictionary": False, "compression": "none", "write_statistics": False}
    foreign_files.write_two(tmp_path / "u", numbers, write_page_checksum=True, data_page_version="2.0", **plain)
    content = (tmp_path / "u" / "a").read_bytes()
    (tmp_path / "u" / "a").write_bytes(content.replace(struct.pack("<q", 1500), struct.pack("<q", 1501), 1))
    sound, damaged = copy_all(copier, [tmp_path / "sound", tmp_path / "u"])
    assert (sound.failed, "checksum" in damaged.failed) == ("", True)


def test_a_page_that_lacks_values_is_refused(copier, tmp_path):
    """parquet-mr takes missing bits for zeros: for the first value of the dictionary, for NULL or false. Arrow and Spark refuse them."""
    found = {}
    for kind, files in (("short", decoder_bombs.SHORT), ("cut", decoder_bombs.CUT)):
        for name, make in files.items():
            (tmp_path / f"{kind} {name}").mkdir()
            (tmp_path / f"{kind} {name}" / "a").write_bytes(make())
    sources = sorted(path for path in tmp_path.iterdir())
    for source, answer in zip(sources, copy_all(copier, sources)):
        found[source.name] = "ends too early" if "ends too early" in answer.failed else answer.failed or pq.read_table(output_of(source))
    numbers = {name: found.pop(f"short {name}").column(0).to_pylist() for name in decoder_bombs.SHORT}
    assert numbers == {"places": [7, 8, 9], "places of some": [7, None, 9], "places of version 2": [7, None, 9]}
    assert found == {f"cut {name}": "ends too early" for name in decoder_bombs.CUT}


def test_a_page_of_no_values_is_refused(copier, tmp_path):
    """parquet-mr reads one from it: a boolean is false. The last value of the column was lost then."""
    for name, make in decoder_bombs.EMPTY.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "a").write_bytes(make())
    for answer in copy_all(copier, [tmp_path / name for name in decoder_bombs.EMPTY]):
        assert "has no values" in answer.failed


def test_levels_of_packed_bits_are_refused(copier, tmp_path):
    """parquet-mr begins at the highest bit of a byte, as the format says, Arrow at the lowest, so all rows are NULL for it."""
    (tmp_path / "u").mkdir()
    packed = decoder_bombs.page(b"\xc0" + decoder_bombs.NUMBERS[:8], levels=decoder_bombs.BIT_PACKED)
    (tmp_path / "u" / "a").write_bytes(decoder_bombs.file_of(packed, optional=True))
    assert "has levels in the encoding BIT_PACKED" in copy_one(copier, tmp_path / "u").failed


def test_a_text_of_a_negative_length_is_refused(copier, tmp_path):
    """parquet-mr takes it for an empty one, and reads on as many bytes before it. Arrow and Spark's vectorized reader refuse it."""
    for name, make in decoder_bombs.BACKWARDS.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "a").write_bytes(make())
    for answer in copy_all(copier, [tmp_path / name for name in decoder_bombs.BACKWARDS]):
        assert re.search(r"claims -\d+ bytes of a text", answer.failed), answer


def page_that_says_it_is_plain(numbers: bytes, stored: bytes) -> bytes:
    """Of version 2, with three required numbers."""
    counts = ((1, 3), (2, 0), (3, 3), (4, decoder_bombs.PLAIN), (5, 0), (6, 0))
    about = {**{number: (thrift.I32, value) for number, value in counts}, 7: (thrift.FALSE, False)}
    sizes = {1: (thrift.I32, decoder_bombs.V2), 2: (thrift.I32, len(numbers)), 3: (thrift.I32, len(stored))}
    return thrift.write_struct({**sizes, 8: (thrift.STRUCT, about)}) + stored


@pytest.mark.parametrize("is_old", [True, False])
def test_a_compressed_page_that_says_it_is_not_is_refused(copier, tmp_path, is_old):
    """Arrow before 3.0 wrote such pages, and its later readers know that; parquet-mr takes the compressed bytes for values."""
    writer = "parquet-cpp version 1.5.1-SNAPSHOT" if is_old else "parquet-cpp-arrow version 3.0.0"
    pages = {"plain": decoder_bombs.NUMBERS, "snappy": pa.compress(decoder_bombs.NUMBERS, codec="snappy", asbytes=True)}
    for name, stored in pages.items():
        (tmp_path / name).mkdir()
        page = page_that_says_it_is_plain(decoder_bombs.NUMBERS, stored)
        (tmp_path / name / "a").write_bytes(decoder_bombs.file_of(page, codec=hostile_files.SNAPPY))
        footers.sign(tmp_path / name / "a", writer, {})
    plain, compressed = copy_all(copier, [tmp_path / name for name in pages])
    assert "ARROW-10353" in compressed.failed
    assert ("ARROW-10353" in plain.failed) == is_old
    readable = tmp_path / ("snappy" if is_old else "plain") / "a"
    assert pq.read_table(readable).column(0).to_pylist() == [7, 8, 9]


@pytest.mark.parametrize("more", [1, -1])
def test_a_file_of_another_length_than_listed_fails(copier, tmp_path, more):
    foreign_files.write_two(tmp_path / "u", pa.table({"a": [1]}))
    for window in (64 << 20, 10):
        copier._jobs.setWindow(window)
        (answer,) = copier.digest([[file._replace(length=file.length + more) for file in listed(tmp_path / "u")]])
        assert answer.failed


def test_files_that_mean_something_else_are_not_merged(copier, tmp_path):
    foreign_files.write_two(tmp_path / "u", pa.table({"a": [1]}))
    pq.write_table(pa.table({"a": [2]}).replace_schema_metadata({"k": "v"}), tmp_path / "u" / "c")
    assert str(tmp_path / "u" / "c") in copy_one(copier, tmp_path / "u").failed
    (answer,) = copier.digest([listed(tmp_path / "u")])
    assert (answer.digest.rows, answer.identity, answer.failed) == (2, "", "")


def test_an_attempt_that_still_runs_after_the_commit_creates_nothing(copier, tmp_path):
    foreign_files.write_two(tmp_path / "u", pa.table({"a": [1]}))
    task = CopyTask("", listed(tmp_path / "u"), "none")
    asked = {**task._asdict(), "files": list(map(as_asked, task.files)), "attempt": f"file:{tmp_path}/gone/0"}
    (answer,) = json.loads(copier._jobs.digest(json.dumps([asked])))
    assert answer["failed"]
    assert not (tmp_path / "gone").exists()


def test_a_cancelled_copy_leaves_nothing(spark, copier, tmp_path):
    foreign_files.write_two(tmp_path / "u", foreign_files.table())
    os.mkfifo(tmp_path / "u" / "c")
    raised: List[BaseException] = []

    def copy() -> None:
        try:
            copy_one(copier, tmp_path / "u")
        except CALL_ERRORS as error:
            raised.append(error)

    running = threading.Thread(target=copy)
    running.start()
    wait_until(lambda: (tmp_path / "attempts").is_dir() and any((tmp_path / "attempts").iterdir()))
    spark.sparkContext.cancelAllJobs()
    running.join(30)
    assert len(raised) == 1
    wait_until(lambda: end_reads(spark, tmp_path / "u" / "c"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["u"]


def end_reads(spark, pipe: Path) -> bool:
    """End whatever waits for this pipe to be written to; whether the killed task, which waits for its readers, has ended."""
    # Hadoop's local file system opens a file again for each read.
    with contextlib.suppress(OSError):
        os.close(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))
    threads = spark._jvm.java.lang.Thread.getAllStackTraces().keySet()
    return not any(str(thread.getName()).startswith("hivekeeper-read-ahead") for thread in threads)


def wait_until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_many_outputs_cost_as_many_calls_as_few(gateway, copier, tmp_path):
    foreign_files.write_two(tmp_path / "u", pa.table({"a": [1]}))
    copier.digest([listed(tmp_path / "u")])
    costs = []
    for count in (1, 12):
        tasks = [CopyTask(f"file:{tmp_path}/out {count}/{number}", listed(tmp_path / "u"), "none") for number in range(count)]
        before = gateway.calls
        answers = copier.copy(f"file:{tmp_path}/attempts", tasks)
        copier.digest([task.files for task in tasks])
        costs.append(gateway.calls - before)
        assert not any(answer.failed for answer in answers)
    assert costs[0] == costs[1]


LISTS = pa.list_(pa.list_(pa.int64()))
# Numbers are told apart by their bits, not by their type, so each type is for itself.
DIFFERENT = [
    (pa.float64(), ([0.0], [-0.0], [None], [float("nan")], [foreign_files.ODD_NAN], [0.0, 0.0])),
    (pa.int64(), ([0], [1], [0, 1], [0, 0, 1])),
    (pa.string(), ([""], ["\0"], ["a"], [None])),
    (pa.bool_(), ([False], [True])),
    (LISTS, ([[]], [[[]]], [[None]], [[[None]]], [[[1, 2]]], [[[1], [2]]], [[[2, 1]]], [[[1]], [[2]]])),
]


def test_different_rows_have_different_digests(copier, tmp_path):
    kinds = [[pa.table({"a": pa.array(values, kind)}) for values in different] for kind, different in DIFFERENT]
    kinds.append([pa.table({"a": [1], "b": [2]}), pa.table({"a": [2], "b": [1]}), pa.table({"b": [1], "a": [2]})])
    contents = [(f"{kind} {number}", content) for kind, different in enumerate(kinds) for number, content in enumerate(different)]
    for name, content in contents:
        foreign_files.write_two(tmp_path / name, content)
    found = iter(copier.digest([listed(tmp_path / name) for name, _ in contents]))
    for different in kinds:
        digests = [next(found).digest for _ in different]
        assert len(set(digests)) == len(different)


def test_the_order_of_rows_and_required_columns_do_not_change_a_digest(copier, tmp_path):
    schema = pa.schema([pa.field("a", pa.int64(), nullable=False)])
    same = [pa.table({"a": [1, 2, 3]}), pa.table({"a": [3, 1, 2]}), pa.table({"a": [2, 3, 1]}, schema)]
    for number, content in enumerate(same):
        (tmp_path / f"{number}").mkdir()
        pq.write_table(content, tmp_path / f"{number}" / "a")
    found = copier.digest([listed(tmp_path / f"{number}") for number in range(len(same))])
    assert len({answer.digest for answer in found}) == 1
    assert found[0].identity == found[1].identity != found[2].identity


@pytest.mark.parametrize("schema", [True, False], ids=["with-arrow-schema", "without"])
def test_labels_that_count_the_rows_of_one_file_are_not_copied(gateway, copier, tmp_path, schema):
    for rows in (10, 99, 45):
        write_labelled(tmp_path / "u", rows, [counted(rows)], schema)
    form = form_of(SparkRows(gateway), "parquet", tmp_path / "u", by_identity=True)
    answer = copy_one(copier, tmp_path / "u")
    assert (answer.failed, answer.digest.rows, answer.identity, form.single) == ("", 154, form.identity, False)
    output = output_of(tmp_path / "u")
    (source, *_) = said_of(tmp_path / "u" / "10.parquet")
    assert source["index_columns"] == [counted(10)]
    assert said_of(output) == [{**source, "index_columns": []}] * (1 + schema)
    assert pq.read_schema(output).field("a").type == pq.read_schema(tmp_path / "u" / "10.parquet").field("a").type
    # What comes later is of the same form.
    write_labelled(output.parent, 77, [counted(77)], schema)
    assert form_of(SparkRows(gateway), "parquet", output.parent, by_identity=True) == form


OWN_LABELS = {
    "another-start": ([counted(20, start=10)], {}),
    "another-step": ([counted(20, step=2)], {}),
    "a-name": ([counted(10, name="id")], {}),
    "more": ([counted(10, unknown=1)], {}),
    "two-levels": ([counted(10), counted(10)], {}),
    "said-twice": ([counted(10)], {"index_columns": []}),
}


@pytest.mark.parametrize("labels", OWN_LABELS)
def test_other_labels_stay_with_their_file(gateway, copier, tmp_path, labels):
    index, creator = OWN_LABELS[labels]
    write_labelled(tmp_path / "u", 10, index, creator=creator)
    assert form_of(SparkRows(gateway), "parquet", tmp_path / "u", by_identity=True).single
    assert copy_one(copier, tmp_path / "u").failed == ""
    assert_copied(tmp_path / "u")


def categories_of(path: Path) -> List[List[str]]:
    """Of each row group, as pandas and R get them from Arrow."""
    file = pq.ParquetFile(path)
    columns = (file.read_row_group(number)["x"].chunk(0) for number in range(file.num_row_groups))
    return [column.dictionary.to_pylist() for column in columns]


@pytest.mark.parametrize("rows", [["high", "low", None, "high"], [None] * 4, ["low"] * 100_000], ids=["few", "none", "many"])
def test_categories_keep_their_order_and_those_that_no_row_has(copier, tmp_path, rows):
    """They are in the dictionary pages only, and pandas compares and sorts by their order."""
    names = ["low", "mid", "high"]
    column = pa.DictionaryArray.from_arrays(pa.array([name and names.index(name) for name in rows], pa.int8()), names, ordered=True)
    texts = pa.array([f"{number:060}" for number in range(len(rows))])
    foreign_files.write_two(tmp_path / "u", pa.table({"x": column, "y": texts}), row_group_size=80_000)
    assert copy_one(copier, tmp_path / "u", row_group_bytes=1 << 20).failed == ""
    assert_copied(tmp_path / "u")
    assert categories_of(tmp_path / "u" / "a")[0] == names
    found = categories_of(output_of(tmp_path / "u"))
    assert found == [names] * len(found)
    assert len(found) > 1 or len(rows) < 5


@pytest.mark.parametrize("rows", [[None] * 4, [1, None]], ids=["none", "few"])
def test_categories_larger_than_a_dictionary_are_not_lost(copier, tmp_path, rows):
    """A writer may be given a higher limit than ours; a column that goes on without a dictionary has only the categories of its rows."""
    names = [f"{number:01000}" for number in range(20_000)]
    column = pa.DictionaryArray.from_arrays(pa.array(rows, pa.int16()), names)
    foreign_files.write_two(tmp_path / "u", pa.table({"x": column}), dictionary_pagesize_limit=1 << 26)
    assert "the categories of the column x are larger than a dictionary" in copy_one(copier, tmp_path / "u").failed


def test_a_row_group_ends_where_its_dictionary_has_no_room_for_more_categories(copier, tmp_path):
    (tmp_path / "u").mkdir()
    for number in range(4):
        names = [f"{name:01000}" for name in range(number * 4000, number * 4000 + 7000)]
        column = pa.DictionaryArray.from_arrays(pa.array([0, None, 6999], pa.int16()), names)
        pq.write_table(pa.table({"x": column, "y": [1, 2, 3]}), tmp_path / "u" / f"{number}", dictionary_pagesize_limit=1 << 26)
    assert copy_one(copier, tmp_path / "u").failed == ""
    assert_copied(tmp_path / "u")
    assert [len(names) for names in categories_of(output_of(tmp_path / "u"))] == [15_000, 7000]


def test_categories_inside_others_keep_their_order(copier, tmp_path):
    names = ["low", "mid", "high"]
    inner = pa.DictionaryArray.from_arrays(pa.array([2, 0, None], pa.int8()), names, ordered=True)
    lists = pa.ListArray.from_arrays([0, 2, 2, 3], inner)
    foreign_files.write_two(tmp_path / "u", pa.table({"s": pa.StructArray.from_arrays([inner, lists], ["x", "l"])}))
    assert copy_one(copier, tmp_path / "u").failed == ""
    assert_copied(tmp_path / "u")
    for path in (tmp_path / "u" / "a", output_of(tmp_path / "u")):
        struct_of_both = pq.read_table(path)["s"].chunk(0)
        assert struct_of_both.field(0).dictionary.to_pylist() == names
        assert struct_of_both.field(1).values.dictionary.to_pylist() == names


def test_a_row_group_has_no_more_categories_than_arrow_can_number(copier, tmp_path):
    """Each file has those of its own; with numbers of 8 bits Arrow reads 128 of them, and fails for a row group with more."""
    (tmp_path / "u").mkdir()
    for number, first in enumerate([0, 20, 100, 110]):
        names = [f"c{name}" for name in range(first, first + 100)]
        column = pa.DictionaryArray.from_arrays(pa.array(range(100), pa.int8()), names)
        pq.write_table(pa.table({"x": column, "y": names}), tmp_path / "u" / f"{number}")
    assert copy_one(copier, tmp_path / "u").failed == ""
    rows = pq.read_table(output_of(tmp_path / "u"))
    assert rows["x"].to_pylist() == rows["y"].to_pylist()
    assert [len(names) for names in categories_of(output_of(tmp_path / "u"))] == [120, 110]


def categories_of_a_file(number: int) -> pa.ChunkedArray:
    """In two parts of fifty each."""
    parts = [pa.array([f"{number} {part} {place}" for place in range(50)]) for part in range(2)]
    return pa.chunked_array([pa.DictionaryArray.from_arrays(pa.array(range(50), pa.int8()), part) for part in parts])


@pytest.mark.parametrize("has_dictionaries", [True, False], ids=["another dictionary in mid-column", "no dictionary"])
def test_categories_that_are_in_no_dictionary_are_counted_too(copier, tmp_path, has_dictionaries):
    """Arrow writes plain values once the dictionary of an array is another one, and always without `use_dictionary`."""
    source = tmp_path / "u"
    source.mkdir()
    for number in range(3):
        pq.write_table(pa.table({"a": categories_of_a_file(number)}), source / f"{number}", use_dictionary=has_dictionaries)
    assert copy_one(copier, source).failed == ""
    copied = pq.read_table(output_of(source))
    assert copied.schema.field("a").type == pa.dictionary(pa.int8(), pa.string())
    assert copied["a"].to_pylist() == [text for number in range(3) for text in categories_of_a_file(number).to_pylist()]


def test_an_arrow_schema_that_is_none_is_copied_as_it_is(copier, tmp_path):
    """Arrow fails for it, other readers do not look."""
    for name, said in {"text": "?", "short": "", "noise": base64.b64encode(bytes(range(256))).decode()}.items():
        foreign_files.write_two(tmp_path / name, pa.table({"x": ["a", "b"]}))
        for file in (tmp_path / name).iterdir():
            footers.sign(file, "parquet-cpp-arrow version 21.0.0", {"ARROW:schema": said})
        assert copy_one(copier, tmp_path / name).failed == ""


def number_at(schema, place, size=4):
    return int.from_bytes(schema[place : place + size], "little", signed=True)


def member(schema, table, number):
    """Where a member of a table of FlatBuffers is."""
    members = table - number_at(schema, table)
    return table + number_at(schema, members + 4 + 2 * number, 2)


def target(schema, place):
    return place + number_at(schema, place)


def schema_inside_itself():
    """An Arrow schema whose first field has itself as its first child; readers take the distance for a signed number."""
    schema = bytearray(pa.schema([("x", pa.struct([("y", pa.int32())]))]).serialize().to_pybytes())
    prefix, header, fields, children = 8, 2, 1, 5
    message = target(schema, prefix)
    field = target(schema, target(schema, member(schema, target(schema, member(schema, message, header)), fields)) + 4)
    child = target(schema, member(schema, field, children)) + 4
    schema[child : child + 4] = (field - child).to_bytes(4, "little", signed=True)
    return schema


def test_an_arrow_schema_inside_itself_does_not_end_the_executor(copier, tmp_path):
    foreign_files.write_two(tmp_path / "u", pa.table({"x": [{"y": 1}, {"y": 2}]}))
    for file in (tmp_path / "u").iterdir():
        footers.sign(file, "parquet-cpp-arrow version 21.0.0", {"ARROW:schema": base64.b64encode(schema_inside_itself()).decode()})
    assert copy_one(copier, tmp_path / "u").failed == ""


def test_a_set_that_is_read_in_parts_has_the_sum_of_its_parts(copier, tmp_path, monkeypatch):
    foreign_files.write_two(tmp_path / "u", foreign_files.table())
    whole = copier.digest([listed(tmp_path / "u"), ()])
    monkeypatch.setattr(physical_copy, "_LEAST_BYTES", 1)
    assert copier.digest([listed(tmp_path / "u"), ()]) == whole
    assert whole[0].identity
    assert whole[1] == Answer(Digest(0, 0, 0))


def test_what_this_library_cannot_decode_is_in_the_form(gateway, tmp_path):
    foreign_files.write_two(tmp_path / "brotli", pa.table({"a": [1]}), compression="brotli")
    foreign_files.write_two(tmp_path / "twice", pa.Table.from_arrays([pa.array([1]), pa.array([2])], ["a", "a"]))
    for name in ("has-hadoops-lz4", "has-encrypted-columns", "has-a-later-field"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a").write_bytes(hostile_files.CONTENTS[name]())
    rows = SparkRows(gateway)
    found = {place.name: form_of(rows, "parquet", place).undecodable for place in tmp_path.iterdir()}
    assert found == {
        "brotli": ("the codec BROTLI",),
        "twice": ("two columns of one name",),
        "has-hadoops-lz4": ("the codec LZ4 of Hadoop",),
        "has-encrypted-columns": ("encryption",),
        "has-a-later-field": ("field 12 of the footer",),
    }


@pytest.mark.parametrize("some", [slice(None), slice(1, None), slice(1)], ids=["all", "not the first", "the first"])
def test_columns_that_lie_in_another_file_are_refused(gateway, tmp_path, some):
    """Some readers look for them there, others, as Spark, do not: a copy would show the rows that only the latter saw."""
    (tmp_path / "u").mkdir()
    pq.write_table(pa.table({"x": [1, 2, 3], "y": [4, 5, 6]}), tmp_path / "u" / "a")

    def lay_elsewhere(footer):
        for chunk in footer[footers.ROW_GROUPS][1][1][0][footers.COLUMNS][1][1][some]:
            chunk[1] = (footers.BINARY, b"b")

    footers.change(tmp_path / "u" / "a", lay_elsewhere)
    found = SparkRows(gateway).footers("parquet", {"u": listed(tmp_path / "u")})["u"]
    assert found.unreadable or [group.form.undecodable for group in found.groups] == [("columns in another file",)]


def test_an_encoding_that_this_library_cannot_read_is_in_the_form(gateway, copier, tmp_path):
    options = {"use_dictionary": False, "column_encoding": {"a": "BYTE_STREAM_SPLIT"}}
    foreign_files.write_two(tmp_path / "u", pa.table({"a": pa.array([1, 2], pa.int32())}), **options)
    said = form_of(SparkRows(gateway), "parquet", tmp_path / "u").undecodable
    assert bool(said) == bool(copy_one(copier, tmp_path / "u").failed)
    assert said in ((), ("BYTE_STREAM_SPLIT of INT32",))
    assert said or not pyspark.__version__.startswith("3.")


def test_bounds_and_null_counts_that_the_values_contradict_are_found(copier, tmp_path):
    for name, claim in hostile_files.CLAIMS.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "a").write_bytes(claim())
    names = sorted(hostile_files.CLAIMS)
    assert not any(answer.failed for answer in copier.digest([listed(tmp_path / name) for name in names]))
    answers = copier.digest([listed(tmp_path / name) for name in names], check_claims=True)
    assert {name for name, answer in zip(names, answers) if answer.failed} == {"low", "high", "nulls"}


def set_bounds(low, high):
    def change_statistics(footer):
        for group in footer[footers.ROW_GROUPS][1][1]:
            for chunk in group[footers.COLUMNS][1][1]:
                statistics = chunk[footers.META][1][footers.STATISTICS][1]
                statistics.update({number: (thrift.BINARY, bound) for number, bound in ((1, high), (2, low), (5, high), (6, low))})

    return change_statistics


@pytest.mark.parametrize(("low", "high", "holds"), [(0, 1, True), (0, 0, False), (1, 1, False)])
def test_bounds_of_booleans_that_the_values_contradict_are_found(spark, copier, tmp_path, low, high, holds):
    """Readers skip by them too, and a copy shows what they hid."""
    foreign_files.write_two(tmp_path / "u", pa.table({"x": [True, False, True, False]}))
    for path in (tmp_path / "u").iterdir():
        footers.change(path, set_bounds(bytes([low]), bytes([high])))
    assert (copier.digest([listed(tmp_path / "u")], check_claims=True)[0].failed == "") == holds
    assert copy_one(copier, tmp_path / "u").failed == ""
    found = [spark.read.parquet(f"file:{place}").where("x").count() for place in (tmp_path / "u", output_of(tmp_path / "u"))]
    assert found == [3 if high else 0, 3]


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32()])
@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_filters_find_zeros_of_either_sign_in_a_copy(spark, copier, tmp_path, kind, zero):
    """The source has no dictionary; parquet-mr skips a row group whose dictionary has only the other zero."""
    foreign_files.write_two(tmp_path / "u", pa.table({"x": pa.array([None, zero, 1.0, 2.0] * 100, kind)}), use_dictionary=False)
    assert copy_one(copier, tmp_path / "u").failed == ""
    assert_copied(tmp_path / "u")
    assert pq.read_metadata(output_of(tmp_path / "u")).row_group(0).column(0).has_dictionary_page
    for where in ("x = {}(0)", "x = -{}(0)", "x in ({0}(0), {0}(5), {0}(6))", "x >= {0}(0) and x < {0}(1)", "x <= -{}(0)"):
        condition = where.format("double" if kind == pa.float64() else "float")
        found = [spark.read.parquet(f"file:{place}").where(condition).count() for place in (tmp_path / "u", output_of(tmp_path / "u"))]
        assert found == [150, 150], condition


def annotate(**fields):
    def change_column(footer):
        list(footers.elements(footer))[1].update({getattr(footers, name): value for name, value in fields.items()})

    return change_column


def test_a_column_whose_annotations_order_it_differently_has_no_bounds(copier, tmp_path):
    """parquet-mr believes the older one, which says that -1 is the largest number; Arrow the newer one, by which it is the smallest."""
    numbers = pa.table({"x": pa.array([-1, 1, 5, 7], pa.int32())})
    foreign_files.write_two(tmp_path / "u", numbers, write_statistics=False, store_schema=False)
    signed = {10: (thrift.STRUCT, {1: (thrift.BYTE, 32), 2: (thrift.TRUE, True)})}
    for path in (tmp_path / "u").iterdir():
        footers.change(path, annotate(CONVERTED=(thrift.I32, 13), LOGICAL=(thrift.STRUCT, signed)))
    assert copy_one(copier, tmp_path / "u").failed == ""
    for place in (tmp_path / "u", output_of(tmp_path / "u")):
        assert dataset.dataset(place, format="parquet").count_rows(filter=dataset.field("x") == -1) == 2


def test_a_column_whose_order_only_the_newer_annotation_says_has_no_bounds(copier, tmp_path):
    """A library that knows the older one only orders the numbers of 32 bits by their signs, and a decimal's bytes without one."""
    columns = {
        "unsigned": pa.array([2**32 - 1, 1], pa.uint32()),
        "decimal": pa.array([-1, 1], pa.decimal128(20, 0)),
        "signed": pa.array([1, 2]),
    }
    for name in ("newer", "both"):
        foreign_files.write_two(tmp_path / name, pa.table(columns), store_schema=False)
    for path in (tmp_path / "newer").iterdir():
        footers.change(path, lambda footer: [element.pop(footers.CONVERTED, None) for element in footers.elements(footer)])
    assert [answer.failed for answer in copy_all(copier, [tmp_path / "newer", tmp_path / "both"])] == ["", ""]
    for name, bounded in (("newer", [False, False, True]), ("both", [True, True, True])):
        group = pq.read_metadata(output_of(tmp_path / name)).row_group(0)
        assert [group.column(place).statistics.has_min_max for place in range(3)] == bounded, name


def test_half_floats_have_no_bounds(copier, tmp_path):
    """The library's would be NaN, which the format forbids, or have one zero only."""
    foreign_files.write_two(tmp_path / "u", pa.table({"x": pa.array([float("nan"), 1, -0.0], pa.float32()).cast(pa.float16())}))
    assert copy_one(copier, tmp_path / "u").failed == ""
    assert_copied(tmp_path / "u")
    _, footer = footers.split(output_of(tmp_path / "u").read_bytes())
    (chunk,) = footers.chunks(footer)
    assert set(chunk[footers.STATISTICS][1]) <= {3, 7, 8}
    assert not pq.read_metadata(output_of(tmp_path / "u")).row_group(0).column(0).has_column_index


@pytest.mark.parametrize(("converted", "values"), [(15, [257, 3, 5, 7]), (16, [3, 5, 1 - 2**16, 7]), (11, [3, -255, 5, 7])])
def test_a_number_of_more_bits_than_its_annotation_says_is_not_copied(copier, tmp_path, converted, values):
    """Spark's and other readers cut it to these bits, so they find 1 in a source without bounds, and nothing by the bounds of a copy."""
    foreign_files.write_two(tmp_path / "u", pa.table({"x": pa.array(values, pa.int32())}), write_statistics=False, store_schema=False)
    for path in (tmp_path / "u").iterdir():
        footers.change(path, annotate(CONVERTED=(thrift.I32, converted)))
    assert "bits" in copy_one(copier, tmp_path / "u").failed
    assert copier.digest([listed(tmp_path / "u")])[0].failed == ""


def test_a_decimal_of_more_digits_than_its_annotation_says_is_not_copied(spark, copier, tmp_path):
    """Spark's vectorized reader cuts it to 64 bits, so it finds 1.00 in a source without bounds, and nothing by the bounds of a copy."""
    for name, number in (("wide", 2**64 + 100), ("narrow", 100)):
        values = pa.array([number.to_bytes(16, "big", signed=True)] * 4, pa.binary(16))
        foreign_files.write_two(tmp_path / name, pa.table({"x": values}), write_statistics=False, use_dictionary=False, store_schema=False)
        for path in (tmp_path / name).iterdir():
            footers.change(path, annotate(CONVERTED=(thrift.I32, 5), SCALE=(thrift.I32, 2), PRECISION=(thrift.I32, 10)))
    assert spark.read.parquet(f"file:{tmp_path}/wide").where("x = 1.00BD").count() == 6
    wide, narrow = copy_all(copier, [tmp_path / "wide", tmp_path / "narrow"])
    assert "a decimal of more than the 10 digits" in wide.failed
    assert (narrow.failed, narrow.digest.rows) == ("", 6)


def as_bytes(number, size):
    return number.to_bytes(size, "big", signed=True)


def test_decimals_of_every_length_are_copied_if_their_annotation_has_as_many_digits(copier, tmp_path):
    kinds = [(pa.int32(), 1), (pa.int32(), 4), (pa.int32(), 9), (pa.int64(), 10), (pa.int64(), 18)]
    kinds += [
        (pa.binary(size), digits) for size, digits in ((1, 2), (2, 4), (5, 10), (16, 1), (16, 10), (16, 18), (16, 19), (16, 38), (33, 76))
    ]
    kinds += [(pa.binary(), digits) for digits in (1, 2, 3, 18, 19, 38, 2_000_000_000)]
    sources, beyond = [], set()
    for place, (kind, digits) in enumerate(kinds):
        end = 10 ** min(digits, 40)
        # A number of 32 or 64 bits that is not negated has its absolute value still.
        numbers = {end - 1: True, 1 - end: True, 0: True, -1: True, end: digits > 40, -end: digits > 40}
        if kind in (pa.int32(), pa.int64()):
            numbers[-(2 ** (kind.bit_width - 1))] = False
        elif kind == pa.binary():
            numbers.update({-(2**63): digits > 18, 2**63 - 1: digits > 18, 2**64 + 1: digits > 19})
        for number, fits in numbers.items():
            value = number if pa.types.is_integer(kind) else as_bytes(number, 40 if kind == pa.binary() else kind.byte_width)
            source = tmp_path / f"{place} {number}"
            foreign_files.write_two(source, pa.table({"x": pa.array([value] * 4, kind)}), store_schema=False)
            for path in source.iterdir():
                footers.change(path, annotate(CONVERTED=(thrift.I32, 5), SCALE=(thrift.I32, 0), PRECISION=(thrift.I32, digits)))
            sources.append(source)
            beyond.update(set() if fits else {source.name})
    answers = copy_all(copier, sources)
    failed = {source.name: answer.failed for source, answer in zip(sources, answers) if answer.failed}
    assert set(failed) == beyond, failed
    assert all("digits that its annotation says" in reason for reason in failed.values()), failed


def test_related_changes_of_two_values_do_not_cancel_out(copier, tmp_path):
    """A flip of the highest bit outlives a multiplication by an odd number."""
    other = struct.unpack("<d", struct.pack("<Q", struct.unpack("<Q", struct.pack("<d", 3.25))[0] ^ (1 << 63 | 1 << 31)))[0]
    for name, values in (("one", (1.5, 3.25)), ("other", (-1.5, other))):
        foreign_files.write_two(tmp_path / name, pa.table({"x": [values[0]], "y": [values[1]]}))
    one, another = copier.digest([listed(tmp_path / name) for name in ("one", "other")])
    assert one.digest != another.digest


@pytest.mark.parametrize("values", [2, 200, 3000])
def test_dictionaries_of_every_type_hold_all_values(copier, tmp_path, values):
    """Each value comes often, so that a dictionary takes less than the values."""
    places = [row * row % values for row in range(20 * values)]
    columns = {name: array.take(pa.array([place % len(array) for place in places])) for name, array in foreign_files.columns().items()}
    columns["n"] = pa.array(places)
    columns["s"] = pa.array([f"{place}" for place in places])
    columns["at"] = pa.array(places).cast(pa.timestamp("ns"))
    foreign_files.write_two(tmp_path / "u", pa.table(columns), row_group_size=1 << 20, use_deprecated_int96_timestamps=True)
    assert copy_one(copier, tmp_path / "u").failed == ""
    assert_copied(tmp_path / "u")
    written = pq.read_metadata(output_of(tmp_path / "u")).row_group(0)
    found = {written.column(number).path_in_schema for number in range(written.num_columns) if written.column(number).has_dictionary_page}
    assert {"i32", "u64", "f32", "text", "n", "s", "at"} - found == set()


def test_long_values_in_dictionaries_stay_in_dictionaries(copier, tmp_path):
    (tmp_path / "u").mkdir()
    for number in range(2):
        texts = [f"{number} {value} ".ljust(20_000, "x") for value in range(40)]
        pq.write_table(pa.table({"a": texts * 25}), tmp_path / "u" / f"{number}", dictionary_pagesize_limit=2 << 20, compression="none")
    source = sum(file.length for file in listed(tmp_path / "u"))
    (answer,) = copier.copy(f"file:{tmp_path}/attempts", [CopyTask(f"file:{tmp_path}/out/a", listed(tmp_path / "u"), "none")])
    assert answer.failed == ""
    assert (tmp_path / "out" / "a").stat().st_size < 2 * source


def set_rows(rows):
    def change_groups(footer):
        for group in footer[footers.ROW_GROUPS][1][1]:
            group[3] = (thrift.I64, rows)

    return change_groups


def reverse_columns(footer):
    for group in footer[footers.ROW_GROUPS][1][1]:
        group[footers.COLUMNS][1][1].reverse()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (set_rows(0), "without rows has values"),
        (set_rows(-3), "claims -3 rows"),
        (set_rows(2), "row groups say 2"),
        (reverse_columns, "in their order"),
    ],
    ids=["no rows", "negative rows", "fewer rows", "columns in another order"],
)
def test_a_footer_that_readers_would_understand_differently_is_unreadable(gateway, tmp_path, change, says):
    """A file that claims no rows is left out of the copy."""
    (tmp_path / "u").mkdir()
    path = tmp_path / "u" / "a"
    pq.write_table(pa.table({"a": [1, 2, 3], "b": [4, 5, 6]}), path)
    footers.change(path, change)
    found = SparkRows(gateway).footers("parquet", {"u": listed(tmp_path / "u")})["u"]
    assert found.groups == ()
    assert says in found.unreadable[0][1]


def test_a_footer_in_which_a_list_names_another_kind_of_elements_is_unreadable(gateway, copier, tmp_path):
    """Libraries do not look at the kind. A copy had the version that is inside an unknown field, by which Spark shifts old dates."""
    (tmp_path / "u").mkdir()
    (tmp_path / "u" / "a").write_bytes(hostile_files.has_two_writers())
    read = pq.read_metadata(tmp_path / "u" / "a")
    assert (read.created_by, read.metadata) == ("parquet-mr", {b"org.apache.spark.version": b"2.4.0"})
    ((_, reason),) = SparkRows(gateway).footers("parquet", {"u": listed(tmp_path / "u")})["u"].unreadable
    for said in (reason, copy_one(copier, tmp_path / "u").failed):
        assert "another kind of elements" in said


def test_columns_in_another_order_are_found_though_their_names_have_dots(gateway, tmp_path):
    """Some readers find a column by its path, others by its place: each kind would take the other column's values."""
    (tmp_path / "u").mkdir()
    pq.write_table(pa.table({"a.b": [1, 2, 3], "a": [{"b": 4}] * 3}), tmp_path / "u" / "a")
    assert SparkRows(gateway).footers("parquet", {"u": listed(tmp_path / "u")})["u"].unreadable == ()
    footers.change(tmp_path / "u" / "a", reverse_columns)
    ((_, reason),) = SparkRows(gateway).footers("parquet", {"u": listed(tmp_path / "u")})["u"].unreadable
    assert "in their order" in reason


def test_a_column_with_two_beginnings_is_unreadable(gateway, tmp_path):
    """parquet-mr begins at the first of data and dictionary, other readers at the dictionary: each may find other values."""
    (tmp_path / "u").mkdir()
    path = tmp_path / "u" / "a"
    pq.write_table(pa.table({"x": [1, 2, 3], "y": [4, 5, 6]}), path)

    def begin_behind_the_data(footer):
        one, other = footers.chunks(footer)
        one[DICTIONARY_PAGE] = other[DICTIONARY_PAGE]

    footers.change(path, begin_behind_the_data)
    ((_, reason),) = SparkRows(gateway).footers("parquet", {"u": listed(tmp_path / "u")})["u"].unreadable
    assert "dictionary behind its data" in reason


@pytest.mark.parametrize("head", [b"\x05\x82\x80\x80\x80\x80\x01", b"\x05\xff\xff\x07"], ids=["above 32 bits", "above 16 bits"])
def test_a_field_whose_number_other_readers_cut_is_malformed(gateway, head):
    with pytest.raises(Exception, match="malformed"):
        gateway.helper("RawFooter", bytearray(head + b"\x00\x00"))


def test_many_units_cost_as_many_gateway_calls_as_one(gateway, tmp_path):
    foreign_files.write_two(tmp_path / "u", pa.table({"a": [1]}))
    rows, costs = SparkRows(gateway), []
    for count in (1, 1, 5):
        batch = batch_of(rows, "parquet", tmp_path / f"stage {len(costs)}", [tmp_path / "u"] * count, is_copied=True)
        before = gateway.calls
        assert rows.write_stage(batch) == rows.read_stage(batch)
        costs.append(gateway.calls - before)
    assert costs[1] == costs[2]


LZ4_RAW, NUMBERS = 7, 1000


def stale_lz4() -> bytes:
    """A page of a required int32 `id` that is one long copy from a distance of 0, and eight bytes. It leaves what was in the library's
    buffer, which is the last page that this process has decompressed; every second four bytes of it are left, twice.
    """
    more = 4 * NUMBERS - 8 - 19
    block = b"\x0f\x00\x00" + b"\xff" * (more // 255) + bytes([more % 255]) + b"\x80" + bytes(8)
    body = hostile_files.page(NUMBERS, 4 * NUMBERS, block)
    i32, i64, a_list, a_struct = hostile_files.I32, hostile_files.I64, hostile_files.LIST, hostile_files.STRUCT
    path = (hostile_files.BINARY, 1, [b"id"])
    claimed = [(5, i64, NUMBERS), (6, i64, 4 * NUMBERS + 100), (7, i64, len(body)), (9, i64, 4)]
    column = [(1, i32, 1), (2, a_list, (i32, 1, [0])), (3, a_list, path), (4, i32, LZ4_RAW), *claimed]
    group = [(1, a_list, (a_struct, 1, [[(2, i64, 4), (3, a_struct, column)]])), (2, i64, 4 * NUMBERS + 100), (3, i64, NUMBERS)]
    schema = (2, a_list, (a_struct, 2, hostile_files.schema()))
    footer = hostile_files.write_struct([(1, i32, 1), schema, (3, i64, NUMBERS), (4, a_list, (a_struct, 1, [group]))])
    return hostile_files.whole(body, footer)


def test_a_copy_has_nothing_of_the_pages_of_another_table(gateway, tmp_path):
    """Decompressors are kept for the next file of a process (`CodecPool`), with their buffers. Of LZ4 it is aircompressor's, which takes
    such a copy; readers of other processes find something else there. The proof found nothing: what was read was what was written.
    """
    rows = SparkRows(gateway)
    for name in ("theirs", "own"):
        (tmp_path / name).mkdir()
    salaries = range(770_000, 770_000 + 2 * NUMBERS)
    column = pa.schema([pa.field("salary", pa.int32(), nullable=False)])
    for number in range(4):
        options = {"compression": "lz4", "use_dictionary": False, "store_schema": False}
        pq.write_table(pa.table({"salary": pa.array(salaries, pa.int32())}, column), tmp_path / "theirs" / f"a{number}", **options)
    (tmp_path / "own" / "a").write_bytes(stale_lz4())
    if rows.footers("parquet", {"own": listed(tmp_path / "own")})["own"].unreadable:
        pytest.skip("parquet-mr 1.12 (Spark 3.3) does not know this codec")
    batch = batch_of(rows, "parquet", tmp_path / "stage", [tmp_path / "own"], is_copied=True)
    # As for a compaction of another table, or to verify it, a moment before.
    assert not rows.digests("parquet", {"theirs": listed(tmp_path / "theirs")})["theirs"].failed
    assert "a page of 4000 bytes is malformed" in rows.write_stage(batch)[1].failed
