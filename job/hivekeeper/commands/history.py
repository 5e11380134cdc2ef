"""history: what runs did to a table, the backups they left, and the files known to the log. Writes nothing."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import Optional, Protocol, Sequence, Tuple, TypeVar

from hivekeeper import quoting
from hivekeeper.commands import per_table, selection
from hivekeeper.commands.context import Context
from hivekeeper.commands.open_table import find_records
from hivekeeper.commands.selection import WantedName
from hivekeeper.config.settings import Settings
from hivekeeper.errors import Refused
from hivekeeper.model import Table
from hivekeeper.names import ControlPaths, RunId
from hivekeeper.plan import quarantine, retention
from hivekeeper.plan.quarantine import Quarantine
from hivekeeper.plan.retention import Verdict
from hivekeeper.ports import Cluster, most_files
from hivekeeper.reasons import Code
from hivekeeper.report.results import BackupOutcome, BackupState, CommandResult, KeptFiles, TableOutcome
from hivekeeper.runlog import store
from hivekeeper.runlog.entries import table_id
from hivekeeper.runlog.history import History
from hivekeeper.runlog.manifests import Extent
from hivekeeper.runlog.run_files import CLEANUP, absolute
from hivekeeper.steps import identity, left_behind
from hivekeeper.steps.observe import TooManyEntries, find_lives, look_at

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class View:
    """What to show instead of all runs and backups: the files that one run removed and added, or those `at` a version of the log; the old
    files of each of the partitions; or the cleanups.
    """

    files_of: Optional[RunId] = None
    at: Optional[int] = None
    partitions: bool = False
    cleanups: bool = False


def show_history(context: Context, view: View = View()) -> CommandResult:
    return per_table.run_on_tables(context, "history", lambda confined, table: show_table(confined, table, view))


def show_table(context: Context, table: Table, view: View) -> TableOutcome:
    cluster, files_of, at = context.cluster, view.files_of, view.at
    table, control = find_records(cluster, table, context.settings_for(table.full_name))
    wanted = selection.wanted_names_in(table, context.selection)
    history = store.read_history(cluster, control) if control else History()
    name = table.full_name
    left_behind.refuse_left_behind(cluster, table, context.settings_for(name).trusted_owners, history)
    if files_of is not None:
        if control is None:
            raise per_table.unknown_run(name, files_of)
        entry = per_table.find_run(name, history, files_of)
        entry = store.read_whole(cluster, control, history, entry.version, entry.version).runs[entry.version]
        entry = replace(entry, units=_of_wanted(entry.units, wanted), effects=_of_wanted(entry.effects, wanted))
        return TableOutcome(name, log=(entry,), changes=entry.effects)
    if at is not None:
        return _show_version(cluster, name, control, history, at)
    if view.partitions:
        return _show_partitions(context, table, control, history, wanted)
    if view.cleanups:
        return TableOutcome(name, cleanups=tuple(run for run in history.runs if run.operation == CLEANUP and run.finished))
    quarantined = find_quarantined(cluster, table, history, context.settings_for(name))
    runs, backups = history.runs, retention.list_backups(history)
    if wanted:
        # Entries about no partition, such as pins, are left out.
        runs = tuple(replace(run, units=units) for run in runs for units in [_of_wanted(run.units, wanted)] if units)
        backups = tuple(replace(one, effects=effects) for one in backups for effects in [_of_wanted(one.effects, wanted)] if effects)
        quarantined = tuple(one for one in quarantined if _of_wanted([one.streak], wanted))
    shown = tuple(BackupOutcome(backup, BackupState.THERE) for backup in backups)
    return TableOutcome(name, log=runs, backups=shown, quarantined=quarantined)


def _show_partitions(
    context: Context, table: Table, control: Optional[ControlPaths], history: History, wanted: Optional[WantedName]
) -> TableOutcome:
    """The old files of each partition, with what a cleanup would do now, oldest first. Refuses rules that a cleanup refuses."""
    cluster, settings, name = context.cluster, context.settings_for(table.full_name), table.full_name
    retention.refuse_contradiction(settings, name)
    history = identity.know_history(cluster, table, history)
    verdicts: Sequence[Verdict] = retention.judge_backups(history, context.settings_for, cluster.clock.now_ms())
    former = {one: retention.why_former(one, name) for one in retention.find_former(history, table_id(table))}
    verdicts = retention.keep_former(history, verdicts, former)
    if control is not None and any(verdict.going for verdict in verdicts):
        verdicts = retention.keep_shown(history, verdicts, control, find_lives(cluster, table).items())
    kept = [KeptFiles(verdict.backup, effect, True, why) for verdict in verdicts for effect, why in verdict.staying]
    going = [KeptFiles(verdict.backup, effect, False, verdict.reason) for verdict in verdicts for effect in verdict.going]
    chosen = [one for one in kept + going if wanted is None or wanted(one.effect.partition)]
    return TableOutcome(
        name, old_files=tuple(sorted(chosen, key=lambda one: (one.effect.partition, one.effect.version, one.effect.number)))
    )


class OfPartition(Protocol):
    """A log item about one partition."""

    @property
    def partition(self) -> str: ...


About = TypeVar("About", bound=OfPartition)


def _of_wanted(each: Sequence[About], wanted: Optional[WantedName]) -> Tuple[About, ...]:
    """The items about partitions that --where selects; all items without --where."""
    return tuple(one for one in each if wanted is None or wanted(one.partition))


def find_quarantined(cluster: Cluster, table: Table, history: History, settings: Settings) -> Tuple[Quarantine, ...]:
    """The units that compact-swap currently skips: those quarantined by the log whose files are unchanged. None if all their files are
    too many to be held: then most have come since.
    """
    found = quarantine.find_quarantined(history, table_id(table), settings, cluster.clock.now_ms())
    lives = [absolute(one.streak.live, table.location) for one in found]
    try:
        seen = look_at(cluster.files.look, lives, most_files(settings.max_files, lives))
    except TooManyEntries:
        log.warning("table=%s step=find-quarantined reason='they have more than %d files'", table.log_field, settings.max_files)
        return ()
    extents = [Extent.of(entry for entry in seen[live].entries if not entry.is_dir) for live in lives]
    return tuple(one for one, extent in zip(found, extents) if extent == one.streak.source)


def _show_version(cluster: Cluster, name: str, control: Optional[ControlPaths], history: History, version: int) -> TableOutcome:
    if control is None or version >= history.next_version:
        known = f"it ends with {history.next_version - 1}" if history.next_version else "it is empty"
        raise Refused(
            f"{name}: there is no version {version} in its log; {known}",
            code=Code.NO_SUCH_RUN,
            next=f"hivekeeper history --table {quoting.shell(name)} lists them",
        )
    per_table.require_details(name, history.runs[version])
    files = store.read_files_at(cluster, control, version)
    return TableOutcome(name, log=(history.runs[version],), files=files)
