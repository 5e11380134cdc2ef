"""Write to a table's log: the entry that ends a run, and checkpoints.

Never touches live data.
"""

from __future__ import annotations

import logging
from typing import Dict

from hivekeeper import __version__, names
from hivekeeper.errors import HivekeeperError, NeedsInvestigation
from hivekeeper.names import RunId
from hivekeeper.ports import Cluster, FilesError, FilesUnavailable, SourceMissing, TargetExists
from hivekeeper.reasons import Code
from hivekeeper.runlog import store
from hivekeeper.runlog.entries import Actor, LogEntry, entry_lines, table_id
from hivekeeper.steps.run_directory import Run, fenced, is_gone, require_lock, require_own_directory

log = logging.getLogger(__name__)

MOST_COMMIT_TRIES = 1000
# HDFS can still be read in safe mode, so reading the log would succeed on every try.
MOST_UNANSWERED = 4


def commit(run: Run, record: LogEntry, parameters: Dict[str, object]) -> int:
    """Write the run's log entry: first in the run's own directory, then renamed to the next free number without overwrite.

    A run that was taken over may have re-created its directory, and would say where its backups no longer are: so the lock is checked.
    """
    files, paths, unanswered = run.files, run.paths, 0
    for _ in range(MOST_COMMIT_TRIES):
        history = store.read_history(run.cluster, run.control)
        written = [entry for entry in history.runs if entry.run == record.run and entry.finished == record.finished]
        if written:
            # An earlier try succeeded although the client saw an error; or another run took this one over and finished it. When the run was
            # opened, the log had no entry of this id.
            if written[0].directory != run.directory:
                require_lock(run)
            require_own_directory(run)
            _write_checkpoint(run, record.run)
            return written[0].version
        text = entry_lines(record, run.table, actor_of(run.cluster), parameters, first=history.next_version == 0)
        target = names.join(run.control.log, names.log_entry(history.next_version))
        try:
            require_lock(run)
            files.delete_file(paths.entry)
            files.write_new(paths.entry, text, run.record_mode)
            files.rename_exact(paths.entry, target)
        except SourceMissing as gone:
            # A directory created after the table was dropped has re-created its parents, but not the log.
            if not files.look([paths.top])[paths.top].exists or is_gone(run, run.control.log):
                raise fenced(run) from gone
        except TargetExists:
            continue
        except FilesUnavailable:
            unanswered += 1
            if unanswered >= MOST_UNANSWERED:
                raise
    raise NeedsInvestigation(
        f"{run.control.log}: no number is free",
        code=Code.NO_FREE_NAME,
        state="the table is consistent",
        next="look at the log directory",
    )


def _write_checkpoint(run: Run, own: RunId) -> None:
    """Write a checkpoint if the log has got enough entries since the newest one, this run's `own` being the last; remove older ones, and
    entries that are expired according to the last two.

    It repeats what the entries say, so a run that cannot write one has done all the same.
    """
    if run.checkpoint_interval is None:
        return
    try:
        listed = store.list_log(run.files, run.control)
        newest = max(listed.entries)
        if newest - max((version for version in listed.checkpoints if version <= newest), default=-1) < run.checkpoint_interval:
            return
        made = store.make_checkpoint(run.cluster, run.control, listed, run.log_retention_ms)
        last = made.history.runs[-1]
        if (last.run, last.table_id) != (own, table_id(run.table)):
            # Another one has finished since; or somebody has put another table's control directory here, perhaps of one that this command
            # has worked on, too.
            return
        run.files.delete_file(run.paths.checkpoint)
        run.files.write_new(run.paths.checkpoint, made.content, run.record_mode)
        run.files.rename_exact(run.paths.checkpoint, names.join(run.control.log, names.checkpoint(newest)))
        # Whoever lost the lock may have slept for days: by now there may be another log at these paths.
        require_lock(run)
        # The one before stays, for commands that have listed it and are about to read, and in case that this one is damaged one day.
        older = [file for version, file in listed.checkpoints.items() if version < newest and file != made.follows]
        for file in [*older, *made.expired]:
            run.files.delete_file(file.path, listed.directory_id, file.file_id)
    except (FilesError, HivekeeperError) as error:
        log.warning("table=%s step=write-checkpoint failed reason=%r", run.table.log_field, str(error))


def actor_of(cluster: Cluster) -> Actor:
    return Actor(cluster.user, cluster.host, cluster.application(), __version__)
