"""The words of a command where the driver runs on YARN: Spark quotes them for the script that a NodeManager writes, and the NodeManager
replaces parts of them first.
"""

from __future__ import annotations

import shlex
import subprocess

import pytest

from hivekeeper.launch import driver_words
from support.builders import a_table
from support.desk import Desk
from support.world import World

pytestmark = pytest.mark.jvm


def run_as_yarn_does(gateway, words, directory):
    """The launcher, Spark's Client, ContainerLaunch.expandEnvironment and UnixShellScriptBuilder.command, in this order."""
    carried = driver_words.carry(words)
    words = [driver_words.CARRIED_WORDS, carried] if carried else words
    escape = gateway.jvm.org.apache.spark.deploy.yarn.YarnSparkHadoopUtil.escapeForShell
    command = " ".join(["printf", "'%s\\n'", *(escape(word) for word in words)])
    for left, right in (("<LOG_DIR>", "/logs"), ("<CPS>", ":"), ("{{", "$"), ("}}", "")):
        command = command.replace(left, right)
    script = f'exec /bin/bash -c "{command}"'
    done = subprocess.run(["bash", "-c", script], cwd=str(directory), check=False, stdout=subprocess.PIPE)
    return driver_words.unpack(done.stdout.decode().splitlines())


@pytest.mark.parametrize("name", ["e`touch ran`", "e{{(touch ran)}}", "ord}}ers"])
def test_a_name_in_a_command_to_copy_is_one_word_for_the_driver_on_yarn(gateway, tmp_path, name):
    """Hive 4 allows such names of tables, which their owners choose."""
    world = World()
    world.add_table(a_table(name=name), {"": [1000] * 3})
    desk = Desk(world, table=f"sales.{name}")
    desk.compact()
    (table,) = desk.rollback("20200101t000000z-0000").tables
    words = shlex.split(table.problem.next.partition(" lists")[0])
    assert words == ["hivekeeper", "history", "--table", f"sales.{name}"]
    told = run_as_yarn_does(gateway, words[1:], tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert told == words[1:]


@pytest.mark.parametrize(
    "value", ["a`touch ran`", "a{{(touch ran)}}", "a}}", "a\\", "a$HOME", "<LOG_DIR>", "<CPS>", "a\nb", "a'b", 'a"b', "漢"]
)
def test_a_condition_that_leaves_out_a_partition_is_one_word_for_the_driver_on_yarn(gateway, tmp_path, value):
    """Many a refusal says: leave the unit out with `--where`. Any Hive allows such values."""
    words = ["compact-swap", "--table", "sales.events", "--where", f"dt <> '{value}'"]
    told = run_as_yarn_does(gateway, words, tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert told == words
