"""What moves or reads no rows starts no Spark application: no place in a queue, and an answer in seconds."""

from __future__ import annotations

from typing import Any, List

from hivekeeper.codes import Exit
from support.builders import a_table
from support.desk import Desk
from support.fakes.rows import FakeRows
from support.world import World

# Footers are read on the driver.
ON_THE_DRIVER = {"footers"}


class Witness(FakeRows):
    """Remembers what it was asked for."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.asked: List[str] = []

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if callable(found) and not name.startswith("_"):
            self.asked.append(name)
        return found


def build() -> tuple[World, Witness]:
    world = World()
    witness = Witness(world.files)
    world.cluster = world.cluster_of(world.files, world.metastore, witness)
    world.add_table(a_table(["dt"]), {"dt=1": [1000] * 3, "dt=2": [1000] * 3})
    return world, witness


def test_only_what_reads_rows_asks_for_more_than_footers():
    world, rows = build()
    desk = Desk(world)

    def asked_by(command: Any) -> set[str]:
        rows.asked.clear()
        assert command().code is Exit.DONE
        return set(rows.asked)

    for command in (desk.analyze, desk.backup, lambda: desk.compact(dry_run=True)):
        assert asked_by(command) <= ON_THE_DRIVER
    assert {"warm_up", "write_stage", "read_stage"} <= asked_by(desk.compact)
    swapped = desk.runs[-1]
    assert asked_by(desk.compact) <= ON_THE_DRIVER, "a night without work"
    assert {"warm_up", "digests"} <= asked_by(desk.verify)
    for command in (
        desk.history,
        lambda: desk.verify(level="count"),
        lambda: desk.pin(swapped),
        lambda: desk.pin(swapped, pinned=False),
        desk.rollback,
        desk.recover,
        desk.cleanup,
    ):
        assert asked_by(command) <= ON_THE_DRIVER
