"""Which tables may be the one whose rows a killed run has away, under another name: anywhere in the metastore, perhaps altered since.

Reads only. That Hive's rename met no directory to move leaves such a table without one, which tables of its second do not lack as a rule.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, Iterable, Optional, Sequence, Tuple

from hivekeeper import quoting
from hivekeeper.model import Table
from hivekeeper.names import ControlPaths, RunPaths
from hivekeeper.plan import renamed
from hivekeeper.ports import Cluster, NoPermission
from hivekeeper.steps.census import shared_census


def has_directory(cluster: Cluster, table: Table, since_id: int = 0) -> bool:
    """Whether a table's directory is, or may be, there, and is no younger than what has this id, if one is given. A server that must not
    be called, or none, is not where a rename leads.
    """
    if not table.location or cluster.files.is_foreign(table.location):
        return True
    place = cluster.files.qualify(table.location)
    try:
        there = cluster.files.look([place], 0)[place]
    except NoPermission:
        return True
    return there.exists and not 0 < since_id < there.file_id


def may_be_without_rows(cluster: Cluster, known: Table, table: Table, since_id: int = 0) -> bool:
    """Whether this may be the known one without partitions, renamed while its directory was away: of its second and owner, of what became
    of its columns, and without a directory. External tables are often made before their directories, and keep these in a rename.
    """
    is_of_it = table.create_time == known.create_time != 0 and table.owner == known.owner
    follow = not known.partitioned and renamed.follows_its_name(known) and renamed.follows_its_name(table)
    return is_of_it and follow and renamed.may_have_become(known, table) and not has_directory(cluster, table, since_id)


@dataclass(frozen=True)
class Possible:
    """The tables that may be the known one, by their names: which of them is, somebody must say. `are_all`: no other one may be."""

    tables: Sequence[Table] = ()
    are_all: bool = False

    @property
    def only(self) -> Optional[Table]:
        """The one to which a command may bring the rows: anybody can make a table look so."""
        return self.tables[0] if len(self.tables) == 1 and self.are_all else None


def find_possible(cluster: Cluster, known: Table, paths: RunPaths) -> Possible:
    """All tables of the metastore that may be it. None where it has its name still, or its second is not known. Also those with a directory
    that is younger than the run: a writer may have made it since, but writers do so with other tables, too.
    """
    if not known.create_time or _read(cluster, known) is not None:
        return Possible()
    run = None if paths.top.startswith("file:") else cluster.files.stat(paths.top)
    since_id = run.file_id if run else 0
    found, is_old = _find_in_census(cluster, known, since_id)
    if is_old and shared_census(cluster).expire():
        # One of them had taken another name since all were read.
        found, is_old = _find_in_census(cluster, known, since_id)
    are_all = not is_old and find_untold(shared_census(cluster).tables_twice(), known) is None
    return Possible([found[name] for name in sorted(found)], are_all)


def find_untold(tables: Iterable[Table], known: Table) -> Optional[Table]:
    """The first of these of which the metastore does not tell all that is asked, and that may be the known one."""
    return next((one for one in tables if one.unreadable and one.create_time in (0, known.create_time)), None)


def _find_in_census(cluster: Cluster, known: Table, since_id: int) -> Tuple[Dict[str, Table], bool]:
    """By their names; and whether one of its second was not there any more."""
    found: Dict[str, Table] = {}
    is_old = False
    for one in shared_census(cluster).tables_twice():
        if one.create_time == known.create_time and one.full_name not in (known.full_name, *found):
            # The census keeps neither columns nor owners.
            table = _read(cluster, one)
            is_old = is_old or table is None
            if table is not None and may_be_without_rows(cluster, known, table, since_id):
                found[table.full_name] = table
    return found, is_old


def _read(cluster: Cluster, known: Table) -> Optional[Table]:
    """The definition of the table of this name and second."""
    table = cluster.metastore.tables(known.database, [known.name]).get(known.name)
    return table if table is not None and table.create_time == known.create_time else None


def how_to_bring(cluster: Cluster, table: Table, control: ControlPaths) -> str:
    """The commands that give a table without partitions the records of its former place."""
    own = ControlPaths.of(cluster.files.qualify(table.location), partitioned=False).top
    return (
        f"hdfs dfs -mv {quoting.hdfs(control.top)} {quoting.hdfs(own)}, then: hivekeeper recover --table {quoting.shell(table.full_name)}"
    )
