"""What a joined file took because it had replaced a source gets its place again, or stays as a backup: no row is lost or comes twice."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import pytest

from hivekeeper import names
from hivekeeper.codes import Exit
from hivekeeper.errors import HivekeeperError
from hivekeeper.reasons import Code
from support.builders import a_table
from support.desk import Desk, outcomes
from support.fakes.files import Killed
from support.fakes.rows import DataFile
from support.joined_desk import (
    ALL,
    SMALL,
    a_desk,
    at,
    create_again,
    files_of,
    joined_path,
    kill_in_put_back,
    manage,
    move_partition,
    rename_partition,
    replace_one,
    rows,
    rows_anywhere,
    rows_by_file,
    survive,
)
from support.world import World

REPLACED = sorted([SMALL[0], "new", SMALL[2], "large"])
JOINED = "part-00001-20260101t020000z-0000-2.parquet"
TAIL = names.join_tail("20260101t020000z-0000", 2)


@pytest.fixture
def desk():
    return a_desk()


def set_aside(desk):
    """The rows in backups of the log, by name of the file there."""
    found = {}
    for effect in desk.log().standing:
        for file in effect.before if effect.inside is None else ():
            path = names.join(desk.control.top, effect.place, file.name)
            assert (desk.world.files.stat(path).file_id, desk.world.files.stat(path).length) == (file.file_id, file.length)
            found[file.name] = desk.world.files.content(path).rows
    return found


@pytest.mark.parametrize("numbers", [[0], [1], [2], [0, 1], [0, 1, 2]])
def test_files_that_replaced_joined_ones_since_the_check_get_their_own_back(desk, numbers):
    at(desk, ["concat", "/dt=1/part"], lambda: [replace_one(desk, f"part-0000{number}.parquet") for number in numbers])
    assert outcomes(desk.compact())["dt=1"] == "put-back"
    assert rows_by_file(desk, "dt=1") == {
        "large.parquet": ("large",),
        **{f"part-0000{n}.parquet": ("new",) if n in numbers else (ALL[n],) for n in range(3)},
    }
    assert desk.run_directories() == []
    # With the rights of the others, not those of a copy that nobody may see yet.
    entries = desk.world.files.look([desk.live("dt=1")])[desk.live("dt=1")].entries
    assert len({(entry.mode, entry.owner, entry.group) for entry in entries}) == 1


def test_a_file_that_lay_in_a_sources_place_while_blocks_were_read_and_again_in_the_concat_is_not_taken_for_that(desk):
    """Of the same length, so that only its id tells."""
    files, source = desk.world.files, names.join(desk.live("dt=1"), "part-00001.parquet")
    strange = f"{desk.live()}/.strange"
    files.writer.add(strange, DataFile(("strange",)), files.stat(source).length)
    files.namespace.advance(3_600_000)
    ask, done = files.blocks, []

    def exchange():
        for one, other in ((source, f"{source}.aside"), (strange, source), (f"{source}.aside", strange)):
            files.namespace.rename(one, other)

    def ask_meanwhile(path, *more, **ids):
        if path != desk.live("dt=1") or done:
            return ask(path, *more, **ids)
        exchange()
        done.append(ask(path, *more, **ids))
        exchange()
        return done[0]

    files.blocks = ask_meanwhile
    at(desk, ["concat", "/dt=1/part"], exchange)
    desk.compact()
    assert done
    assert rows(desk) == ALL
    assert sorted(row for row in rows_anywhere(desk) if row in ("strange", SMALL[1])) == [SMALL[1], "strange"]


def test_a_file_whose_name_is_taken_by_then_is_set_aside(desk):
    """If the newer one has replaced it, its rows must not come back."""

    def replace_and_add():
        replace_one(desk)
        at(desk, ["rename_exact", "copy-2", "/dt=1/part-00001"], lambda: desk.append("dt=1", "part-00001"))

    at(desk, ["concat", "/dt=1/part"], replace_and_add)
    assert outcomes(desk.compact())["dt=1"] == "misplaced"
    assert rows(desk) == sorted([SMALL[0], "part-00001", SMALL[2], "large"])
    assert set_aside(desk) == {"part-00001.parquet": ("new",)}


def test_a_strange_file_that_comes_to_the_name_of_the_joined_one_is_left(desk):
    kill_in_put_back(desk, ["rename_exact", "copy-2"], desk.compact)
    desk.world.files.writer.add(f"{desk.live('dt=1')}/{JOINED}", DataFile(("strange",)), 5)
    assert desk.recover().code is Exit.DONE
    assert rows(desk) == sorted([*REPLACED, "strange"])


def test_what_an_overwriter_deletes_during_a_put_back_stays_deleted(desk):
    def overwrite():
        for path in desk.world.files.contents(desk.live("dt=1")):
            desk.world.files.writer.delete(path)
        desk.append("dt=1", "overwriter")

    def replace_then_overwrite():
        replace_one(desk)
        at(desk, ["rename_exact", "/taken/u00002.file"], overwrite)

    at(desk, ["concat", "/dt=1/part"], replace_then_overwrite)
    desk.compact()
    assert rows(desk) == ["overwriter"]


def test_a_file_that_was_joined_itself_is_one_file(desk):
    """Its own parts begin like files."""
    desk.compact(where="dt = '2'")
    (other,) = rows_by_file(desk, "dt=2")
    length, of_other = files_of(desk, "dt=2")[other]
    path = f"{desk.live('dt=1')}/part-00001.parquet"

    def put_it_there():
        desk.world.files.writer.delete(path)
        desk.world.files.writer.rename_into(f"{desk.live('dt=2')}/{other}", path)

    at(desk, ["concat", "/dt=1/part"], put_it_there)
    assert outcomes(desk.compact(where="dt = '1'"))["dt=1"] == "put-back"
    assert files_of(desk)["part-00001.parquet"] == (length, of_other)
    assert sorted(files_of(desk)) == ["large.parquet", *(f"part-0000{n}.parquet" for n in range(3))]


def test_files_that_cannot_be_told_from_one_another_are_set_aside_in_one_piece(desk, monkeypatch):
    monkeypatch.setattr(type(desk.world.rows), "find_starts", lambda *_: ())
    at(desk, ["concat", "/dt=1/part"], lambda: [replace_one(desk, f"part-0000{n}.parquet", f"new{n}") for n in (0, 1)])
    result = desk.compact(where="dt = '1'")
    assert (outcomes(result), result.code) == ({"dt=1": "misplaced"}, Exit.INVESTIGATE)
    assert rows_by_file(desk) == {"large.parquet": ("large",), "part-00002.parquet": (SMALL[2],)}
    (effect,) = desk.log().standing
    assert [file.length for file in effect.before] == [2 * 777]


def test_a_tail_that_somebody_replaced_does_not_hide_the_sources(desk):
    def replace_tail():
        desk.world.files.writer.delete(f"{desk.live('dt=1')}/{TAIL}")
        desk.world.files.writer.add(f"{desk.live('dt=1')}/{TAIL}", DataFile(("strange",)), 333)

    at(desk, ["concat", "/dt=1/part"], replace_tail)
    assert outcomes(desk.compact())["dt=1"] == "put-back"
    assert rows(desk) == sorted([*ALL, "strange"])
    assert desk.run_directories() == []


# ---- killed, and what has become of live in the outage


@pytest.mark.parametrize("words", [["copy_part"], ["rename_exact", "/taken/"], ["rename_exact", "copy-1"], ["rename_exact", "copy-3"]])
@pytest.mark.parametrize("change", [rename_partition, move_partition])
def test_what_was_taken_goes_back_where_its_directory_was_moved(desk, words, change):
    manage(desk)
    kill_in_put_back(desk, words, lambda: desk.compact(where="dt = '1'"))
    change(desk)
    assert desk.recover().code is Exit.DONE
    assert rows(desk, "dt=9" if change is rename_partition else "moved") == REPLACED
    assert desk.run_directories() == []


def test_until_the_metastore_knows_where_a_directory_was_moved_the_run_stays_unfinished(desk):
    kill_in_put_back(desk, ["rename_exact", "copy-1"], lambda: desk.compact(where="dt = '1'"))
    old, new = desk.live("dt=1"), desk.live("moved")
    desk.world.files.writer.rename_into(old, new)
    for _ in range(2):
        result = desk.recover()
        assert (result.code, result.tables[0].problem.code.code) == (Exit.UNUSABLE, "exchange-interrupted")
        assert "set its location" in result.tables[0].problem.what
    desk.world.files.writer.rename_into(new, old)
    assert desk.recover().code is Exit.DONE
    assert rows(desk) == REPLACED


@pytest.mark.parametrize("words", [["rename_exact", "/ready/u00001/part"], ["concat", "/dt=1/part"], ["entry.json"]])
def test_a_directory_that_was_deleted_does_not_keep_its_run_unfinished(desk, words):
    desk.kill_before(words, lambda: desk.compact(where="dt = '1'"))
    desk.world.files.writer.delete(desk.live("dt=1"))
    assert desk.recover().code is Exit.DONE
    assert desk.cleanup().code is Exit.DONE
    assert desk.run_directories() == []


@pytest.mark.parametrize("words", [["rename_exact", "/ready/u00001/part"], ["concat", "/dt=1/part"]])
@pytest.mark.parametrize("change", [rename_partition, move_partition])
def test_no_file_without_rows_stays_where_a_directory_was_moved(desk, words, change):
    manage(desk)
    desk.kill_before(words, lambda: desk.compact(where="dt = '1'"))
    change(desk)
    assert desk.recover().code is Exit.DONE
    found = rows_by_file(desk, "dt=9" if change is rename_partition else "moved")
    assert sorted(found) == ["large.parquet", *(f"part-0000{n}.parquet" for n in range(3))]


@pytest.mark.parametrize("words", [["copy_part"], ["rename_exact", "/taken/"], ["rename_exact", "copy-1"], ["rename_exact", "copy-3"]])
def test_nothing_moves_in_a_table_that_was_created_again(desk, words):
    kill_in_put_back(desk, words, lambda: desk.compact(where="dt = '1'"))
    create_again(desk)
    before = files_of(desk)
    desk.recover()
    assert files_of(desk) == before
    assert set(REPLACED) <= {*rows(desk), *(row for of_file in set_aside(desk).values() for row in of_file)}
    desk.cleanup()
    assert set(REPLACED) <= set(rows_anywhere(desk))


@pytest.mark.parametrize("change", [create_again, rename_partition, move_partition])
def test_what_a_rollback_took_is_kept_too(desk, change):
    if change is rename_partition:
        manage(desk)
    desk.compact()
    desk.world.files.namespace.advance(3_600_000)
    joined = names.base(joined_path(desk))
    kill_in_put_back(desk, ["rename_exact", "copy-1"], lambda: desk.rollback(where="dt = '1'"), joined)
    change(desk)
    desk.recover()
    if change is create_again:
        assert list(set_aside(desk).values()) == [("new",)]
    else:
        assert rows(desk, "dt=9" if change is rename_partition else "moved") == ["large", "new"]
    desk.cleanup(former=True)
    assert "new" in rows_anywhere(desk)


@pytest.mark.parametrize("change", [rename_partition, move_partition])
def test_a_directory_that_moves_during_a_put_back_loses_nothing(desk, change):
    """Nobody is killed."""
    manage(desk)

    def replace_then_move():
        replace_one(desk)
        at(desk, ["rename_exact", "copy-2"], lambda: change(desk))

    at(desk, ["concat", "/dt=1/part"], replace_then_move)
    assert outcomes(desk.compact(where="dt = '1'"))["dt=1"] == "put-back"
    assert rows(desk, "dt=9" if change is rename_partition else "moved") == REPLACED
    assert desk.run_directories() == []


def test_what_an_overwriter_finds_during_a_put_back_never_comes_back(desk):
    """T is aside, one copy is back, the others are not; somebody overwrites the partition; then recovery."""
    for words in (["rename_exact", "copy-1"], ["rename_exact", "copy-2"]):
        desk = a_desk()
        kill_in_put_back(desk, words, desk.compact)
        desk.world.files.writer.overwrite(desk.live("dt=1"), {"over.parquet": DataFile(("over",))})
        desk.world.files.namespace.advance(3_600_000)
        assert desk.recover().code is Exit.INVESTIGATE
        assert rows(desk) == ["over"]
        assert set_aside(desk)["part-00001.parquet"] == ("new",)
        assert desk.log().pinned == {desk.runs[0]}
        # With the rights of the table's own directory, so that an operator who may read that can put them back.
        (place,) = {names.join(desk.control.top, effect.place) for effect in desk.log().standing if effect.inside is None}
        assert desk.world.files.stat(place).mode == 0o755


@pytest.mark.parametrize("add", [True, False], ids=["with another file in it", "empty"])
def test_where_nothing_lay_beside_the_joined_file_the_first_copy_is_the_witness(add):
    """A file that came to an empty directory may be an overwriter's."""
    desk = a_desk()
    desk.world.files.writer.delete(f"{desk.live('dt=1')}/large.parquet")
    desk.world.files.namespace.advance(3_600_000)
    kill_in_put_back(desk, ["rename_exact", "copy-1"], desk.compact)
    if add:
        desk.append("dt=1", "over")
    desk.recover()
    assert rows(desk) == (["over"] if add else [SMALL[0], SMALL[2], "new"])
    kept = [row for of_file in set_aside(desk).values() for row in of_file]
    assert sorted(kept) == (sorted([SMALL[0], "new", SMALL[2]]) if add else [])


