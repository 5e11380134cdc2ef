"""The commands as an operator types them, on an in-memory world: run ids count up, nothing asks for confirmation."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any, Callable, List, Optional, Sequence

from hivekeeper import names
from hivekeeper.commands import analyze, backup, cleanup, compact_swap, forget, history, pin, recover, rollback, verify
from hivekeeper.commands.context import Context
from hivekeeper.config.settings import Settings
from hivekeeper.model import Selection
from hivekeeper.names import ControlPaths
from hivekeeper.ports import Cluster
from hivekeeper.report.results import CommandResult
from hivekeeper.runlog import store
from support.builders import a_table
from support.contexts import a_context
from support.fakes.files import Killed
from support.world import World

EVERYTHING = Settings(min_age_ms=0)


class Desk:
    """One table, `sales.events` by default, and the commands on it."""

    def __init__(self, world: World, table: str = "sales.events", **settings: Any) -> None:
        self.world = world
        self.table = table
        self.settings = Settings(**{"min_quiet_ms": 0, "read_by_llap": False, **settings})
        self.runs: List[str] = []
        self.asked: List[object] = []
        self.run_key = ""

    @property
    def control(self) -> ControlPaths:
        stored = self.world.table(self.table)
        return ControlPaths.of(stored.location, stored.partitioned)

    def live(self, unit: str = "") -> str:
        location = self.world.table(self.table).location
        return names.join(location, unit) if unit else location

    def compact(self, where: Optional[str] = None, dry_run: bool = False, cluster: Optional[Cluster] = None) -> CommandResult:
        context = self._context(where, dry_run=dry_run)
        return compact_swap.compact_swap(replace(context, cluster=cluster) if cluster else context)

    def analyze(self) -> CommandResult:
        return analyze.analyze(self._context())

    def backup(self, where: Optional[str] = None) -> CommandResult:
        return backup.back_up(self._context(where))

    def verify(self, against: Optional[str] = None, level: str = "digest", where: Optional[str] = None) -> CommandResult:
        return verify.verify(self._context(where), against, level)

    def rollback(self, undo: Optional[str] = None, where: Optional[str] = None, yes: bool = True, dry_run: bool = False) -> CommandResult:
        def confirm(planned: object) -> bool:
            self.asked.append(planned)
            return yes

        return rollback.rollback(self._context(where, dry_run=dry_run, confirm=confirm), undo)

    def cleanup(self, rules: Settings = EVERYTHING, how: str = "delete", dry_run: bool = False, former: bool = False) -> CommandResult:
        return cleanup.clean_up(self._context(settings=replace(rules, discard=how), dry_run=dry_run, former_tables=former))

    def forget(self, dry_run: bool = False) -> CommandResult:
        return forget.forget(self._context(dry_run=dry_run))

    def history(self, files_of: Optional[str] = None, at: Optional[int] = None, where: Optional[str] = None, **more: bool) -> CommandResult:
        return history.show_history(self._context(where), history.View(files_of, at, **more))

    def pin(self, run: str, pinned: bool = True) -> CommandResult:
        return pin.pin(self._context(), run, pinned)

    def recover(self, cluster: Optional[Cluster] = None) -> CommandResult:
        return recover.recover(replace(self._context(), cluster=cluster or self.world.cluster))

    def append(self, unit: str, *rows: str) -> None:
        """Add one file for each row, then an hour of quiet."""
        for row in rows:
            self.world.add_file(f"{self.live(unit)}/{row}.parquet", [row])
        self.world.files.namespace.advance(3_600_000)

    def kill_before(self, words: Sequence[str], command: Callable[[], object]) -> None:
        """Kill a command just before the first step that contains all these words."""

        def die(what: str) -> None:
            if all(word in what for word in words):
                self.world.files.die_after(0)

        self.world.files.before_step = die
        with suppress(Killed):
            command()
            raise AssertionError(f"no step names {words}")
        self.world.files.before_step = None
        self.world.files.revive()
        self.world.files.expire_locks()

    def log(self) -> Any:
        return store.read_history(self.world.cluster, self.control)

    def run_directories(self) -> List[str]:
        return store.find_runs(self.world.files, self.control)

    def _context(self, where: Optional[str] = None, settings: Optional[Settings] = None, **more: Any) -> Context:
        selected = Selection(tables=(self.table,), where=where)
        return a_context(self.world.cluster, selected, self._new_run(), settings or self.settings, run_key=self.run_key, **more)

    def _new_run(self) -> str:
        """Run ids one second apart, with the hundreds as days, so that backup table names differ too."""
        number = len(self.runs)
        self.runs.append(f"202601{1 + number // 3600:02d}t02{number // 60 % 60:02d}{number % 60:02d}z-0000")
        return self.runs[-1]


class DatedDesk(Desk):
    """A desk whose run ids tell the time of the world, by which runs know what the ones before them have tidied."""

    def _new_run(self) -> str:
        self.world.files.namespace.advance(1000)
        now = datetime.fromtimestamp(self.world.clock.now_ms() / 1000, timezone.utc)
        # A compaction gives the cleanup after it the next salt.
        self.runs.append(names.run_id(now, f"{2 * len(self.runs):04x}"))
        return self.runs[-1]


def outcomes(result: CommandResult) -> Any:
    """Outcome by unit; of the last step if a unit has several."""
    return {unit.name: unit.outcome.code for unit in result.tables[0].units}


def desk_by(by: Sequence[str], **settings: Any) -> Desk:
    """For a table of small files, in two partitions or in none."""
    world = World()
    world.add_table(a_table(by, create_time=5), {"dt=1": [1000] * 3, "dt=2": [1000] * 2} if by else {"": [1000] * 3})
    return Desk(world, **settings)
