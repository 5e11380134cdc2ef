"""The commands as an operator types them, on a world in memory: run ids count up, nobody is asked."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any, Callable, List, Optional, Sequence

from hivekeeper import names
from hivekeeper.commands import analyze, backup, cleanup, compact_swap, history, pin, recover, rollback, verify
from hivekeeper.config.settings import Settings
from hivekeeper.model import Selection
from hivekeeper.names import ControlPaths
from hivekeeper.ports import Cluster
from hivekeeper.report.results import CommandResult
from hivekeeper.runlog import store
from support.fakes.files import Killed
from support.world import World

PREFIX = "__bkp_"
EVERYTHING = Settings(min_age_ms=0)


class Desk:
    """One table, `sales.events` if none is named, and the commands on it."""

    def __init__(self, world: World, table: str = "sales.events", **settings: Any) -> None:
        self.world = world
        self.table = table
        self.settings = Settings(**{"min_quiet_ms": 0, **settings})
        self.runs: List[str] = []
        self.asked: List[object] = []

    @property
    def control(self) -> ControlPaths:
        stored = self.world.table(self.table)
        return ControlPaths.of(stored.location, stored.partitioned)

    def live(self, unit: str = "") -> str:
        location = self.world.table(self.table).location
        return names.join(location, unit) if unit else location

    def compact(self, where: Optional[str] = None, dry_run: bool = False, cluster: Optional[Cluster] = None) -> CommandResult:
        request = compact_swap.Request(self._selected(where), self._settings_for, PREFIX, self._new_run(), dry_run)
        return compact_swap.compact_swap(cluster or self.world.cluster, request)

    def analyze(self) -> CommandResult:
        return analyze.analyze(self.world.cluster, self._selected(), self._settings_for, PREFIX, self._new_run())

    def backup(self) -> CommandResult:
        return backup.back_up(self.world.cluster, backup.Request(self._selected(), self._settings_for, PREFIX, self._new_run()))

    def verify(self, against: Optional[str] = None, level: str = "digest", where: Optional[str] = None) -> CommandResult:
        return verify.verify(self.world.cluster, verify.Request(self._selected(where), PREFIX, self._new_run(), against, level))

    def rollback(self, undo: Optional[str] = None, where: Optional[str] = None, yes: bool = True, dry_run: bool = False) -> CommandResult:
        def confirm(planned: object) -> bool:
            self.asked.append(planned)
            return yes

        request = rollback.Request(self._selected(where), self._settings_for, PREFIX, self._new_run(), confirm, undo, dry_run)
        return rollback.rollback(self.world.cluster, request)

    def cleanup(self, rules: Settings = EVERYTHING, how: str = "delete", dry_run: bool = False) -> CommandResult:
        settings = replace(rules, discard=how)
        request = cleanup.Request(self._selected(), lambda _table: settings, PREFIX, self._new_run(), dry_run)
        return cleanup.clean_up(self.world.cluster, request)

    def history(self, files_of: Optional[str] = None, at: Optional[int] = None) -> CommandResult:
        request = history.Request(self._selected(), PREFIX, self._new_run(), self._settings_for, files_of, at)
        return history.show_history(self.world.cluster, request)

    def pin(self, run: str, pinned: bool = True) -> CommandResult:
        return pin.pin(self.world.cluster, pin.Request(self._selected(), PREFIX, self._new_run(), run, pinned))

    def recover(self) -> CommandResult:
        return recover.recover(self.world.cluster, self._selected(), PREFIX, self._new_run())

    def append(self, unit: str, *rows: str) -> None:
        """One file for each row, and an hour's quiet."""
        for row in rows:
            self.world.add_file(f"{self.live(unit)}/{row}.parquet", [row])
        self.world.files.namespace.advance(3_600_000)

    def kill_before(self, words: Sequence[str], command: Callable[[], object]) -> None:
        """Kill a command just before the first step that names all these words."""

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

    def _settings_for(self, _table: str) -> Settings:
        return self.settings

    def _selected(self, where: Optional[str] = None) -> Selection:
        return Selection(tables=(self.table,), where=where)

    def _new_run(self) -> str:
        """Ids of one second each, with days for the hundreds, so that the backup tables' names differ too."""
        number = len(self.runs)
        self.runs.append(f"202601{1 + number // 3600:02d}t02{number // 60 % 60:02d}{number % 60:02d}z-0000")
        return self.runs[-1]


def outcomes(result: CommandResult) -> Any:
    """Outcome by unit, of the last step where there are several."""
    return {unit.name: unit.outcome.code for unit in result.tables[0].units}
