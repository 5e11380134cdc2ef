"""Decides whether records are this table's: it may have been renamed, or dropped and created again, or the records moved here from another.

Reads only. Another table can take a name, but not a creation time. So a table under another name is the same one if it was created in the
same second and no table of that name and time is left. Paths in the records are relative, so they follow the table.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, List, Optional, Sequence

from hivekeeper import names, quoting
from hivekeeper.errors import NeedsInvestigation
from hivekeeper.model import Table
from hivekeeper.names import ControlPaths
from hivekeeper.plan import eligibility
from hivekeeper.plan.orphans import find_perhaps_there
from hivekeeper.ports import Cluster, require_readable
from hivekeeper.reasons import Code
from hivekeeper.runlog.entries import table_id
from hivekeeper.runlog.history import History, known_as
from hivekeeper.runlog.run_files import RunPlan
from hivekeeper.steps import left_behind
from hivekeeper.steps.census import Census
from hivekeeper.steps.observe import ask_where_allowed

# So many tables that may be the renamed one are named.
MOST_NAMED = 5


@dataclass
class _Everywhere:
    """The tables of all databases, which a command reads only where it must: twice, then at most once a minute."""

    census: Optional[Census] = None


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
    return table.create_time != 0 and is_alike(table, known) and not left_behind.is_another(cluster, table, known.full_name)


def refuse_renamed(cluster: Cluster, table: Table, control: ControlPaths, plan: RunPlan) -> None:
    """Raise NeedsInvestigation if the unpartitioned table of an interrupted run, whose rows may be away, may be there under another name
    (`plan.orphans.find_perhaps_there`): then this table was only put at the former place of that one, and the run is not its to end. The
    records of a partitioned one follow it.
    """
    known, everywhere = plan.table, cluster.memory.of(_Everywhere)
    if known.partitioned or not known.create_time:
        return
    everywhere.census = everywhere.census or Census(cluster)
    others = {one.full_name: one for one in everywhere.census.tables_twice() if not _is_of_another_kind(one)}
    for name in (table.full_name, known.full_name):
        others.pop(name, None)
    found = _without_directory_first(cluster, table, find_perhaps_there([table_id(known)], others.values()))
    if not found:
        return
    one, new = found[0], _list_names(found)
    if one.create_time:
        why = f"created in the same second, as {known.full_name} was"
        next_step = f"if it was renamed: {_bring(cluster, one, control)}"
    else:
        why = f"and the metastore does not say when it was created: {one.unreadable}"
        next_step = f"let the user of the runs read {one.full_name}, then run again"
    interrupted = f"the interrupted run {plan.run} of {known.full_name}"
    raise NeedsInvestigation(
        f"{table.full_name}: its control directory holds {interrupted}, which may be {new} now, {why}",
        code=Code.OTHER_TABLE,
        state=f"nothing was touched; rows that readers of {new} miss may be in {control.top} alone",
        next=f"{next_step}; if not: see docs/runbook.md, the table changed meanwhile",
    )


def _is_of_another_kind(one: Table) -> bool:
    """Than a table without partitions: no statement changes that."""
    return one.partitioned or eligibility.is_view(one)


def _without_directory_first(cluster: Cluster, table: Table, found: Sequence[Table]) -> List[Table]:
    """Where the rows of one were away when Hive renamed it, its new place has no directory. Asked only of the server on which they are."""
    server = names.server_of(table.location)
    places = [one.location for one in found if one.location and names.server_of(one.location) == server]
    seen, _ = ask_where_allowed(lambda some: cluster.files.look(some, 0), places)
    away = {place for place, snapshot in seen.items() if not snapshot.exists}
    return sorted(found, key=lambda one: one.location not in away)


def _list_names(found: Sequence[Table]) -> str:
    named = [one.full_name for one in found[:MOST_NAMED]]
    more = [f"{len(found) - MOST_NAMED} more"] if len(found) > MOST_NAMED else []
    return " or ".join(named + more)


def _bring(cluster: Cluster, one: Table, control: ControlPaths) -> str:
    """How to give a renamed table its records back."""
    if not one.location:
        return f"move {control.top} beside its directory, then: hivekeeper recover --table {quoting.shell(one.full_name)}"
    if cluster.files.is_foreign(one.location):
        return "find out who gave it that location: its server is not configured here"
    home = ControlPaths.of(one.location, partitioned=False).top
    return f"hdfs dfs -mv {quoting.hdfs(control.top)} {quoting.hdfs(home)}, then: hivekeeper recover --table {quoting.shell(one.full_name)}"


def is_alike(one: Table, known: Table) -> bool:
    """Whether a table can be that of a record under another name: a rename changes no column, and whoever alters it then most likely adds
    some at the end, or makes it external.
    """
    return one.partition_columns == known.partition_columns and one.columns[: len(known.columns)] == known.columns


def know_history(cluster: Cluster, table: Table, history: History) -> History:
    """The log, with entries under a former name of this table given its current one. Raises NeedsInvestigation like is_same, and like
    left_behind.refuse_left_behind.
    """
    own = table_id(table)
    former: Dict[str, str] = {}
    for known in sorted({run.table_id for run in history.runs} - {own}):
        name, _, created = known.rpartition("@")
        is_former = name and created.isdigit() and name != table.full_name and is_same(cluster, table, name, int(created))
        if is_former and all(run.is_partitioned_as(table) for run in history.runs if run.table_id == known):
            former[known] = own
    left_behind.refuse_left_behind(cluster, table, cluster.trusted_owners, history)
    return known_as(history, former) if former else history
