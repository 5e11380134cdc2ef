"""A superuser's killed run has given its copies to the table's owner. Who runs from now on may rename these directories, but not delete
what lies in them: that takes the right to write to them.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from hivekeeper import names
from hivekeeper.codes import Exit
from hivekeeper.ports import NoPermission
from hivekeeper.runlog import store
from support.desk import EVERYTHING, desk_by, outcomes

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


def give_to_superuser(desk):
    """All of a run, which that user has begun. Who runs from now on may list what is in it, and rename its directory."""
    files, space = desk.world.files, desk.world.files.namespace
    for _, node in space.walk(desk.control.runs):
        node.attributes = replace(node.attributes, owner="hdfs", mode=0o755)

    def allowed_only(change):
        def try_to(path, *more):
            around = space.find(names.parent(path))
            if around is not None and around.attributes.owner == "hdfs":
                raise NoPermission(f"{path}: permission denied")
            return change(path, *more)

        return try_to

    for method in ("delete_tree", "delete_file", "remove_empty"):
        setattr(files, method, allowed_only(getattr(files, method)))


@pytest.mark.parametrize("moment", ["before its plan", "taken over while it staged"])
def test_nor_does_a_run_without_a_plan_keep_the_table_from_being_worked_on(caplog, moment):
    desk = desk_by(("dt",), backup_table=False, trusted_owners=("hdfs",))
    desk.kill_before(["/plan.json.part "] if moment == "before its plan" else STEPS["before its certificates"], desk.compact)
    # Who took it over has renamed that directory, with its plan.
    desk.world.files.namespace.delete(desk.control.run(desk.runs[0]).plan)
    give_to_superuser(desk)
    assert desk.recover().code is Exit.DONE
    assert "step=tidy left" in caplog.text
    result = desk.compact()
    assert (result.code, outcomes(result)["dt=1"]) == (Exit.DONE, "swapped")
    assert desk.verify().code is Exit.DONE


def test_nor_do_directories_of_finished_runs_stay_beside_it():
    """Each run and each cleanup left one for ever, with its plan, and every command looked at all of them."""
    desk = desk_by(("dt",), backup_table=False, trusted_owners=("hdfs",))
    desk.kill_before(["/plan.json.part "], desk.compact)
    give_to_superuser(desk)
    runs = desk.world.files.namespace.find(desk.control.runs)
    runs.attributes = replace(runs.attributes, owner="hive")
    for _ in range(3):
        desk.append("dt=1", "x", "y")
        assert outcomes(desk.compact())["dt=1"] == "swapped"
        assert desk.cleanup(replace(EVERYTHING, trusted_owners=("hdfs",))).code is Exit.DONE
    assert [store.run_of(name) for name in desk.run_directories()] == desk.runs[:1]


def test_but_it_does_if_its_plan_may_only_be_hidden():
    desk = desk_by(("dt",), backup_table=False, trusted_owners=("hdfs",))
    desk.compact()
    desk.append("dt=1", "x", "y")
    desk.kill_before(STEPS["in its gap"], desk.compact)
    own, space = desk.control.run(desk.runs[1]), desk.world.files.namespace
    space.delete(own.plan)
    give_to_superuser(desk)
    for unreadable in ([], [own.top]):
        space.unreadable.update(unreadable)
        assert desk.verify().code is Exit.LOCKED
    space.unreadable.clear()
    assert desk.recover().code is Exit.INVESTIGATE
