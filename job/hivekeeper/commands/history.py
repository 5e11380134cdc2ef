"""history: what runs did to a table, which backups they left, which files the log knows. Writes nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable, Optional, Tuple

from hivekeeper.commands import per_table
from hivekeeper.commands.open_table import find_control
from hivekeeper.config.settings import Settings
from hivekeeper.errors import Refused
from hivekeeper.model import Selection, Table
from hivekeeper.names import ControlPaths
from hivekeeper.plan import quarantine, retention
from hivekeeper.plan.quarantine import Quarantine
from hivekeeper.ports import Cluster
from hivekeeper.report.results import BackupOutcome, BackupState, CommandResult, TableOutcome
from hivekeeper.runlog import store
from hivekeeper.runlog.entries import table_id
from hivekeeper.runlog.history import History
from hivekeeper.runlog.manifests import Extent
from hivekeeper.runlog.run_files import absolute


@dataclass(frozen=True)
class Request:
    """What one history command was asked to show: all runs, what `files_of` one run took and put, or the files `at` a version."""

    selection: Selection
    backup_prefix: str
    run: str
    settings_for: Callable[[str], Settings]
    files_of: Optional[str] = None
    at: Optional[int] = None


def show_history(cluster: Cluster, request: Request) -> CommandResult:
    return per_table.run_on_tables(
        cluster, "history", request.selection, request.backup_prefix, request.run, lambda table: show_table(cluster, table, request)
    )


def show_table(cluster: Cluster, table: Table, request: Request) -> TableOutcome:
    table, control = find_control(cluster, table)
    history = store.read_history(cluster, control) if control else History()
    name = table.full_name
    if request.files_of is not None:
        entry = history.find(request.files_of)
        if entry is None:
            raise per_table.unknown_run(name, request.files_of)
        return TableOutcome(name, log=(entry,), changes=entry.effects)
    if request.at is not None:
        return _show_version(cluster, name, control, history, request.at)
    backups = tuple(BackupOutcome(backup, BackupState.THERE) for backup in retention.list_backups(history))
    quarantined = find_quarantined(cluster, table, history, request.settings_for(name))
    return TableOutcome(name, log=history.runs, backups=backups, quarantined=quarantined)


def find_quarantined(cluster: Cluster, table: Table, history: History, settings: Settings) -> Tuple[Quarantine, ...]:
    """The units that compact-swap leaves alone now: those of the log whose files are the same ones still."""
    found = quarantine.find_quarantined(history, table_id(table), settings, cluster.clock.now_ms())
    lives = [absolute(one.streak.live, table.location) for one in found]
    seen = cluster.files.look(lives)
    return tuple(one for one, live in zip(found, lives) if Extent.of(seen[live].entries) == one.streak.source)


def _show_version(cluster: Cluster, name: str, control: Optional[ControlPaths], history: History, version: int) -> TableOutcome:
    if control is None or version >= history.next_version:
        known = f"it ends with {history.next_version - 1}" if history.next_version else "it is empty"
        raise Refused(f"{name}: there is no version {version} in its log; {known}", next=f"hivekeeper history --table {name} lists them")
    files = store.read_files_at(cluster, control, version)
    return TableOutcome(name, log=(history.runs[version],), files=files)
