"""A superuser's killed run has given its copies to the table's owner. Who runs from now on may rename these directories, but not delete
what lies in them: that takes the right to write to them.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from hivekeeper.codes import Exit
from hivekeeper.ports import NoPermission
from support.desk import desk_by, outcomes

STEPS = {
    "before its certificates": ["/certificates-1.jsonl.part "],
    "before the first swap": ["/retired/u00001"],
    "in its gap": ["/ready/u00001 hdfs"],
    "after the first swap": ["/retired/u00002"],
}


def give_to_their_owner(desk):
    """All copies, as a superuser does; nobody else may write to them."""
    files, space = desk.world.files, desk.world.files.namespace
    for path, node in space.walk(desk.control.top):
        if node.is_dir and ("/ready/u" in path or "/stage/b00001/_" in path):
            node.attributes = replace(node.attributes, owner="tenant", mode=0o755)
    delete_tree = files.delete_tree

    def delete_where_allowed(path):
        closed = (place for place, node in space.walk(path) if node.is_dir and node.children and node.attributes.owner == "tenant")
        found = space.find(path)
        place = path if found is not None and found.children and found.attributes.owner == "tenant" else next(closed, "")
        if place:
            raise NoPermission(f"{place}: permission denied")
        delete_tree(path)

    files.delete_tree = delete_where_allowed


# A table without partitions has no second swap.
CASES = [(step, columns) for step in STEPS for columns in ((), ("dt",)) if columns or step != "after the first swap"]


@pytest.mark.parametrize(("step", "columns"), CASES)
def test_they_stay_aside_and_the_table_is_worked_on(caplog, step, columns):
    desk = desk_by(columns, backup_table=False)
    before = desk.world.rows_of(desk.table)
    desk.kill_before(STEPS[step], desk.compact)
    give_to_their_owner(desk)
    assert desk.recover().code is Exit.DONE
    assert ("step=tidy" in caplog.text) is (step != "in its gap" or bool(columns))
    assert desk.world.rows_of(desk.table) == before
    desk.append("dt=1" if columns else "", "x", "y")
    result = desk.compact()
    assert (result.code, outcomes(result)["dt=1" if columns else ""]) == (Exit.DONE, "swapped")
    # One of them has become a backup, which a cleanup may delete no more than those of the tenant's own files (docs/permissions.md).
    assert desk.cleanup().code is (Exit.PARTIAL if step == "in its gap" else Exit.DONE)
    assert desk.recover().code is Exit.DONE
