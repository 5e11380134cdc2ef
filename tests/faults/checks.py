"""What must hold after a fault, at once and after the next command. pyarrow reads the rows from copies."""

from __future__ import annotations

from collections import Counter
from typing import List

from faults.scenarios import Point, Scenario
from hivekeeper.codes import Exit
from support.desk import Desk
from support.real_world import Picture, RealWorld


def originals(world: RealWorld, unit: str) -> List[str]:
    return [row for row in world.written if row.startswith(f"events/{unit}/")]


def require_rows_are_somewhere(world: RealWorld, seen: Picture) -> None:
    """At every instant: no reader sees a row twice, and a unit's rows are together in live or in one of our directories."""
    assert not [row for row, count in seen.rows.items() if count > 1], "readers see a row twice"
    arrived = set(world.written)
    for unit in world.units:
        wanted = set(originals(world, unit))
        arrived -= wanted
        assert any(wanted <= set(rows) for rows in (seen.live[unit], *seen.held.values())), f"rows of {unit!r} are not together"
    for row in arrived:
        times = sum(rows[row] for rows in (*seen.live.values(), *seen.held.values()))
        # Set aside in `recreated`, which readers do not see either, on its way back to live.
        assert times == 1 or (times == 0 and any("/recreated/" in path for path in seen.unproved)), f"{row!r} is there {times} times"


def require_settled(world: RealWorld, seen: Picture, scenario: Scenario) -> None:
    """Live holds every row once, each backup holds all that left live, and nothing unfinished is left.

    A row that came into a backup late goes to live when that backup is cleaned up; a cleanup killed before it began leaves it there.
    """
    subcommand = scenario.subcommand
    units = [set(originals(world, unit)) for unit in world.units]
    late = set(world.written).difference(*units) if subcommand == "cleanup" else set()
    waiting = Counter(row for rows in seen.held.values() for row in rows if row in late)
    assert seen.rows + waiting == world.written
    backups = {place: set(rows) - late for place, rows in seen.held.items()}
    assert all(rows in units for rows in backups.values()), f"a backup is not whole: {backups}"
    assert not [place for place in backups if "/restoring/" in place or "/held/" in place]
    assert seen.unproved == []
    for unit, rows in zip(world.units, units):
        is_compacted = seen.files[unit] <= 2
        kept = sum(1 for backup in backups.values() if backup == rows)
        if subcommand == "compact-swap":
            assert kept in scenario.kept[is_compacted], f"{unit!r}: {kept} backups of {seen.files[unit]} files"
        if subcommand == "rollback":
            assert kept == 1, f"{unit!r}: {kept} backups"


def require_backup_tables_show_backups(world: RealWorld) -> None:
    """No backup table is left behind over live, and none shows what does not exist."""
    for name, table in world.tables().items():
        if name != world.events.full_name:
            shown = [one.location for one in world.partitions(name).values()] if table.partitioned else [table.location]
            assert all("/.hivekeeper" in place and world.storage.exists(place) for place in shown), f"{name} shows {shown}"


def settle(desk: Desk, point: Point) -> str:
    """Run the next command in a new process; returns what became of the killed one."""
    desk.world.revive()
    result = desk.recover()
    assert result.code is Exit.DONE, result.tables[0].problem
    require_settled(desk.world, desk.world.picture(), point.scenario)
    require_backup_tables_show_backups(desk.world)
    outcomes = [f"{count} {outcome.text}" for _, counts in result.tables[0].recovered for outcome, count in counts.items()]
    return ", ".join(outcomes) or "nothing was left to do"
