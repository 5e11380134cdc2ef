"""The command in the answer of a recovery that does not understand a run's directory, as an operator copies it."""

from __future__ import annotations

from hivekeeper.reasons import Code
from support.builders import a_table
from support.desk import Desk
from support.world import World


def test_a_table_s_name_in_the_command_for_unknown_files_is_one_word_of_a_shell():
    world = World()
    world.add_table(a_table(["dt"], name="events;id", create_time=5), {"dt=1": [1000] * 3})
    desk = Desk(world, "sales.events;id")
    desk.kill_before(["rename_exact", "/retired/"], desk.compact)
    (directory,) = desk.run_directories()
    world.files.writer.add(f"{desk.control.run(directory).top}/stranger", "x")
    (table,) = desk.recover().tables
    assert table.problem.code is Code.UNKNOWN_FILES
    assert table.problem.next.endswith("then run: hivekeeper recover --table 'sales.events;id'")
