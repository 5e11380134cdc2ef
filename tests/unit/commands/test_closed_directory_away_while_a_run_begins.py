"""A directory above partitions is closed to who may write to the table's root, and may so rename it: it is away just while a run finds out
which rights the way to its backups gets.
"""

from __future__ import annotations

import pytest

from hivekeeper.codes import Exit
from hivekeeper.steps import attributes
from support.builders import a_table
from support.desk import Desk
from support.hdfs_user import HdfsUser, own, own_tree
from support.world import World

UNIT = "region=eu/country=de/dt=1"
CLOSED = {"the one that is moved": "region=eu", "one below it": "region=eu/country=de"}


def a_table_with_a_closed_directory(closed):
    world = World()
    world.add_table(a_table(["region", "country", "dt"], create_time=5), {UNIT: [1000] * 3})
    desk = Desk(world, backup_table=False)
    space = world.files.namespace
    own_tree(space, desk.live(), "fin", "fin", 0o755)
    own(space.find(desk.live()), "fin", "data", 0o775)
    own(space.find(desk.live(closed)), "fin", "fin", 0o700)
    return desk, HdfsUser(space, "mallory", ["data"])


def old_files(desk):
    return [path for path in desk.world.files.contents(desk.control.top) if "/retired/" in path]


@pytest.mark.parametrize("moves", [False, True])
@pytest.mark.parametrize("closed", CLOSED.values(), ids=CLOSED)
def test_who_may_not_pass_it_cannot_read_the_backup(closed, moves, monkeypatch):
    desk, mallory = a_table_with_a_closed_directory(closed)
    (file, *_) = desk.world.files.contents(desk.live(UNIT))
    assert not mallory.may_read(file)
    attributes, region, aside = desk.world.files.attributes, desk.live("region=eu"), desk.live(".aside")

    def read(directories, *ids):
        if not moves or list(directories[:1]) != [desk.live()] or region not in directories:
            return attributes(directories, *ids)
        assert mallory.rename(region, aside)
        found = attributes(directories, *ids)
        assert mallory.rename(aside, region)
        return found

    monkeypatch.setattr(desk.world.files, "attributes", read)
    # Nothing is wrong for an operator: the backup is closed, as if the directory had been there.
    assert desk.compact().code is Exit.DONE
    assert old_files(desk)
    assert not [path for path in old_files(desk) if mallory.may_read(path)]


def test_nor_a_record_of_it(monkeypatch):
    """A closed partition that the answer about rights leaves out, as where no directory is found by its id."""
    desk, mallory = a_table_with_a_closed_directory(UNIT)
    read_attributes = attributes.read_attributes

    def read(files, seen):
        found, refused = read_attributes(files, seen)
        return {place: one for place, one in found.items() if place != desk.live(UNIT)}, refused

    monkeypatch.setattr(attributes, "read_attributes", read)
    desk.backup()
    plans = [path for path in desk.world.files.contents(desk.control.top) if path.endswith("/plan.json")]
    assert plans
    assert not [path for path in plans if mallory.may_read(path)]
