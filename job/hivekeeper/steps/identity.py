"""Decides whether records are this table's: it may have been renamed, or dropped and created again, or the records moved here from another.

Reads only. Another table can take a name, but not a creation time. So a table under another name is the same one if it was created in the
same second and no table of that name and time is left. Paths in the records are relative, so they follow the table.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import replace
from typing import Collection, Dict, FrozenSet, List, Mapping, Optional, Sequence

from hivekeeper import names, quoting
from hivekeeper.errors import HivekeeperError, NeedsInvestigation, Refused
from hivekeeper.model import Table
from hivekeeper.names import ControlPaths
from hivekeeper.ports import Cluster, NoPermission, require_readable
from hivekeeper.reasons import Code
from hivekeeper.runlog import store
from hivekeeper.runlog.entries import table_id
from hivekeeper.runlog.history import History, known_as
from hivekeeper.runlog.outcomes import Outcome
from hivekeeper.steps import orphans, ownership
from hivekeeper.steps.fitness import MOST_AGE_MS
from hivekeeper.steps.whereabouts import usable_until

TRANSLATED = "TRANSLATED_TO_EXTERNAL"

# Of hidden entries in the directory around an unpartitioned table. Each such table there has a control directory.
MOST_BESIDE = 200_000


def is_same(cluster: Cluster, table: Table, name: str, create_time: int) -> bool:
    """Whether a table with this former name and creation time is this one.

    Raises NeedsInvestigation if it still exists under that name: then somebody moved its records here.
    """
    if name == table.full_name:
        return create_time == table.create_time
    database, _, base = name.partition(".")
    former = require_readable(cluster.metastore.tables(database, [base]).get(base))
    if former is not None and former.create_time == create_time:
        raise NeedsInvestigation(
            f"{table.full_name}: its control directory holds the records of {name}, which is still there",
            code=Code.OTHER_TABLE,
            state="nothing was touched",
            next=f"find out how they came here: if {name} lies in this directory, too, only one of them can be compacted; if somebody "
            "moved them, move them back; if both tables were created in one second, and renamed since, the rows here are this table's: "
            "see docs/runbook.md, the table changed meanwhile",
        )
    return create_time == table.create_time != 0


def is_about(cluster: Cluster, table: Table, known: Table) -> bool:
    """Whether the table of a record can be this one, perhaps under its former name, wherever the record lies."""
    if known.create_time != table.create_time or known.full_name == table.full_name:
        return known.create_time == table.create_time
    return table.create_time != 0 and is_alike(table, known) and not _is_another(cluster, table, known.full_name)


def is_alike(one: Table, other: Table) -> bool:
    """Whether two definitions can be one table's under two names: a rename changes neither kind nor columns."""
    return (one.kind, one.columns, one.partition_columns) == (other.kind, other.columns, other.partition_columns)


def know_history(cluster: Cluster, table: Table, history: History) -> History:
    """The log, with entries under a former name of this table given its current one. Raises NeedsInvestigation like is_same, and like
    refuse_left_behind.
    """
    own = table_id(table)
    former: Dict[str, str] = {}
    for known in sorted({run.table_id for run in history.runs} - {own}):
        name, _, created = known.rpartition("@")
        is_former = name and created.isdigit() and name != table.full_name and is_same(cluster, table, name, int(created))
        if is_former and _is_partitioned_alike(table, history, known):
            former[known] = own
    refuse_left_behind(cluster, table, cluster.trusted_owners, history)
    return known_as(history, former) if former else history


def _is_partitioned_alike(table: Table, history: History, known: str) -> bool:
    """Whether the entries about a table can be this one's by their partition columns. Unlike kind and columns (`is_alike`), no statement
    changes these between two runs.
    """
    own = [column.name.lower() for column in table.partition_columns]
    logged = (run.partition_columns for run in history.runs if run.table_id == known)
    return all(columns is None or [column.lower() for column in columns] == own for columns in logged)


