"""Sums of an image: against a naive implementation, with any names, orders and pieces; and what is kept in memory."""

import sys
import tracemalloc
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hivekeeper.plan import image_format, image_survey, listings
from hivekeeper.plan.image_format import BadImage
from hivekeeper.plan.image_survey import Places, Survey
from hivekeeper.plan.sizing import EXACT_LENGTHS
from support.images import HEADER, directory_line, file_line, image

UNITS = [b"/w/db/t/dt=1", b"/w/db/t/dt=2", b"/w/db/plain"]
TABLES = [b"/w/db/t", b"/w/db/plain", b"/w/db/other"]
RUN = "20260101t020304z-0000"
CONTROLS = [b"/w/db/t/.hivekeeper", b"/w/db/.hivekeeper-plain"]


def survey_of(content, piece=10**6, places=None):
    survey = Survey(places or Places(UNITS, TABLES, CONTROLS))
    for batch in image_format.split_lines(content[start : start + piece] for start in range(0, len(content), piece)):
        survey.count(batch)
    return survey, survey.finish()


def orphans_of(survey):
    return {one.path: (one.files, one.total_bytes) for one in survey.orphans()}


def test_each_file_is_counted_where_it_belongs():
    files = [
        ("/w/db/t/dt=1/a.parquet", 5),
        ("/w/db/t/dt=1/b.parquet", 7),
        ("/w/db/t/dt=1/_SUCCESS", 0),
        ("/w/db/plain/a.parquet", 9),
        ("/w/db/t/unknown=1/a", 1),
        ("/w/db/other/x/y", 2),
        ("/w/db/dropped/dt=1/a", 100),
        ("/w/db/dropped/dt=2/b", 50),
        ("/w/db/loose", 3),
        ("/tmp/x/y/z", 4),
        (f"/w/db/.hivekeeper-plain/runs/{RUN}/retired/u00001/old", 8),
        ("/w/db/.hivekeeper-plain/log/1.json", 6),
        ("/w/db/.hivekeeper-gone/runs/r/plan.json", 11),
    ]
    survey, totals = survey_of(image(files))
    assert (survey.unit(UNITS[0]).sizes.files, survey.unit(UNITS[0]).sizes.total_bytes) == (2, 12)
    assert survey.unit(UNITS[0]).sizes.objects == 2 + 2 + 1
    assert not survey.unit(UNITS[1]).snapshot.exists
    assert survey.unit(UNITS[2]).sizes.files == 1
    assert orphans_of(survey) == {"/w/db/dropped": (2, 150), "/tmp": (1, 4), "/w/db": (1, 3), "/w/db/.hivekeeper-gone": (1, 11)}
    control = survey.control(CONTROLS[1])
    assert (control.exists, control.retired.objects, survey.control(CONTROLS[0]).exists) == (True, 3, False)
    assert (totals.files, totals.total_bytes) == (len(files), sum(size for _, size in files))


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("deeper/a", "subdirectory"),
        ("_temporary/0/a", "writer-at-work"),
        ("base_0000001/a", "acid-directory"),
        (".hidden", "hidden-file"),
        ("a.parquet.inprogress.123", "unfinished-file"),
        ("a._COPYING_", "unfinished-file"),
        ("_impala_insert_staging/q/a", "writer-at-work"),
        ("_metadata", None),
        ("_SUCCESS", None),
    ],
)
def test_what_makes_a_unit_unfit_is_seen(name, code):
    survey, _ = survey_of(image([(f"/w/db/t/dt=1/{name}", 0 if name == "_SUCCESS" else 5), ("/w/db/t/dt=1/x.parquet", 5)]))
    reason = listings.refuse_directory(survey.unit(UNITS[0]).snapshot)
    assert (reason.code.code if reason else None) == code


def test_an_empty_staging_directory_of_impala_is_no_reason_and_a_subdirectory_in_it_is_one():
    for inside, expected in (("", 0), ("/query", 1)):
        survey, _ = survey_of(image([], [f"/w/db/t/dt=1/_impala_insert_staging{inside}"]))
        assert len(survey.unit(UNITS[0]).snapshot.entries) == expected


def test_offsets_in_names_are_seen():
    survey, _ = survey_of(image([("/w/db/t/dt=1/topic+0+0000+0009.parquet", 5), ("/w/db/t/dt=1/a+b.parquet", 5)]))
    assert survey.unit(UNITS[0]).offsets.name == "topic+0+0000+0009.parquet"
    assert survey.unit(UNITS[0]).sizes.files == 2


# ---- against a naive implementation

NAMES = st.text(st.sampled_from(list('ab=/1,"\t\n\r_.+é%')), min_size=1, max_size=6).map(lambda name: name.replace("/", ""))
FOLDERS = st.sampled_from(["/w/db/t/dt=1", "/w/db/t/dt=2", "/w/db/plain", "/w/db/t", "/w/db", "/w", "", "/x", "/w/db/dropped"])
PATHS = st.builds(lambda folder, deep, name: "/".join([folder, *deep, name]), FOLDERS, st.lists(NAMES, max_size=2), NAMES)


