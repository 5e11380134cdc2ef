"""Decides whether records are this table's: it may have been renamed, or dropped and created again, or the records moved here from another.

Reads only. Another table can take a name, but not a creation time. So a table under another name is the same one if it was created in the
same second and no table of that name and time is left. Paths in the records are relative, so they follow the table.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Container, Dict, Iterable, Optional, Sequence

from hivekeeper import quoting
from hivekeeper.errors import NeedsInvestigation, Refused
from hivekeeper.model import Table
from hivekeeper.names import ControlPaths
from hivekeeper.plan import renamed
from hivekeeper.ports import Cluster, renamed_meanwhile, require_readable
from hivekeeper.reasons import Code
from hivekeeper.runlog import store
from hivekeeper.runlog.entries import table_id
from hivekeeper.runlog.history import History, LoggedRun, known_as
from hivekeeper.runlog.run_files import RunPlan
from hivekeeper.steps import left_behind, renames
from hivekeeper.steps.census import shared_census
from hivekeeper.steps.observe import find_lives


def is_same(cluster: Cluster, table: Table, name: str, create_time: int) -> bool:
    """Whether a table with this former name and creation time is this one.

    Raises NeedsInvestigation if it still exists under that name: then somebody moved its records here.
    """
    if name == table.full_name:
        return create_time == table.create_time
    return _is_former(table, name, create_time, _find_created(cluster, name))


def _find_created(cluster: Cluster, name: str) -> Optional[int]:
    """When the table that has this name now was created; None if there is none."""
    database, _, base = name.partition(".")
    found = require_readable(cluster.metastore.tables(database, [base]).get(base))
    return found.create_time if found is not None else None


def _is_former(table: Table, name: str, create_time: int, created_now: Optional[int]) -> bool:
    """`is_same` for another name; `created_now`: as `_find_created` tells."""
    if created_now == create_time:
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
    return table.create_time != 0 and _is_like(table, known) and not left_behind.is_another(cluster, table, known.full_name)


def refuse_renamed(cluster: Cluster, table: Table, control: ControlPaths, plan: RunPlan) -> None:
    """Raise NeedsInvestigation if the table of an interrupted run, whose rows may be away, may be there under another name: then this table
    was only put at the former place of that one, and the run is not its to end. The records of a partitioned one follow it, but not where
    its location was set elsewhere: then its partitions are where they were.

    Raises MetastoreUnavailable if it may have been renamed once more since the tables were read.
    """
    known, census, gone = plan.table, shared_census(cluster), ""
    if not known.create_time:
        return
    is_told = table_id(known) != table_id(table) and any(table_id(one) == table_id(known) for one in census.tables_twice())
    # It had its name when they were read: which one it has by now, they do not tell.
    if is_told and not census.expire():
        raise renamed_meanwhile(known.full_name)
    for one in census.tables_twice():
        if one.create_time != known.create_time or one.full_name in (table.full_name, known.full_name):
            continue
        if one.partitioned != known.partitioned:
            continue
        # The census does not keep columns.
        found = cluster.metastore.tables(one.database, [one.name]).get(one.name)
        if found is None or found.create_time != known.create_time:
            gone = one.full_name
            continue
        if not _may_be(cluster, found, plan):
            continue
        how = _set_back(table, one, control) if known.partitioned else _bring(cluster, one, control)
        raise NeedsInvestigation(
            f"{table.full_name}: its control directory holds the interrupted run {plan.run} of {known.full_name}, which may be "
            f"{one.full_name} now: that was created in the same second, with the same columns, or more",
            code=Code.OTHER_TABLE,
            state=f"nothing was touched; rows that readers of {one.full_name} miss may be in {control.top} alone",
            next=f"if it was renamed: {how}; if not: see docs/runbook.md, the table changed meanwhile",
        )
    if gone:
        census.expire()
        raise renamed_meanwhile(gone)
    _refuse_untold(table, census.tables_twice(), control, plan)


def _refuse_untold(table: Table, tables: Iterable[Table], control: ControlPaths, plan: RunPlan) -> None:
    """Raise NeedsInvestigation if the metastore does not tell all that is asked of some table: it may be the one of an interrupted run. But
    not where this one has its name and owner, as it has once it was dropped and created again: a script does so each night, and whoever
    owns a table that cannot be read would stop all of them.
    """
    known = plan.table
    if (table.full_name, table.owner) == (known.full_name, known.owner):
        return
    untold = renames.find_untold(tables, known)
    if untold is not None:
        raise NeedsInvestigation(
            f"{table.full_name}: its control directory holds the interrupted run {plan.run} of {known.full_name}, which may be "
            f"{untold.full_name} now: the metastore does not tell enough of that: {untold.unreadable}",
            code=Code.OTHER_TABLE,
            state=f"nothing was touched; rows that readers of the renamed table miss may be in {control.top} alone",
            next=f"let this user read the definition of {untold.full_name}, then run again; or find out what became of {known.full_name}: "
            "see docs/runbook.md, the table changed meanwhile",
        )


def _may_be(cluster: Cluster, found: Table, plan: RunPlan) -> bool:
    """Whether a table of the second of a plan's table may be that one."""
    if plan.table.partitioned:
        return _is_like(found, plan.table) and _has_one_of(cluster, found, {unit.live for unit in plan.units})
    return renamed.is_alike(found, plan.table) or renames.may_be_without_rows(cluster, plan.table, found)