def test_an_appender_during_a_put_back_changes_nothing(desk):
    kill_in_put_back(desk, ["rename_exact", "copy-2"], desk.compact)
    desk.append("dt=1", "appended")
    assert desk.recover().code is Exit.DONE
    assert rows(desk) == sorted([*REPLACED, "appended"])
    assert desk.log().standing == () or {effect.partition for effect in desk.log().standing} == {"dt=2"}


@pytest.mark.parametrize(
    "words", [["rename_exact", "/ready/u00001", "/retired/u00001"], ["rename_exact", "copy-2", "/retired/"], ["entry.json"]]
)
def test_setting_aside_is_finished_by_the_next_and_never_turned_round(words):
    """Killed once in the put-back and again in its recovery."""
    desk = a_desk()
    kill_in_put_back(desk, ["rename_exact", "copy-1"], lambda: desk.compact(where="dt = '1'"))
    path, rest = f"{desk.live('dt=1')}/large.parquet", DataFile(("large",))
    desk.world.files.writer.delete(path)
    desk.kill_before(words, desk.recover)
    desk.world.files.writer.add(path, rest, 100 << 20)
    desk.recover()
    assert rows(desk) == ["large"]
    assert sorted(set_aside(desk)) == [f"part-0000{n}.parquet" for n in range(3)]


