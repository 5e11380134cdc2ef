"""A table that is handed to another team by `chgrp`, while some partitions stay with the former one: records are for the table's group only
if it may read every unit that a run has ever recorded (docs/permissions.md)."""

from __future__ import annotations

import gzip
from dataclasses import replace

from hivekeeper import names
from hivekeeper.codes import Exit
from support.builders import a_table
from support.desk import Desk
from support.fakes.namespace import ROOT, parts
from support.world import World

USERS = {"of_data": {"data"}, "of_hr": {"hr"}}


def dress(world, directory, group):
    top = world.files.namespace.find(directory)
    for node in (top, *(child for child in top.children.values() if not child.is_dir)):
        node.attributes = replace(node.attributes, group=group, mode=0o750, file_mode=0o640)


def may(node, user, bit):
    return bool(node.mode >> (3 if node.attributes.group in USERS[user] else 0) & bit)


def readable_below(world, top, user):
    for path, node in world.files.namespace.walk(top):
        way = [world.files.namespace.find(names.join(ROOT, *parts(path)[:depth])) for depth in range(1, len(parts(path)))]
        if not node.is_dir and may(node, user, 4) and all(may(directory, user, 1) for directory in way):
            yield path, node.content


def test_records_of_partitions_of_the_former_group_are_not_opened_to_the_new_one():
    world = World()
    world.add_table(a_table(["dt"]), {"dt=1": [1000] * 3, "dt=2": [1000] * 3})
    desk = Desk(world, checkpoint_interval=2)
    for directory in (desk.live(), desk.live("dt=1"), desk.live("dt=2")):
        dress(world, directory, "hr")
    assert desk.compact(where="dt = '1'").code is Exit.DONE
    assert any("/log/" in path for path, _ in readable_below(world, desk.control.top, "of_hr"))
    dress(world, desk.live(), "data")
    dress(world, desk.live("dt=2"), "data")
    for night in range(3):
        desk.append("dt=2", *(f"n{night}-{nth}" for nth in range(3)))
        dress(world, desk.live("dt=2"), "data")
        assert desk.compact(where="dt = '2'").code is Exit.DONE
    assert not list(readable_below(world, desk.live("dt=1"), "of_data"))
    found = [one for one in readable_below(world, desk.control.top, "of_data") if "/log/" in one[0] or "/runs/" in one[0]]
    found = [(path, content) for path, content in found if isinstance(content, (str, bytes))]
    shown = {path: gzip.decompress(content).decode() if path.endswith(".gz") else content for path, content in found}
    assert [path for path, text in shown.items() if "dt=1" in text] == []
