"""What live must hold for files that came late to a backup to go there: found from live back to the first break."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

from hivekeeper import names
from hivekeeper.plan.late_files import find_expected, find_stretches
from hivekeeper.runlog.history import Effect, History, LoggedRun
from hivekeeper.runlog.joins import Inside
from hivekeeper.runlog.manifests import ManifestFile

OWN = "sales.events@5"


def files(names, length=10, file_id=0):
    return tuple(ManifestFile(name, length, 1, file_id) for name in names)


def an_effect(version, before, after, **more):
    """`before` and `after`: files, or their names, of a letter each."""
    run = f"20260101t0203{version:02d}z-0000"
    lists = (files(one) if isinstance(one, str) else one for one in (before, after))
    return Effect(run, 1, version, "compact-swap", 5, OWN, "dt=1", "dt=1", f"runs/{run}/retired/u00001", *lists, **more)


def a_log(*effects):
    run = LoggedRun(0, "", "", "compact-swap", 1, "", "", "", None, True, "", OWN, {}, (), ())
    return History(tuple(replace(run, version=one.version, run=one.run, effects=(one,)) for one in effects))


def find(*effects, own=OWN, partitions=("dt=1",)):
    """By version, the names of the files that live must hold; nothing where the chain is broken."""
    found = find_expected(a_log(*effects), own, partitions)
    return {one.version: "".join(file.name for file in found[one.key]) for one in effects if one.key in found}


def test_of_runs_that_follow_one_another_what_the_last_one_has_put():
    assert find(an_effect(0, "xy", "a"), an_effect(1, "az", "b"), an_effect(2, "b", "c")) == {0: "c", 1: "c", 2: "c"}


def test_only_back_to_where_a_run_did_not_find_what_the_one_before_had_put():
    assert find(an_effect(0, "xy", "a"), an_effect(1, "n", "b"), an_effect(2, "b", "c")) == {1: "c", 2: "c"}


def test_a_part_of_it_is_not_enough():
    assert find(an_effect(0, "xy", "ab"), an_effect(1, "az", "c")) == {1: "c"}


def test_nor_are_files_of_other_lengths_or_ids():
    longer = an_effect(1, files("a", length=11), "b")
    assert find(an_effect(0, "x", "a"), longer) == {1: "b"}
    first, other = an_effect(0, "x", files("a", file_id=7)), an_effect(1, files("a", file_id=8), "b")
    assert find(first, other) == {1: "b"}
    assert find(first, replace(other, before=files("a", file_id=7))) == {0: "b", 1: "b"}


def test_markers_do_not_count():
    first = an_effect(0, "x", (*files("a"), ManifestFile("_SUCCESS", 0, 1, 7)))
    assert find(first, an_effect(1, "a", "b")) == {0: "b", 1: "b"}


def test_the_effects_of_another_table_break_it_before_and_between():
    first, second, third = an_effect(0, "x", "a"), an_effect(1, "a", "b"), an_effect(2, "b", "c")
    assert find(replace(first, table_id="sales.events@4"), second, third) == {1: "c", 2: "c"}
    assert find(first, replace(second, table_id="sales.events@4"), third) == {2: "c"}
    assert find(first, second, third, own="sales.events@6") == {}


def test_so_does_another_place_of_the_partition():
    first, second = an_effect(0, "x", "a"), an_effect(1, "a", "b")
    assert find(replace(first, live="elsewhere"), second) == {1: "b"}


def test_a_run_that_has_put_nothing_tells_nothing_of_what_was_there_before_the_next():
    assert find(an_effect(0, "x", ""), an_effect(1, "n", "b")) == {1: "b"}
    assert find(an_effect(0, "x", "a"), an_effect(1, "a", ""), an_effect(2, "n", "c")) == {2: "c"}


def test_what_a_join_has_left_must_be_in_live_or_have_been_taken_by_the_next_run():
    inside = Inside("j", 10, 5, 5, 5, "")
    swap, join = an_effect(0, "x", "ab"), an_effect(1, "bc", "j", inside=inside)
    assert find(swap, join) == {0: "aj"}
    assert find(swap, join, an_effect(2, "aj", "d")) == {0: "d", 2: "d"}
    assert find(swap, join, an_effect(2, "j", "d")) == {2: "d"}


def test_a_joined_file_is_known_by_its_id():
    swap, join = an_effect(0, "x", "bc"), an_effect(1, "bc", "j", inside=Inside("j", 10, 5, 5, 5, ""))
    ((file,),) = find_expected(a_log(swap, join), OWN, ["dt=1"]).values()
    assert file.file_id == 5
    assert find(swap, join, an_effect(2, files("j", file_id=5), "d")) == {0: "d", 2: "d"}
    assert find(swap, join, an_effect(2, files("j", file_id=6), "d")) == {2: "d"}


class Counted(str):
    """A name that counts how often it is looked up."""

    lookups = 0

    def __hash__(self):
        Counted.lookups += 1
        return super().__hash__()


@pytest.mark.parametrize("find_them", [partial(find_expected, own=OWN), find_stretches])
def test_many_joins_of_a_partition_are_gone_through_once(find_them):
    """A run makes a thousand sets of files of a thousand forms, night after night; and anybody can take away what they became."""
    swap, joins = an_effect(0, "x", "a"), []
    for nth in range(1, 1001):
        made = ManifestFile(Counted(f"j{nth}"), 10, 1, 0)
        inside = Inside(made.name, 10, 100 + nth, 5, 5, "")
        joins.append(replace(an_effect(1, files([f"s{nth}"]), (made,), inside=inside), number=nth))
    run = replace(a_log(swap).runs[0], version=1, run=joins[0].run, effects=tuple(joins))
    Counted.lookups = 0
    found = find_them(History((*a_log(swap).runs, run)), partitions={"dt=1"})
    assert swap.key in found
    assert Counted.lookups <= 10 * len(joins)
    # Lists that grow with each of them would be as many names as their number squared.
    assert sum(len(files) for files in found.values()) <= 3 * (len(joins) + 1)


def undone(effect):
    """As `Keeper` leaves it."""
    return replace(effect, before=(), after=(), whole=False)


def test_what_a_rollback_has_put_is_what_the_run_that_it_undoes_had_taken():
    first, second = an_effect(0, "x", "a"), undone(an_effect(1, "ay", "b"))
    back = an_effect(2, "b", "ay", undoes=second.key)
    assert find(first, second, back)[0] == "ay"
    assert find(first, second, back, an_effect(3, "ayz", "d"))[0] == "d"
    assert find(an_effect(0, "x", "q"), second, back, an_effect(3, "ayz", "d")) == {1: "d", 2: "d", 3: "d"}
    assert find(an_effect(0, "x", files("a", length=11)), second, back) == {1: "ay", 2: "ay"}


def test_a_rollback_leaves_in_live_what_no_run_has_put():
    newer = an_effect(2, "b", "ay", undoes=("20260101t020301z-0000", 1))
    older = an_effect(3, "a", "x", undoes=("20260101t020300z-0000", 1))
    assert find(newer, older) == {2: "yx", 3: "x"}


def test_a_run_without_its_lists_has_taken_nothing_that_is_known():
    """So what the one before it has put must be in live."""
    assert find(an_effect(0, "x", "a"), undone(an_effect(1, "a", "b")), an_effect(2, "b", "c")) == {1: "c", 2: "c"}
    assert find(an_effect(0, "x", "a"), undone(an_effect(1, "a", "b"))) == {0: "a", 1: ""}


def test_each_partition_has_its_own():
    other = replace(an_effect(1, "n", "b"), partition="dt=2", live="dt=2")
    assert find(an_effect(0, "x", "a"), other, an_effect(2, "a", "c"), partitions=["dt=1", "dt=2"]) == {0: "c", 1: "b", 2: "c"}
    assert find(an_effect(0, "x", "a"), other) == {0: "a"}


def test_all_runs_of_a_chain_share_one_list():
    """A first cleanup may come after a thousand of them."""
    effects = [an_effect(version, files([f"f{version}"]), files([f"f{version + 1}"])) for version in range(60)]
    found = find_expected(a_log(*effects), OWN, ["dt=1"])
    assert len(found) == len(effects)
    assert len({id(expected) for expected in found.values()}) == 1


def a_rollback_over_two_runs(first_id=7, other_id=8, taken=None):
    """Both runs have taken a file of one name; `taken` is what a later run has found."""
    newer = an_effect(2, "b", (*files("a"), *files("0", file_id=other_id)), undoes=("20260101t020301z-0000", 1))
    older = an_effect(3, "a", files("0", file_id=first_id), undoes=("20260101t020300z-0000", 1))
    return (newer, older, an_effect(4, taken, "c")) if taken else (newer, older)


def test_what_a_rollback_leaves_in_live_has_another_name_if_its_own_comes_back():
    expected = find_expected(a_log(*a_rollback_over_two_runs()), OWN, ["dt=1"])[a_rollback_over_two_runs()[0].key]
    assert [(file.name, file.file_id) for file in expected] == [("0-late1", 8), ("0", 7)]
    both = (*files("0", file_id=7), *files(["0-late1"], file_id=8))
    assert find(*a_rollback_over_two_runs(taken=both)) == {2: "c", 3: "c", 4: "c"}
    assert find(*a_rollback_over_two_runs(taken=(both[0], both[1]._replace(file_id=9)))) == {3: "c", 4: "c"}
    assert find(*a_rollback_over_two_runs(taken=(both[0], both[1]._replace(mtime_ms=2)))) == {3: "c", 4: "c"}


def test_each_of_several_rollbacks_renames_it_once_more():
    oldest = replace(an_effect(4, "x", files("0", file_id=6)), undoes=("20260101t020302z-0000", 1))
    newer, older = a_rollback_over_two_runs()
    expected = find_expected(a_log(newer, older, oldest), OWN, ["dt=1"])[newer.key]
    assert [(file.name, file.file_id) for file in expected if file.file_id] == [("0-late1-late1", 8), ("0-late1", 7), ("0", 6)]


def test_but_not_where_no_ids_are_known_or_that_name_is_too_long():
    newer, older = a_rollback_over_two_runs()
    assert find(replace(newer, after=files("0", length=11)), older) == {3: "0"}
    long = "n" * (names.MOST_NAME - 5)
    renamed = [
        replace(one, after=tuple(file._replace(name=long) if file.file_id else file for file in one.after)) for one in (newer, older)
    ]
    assert list(find(*renamed)) == [3]


def stretches(*effects):
    """How many breaks come after each."""
    found = find_stretches(a_log(*effects), ["dt=1"])
    return [found[one.key].breaks for one in effects]


def test_runs_before_and_after_an_overwrite_lie_in_different_stretches():
    first, second = an_effect(0, "x", "a"), an_effect(1, "a", "b")
    assert stretches(first, second) == [0, 0]
    assert stretches(first, second, an_effect(2, "n", "c")) == [1, 1, 0]
    assert stretches(first, second, an_effect(2, "n", "c"), an_effect(3, "cd", "e"), an_effect(4, "f", "g")) == [2, 2, 1, 1, 0]


def test_a_run_that_has_put_nothing_ends_one():
    assert stretches(an_effect(0, "x", "a"), an_effect(1, "a", ""), an_effect(2, "n", "c")) == [1, 1, 0]


def test_a_run_lies_in_one_whatever_it_did():
    newer, older = a_rollback_over_two_runs()
    newer, last = replace(newer, after=files("0", length=11)), an_effect(4, "n", "c")
    assert stretches(an_effect(1, "q", "r"), newer, older, last) == [2, 2, 1, 0]
    found = find_stretches(a_log(an_effect(1, "q", "r"), newer, replace(older, run=newer.run, number=2), last), ["dt=1"])
    assert [stretch.breaks for stretch in found.values()] == [0, 1, 1, 1]


def test_each_table_that_lay_here_has_its_own():
    """A command that was at work on one that is gone may have ended after others."""
    first, second, third = an_effect(0, "x", "a"), an_effect(1, "y", "z"), an_effect(2, "a", "b")
    former = replace(second, table_id="sales.events@4")
    assert stretches(first, former, third) == [0, 0, 0]
    assert len({*find_stretches(a_log(first, former, third), ["dt=1"]).values()}) == 2


def test_where_no_ids_are_known_a_file_of_another_time_is_not_the_one_that_a_rollback_has_put():
    """Behind ViewFs; Hive names its files 000000_0 again and again. A rename keeps a file's time."""
    back, later = files("0"), (ManifestFile("0", 10, 2, 0),)
    undoing = an_effect(0, "a", back, undoes=("20260101t020300z-0000", 9))
    assert find(undoing, an_effect(1, later, "b")) == {1: "b"}