def overwrite(desk):
    for name in rows_by_file(desk):
        desk.world.files.writer.delete(names.join(desk.live("dt=1"), name))
    desk.world.files.writer.add(f"{desk.live('dt=1')}/newest.parquet", DataFile(("newest",)))


def rename_and_give_the_name_again(desk):
    """ALTER TABLE … RENAME of a partition such as `dt=current`, and the next load."""
    partition = desk.world.partitions(desk.table)["dt=1"]
    rename_partition(desk)
    desk.world.files.writer.add(f"{desk.live('dt=1')}/newest.parquet", DataFile(("newest",)))
    desk.world.catalog.add_partition(desk.table, partition)


@pytest.mark.parametrize("nth", [1, 2, 3])
@pytest.mark.parametrize("act", [overwrite, rename_and_give_the_name_again])
def test_a_copy_that_goes_back_just_after_live_became_another_does_not_stay_beside_its_rows(desk, act, nth):
    manage(desk)

    def replace_source():
        replace_one(desk)
        at(desk, ["rename_exact", f".hivekeeper.copy-{nth} ", "/dt=1/"], lambda: act(desk))

    at(desk, ["concat", "/dt=1/part"], replace_source)
    assert outcomes(desk.compact())["dt=1"] == "misplaced"
    assert rows(desk) == ["newest"]
    left = {f"part-0000{n}.parquet": ("new",) if n == 1 else (SMALL[n],) for n in range(nth - 1, 3)}
    assert set_aside(desk) == left