def is_plain(path):
    return all(part for part in path.split("/")[1:])


@given(st.dictionaries(PATHS.filter(is_plain), st.integers(0, 2**40), max_size=40), st.randoms(), st.integers(1, 200))
def test_the_sums_are_those_of_a_naive_implementation(files, chance, piece):
    listed = list(files.items())
    directories = {"/".join(path.split("/")[:depth]) for path in files for depth in range(2, path.count("/") + 1)}
    lines = [directory_line(each) for each in ["/", *directories]] + [file_line(*each) for each in listed]
    chance.shuffle(lines)
    survey, totals = survey_of((HEADER + "\n" + "".join(lines)).encode(), piece)
    assert (totals.files, totals.directories, totals.total_bytes) == (len(listed), len(directories) + 1, sum(files.values()))
    for unit in UNITS:
        own = [(path.rpartition("/")[2], size) for path, size in listed if path.rpartition("/")[0].encode() == unit]
        data = [size for name, size in own if size > 0 and not name.startswith((".", "_"))]
        found = survey.unit(unit).sizes
        assert (found.files, found.total_bytes) == (len(data), sum(data))
        assert found.objects == 1 + sum(1 + -(-size // 2**27) for size in data)
        assert len(set(data)) > EXACT_LENGTHS or survey.unit(unit).lengths.counts == Counter(data)
    inside = tuple(f"{place.decode()}/" for place in (*TABLES, *CONTROLS))
    expected = Counter()
    for path, size in listed:
        if not path.startswith(inside):
            expected[naive_orphan(path.split("/")[1:-1])] += size
    assert {path: total for path, (count, total) in orphans_of(survey).items() if count} == expected


def naive_orphan(above):
    """The highest directory without a table below it; if there is none, the directory itself."""
    around = {"", "/w", "/w/db"}
    place = ""
    for part in above:
        place += f"/{part}"
        if place not in around:
            return place
    return place or "/"


# ---- limits


def test_many_orphans_are_merged_into_the_directories_above_and_nothing_is_lost(monkeypatch):
    monkeypatch.setattr(image_survey, "MOST_ORPHANS", 10)
    monkeypatch.setattr(image_survey, "REMEMBERED", 5)
    files = [(f"/w/db/dropped_{number:03d}/{name}", number + 1) for name in "ab" for number in range(100)]
    survey, totals = survey_of(image(files))
    found = survey.orphans()
    assert survey.has_merged
    assert len(found) <= 11
    assert sum(one.total_bytes for one in found) == totals.total_bytes
    assert sum(one.files for one in found) == 200
    assert sum(one.directories for one in found) == 100
    assert [one.is_rest for one in found if one.path == "/w/db"] == [True]


# What other threads of the test process, and the garbage collection, may take meanwhile.
OTHERS = 4_000_000


def memory_of(work):
    """The most bytes that are taken at once."""
    tracemalloc.start()
    kept = work()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    del kept
    return most


@pytest.mark.parametrize("depth", [990, 100_000])
def test_locations_that_are_deep_take_no_more_memory_than_their_names(depth):
    """Any partition may be given one; the directories need not exist."""
    deep = [b"/%d" % number + b"/x" * depth for number in range(6000 // depth + 1)]
    names = sum(map(len, deep))
    assert memory_of(lambda: Survey(Places([], deep, []))) < 8 * names + OTHERS


def test_long_names_of_directories_take_a_bounded_memory(monkeypatch):
    monkeypatch.setattr(image_survey, "MOST_NAMES_BYTES", 2**18)
    long = "/".join("n" * 250 for _ in range(30))
    places = Places([b"/w/db/t/dt=1"], [b"/w/db/t", f"/w/{long}/t".encode()], [])
    below = [f"/w/db/t/dt=1/{long}/{number}/f" for number in range(1000)]
    dropped = [f"/w/{long}/{number}/f" for number in range(1000)]
    content = image([(path, 1) for path in [*below, *dropped]])
    batches = list(image_format.split_lines([content]))
    survey = Survey(places)

    def count():
        for batch in batches:
            survey.count(batch)

    assert memory_of(count) < 2**21 + OTHERS
    found = survey.orphans()
    assert (survey.has_merged, sum(one.files for one in found)) == (True, 1000)


def test_a_table_inside_another_one_does_not_make_orphans_of_the_files_between():
    survey, _ = survey_of(image([("/w/a/between/x", 1), ("/w/a/b/c/y", 2)]), places=Places([], [b"/w/a", b"/w/a/b/c"], []))
    assert survey.orphans() == []


# ---- bad input

GOOD = [directory_line("/"), file_line("/w/db/t/dt=1/a", 5), file_line('/w/db/t/dt=1/a,"b\r\n\nc', 5)]


@pytest.mark.parametrize(
    ("line", "number", "why"),
    [
        (file_line("/w/x", 5).rpartition("\t")[0] + "\n", 5, "11 columns instead of 12"),
        ("/w/x\n", 5, "1 columns instead of 12"),
        (file_line("/w/x", 5).replace("-rw-r--r--", "rw-r--r--"), 5, "its mode does not begin with d or -"),
        (file_line("/w/x", 5).replace("\t5\t", "\tfive\t"), 5, "five"),
        (file_line("w/x", 5), 5, "does not begin with /"),
        ('"/w/x\n', 5, "text follows the quote"),
    ],
)
def test_a_damaged_line_stops_the_survey_and_is_named(line, number, why):
    lines = [HEADER + "\n", *GOOD[:2], *GOOD[:1], line, file_line("/a,b", 1)]
    with pytest.raises(BadImage, match=rf"line {number} cannot be read: .*{why}"):
        survey_of("".join(lines).encode())


@pytest.mark.parametrize("lost", [1, 30, 60, 90])
def test_a_file_that_was_cut_off_is_refused_wherever(lost):
    whole = "".join([HEADER + "\n", *GOOD]).encode()
    survey_of(whole)
    with pytest.raises(BadImage, match="cannot be read"):
        survey_of(whole[:-lost])


@pytest.mark.parametrize("content", [b"", f"{HEADER}\n".encode()])
def test_an_empty_image_is_refused(content):
    with pytest.raises(BadImage, match="line 1 cannot be read: no line of a file or directory"):
        survey_of(content)


def calls_for_an_image(content):
    """Calls of C functions that it costs to survey this image."""
    calls = Counter()
    sys.setprofile(lambda _frame, event, _argument: calls.update([event]))
    try:
        survey_of(content)
    finally:
        sys.setprofile(None)
    return calls["c_call"]


def calls_for_a_path(parts):
    """Of a file in so many nested directories with names of 127 quotes and line ends."""
    path = "/w" + ("/" + '"\n' * 127) * parts + "/\r\n"
    return calls_for_an_image(f"{HEADER}\n{file_line(path, 9)}".encode())


def test_a_path_of_quotes_and_line_ends_costs_work_that_grows_with_its_length_only():
    """An image has a hundred million files, and no line must be searched again from where its path began."""
    assert calls_for_a_path(30) < 12 * calls_for_a_path(3)


def test_the_newest_change_is_told_but_for_impossible_years():
    content = image([("/a", 1)]) + file_line("/b", 1, "292278994-08-17 07:12").encode() + file_line("/c", 1, "2026-11-22 03:14").encode()
    _, totals = survey_of(content)
    assert totals.newest_change == "2026-11-22 03:14"


# HDFS limits the length and the depth of a path that is created, and of the target of a rename, but not what is below that target.


@pytest.mark.parametrize("start", ["/w/db/t/dt=1", "/w/db/other", "/w/db", "/user/t"])
def test_directories_that_are_nested_deeply_cost_work_that_grows_with_their_number_only(start):
    def nested(depth):
        return image([], [start + "/a" * number for number in range(depth)])

    assert calls_for_an_image(nested(400)) < 15 * calls_for_an_image(nested(40))


@pytest.mark.parametrize("piece", [1000, 10**5, 10**6])
@pytest.mark.parametrize("name", ["n" * 250, '"' * 127, '"\r\n\n' * 40, ",\t" * 100], ids=["plain", "quotes", "line ends", "commas"])
def test_a_path_of_any_length_hides_no_other_one(name, piece):
    """Somebody has renamed directories into one another."""
    long = f"/{name}" * (300_000 // len(name))
    odd = [(f"/w/db/t/dt=1{long}/f", 5), (f"/user/t{long}/f", 7), (f"/user/t{long}/", 0)]
    lines = [HEADER + "\n", directory_line("/"), file_line("/w/db/t/dt=1/a", 3), *(file_line(path, size) for path, size in odd[:2])]
    content = "".join([*lines, directory_line(odd[2][0]), file_line("/w/db/plain/b", 4), file_line("/user/t/c", 2)]).encode()
    survey, totals = survey_of(content, piece)
    assert (totals.files, totals.directories, totals.total_bytes) == (5, 2, 21)
    assert (survey.unit(UNITS[0]).sizes.total_bytes, survey.unit(UNITS[2]).sizes.total_bytes) == (3, 4)
    assert listings.refuse_directory(survey.unit(UNITS[0]).snapshot).code.code == "subdirectory"
    assert orphans_of(survey) == {"/user": (2, 9)}


def test_long_paths_take_a_bounded_memory():
    line = file_line("/user/t" + "/n" * 10**7, 5).encode()
    pieces = [(HEADER + "\n").encode(), *(line[start : start + 10**5] for start in range(0, len(line), 10**5))]
    survey = Survey(Places(UNITS, TABLES, CONTROLS))

    def count():
        for batch in image_format.split_lines(pieces):
            survey.count(batch)

    assert memory_of(count) < 2**21 + OTHERS
    assert survey.finish().files == 1
