"""Random sequences of all subcommands, writers and kills, checked against a model of the table's rows."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from typing import Callable, Dict, Optional, Set

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, precondition, rule

from hivekeeper import names
from hivekeeper.codes import Exit
from hivekeeper.config.settings import Settings
from hivekeeper.names import BACKUP_OF
from hivekeeper.plan.untidy import choose_untidy
from hivekeeper.runlog import store
from hivekeeper.steps import finish
from support.builders import a_table
from support.desk import EVERYTHING, DatedDesk, Desk, outcomes
from support.fakes.files import Killed
from support.listings import tree
from support.world import World

UNITS = ["dt=1", "dt=2", "dt=3"]
HOUR_MS = 3_600_000
POLICIES = [
    EVERYTHING,
    Settings(min_age_ms=0, keep_latest_versions=1),
    Settings(min_age_ms=0, keep_for_ms=12 * HOUR_MS),
    Settings(min_age_ms=24 * HOUR_MS),
]
# What must have happened at least once over all lives.
OFTEN_ENOUGH = {"swapped": 200, "rolled-back": 60, "discarded": 40, "killed compact": 50, "killed rollback": 10, "killed cleanup": 10}
PASSED_OVER = "directories of runs that were not looked at"
FINE = {Exit.DONE, Exit.PARTIAL, Exit.REFUSED, Exit.LOCKED}


class Life(RuleBasedStateMachine):
    """A partitioned table in any world. `rows` is what readers must see, by unit; a dropped partition has no entry.

    `replaced` holds the units that were ever overwritten or dropped: only for these may verify find a difference, after a rollback
    has brought an earlier run back into force.
    """

    runs = Bundle("runs")

    def __init__(self, desk: Desk) -> None:
        super().__init__()
        self.desk, self.world = desk, desk.world
        self.rows: Dict[str, Counter] = {unit: self.world.rows_below(desk.live(unit)) for unit in UNITS}
        self.replaced: Set[str] = set()
        self.count = 0
        self.killed = False
        self.happened: Counter = Counter()

    def new_row(self) -> str:
        self.count += 1
        return f"row {self.count}"

    # ---- writers and time

    @rule(unit=st.sampled_from(UNITS), name=st.sampled_from(["", "part-00000.parquet", "part-00001.parquet"]), files=st.integers(1, 3))
    def append(self, unit: str, name: str, files: int) -> None:
        for _ in range(files if unit in self.rows else 0):
            row = self.new_row()
            path = names.join(self.desk.live(unit), name)
            is_free = name and self.world.files.stat(path) is None
            self.world.add_file(path if is_free else names.join(self.desk.live(unit), file_of(row)), [row])
            self.rows[unit][row] += 1

    @rule(unit=st.sampled_from(UNITS))
    def mark_success(self, unit: str) -> None:
        if unit in self.rows:
            self.world.mark_success(self.desk.live(unit))

    @rule(unit=st.sampled_from(UNITS), whole=st.booleans())
    def overwrite(self, unit: str, whole: bool) -> None:
        if unit in self.rows:
            row = self.new_row()
            self.world.overwrite(self.desk.live(unit), file_of(row) if whole else "part-00000.parquet", [row], whole)
            self.rows[unit] = Counter([row])
            self.replaced.add(unit)

    @rule(unit=st.sampled_from(UNITS), purge=st.booleans())
    def drop(self, unit: str, purge: bool) -> None:
        if unit in self.rows:
            self.world.drop_partition(self.desk.table, unit, purge)
            del self.rows[unit]
            self.replaced.add(unit)

    @rule(unit=st.sampled_from(UNITS))
    def make_again(self, unit: str) -> None:
        """Whatever was left in its directory when it was dropped is visible again."""
        if unit not in self.rows:
            self.world.make_partition(self.desk.table, unit)
            row = self.new_row()
            self.world.add_file(names.join(self.desk.live(unit), file_of(row)), [row])
            self.rows[unit] = self.world.rows_below(self.desk.live(unit))

    @rule(hours=st.sampled_from([1, 12, 48]))
    def wait(self, hours: int) -> None:
        self.world.wait(hours * HOUR_MS)

    @precondition(lambda self: not self.killed)
    @rule(steps=st.integers(0, 45), at_once=st.booleans())
    def arm_a_kill(self, steps: int, at_once: bool) -> None:
        """The next command dies after this many changes, if it makes as many."""
        self.world.die_after(steps, at_once)
        self.killed = True

    # ---- commands

    def run(self, command, *words, allowed=FINE, **more):
        """Run a command, and recover if it was killed; returns None in that case."""
        try:
            result = command(*words, **more)
        except Killed:
            result = None
        if self.killed:
            self.world.revive()
            self.killed = False
        if result is None:
            self.happened[f"killed {command.__name__}"] += 1
            self.require_rows_somewhere()
            assert self.desk.recover().code is Exit.DONE
        else:
            assert result.code in allowed, result.tables[0]
            self.happened.update(unit.outcome.code for unit in result.tables[0].units)
            self.happened.update(backup.state.code for backup in result.tables[0].backups)
        return result

    def require_rows_somewhere(self) -> None:
        wanted = sum(self.rows.values(), Counter())
        assert not wanted - self.world.rows_anywhere(), "rows are nowhere"

    @rule(target=runs, policy=st.one_of(st.none(), st.sampled_from(POLICIES)))
    def compact(self, policy: Optional[Settings]) -> str:
        """Followed by a cleanup if there is a policy."""
        rules = {name: getattr(policy, name) for name in ("min_age_ms", "keep_for_ms", "keep_latest_versions")} if policy else {}
        self.desk.settings = replace(self.desk.settings, cleanup_after=policy is not None, **rules)
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
    def cleanup(self, policy: Settings, how: str, dry_run: bool) -> None:
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
            assert set(self.world.partitions(self.desk.table)) == set(self.rows)

    @invariant()
    def backup_tables_are_marked_and_show_directories_of_ours_or_live_ones(self) -> None:
        for name, table in ({} if self.killed else self.world.tables()).items():
            if name == self.desk.table:
                continue
            assert table.parameters[BACKUP_OF] == self.desk.table
            for partition in self.world.partitions(name).values():
                ours = partition.location.startswith(self.desk.control.top + "/")
                assert partition.location == self.desk.live(partition.name) or ours
                assert not ours or self.world.files.stat(partition.location) is not None

    def teardown(self) -> None:
        self.world.revive()
        for run in self.desk.log().pinned:
            self.desk.pin(run, pinned=False)
        self.world.wait(HOUR_MS)
        assert self.desk.cleanup().code is Exit.DONE
        assert self.desk.run_directories() == []
        assert list(self.world.tables()) == [self.desk.table]
        control = self.desk.control
        left = [file.path for file in tree(self.world.files, control.top) if not file.is_dir]
        assert [path for path in left if names.parent(path) != control.log and path not in (control.lock, control.seal)] == []


def file_of(row: str) -> str:
    return f"{row.replace(' ', '-')}.parquet"


class LifeInMemory(Life):
    def __init__(self) -> None:
        world = World()
        world.add_table(a_table(["dt"]), {unit: [1000] * 3 for unit in UNITS})
        super().__init__(DatedDesk(world))

    def run(self, command, *words, **more):
        result = super().run(command, *words, **more)
        self.require_nothing_needless()
        return result

    def require_nothing_needless(self) -> None:
        """Looking through the directories of all runs finds nothing that the commands, which look through few, have left."""
        files, control, history = self.world.files, self.desk.control, self.desk.log()
        before = files.tree(control.top)
        looked_at = choose_untidy(history, {name: entry.mtime_ms for name, entry in store.list_runs(files, control).items()})
        self.happened[PASSED_OVER] += len(set(self.desk.run_directories()) - looked_at)
        finish.sweep_finished(files, control, history, every=True)
        assert files.tree(control.top) == before


TestEverything = LifeInMemory.TestCase
TestEverything.settings = settings(max_examples=80, stateful_step_count=30)


Move = Callable[[Life, random.Random], object]


def a_run(life: Life, chance: random.Random) -> Optional[str]:
    return chance.choice([None, *life.desk.runs])


MOVES: Dict[Move, int] = {
    lambda life, chance: life.append(chance.choice(UNITS), chance.choice(["", "part-00000.parquet"]), 2): 5,
    lambda life, chance: life.mark_success(chance.choice(UNITS)): 1,
    lambda life, chance: life.overwrite(chance.choice(UNITS), chance.random() < 0.5): 1,
    lambda life, chance: life.drop(chance.choice(UNITS), chance.random() < 0.5): 1,
    lambda life, _chance: [life.make_again(unit) for unit in UNITS]: 1,
    lambda life, _chance: life.wait(12): 1,
    lambda life, chance: life.arm_a_kill(chance.randint(0, 45), chance.random() < 0.5): 5,
    lambda life, chance: life.compact(chance.choice([None, None, None, *POLICIES[1:]])): 6,
    lambda life, _chance: life.backup(): 1,
    lambda life, chance: life.verify(a_run(life, chance), chance.choice(["count", "digest", "rows"])): 2,
    lambda life, chance: life.rollback(a_run(life, chance), chance.choice([None, *UNITS])): 5,
    lambda life, chance: life.cleanup(chance.choice(POLICIES), chance.choice(["delete", "trash"]), False): 3,
    lambda life, chance: life.pin(a_run(life, chance) or life.desk.runs[0], chance.random() < 0.5) if life.desk.runs else None: 1,
    lambda life, _chance: life.recover(): 1,
}


def live_on(life: Life, chance: random.Random, moves: int) -> None:
    """Make this many moves, drawn by weight, most of which change something. Check everything after each move, and at the end."""
    for move in chance.choices(list(MOVES), list(MOVES.values()), k=moves):
        move(life, chance)
        life.readers_see_every_row_once()
        life.backup_tables_are_marked_and_show_directories_of_ours_or_live_ones()
    life.teardown()


def test_no_row_is_lost_or_doubled_in_many_lives():
    """Hypothesis shrinks what it finds but prefers short, simple lives; these are long, with fixed seeds."""
    happened: Counter = Counter()
    for seed in range(150):
        life = LifeInMemory()
        live_on(life, random.Random(seed), moves=30)
        happened += life.happened
    often_enough = {**OFTEN_ENOUGH, PASSED_OVER: 100}
    rare = {what: happened[what] for what in often_enough if happened[what] < often_enough[what]}
    assert not rare, f"too seldom to prove anything: {rare}"
