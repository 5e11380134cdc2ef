"""A killed run has left a partition in its gap; then the external table is renamed and its location is set elsewhere, as whoever builds it
anew at its place does, and another table gets its place, perhaps with its name. Its partitions, and the records of the run, stay where they
are."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hivekeeper.codes import Exit
from hivekeeper.errors import Refused
from hivekeeper.model import Column
from hivekeeper.reasons import Code
from hivekeeper.steps import identity
from support.builders import a_table
from support.desk import Desk
from support.hive_statements import Hive
from support.leftovers import wait
from unit.commands.test_location_set_in_an_outage import NEW, hidden, killed

ALTERED = {"columns": (Column("id", "int"), Column("more", "int"))}


def renamed(desk, **changes):
    """sales.events becomes sales.old, which lies elsewhere but for its partitions."""
    world = desk.world
    world.catalog.put_table(replace(world.table("sales.events"), kind="EXTERNAL_TABLE"))
    hive = Hive(world)
    list(hive.rename_table("sales.events", "sales.old"))
    world.files.writer.make_directory(NEW)
    list(hive.set_location("sales.old", "", NEW))
    world.catalog.put_table(replace(world.table("sales.old"), **changes))
    wait(desk, 1)
    old = Desk(world, "sales.old")
    old.runs = list(desk.runs)
    return old


def put_at_its_place(old, place, name="events"):
    world = old.world
    mine = replace(world.table("sales.old"), name=name, location=place, create_time=99, owner="mallory")
    world.catalog.add_table(mine, [])
    theirs = Desk(world, f"sales.{name}")
    theirs.runs = list(old.runs)
    wait(old, 1)
    return theirs


def code_of(result):
    return result.code, result.tables[0].problem and result.tables[0].problem.code


@pytest.mark.parametrize("name", [None, "events", "salaries"], ids=["nobody has its place", "another one has name and place", "place"])
@pytest.mark.parametrize("changes", [{}, ALTERED], ids=["", "altered"])
def test_readers_of_the_renamed_table_are_told_until_they_have_their_rows(name, changes):
    desk = killed()
    place = desk.live()
    old = renamed(desk, **changes)
    if name:
        theirs = put_at_its_place(old, place, name)
        for command in (theirs.recover, theirs.compact):
            result = command()
            assert code_of(result) == (Exit.INVESTIGATE, Code.OTHER_TABLE)
            assert f"back to {place}, then: hivekeeper recover --table sales.old" in result.tables[0].problem.next
        old.runs = list(theirs.runs)
        assert hidden(old)
    assert code_of(old.recover()) == code_of(old.compact()) == (Exit.INVESTIGATE, Code.UNSETTLED)
    if name:
        # As the other table's commands advise.
        world = old.world
        world.files.writer.make_directory(f"{NEW}-2")
        list(Hive(world).set_location(f"sales.{name}", "", f"{NEW}-2"))
    list(Hive(old.world).set_location("sales.old", "", place))
    wait(old, 1)
    assert old.recover().code is Exit.DONE
    assert not hidden(old)


@pytest.mark.parametrize(
    "changes", [{"columns": (Column("other", "int"),)}, {**ALTERED, "owner": "somebody"}], ids=["other columns", "another owner"]
)
def test_one_that_cannot_be_it_holds_nothing_up(changes):
    desk = killed()
    place = desk.live()
    theirs = put_at_its_place(renamed(desk, **changes), place)
    assert code_of(theirs.recover()) == (Exit.INVESTIGATE, Code.CHANGED_IN_OUTAGE)
    assert theirs.recover().code is Exit.DONE


def test_one_whose_partitions_cannot_be_read_may_be_it(monkeypatch):
    desk = killed()
    place = desk.live()
    theirs = put_at_its_place(renamed(desk), place)

    def refuse(_cluster, table):
        raise Refused(f"{table.full_name}: its partitions are too large", code=Code.NOT_RECORDABLE, next="")

    monkeypatch.setattr(identity, "find_lives", refuse)
    assert code_of(theirs.recover()) == (Exit.INVESTIGATE, Code.OTHER_TABLE)


def test_another_table_of_that_second_with_partitions_elsewhere_holds_nothing_up():
    """The table was dropped and created again. A script has created both in one second."""
    desk = killed()
    world, known = desk.world, desk.world.table(desk.table)
    world.add_table(a_table(["dt"], name="other", create_time=5, location="hdfs://nn/warehouse/sales/other"), {"dt=1": [1000] * 3})
    world.catalog.drop_table(desk.table)
    world.catalog.add_table(replace(known, create_time=99), [])
    wait(desk, 1)
    assert code_of(desk.recover()) == (Exit.INVESTIGATE, Code.CHANGED_IN_OUTAGE)
    assert desk.recover().code is Exit.DONE