def _is_like(one: Table, known: Table) -> bool:
    """Whether a table's definition can be what became of the known one; of a table that was altered, too, its owner must say so."""
    return renamed.is_alike(one, known) or (one.owner == known.owner and renamed.may_have_become(known, one))


def _has_one_of(cluster: Cluster, one: Table, lives: Container[str]) -> bool:
    """Whether a partition of a table is in one of these directories; it may be if they cannot be read."""
    try:
        return any(live in lives for live in find_lives(cluster, one).values())
    except Refused:
        return True


def _set_back(table: Table, one: Table, control: ControlPaths) -> str:
    """How to give a renamed table whose location was set elsewhere its records back."""
    return (
        f"set the location of {table.full_name} to another directory (do not drop it: that may delete files), set that of {one.full_name} "
        f"back to {control.home}, then: hivekeeper recover --table {quoting.shell(one.full_name)}"
    )


def _bring(cluster: Cluster, one: Table, control: ControlPaths) -> str:
    """How to give a renamed table its records back."""
    if not one.location or cluster.files.is_foreign(one.location):
        return "find out who gave it that location: its server is not configured here"
    return renames.how_to_bring(cluster, one, control)


def know_history(cluster: Cluster, table: Table, history: History) -> History:
    """The log, with entries under a former name of this table given its current one. Raises NeedsInvestigation like is_same, and like
    left_behind.refuse_left_behind.
    """
    own = table_id(table)
    former: Dict[str, str] = {}
    # A table that was created again each night had one name many times, which one of any size may have now.
    find_created = lru_cache(maxsize=None)(partial(_find_created, cluster))
    for known in sorted({run.table_id for run in history.runs} - {own}):
        name, _, created = known.rpartition("@")
        is_other = name and created.isdigit() and name != table.full_name
        is_former = is_other and _is_former(table, name, int(created), find_created(name))
        logged = [run for run in history.runs if run.table_id == known]
        if is_former and all(run.is_partitioned_as(table) for run in logged) and _may_be_owned_alike(cluster, table, logged):
            former[known] = own
    left_behind.refuse_left_behind(cluster, table, cluster.trusted_owners, history)
    return known_as(history, former) if former else history


def _may_be_owned_alike(cluster: Cluster, table: Table, logged: Sequence[LoggedRun]) -> bool:
    """Whether these runs, oldest first, are of a table that had this one's owner at last, as far as their plans tell."""
    listed = store.list_runs(cluster.files, ControlPaths.of(table.location, table.partitioned))
    return store.may_be_owned_alike(cluster, table, reversed(logged), listed)
