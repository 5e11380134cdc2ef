"""A directory above partitions is closed to who may write to the table's root, and may so rename it: it is away just while a run finds out
which rights the way to its backups gets.
"""

from __future__ import annotations

import pytest

from support.builders import a_table
from support.desk import Desk
from support.hdfs_user import HdfsUser, own, own_tree
from support.world import World

UNIT = "region=eu/dt=1"


def a_table_with_a_closed_region():
    world = World()
    world.add_table(a_table(["region", "dt"], create_time=5), {UNIT: [1000] * 3})
    desk = Desk(world, backup_table=False)
    space = world.files.namespace
    own_tree(space, desk.live(), "fin", "fin", 0o755)
    own(space.find(desk.live()), "fin", "data", 0o775)
    own(space.find(desk.live("region=eu")), "fin", "fin", 0o700)
    return desk, HdfsUser(space, "mallory", ["data"])


def old_files(desk):
    return [path for path in desk.world.files.contents(desk.control.top) if "/retired/" in path]


@pytest.mark.parametrize("moves", [False, True])
def test_who_may_not_pass_it_cannot_read_the_backup(moves, monkeypatch):
    desk, mallory = a_table_with_a_closed_region()
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
    desk.compact()
    assert old_files(desk)
    assert not [path for path in old_files(desk) if mallory.may_read(path)]