def test_a_first_copy_that_goes_back_to_an_empty_directory_just_after_that_was_overwritten_is_taken_out_again(desk):
    def overwrite_two():
        desk.world.files.writer.add(f"{desk.live('dt=2')}/newest.parquet", DataFile(("newest",)))

    def replace_source():
        desk.world.files.writer.delete(f"{desk.live('dt=2')}/part-00001.parquet")
        desk.world.files.writer.add(f"{desk.live('dt=2')}/part-00001.parquet", DataFile(("new",)), 777)
        at(desk, ["rename_exact", ".hivekeeper.copy-1 ", "/dt=2/"], overwrite_two)

    at(desk, ["concat", "/dt=2/part"], replace_source)
    assert outcomes(desk.compact())["dt=2"] == "misplaced"
    assert rows(desk, "dt=2") == ["newest"]
    assert len(set_aside(desk)) == 4


def replace_joined(desk, killed):
    """As who rewrites each file that he has listed, and puts the new one in its place. `killed`: the run ends just after the next step."""
    replace_one(desk, JOINED, "newest")
    if killed:
        desk.world.files.die_after(1)


@pytest.mark.parametrize("killed", [False, True])
def test_a_file_that_replaced_the_joined_one_while_it_was_put_back_stays_and_what_that_had_taken_is_a_backup(desk, killed):
    def replace_source():
        replace_one(desk)
        at(desk, ["rename_exact", "/taken/u00002.file"], lambda: replace_joined(desk, killed))

    at(desk, ["concat", "/dt=1/part"], replace_source)
    with suppress(Killed):
        desk.compact()
    survive(desk)
    with suppress(HivekeeperError):
        desk.recover()
    assert rows(desk) == ["large", "newest"]
    assert set_aside(desk) == {f"part-0000{n}.parquet": ("new",) if n == 1 else (SMALL[n],) for n in range(3)}


