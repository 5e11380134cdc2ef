"""Which files of a unit are joined, and the name of what they become."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hivekeeper import names
from hivekeeper.config.settings import Settings
from hivekeeper.model import Attributes, Block, UnitFooters
from hivekeeper.plan import analysis, joining
from hivekeeper.plan.compaction import Candidate, Rewrite
from hivekeeper.plan.engine import Engine
from support.builders import FORM, MIB, a_file, a_group, a_snapshot, a_table, a_unit

RUN, LATER = "20260101t020304z-0000", "20270101t020304z-0000"
SETTINGS = Settings(min_quiet_ms=0, fewest_joined=3)
KNOWN, OTHER = replace(FORM, identity="one"), replace(FORM, identity="another")


def a_candidate(files, forms=None):
    unit = analysis.analyze_unit(a_unit(), a_snapshot(*files), None, SETTINGS, 10**9)
    by_form = {}
    for file in files:
        by_form.setdefault((forms or {}).get(file.name, KNOWN), {})[file.path] = 1
    groups = tuple(a_group(rows, form) for form, rows in by_form.items())
    return Candidate(unit, UnitFooters(groups), Attributes("", "", 0, 0))


def chosen(candidate, settings=SETTINGS):
    rewrite = Rewrite.of(a_table(["dt"]), settings, Engine("3.5.9", "UTC"))
    return [[file.name for file in files] for files in joining.choose_bins(candidate, rewrite, settings)]


def some(names_of, length=MIB):
    return [a_file(f"{name}.parquet", length) for name in names_of]


def test_small_files_are_joined_and_large_ones_are_left():
    files = [*some("abc"), a_file("large.parquet", 100 * MIB), a_file("limit.parquet", 13 * MIB)]
    assert chosen(a_candidate(files)) == [["a.parquet", "b.parquet", "c.parquet"]]


@pytest.mark.parametrize("other", [OTHER, replace(KNOWN, layout="another")])
def test_files_of_different_forms_are_joined_apart(other):
    files = some("abcdef")
    forms = {f"{name}.parquet": other for name in "bdf"}
    assert chosen(a_candidate(files, forms)) == [[f"{n}.parquet" for n in "ace"], [f"{n}.parquet" for n in "bdf"]]


def test_few_files_are_left():
    assert chosen(a_candidate(some("ab"))) == []
    assert chosen(a_candidate(some("abcd"), {"d.parquet": OTHER})) == [[f"{n}.parquet" for n in "abc"]]


def test_each_set_fits_into_a_block():
    files = some([f"{n:02d}" for n in range(30)], 12 * MIB)
    sets = chosen(a_candidate(files))
    assert [len(one) for one in sets] == [10, 10, 10]
    assert sum(sets, []) == [file.name for file in files]


@pytest.mark.parametrize("why", ["open", "single", "unreadable"])
def test_files_that_cannot_be_joined_are_left(why):
    files = some("abc")
    candidate = a_candidate(files)
    if why == "open":
        candidate = a_candidate([file._replace(is_open=True) for file in files])
    if why == "single":
        candidate = a_candidate(files, dict.fromkeys([file.name for file in files], replace(KNOWN, single=True)))
    if why == "unreadable":
        candidate = replace(candidate, footers=replace(candidate.footers, unreadable=((files[0].path, "broken"),)))
    assert chosen(candidate) == []


def test_files_that_must_stay_are_neither_chosen_nor_kept_for_a_join():
    files = [*some("abcd"), a_file("large.parquet", 100 * MIB)]
    candidate = a_candidate(files)
    rewrite = Rewrite.of(a_table(["dt"]), SETTINGS, Engine("3.5.9", "UTC"))
    (chosen_files,) = joining.choose_bins(candidate, rewrite, SETTINGS, {"b.parquet"})
    assert [file.name for file in chosen_files] == ["a.parquet", "c.parquet", "d.parquet"]
    narrowed = joining.narrow(candidate.analysis, SETTINGS, {"b.parquet"})
    assert [file.name for file in narrowed.files] == ["a.parquet", "c.parquet", "d.parquet"]
    assert (narrowed.sizes.total_bytes, narrowed.target_files) == (3 * MIB, 1)


def test_a_name_that_only_the_other_files_of_live_have_is_not_given():
    files = some("abc")
    narrowed = a_candidate(files)
    wished = made(files, narrowed, blocks_of(files)).join.file
    assert made(files, narrowed, {**blocks_of(files), wished: ()}).join.file != wished


def blocks_of(files):
    return {file.name: (Block(nth, 1, file.length),) for nth, file in enumerate(files)}


def made(files, candidate, blocks, nth=1):
    return joining.make_candidate(candidate, files, UnitFooters(), blocks, RUN, nth, 128 * MIB)


def test_a_set_is_a_candidate_of_its_own():
    files = some("cab")
    candidate = made(files, a_candidate([*files, a_file("large.parquet", 100 * MIB)]), blocks_of(files), nth=7)
    assert candidate.join.file == f"b-{RUN}-7.parquet"
    assert candidate.join.tail == f".hivekeeper.tail-{RUN}-7"
    # In the order of names, like the files.
    assert [file.name for file in candidate.analysis.files] == ["a.parquet", "b.parquet", "c.parquet"]
    assert candidate.join.blocks == tuple(blocks_of(files)[f"{n}.parquet"] for n in "abc")
    assert (candidate.analysis.sizes.files, candidate.analysis.target_files) == (3, 1)


def test_a_file_that_is_gone_or_has_other_blocks_is_not_joined():
    files = some("abc")
    blocks = blocks_of(files)
    candidate = a_candidate(files)
    assert made(files, candidate, blocks) is not None
    assert made(files, candidate, {**blocks, "b.parquet": ()}) is None
    assert made(files, candidate, {name: of for name, of in blocks.items() if name != "b.parquet"}) is None
    assert made(files, candidate, {**blocks, "b.parquet": (Block(1, 1, MIB + 1),)}) is None


# ---- names


@pytest.mark.parametrize(
    "sources",
    [
        ["a", "b"],
        ["part-0.parquet", "part-00.parquet"],
        ["000000_0", "000000_0_copy_1"],
        ["x", "x-2", "x-3"],
        ["x", "x-20260101t020304z-0000-1a", "y"],
        ["a.b.c.parquet", "a.b.d.parquet"],
        ["é", "ü", "😀"],
    ],
)
def test_the_name_of_a_joined_file_is_between_two_of_its_files(sources):
    name = names.joined_name(sources, set(sources), RUN, 1)
    assert name is not None
    assert sorted([*sources, name])[1:-1].count(name) == 1
    assert names.is_joined_name(name, sources, RUN, 1)
    assert not names.is_hidden(name)


def test_the_name_of_a_file_that_was_joined_before_does_not_grow():
    names_of_old = [f"a-{RUN}-1.parquet", f"b-{RUN}-1.parquet"]
    assert names.joined_name(names_of_old, (), LATER, 1) == f"a-{LATER}-1.parquet"
    # With it, it would sort behind both.
    assert names.joined_name([f"a-{RUN}-1", f"a-{RUN}-2"], (), LATER, 1) == f"a-{RUN}-1-{LATER}-1"


@pytest.mark.parametrize("suffix", ["", ".parquet", ".snappy.parquet"])
@pytest.mark.parametrize("stem", ["a", "part-0", f"a-{LATER}-7", "x" * 200])
def test_a_file_can_be_rolled_back_and_forth_for_ever(stem, suffix):
    """Also where the clock goes back."""
    name, lengths = f"{stem}{suffix}", set()
    for nth in range(40):
        run = f"202601{1 + nth * 7 % 28:02d}t020304z-0000"
        joined, beside = names.joined_alone(name, {name}, run, 1 + nth)
        assert min(name, beside) < joined < max(name, beside)
        assert names.is_joined_name(joined, [name, beside], run, 1 + nth)
        assert names.is_beside_name(beside, name, run, 1 + nth)
        assert names.may_be_joined(joined)
        lengths.add(len(joined) - len(str(1 + nth)))
        name = joined
    assert len(lengths) <= 2


def test_a_name_that_is_taken_or_too_long_is_not_given():
    first = names.joined_name(["a", "b", "c"], (), RUN, 1)
    assert names.joined_name(["a", "b", "c"], {first}, RUN, 1) not in (None, first)
    assert names.joined_name(["a", "b"], {f"a-{RUN}-1", f"b-{RUN}-1"}, RUN, 1) is None
    assert names.joined_name(["a" * 250, "b" * 250], (), RUN, 1) is None
    # No name is between a file and one whose name continues it in a way that sorts lower than ours.
    assert names.joined_name(["a", "a-"], (), RUN, 1) is None


def test_a_step_joins_no_more_files_than_the_namenode_does_in_a_moment(monkeypatch):
    monkeypatch.setattr(joining, "MOST_SOURCES", 4)
    files = some([f"{n:02d}" for n in range(10)])
    sets = chosen(a_candidate(files))
    assert [len(one) for one in sets] == [3, 3, 4]
    assert sum(sets, []) == [file.name for file in files]


@pytest.mark.parametrize("strange", [{"block_size": 2**40}, {"replication": 500}])
def test_a_file_with_blocks_that_no_copy_should_have_is_not_joined(strange):
    first, *others = some("abcd")
    assert chosen(a_candidate([first._replace(**strange), *others])) == [[file.name for file in others]]
