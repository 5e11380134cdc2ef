"""What a former version has left where its first run ended with only the lock."""

from dataclasses import replace

from support.builders import a_table
from support.desk import Desk
from support.world import World


def test_a_directory_of_a_former_version_with_only_its_lock():
    world = World()
    world.add_table(a_table(["dt"]), {"dt=1": [1000] * 3})
    desk = Desk(world)
    files = world.files
    files.make_directory(desk.control.top)
    files.write_new(desk.control.lock, "run of before\n")
    for path in (desk.control.top, desk.control.lock):
        node = files.namespace.find(path)
        node.attributes = replace(node.attributes, mode=0o700 if path == desk.control.top else 0o600)
    result = desk.compact()
    assert result.code == 0 or "_lock" in result.tables[0].problem.next