@pytest.mark.parametrize("killed", [False, True])
def test_a_file_that_replaced_the_joined_one_just_before_that_was_given_up_stays(desk, killed):
    desk.kill_before(["concat", "/dt=1/part"], desk.compact)
    at(desk, ["rename_exact", "/taken/u00002.file"], lambda: replace_joined(desk, killed))
    with suppress(Killed):
        desk.recover()
    survive(desk)
    desk.recover()
    assert rows(desk) == sorted([*ALL, "newest"])


def test_closed_files_that_were_joined_to_somebody_elses_do_not_get_its_rights(desk):
    """Who may write to the directory, but not read these files, has put one of their own in the place of the new one."""
    directory = desk.live("dt=1")
    nodes = desk.world.files.namespace.find(directory).children
    for node in nodes.values():
        node.attributes = replace(node.attributes, file_mode=0o600)

    def replace_new_one():
        replace_one(desk, JOINED, "strange")
        node = desk.world.files.namespace.find(names.join(directory, JOINED))
        node.attributes = replace(node.attributes, owner="mallory", file_mode=0o644)

    at(desk, ["concat", "/dt=1/part"], replace_new_one)
    assert outcomes(desk.compact())["dt=1"] == "put-back"
    assert rows(desk) == sorted([*ALL, "strange"])
    there = {entry.name: (entry.owner, entry.mode) for entry in desk.world.files.look([directory])[directory].entries}
    assert {there[name] for name, of_file in rows_by_file(desk).items() if of_file != ("strange",)} == {("hive", 0o600)}


@pytest.mark.parametrize("together", [False, True])
def test_terabytes_that_were_joined_by_mistake_are_not_copied_while_other_tables_wait(together):
    """It takes but a rename to put them in the place of a source."""
    desk = a_desk()
    writer, live = desk.world.files.writer, desk.live("dt=1")

    def replace_sources():
        for nth in (0, 1) if together else (1,):
            writer.delete(f"{live}/part-0000{nth}.parquet")
            writer.add(f"{live}/part-0000{nth}.parquet", DataFile((f"huge {nth}",)), 40 << 30 if together else 10 << 40)

    at(desk, ["concat", "/dt=1/part"], replace_sources)
    result = desk.compact(where="dt = '1'")
    assert (result.code, result.tables[0].problem.code) == (Exit.INVESTIGATE, Code.TOO_LARGE_TO_RETURN)
    assert desk.backup().tables[0].problem.code is Code.TOO_LARGE_TO_RETURN
    assert rows(desk) == ALL
    # What an operator types is for this table alone.
    assert desk.recover().code is Exit.DONE
    assert rows(desk) == sorted(["huge 0", "huge 1", SMALL[2], "large"] if together else [SMALL[0], "huge 1", SMALL[2], "large"])


class Listings:
    """How many entries of a directory are told in listings."""

    def __init__(self, monkeypatch, files, directory):
        self.entries, inner = 0, type(files).look

        def look(files, directories, *most):
            seen = inner(files, directories, *most)
            self.entries += sum(len(seen[one].entries) for one in directories if one == directory)
            return seen

        monkeypatch.setattr(type(files), "look", look)


@pytest.mark.parametrize("beside", [0, 200])
def test_live_is_not_listed_for_each_file_that_goes_back(beside, monkeypatch):
    """It may have a million files, and as long as it takes the rows of the whole set are absent."""
    world = World()
    world.add_table(a_table(["dt"]), {"dt=1": [1000] * 100})
    for nth in range(beside):
        world.add_file(f"hdfs://nn/warehouse/sales/events/dt=1/large-{nth}.parquet", [f"large {nth}"], 100 << 20)
    world.files.namespace.advance(3_600_000)
    desk = Desk(world, exchange="files", fewest_joined=2, backup_table=False)
    counted = []

    def replace_then_count():
        replace_one(desk)
        counted.append(Listings(monkeypatch, world.files, desk.live("dt=1")))

    at(desk, ["concat", "/dt=1/part"], replace_then_count)
    assert outcomes(desk.compact())["dt=1"] == "put-back"
    assert len(rows(desk)) == 100 + beside
    assert counted[0].entries < 8 * (100 + beside)