def refuse_left_behind(cluster: Cluster, table: Table, trusted: Collection[str], history: Optional[History] = None) -> None:
    """Raise NeedsInvestigation where the control directory of an unpartitioned table lies beside its former directory: Hive moves the
    directory of a managed table that is renamed, and nothing else. Records of others, which anybody may put there, are not believed.

    `history`: the log at the table's place, None without a control directory. With an entry about this table, all its records are there,
    and nothing is asked. Else it is that of a table which had the name before: then this one is refused only for rows that readers may
    miss. Whoever builds a table anew under another name, and then renames it, needs no old files of it.
    """
    if table.partitioned or not follows_its_name(table) or (history is not None and _is_about_same_second(table, history)):
        return
    own = ControlPaths.of(table.location, partitioned=False)
    # Records in a directory of somebody else are not believed.
    believed = frozenset([cluster.files.user_at(table.location), *trusted])
    homeless = _find_orphans(cluster, table.database, names.parent(table.location), believed)
    if homeless is None:
        raise Refused(
            f"{table.full_name}: there are more than {MOST_BESIDE} hidden files or directories beside its directory",
            code=Code.TOO_MANY_HIDDEN,
            next="find out who makes them, and remove them",
        )
    # Each costs calls.
    for control in map(ControlPaths, homeless):
        former = _find_former_name(cluster, table, control, trusted) if control != own and table.create_time else ""
        if former and (history is None or _may_hide_rows(cluster, table, control)):
            raise NeedsInvestigation(
                f"{table.full_name}: it was renamed from {former}, and its records and backups stayed in {control.top}",
                code=Code.LEFT_BEHIND,
                state="nothing was touched; where a run was interrupted, the rows may be in that directory alone",
                next=f"{_make_way(table, own) if history is not None else ''}"
                f"hdfs dfs -mv {quoting.hdfs(control.top)} {quoting.hdfs(own.top)}, then: "
                f"hivekeeper recover --table {quoting.shell(table.full_name)}; but if it never had that name, and another table had it, "
                "created in the same second: see docs/runbook.md, the table changed meanwhile",
            )


def _is_about_same_second(table: Table, history: History) -> bool:
    """Whether an entry is about a table of this one's second: this one, perhaps under a former name."""
    return table.create_time in map(_created, {run.table_id for run in history.runs})


def _make_way(table: Table, own: ControlPaths) -> str:
    """How to move the records of the table that had the name before to where they are known to be those of a table that is gone. What
    is moved onto a directory that is there ends inside it.
    """
    aside = f"{own.top}-before-{table.create_time}"
    return f"hdfs dfs -mv {quoting.hdfs(own.top)} {quoting.hdfs(aside)} (of the table that had the name before), then: "


def follows_its_name(table: Table) -> bool:
    """Whether Hive moves the table's directory when the table is renamed."""
    return table.kind == "MANAGED_TABLE" or table.parameters.get(TRANSLATED, "").lower() == "true"


def _find_orphans(cluster: Cluster, database: str, beside: str, believed: FrozenSet[str]) -> Optional[List[str]]:
    """The control directories of these owners in a directory that belong to no table; None if it holds too many hidden entries to look for
    them. `database`: in which a table may have been renamed since the places of all tables were read.
    """
    if (beside, believed) not in cluster.orphans:
        cluster.orphans[beside, believed] = _list_controls(cluster, beside, believed)
    controls = cluster.orphans[beside, believed]
    if controls is None:
        return None
    # Without such a directory nothing needs to be known of the tables.
    there = _names_there(cluster, database) if controls else frozenset()
    key = beside, believed, database
    known, found = cluster.homeless.get(key, (None, []))
    if known is not there:
        # Not for each of thousands of tables beside thousands of such directories.
        found = [control for control, tables in controls.items() if not any(_is_there(table, database, there) for table in tables)]
        cluster.homeless[key] = there, found
    return found


def _list_controls(cluster: Cluster, beside: str, believed: FrozenSet[str]) -> Optional[Mapping[str, Sequence[str]]]:
    """The control directories of these owners, each with the tables that lie at or below its home. Those of others, of which anybody may
    make a hundred thousand in each directory with a table of theirs, are not kept.
    """
    hidden = cluster.files.look_hidden([beside], MOST_BESIDE + 1)[beside].entries
    if len(hidden) > MOST_BESIDE:
        return None
    prefix = f"{names.CONTROL}-"
    own = [entry for entry in hidden if entry.is_dir and entry.name.startswith(prefix) and entry.owner in believed]
    tables = _tables_by_name(cluster, beside) if own else {}
    return {} if tables is None else {entry.path: tables.get(entry.name[len(prefix) :], ()) for entry in own}


def _tables_by_name(cluster: Cluster, beside: str) -> Optional[Mapping[str, Sequence[str]]]:
    """The tables at or below each name in a directory; None if one lies at it or above it, so that all names are taken. A backup table that
    still shows the live files of a killed run stays at the former place of its table, which Hive has moved.
    """
    placed = cluster.metastore.table_locations().items()
    places = {name: place for name, place in placed if not names.may_back_up(name.partition(".")[2], names.base(place))}
    above = frozenset(names.with_above(beside))
    if not above.isdisjoint(place.rstrip("/") for place in places.values()):
        return None
    top = f"{beside}/"
    found: Dict[str, List[str]] = {}
    for name, place in places.items():
        if place.startswith(top):
            found.setdefault(place[len(top) :].partition("/")[0], []).append(name)
    return found


