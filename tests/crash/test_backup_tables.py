"""Backup tables when the metastore fails for one call or a whole night: a later run corrects them from the log."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, Tuple

import pytest

from hivekeeper.codes import Exit
from hivekeeper.ports import MetastoreUnavailable
from support.builders import a_table
from support.desk import Desk, outcomes
from support.world import World

SHAPES: Mapping[str, Mapping[str, List[int]]] = {
    "flat": {"": [1000] * 3},
    "partitioned": {"dt=1": [1000] * 3, "dt=2": [1000] * 3, "dt=3": [1000]},
}
Act = Callable[[Desk], Any]


def compact_all(desk: Desk) -> None:
    """One of two partitions is given up, so the backup table has to stop showing it."""
    waiting = [f"{desk.live('dt=2')}/_temporary"] if desk.world.table(desk.table).partitioned else []
    others = desk.world.files.before_step

    def begin_to_write(step: str) -> None:
        if others:
            others(step)
        if waiting and "/retired/" in step:
            desk.world.files.writer.make_directory(waiting.pop())

    desk.world.files.before_step = begin_to_write
    found = set(outcomes(desk.compact()).values())
    desk.world.files.before_step = others
    assert found == ({"swapped", "given-up"} if desk.world.table(desk.table).partitioned else {"swapped"})


def take_record(desk: Desk) -> None:
    assert desk.backup().code is Exit.DONE


def compact_with_record(desk: Desk) -> None:
    take_record(desk)
    compact_all(desk)


def pin_record_and_compact(desk: Desk) -> None:
    compact_with_record(desk)
    desk.pin(desk.runs[0])


def kill_in_swap(desk: Desk) -> None:
    desk.kill_before(["rename", "/ready/", desk.live()], desk.compact)


SITUATIONS: Dict[str, Tuple[Act, Act]] = {
    "compact-swap": (lambda _desk: None, compact_all),
    "compact-swap, on a record": (take_record, compact_all),
    "rollback": (compact_all, Desk.rollback),
    "rollback, on a record": (compact_with_record, Desk.rollback),
    "cleanup": (compact_all, Desk.cleanup),
    "cleanup, on a pinned record": (pin_record_and_compact, Desk.cleanup),
    "recover": (kill_in_swap, Desk.recover),
}


def a_desk(shape: str) -> Desk:
    world = World()
    units = SHAPES[shape]
    world.add_table(a_table([] if "" in units else ["dt"]), units)
    return Desk(world)


def shown(desk: Desk) -> Dict[str, Dict[str, str]]:
    """Where each backup table's readers look, by partition."""
    found = {}
    for name, table in desk.world.tables().items():
        if name != desk.table:
            places = {one.name: one.location for one in desk.world.partitions(name).values()}
            found[name] = places if table.partitioned else {"": table.location}
    return found


def let_metastore_fail(desk: Desk, done: bool) -> List[str]:
    """Make every call that changes an existing backup table fail; returns the failed calls."""
    failed: List[str] = []

    def fail(step: str) -> None:
        method = step.partition(" ")[0]
        if method in ("metastore.point_backup_table", "metastore.trim_backup_table", "metastore.drop_backup_table"):
            desk.world.metastore.fail_next(method.partition(".")[2], MetastoreUnavailable("timeout"), done)
            failed.append(method)

    desk.world.files.before_step = fail
    return failed


@pytest.mark.parametrize("done", [False, True], ids=["not done", "done all the same"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("situation", SITUATIONS)
def test_what_the_metastore_did_not_do_for_a_backup_table_a_later_run_does(situation, shape, done):
    prepare, command = SITUATIONS[situation]
    undisturbed = a_desk(shape)
    prepare(undisturbed)
    command(undisturbed)
    desk = a_desk(shape)
    prepare(desk)
    before = shown(desk)
    failed = let_metastore_fail(desk, done)
    command(desk)
    desk.recover()
    # On the second night the metastore works again.
    desk.world.files.before_step = None
    assert failed or before == shown(undisturbed)
    assert desk.recover().code is Exit.DONE
    assert shown(desk) == shown(undisturbed)
    told = list(desk.world.catalog.events)
    assert desk.recover().code is Exit.DONE
    assert desk.world.catalog.events == told, "the third night there is nothing left to do"
