"""A tenant exchanges the control directory just before a rollback of joined files writes the file that has them again, for one in which
another one's directory, which they may rename but not write into, has the path of the stage.
"""

from __future__ import annotations

from hivekeeper import names
from support.builders import a_table
from support.fakes.rows import DataFile
from support.joined_desk import a_desk

THEIRS = "hdfs://nn/warehouse/sales/salaries"


def test_no_restored_file_is_written_into_another_tables_directory():
    desk = a_desk()
    desk.world.add_table(a_table((), name="salaries"), {"": []})
    desk.world.files.writer.add(f"{THEIRS}/000000_0", DataFile(("true",)), 10)
    theirs = desk.world.files.namespace.directory(THEIRS)
    desk.compact()
    writer, done = desk.world.files.writer, []

    def act(what):
        word, _, path = what.partition(" ")
        if word == "write_restored" and not done:
            done.append(path)
            writer.rename_into(desk.control.top, f"{desk.live()}/.aside")
            writer.make_directory(names.parent(names.parent(path)))
            writer.rename_into(THEIRS, names.parent(path))

    desk.world.files.before_step = act
    desk.rollback()
    desk.world.files.before_step = None
    assert done, "no such step"
    assert {name: node.content.rows for name, node in theirs.children.items()} == {"000000_0": ("true",)}
