"""A message's command has names that are quoted for a shell: if its text were cut, a quotation could end where the name goes on."""

from __future__ import annotations

import shlex
import subprocess

import pytest

from hivekeeper.codes import Exit
from hivekeeper.reasons import Code
from hivekeeper.report import properties, screen
from support.builders import a_table
from support.desk import Desk
from support.hive_statements import Hive
from support.world import World


def carry_out(calls):
    for _ in calls:
        pass


def tell_left_behind(place):
    """What the operator gets to see once a tenant has renamed a table of their own that lies there, and moved its files."""
    world = World()
    world.add_table(a_table((), kind="MANAGED_TABLE", create_time=5, location=f"{place}/events"), {"": [1000] * 3})
    assert Desk(world, backup_table=False).compact().code is Exit.DONE
    carry_out(Hive(world).rename_table("sales.events", "sales.events2"))
    world.files.namespace.advance(3_600_001)
    result = Desk(world, "sales.events2", backup_table=False).compact()
    assert result.tables[0].problem.code is Code.LEFT_BEHIND
    return result


def assert_nothing_runs(text, directory):
    subprocess.run(["bash", "-c", f"hdfs() {{ :; }}; {text}"], cwd=str(directory), check=False, stderr=subprocess.DEVNULL)
    assert list(directory.iterdir()) == [], text[-120:]


def properties_of(result):
    return dict(line.partition("=")[::2] for line in properties.render(result).splitlines())


@pytest.mark.parametrize("depth", range(5))
def test_a_command_to_copy_runs_nothing_that_a_name_in_it_says(depth, tmp_path):
    """Everybody knows the text of the message, so where it would be cut, as just behind the apostrophe of a directory's name."""
    above = "/".join(["hdfs://nn/users/mallory", *["p" * 200] * depth])
    whole = 0
    for blanks in range(60):
        place = f"{above}/'; {' ' * blanks}touch ran #"
        result = tell_left_behind(place)
        told = result.tables[0].problem
        assert told.next in screen.render(result)
        in_properties = properties_of(result)["hivekeeper.next"]
        for following in (told.next, told.shortened().next, in_properties.replace("\\\\", "\\")):
            command, _, _ = following.partition(", then: ")
            assert_nothing_runs(command, tmp_path)
            if command.startswith("hdfs "):
                assert shlex.split(command) == ["hdfs", "dfs", "-mv", f"{place}/.hivekeeper-events", f"{place}/.hivekeeper-events2"]
                whole += 1
            else:
                assert "docs/runbook.md" in command
                assert "'" not in command
                assert "touch" not in command
    assert (whole > 0) == (depth < 2)