def _names_there(cluster: Cluster, database: str) -> FrozenSet[str]:
    """The names of the tables in a database, some seconds old, or as old as it takes to ask for them: the places of all tables may be an
    hour old, and the control directory of one that was renamed since would count as that of the table it was.
    """
    began_ms = cluster.clock.monotonic_ms()
    until_ms, found = cluster.names_there.get(database, (-math.inf, frozenset()))
    if began_ms > until_ms:
        try:
            found = frozenset(cluster.metastore.table_names(database))
        except KeyError:
            # It was dropped, with all its tables.
            found = frozenset()
        cluster.names_there[database] = usable_until(cluster.clock, began_ms, MOST_AGE_MS), found
    return found


def _is_there(table: str, database: str, there: FrozenSet[str]) -> bool:
    """Whether a table is, or may be, still there under its name; `there` are those of one database."""
    of, _, name = table.partition(".")
    return of != database or name in there


def _find_former_name(cluster: Cluster, table: Table, control: ControlPaths, trusted: Collection[str]) -> str:
    """The former name of this table if the records of a control directory can be its own, by its creation time and its columns; else "".
    Several tables may have been created in one second: one that is still there under its name is none of this one's former names, wherever
    it lies by now.

    Records of tables of other seconds are read once in a command: there may be thousands of such directories, or long logs, and thousands
    of tables beside them.
    """
    directory = control.top, frozenset(trusted)
    if table.create_time not in cluster.orphan_seconds.get(directory, frozenset([table.create_time])):
        return ""
    found = _find_ids(cluster, table, control, trusted)
    cluster.orphan_seconds[directory] = frozenset(map(_created, found))
    for known, is_like_it in found.items():
        name = known.rpartition("@")[0]
        if is_like_it and _created(known) == table.create_time and not _is_another(cluster, table, name):
            return name
    return ""


def _may_hide_rows(cluster: Cluster, table: Table, control: ControlPaths) -> bool:
    """Whether rows that readers miss may be there: a run was interrupted that had begun to exchange files, or ended with them at another
    place than the table's. One that was killed while it wrote copies, as nearly all are, has changed nothing.
    """
    # As in _find_ids.
    cluster = replace(cluster, log_entries={})
    try:
        history = store.read_history(cluster, control)
        unfinished = [control.run(directory) for directory in orphans.find_unfinished(cluster, control, history)]
        plans = [store.read_plan(cluster, table, paths) for paths in unfinished]
        aside = [paths.state(state) for paths in unfinished for state in ("retired", "recreated")]
        is_away = any(seen.entries for seen in cluster.files.look(aside, 1 + len(aside)).values())
    except (HivekeeperError, NoPermission):
        return True
    joins = any(unit.join for plan in plans if plan for unit in plan.units)
    return is_away or joins or any(unit.outcome is Outcome.MISPLACED for run in history.runs for unit in run.units)


def _created(known: str) -> int:
    """When the table with this id was created, 0 if that is not known."""
    created = known.rpartition("@")[2]
    return int(created) if created.isdigit() else 0


def _is_another(cluster: Cluster, table: Table, name: str) -> bool:
    """Whether another table of this name was created in the same second as this one."""
    database, _, base = name.partition(".")
    found = None if name == table.full_name else cluster.metastore.tables(database, [base]).get(base)
    return found is not None and found.create_time == table.create_time


def _find_ids(cluster: Cluster, table: Table, control: ControlPaths, trusted: Collection[str]) -> Dict[str, bool]:
    """The tables that the records are about, and whether this one can be it by its columns. What cannot be read says nothing."""
    found: Dict[str, bool] = {}
    # There may be thousands, whose logs are not held together.
    cluster = replace(cluster, log_entries={})
    try:
        ownership.require_own_records(cluster, table, control, trusted)
        directories = store.find_runs(cluster.files, control)
    except (NeedsInvestigation, NoPermission):
        return found
    with suppress(HivekeeperError, NoPermission):
        history = store.read_history(cluster, control)
        found = {run.table_id: _is_partitioned_alike(table, history, run.table_id) for run in history.runs}
    for directory in directories:
        with suppress(HivekeeperError, NoPermission):
            plan = store.read_plan(cluster, table, control.run(directory))
            # The newest one tells, and the log alone where there is no plan any more.
            found.update({table_id(plan.table): is_alike(table, plan.table)} if plan else {})
    return found
