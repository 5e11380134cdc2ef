"""What a former version has left where its first run ended with only the lock: the commands that are told remove it."""

import re
from dataclasses import replace

import pytest

from hivekeeper.codes import Exit
from hivekeeper.reasons import Code
from support.builders import a_table
from support.desk import Desk
from support.world import World


@pytest.mark.parametrize("beside", [(), ("log",), ("log", "runs")], ids=str)
def test_a_directory_of_a_former_version_with_only_its_lock(beside):
    world = World()
    world.add_table(a_table(["dt"]), {"dt=1": [1000] * 3})
    desk, files = Desk(world), world.files
    directories = [desk.control.top, *(f"{desk.control.top}/{name}" for name in beside)]
    for path in directories:
        files.make_directory(path)
        node = files.namespace.find(path)
        node.attributes = replace(node.attributes, mode=0o700)
    files.write_new(desk.control.lock, "run of before\n")
    for _ in range(2):
        problem = desk.compact().tables[0].problem
        assert problem.code is Code.UNKNOWN_FILES
    told = re.findall(r"hdfs dfs -(\w+) ([^; ]+)", problem.next)
    assert told == [("rm", desk.control.lock), *(("rmdir", path) for path in (*directories[1:], desk.control.top))]
    for command, path in told:
        if command == "rm":
            files.delete_file(path)
        else:
            assert files.remove_empty(path)
    assert desk.compact().code is Exit.DONE
