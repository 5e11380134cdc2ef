"""Random sequences of every subcommand, of writers and of kills, against a model of the table's rows."""

from __future__ import annotations

from collections import Counter
from typing import Dict, Optional, Set

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, precondition, rule

from builders import PARQUET, a_partition, a_table
from desk import EVERYTHING, Desk, outcomes
from hivekeeper import names
from hivekeeper.errors import Exit
from hivekeeper.plan.eligible import BACKUP_OF
from hivekeeper.plan.retention import Policy
from twins.files import Killed
from twins.rows import DataFile
from world import World

UNITS = ["dt=1", "dt=2", "dt=3"]
HOUR_MS = 3_600_000
POLICIES = [EVERYTHING, Policy(0, keep_last=1), Policy(0, older_than_ms=12 * HOUR_MS), Policy(24 * HOUR_MS)]
FINE = {Exit.DONE, Exit.PARTIAL, Exit.REFUSED}


class Table(RuleBasedStateMachine):
    """A partitioned table. `rows` is what readers must see, by unit; a dropped partition has no entry.

    `replaced` are the units that somebody ever overwrote or dropped: only these may verify find different, when a rollback
    has brought a run into force that was before it.
    """

    runs = Bundle("runs")

    def __init__(self) -> None:
        super().__init__()
        world = World()
        world.add_table(a_table(["dt"]), {unit: [1000] * 3 for unit in UNITS})
        self.desk = Desk(world)
        self.rows: Dict[str, Counter] = {unit: world.rows_below(self.desk.live(unit)) for unit in UNITS}
        self.replaced: Set[str] = set()
        self.count = 0
        self.killed = False

    @property
    def world(self) -> World:
        return self.desk.world

    def new_row(self) -> str:
        self.count += 1
        return f"row {self.count}"

    # ---- writers and time

    @rule(unit=st.sampled_from(UNITS), name=st.sampled_from(["", "part-00000.parquet", "part-00001.parquet"]), files=st.integers(1, 3))
    def append(self, unit: str, name: str, files: int) -> None:
        for _ in range(files if unit in self.rows else 0):
            row = self.new_row()
            path = f"{self.desk.live(unit)}/{name}"
            taken = self.world.files.namespace.find(path) is not None
            self.world.add_file(path if name and not taken else f"{self.desk.live(unit)}/{row.replace(' ', '-')}.parquet", [row])
            self.rows[unit][row] += 1

    @rule(unit=st.sampled_from(UNITS))
    def mark_success(self, unit: str) -> None:
        """As Spark's and MapReduce's committers do, over the one that is there."""
        path = f"{self.desk.live(unit)}/_SUCCESS"
        if unit in self.rows:
            if self.world.files.namespace.find(path) is not None:
                self.world.files.writer.delete(path)
            self.world.add_file(path, (), 0)

    @rule(unit=st.sampled_from(UNITS), whole=st.booleans())
    def overwrite(self, unit: str, whole: bool) -> None:
        if unit not in self.rows:
            return
        live, row = self.desk.live(unit), self.new_row()
        if whole:
            self.world.files.writer.overwrite(live, {f"{row.replace(' ', '-')}.parquet": DataFile(rows=(row,))})
        else:
            for entry in list(self.world.files.namespace.find(live).children):
                self.world.files.writer.delete(f"{live}/{entry}")
            self.world.add_file(f"{live}/part-00000.parquet", [row])
        self.rows[unit] = Counter([row])
        self.replaced.add(unit)

    @rule(unit=st.sampled_from(UNITS), purge=st.booleans())
    def drop(self, unit: str, purge: bool) -> None:
        if unit in self.rows:
            self.world.catalog.drop_partition(self.desk.table, unit)
            if purge:
                self.world.files.writer.delete(self.desk.live(unit))
            del self.rows[unit]
            self.replaced.add(unit)

    @rule(unit=st.sampled_from(UNITS))
    def make_again(self, unit: str) -> None:
        if unit in self.rows:
            return
        self.world.files.writer.make_directory(self.desk.live(unit))
        self.world.catalog.add_partition(self.desk.table, a_partition(unit, self.desk.live(unit), PARQUET))
        row = self.new_row()
        self.world.add_file(f"{self.desk.live(unit)}/{row.replace(' ', '-')}.parquet", [row])
        self.rows[unit] = self.world.rows_below(self.desk.live(unit))

    @rule(hours=st.sampled_from([1, 12, 48]))
    def wait(self, hours: int) -> None:
        self.world.files.namespace.advance(hours * HOUR_MS)

    @precondition(lambda self: not self.killed)
    @rule(steps=st.integers(0, 45), at_once=st.booleans())
    def arm_a_kill(self, steps: int, at_once: bool) -> None:
        """The next command dies after so many changes, if it makes so many."""
        self.world.files.die_after(steps, at_once)
        self.killed = True

    # ---- commands

    def run(self, command, *words, allowed=FINE, **more):
        """A command, and recovery if it was killed; None where it was."""
        try:
            result = command(*words, **more)
        except Killed:
            result = None
        if self.killed:
            self.world.files.revive()
            self.world.files.expire_locks()
            self.killed = False
        if result is None:
            self.require_rows_somewhere()
            assert self.desk.recover().code is Exit.DONE
        else:
            assert result.code in allowed, result.tables[0]
        return result

    def require_rows_somewhere(self) -> None:
        everywhere = Counter(row for content in self.world.picture().values() if isinstance(content, DataFile) for row in content.rows)
        wanted = sum(self.rows.values(), Counter())
        assert not wanted - everywhere, "rows are nowhere"

    @rule(target=runs)
    def compact(self) -> str:
        result = self.run(self.desk.compact)
        return self.desk.runs[-1] if result is not None else self.desk.runs[-2]

    @rule(target=runs)
    def backup(self) -> str:
        result = self.run(self.desk.backup)
        return self.desk.runs[-1] if result is not None else self.desk.runs[-2]

    @rule(run=st.one_of(st.none(), runs), level=st.sampled_from(["count", "digest", "rows"]))
    def verify(self, run: Optional[str], level: str) -> None:
        result = self.run(self.desk.verify, run, level, allowed=FINE | {Exit.DIFFERENT})
        if result is not None and run is None:
            differing = {unit for unit, outcome in outcomes(result).items() if outcome == "differs"}
            assert differing <= self.replaced, "verify sees a difference where nobody overwrote anything"

    @rule(target=runs, run=st.one_of(st.none(), runs), unit=st.one_of(st.none(), st.sampled_from(UNITS)))
    def rollback(self, run: Optional[str], unit: Optional[str]) -> str:
        result = self.run(self.desk.rollback, run, where=f"dt = '{unit[3:]}'" if unit else None)
        return self.desk.runs[-1] if result is not None else self.desk.runs[-2]

    @rule(policy=st.sampled_from(POLICIES), how=st.sampled_from(["delete", "trash"]), dry_run=st.booleans())
    def cleanup(self, policy: Policy, how: str, dry_run: bool) -> None:
        self.run(self.desk.cleanup, policy, how, dry_run)

    @rule(run=runs, pinned=st.booleans())
    def pin(self, run: str, pinned: bool) -> None:
        self.run(self.desk.pin, run, pinned)

    @rule(run=consumes(runs))
    def history(self, run: str) -> None:
        self.run(self.desk.history)
        self.run(self.desk.history, run)
        for version in range(self.desk.log().next_version):
            self.run(self.desk.history, at=version, allowed={Exit.DONE})

    @rule()
    def recover(self) -> None:
        self.run(self.desk.recover)

    # ---- what must hold

    @invariant()
    def readers_see_every_row_once(self) -> None:
        if not self.killed:
            for unit, rows in self.rows.items():
                assert self.world.rows_below(self.desk.live(unit)) == rows, unit
            assert set(self.world.catalog.partitions[self.desk.table]) == set(self.rows)

    @invariant()
    def backup_tables_are_marked_and_show_directories_of_ours_or_live_ones(self) -> None:
        for name, table in self.world.catalog.tables.items():
            if name == self.desk.table or self.killed:
                continue
            assert table.parameters[BACKUP_OF] == self.desk.table
            for partition in self.world.catalog.partitions[name].values():
                ours = partition.location.startswith(self.desk.control.top + "/")
                assert partition.location == self.desk.live(partition.name) or ours
                assert not ours or self.world.files.namespace.find(partition.location) is not None

    def teardown(self) -> None:
        self.world.files.revive()
        self.world.files.expire_locks()
        for run in self.desk.log().pinned if self.world.files.namespace.find(self.desk.control.top) else ():
            self.desk.pin(run, pinned=False)
        self.world.files.namespace.advance(HOUR_MS)
        assert self.desk.cleanup().code is Exit.DONE
        assert self.desk.run_directories() == []
        assert list(self.world.catalog.tables) == [self.desk.table]
        left = {names.base(path) for path in self.world.files.contents(self.desk.control.top) if "/log/" not in path}
        assert left <= {"lock"}


TestEverything = Table.TestCase
TestEverything.settings = settings(max_examples=80, stateful_step_count=30, deadline=None)
