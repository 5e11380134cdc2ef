"""Which tables may be the one whose rows a killed run has away, under another name: anywhere in the metastore, perhaps altered since.

Reads only. That Hive's rename met no directory to move leaves such a table without one, which tables of its second do not lack as a rule.
"""

from __future__ import annotations

from typing import List

from hivekeeper.model import Table
from hivekeeper.plan import renamed
from hivekeeper.ports import Cluster, NoPermission
from hivekeeper.steps.census import shared_census


def has_directory(cluster: Cluster, table: Table) -> bool:
    """Whether a table's directory is, or may be, there. A server that must not be called, or none, is not where a rename leads."""
    if not table.location or cluster.files.is_foreign(table.location):
        return True
    place = cluster.files.qualify(table.location)
    try:
        return cluster.files.look([place], 0)[place].exists
    except NoPermission:
        return True


def may_be_without_rows(cluster: Cluster, known: Table, table: Table) -> bool:
    """Whether this may be the known one without partitions, renamed while its directory was away: of its second and owner, of what became
    of its columns, and without a directory. External tables are often made before their directories, and keep these in a rename.
    """
    is_of_it = table.create_time == known.create_time != 0 and table.owner == known.owner
    follow = renamed.follows_its_name(known) and renamed.follows_its_name(table)
    return is_of_it and follow and renamed.may_have_become(known, table) and not has_directory(cluster, table)


def find_possible(cluster: Cluster, known: Table) -> List[Table]:
    """All tables that may be it, by their names; none of them is moved to without somebody's word."""
    found = {}
    for one in shared_census(cluster).tables_twice():
        if one.create_time != known.create_time or one.full_name in (known.full_name, *found):
            continue
        # The census keeps neither columns nor owners.
        table = cluster.metastore.tables(one.database, [one.name]).get(one.name)
        if table is not None and may_be_without_rows(cluster, known, table):
            found[table.full_name] = table
    return [found[name] for name in sorted(found)]
