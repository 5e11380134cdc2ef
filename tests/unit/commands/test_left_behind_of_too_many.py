"""Beside a table without partitions somebody keeps a directory of our own user with the name of a control directory, in which they may
write: a copy of theirs that could not be given away (`owner: try`), with more entries of theirs than are looked at.
"""

from __future__ import annotations

import pytest

from hivekeeper import names
from hivekeeper.codes import Exit
from hivekeeper.ports import NotPossible
from hivekeeper.reasons import Code
from support.builders import a_table
from support.desk import Desk
from support.hdfs_user import STICKY, HdfsUser, own
from support.world import World

HOME = "hdfs://nn/warehouse/sales"
JUNK = f"{HOME}/.hivekeeper-nobodys"
TENANT, OURS = "loader", "hive"
# Of 200,000, beyond which java/Rights fails (tests/contract/test_acls_of_strangers.py).
MOST_EXPOSED = 20


@pytest.mark.parametrize("has_junk", [False, True])
@pytest.mark.parametrize("command", ["compact", "backup", "verify", "recover"])
def test_another_table_is_worked_on_all_the_same(monkeypatch, command, has_junk):
    world = World()
    world.add_table(a_table((), kind="MANAGED_TABLE", name="orders", create_time=7), {"": [1000] * 3})
    space, files = world.files.namespace, world.files
    own(space.directory(HOME), "hdfs", "hdfs", 0o777 | STICKY)
    user = HdfsUser(space, TENANT, [TENANT])
    if has_junk:
        # Made by a compaction of the tenant's own table, and renamed to this place.
        space.make_directory(JUNK)
        own(space.find(JUNK), OURS, TENANT, 0o775)
        for nth in range(MOST_EXPOSED + 1):
            assert user.make_directory(f"{JUNK}/{nth}")
    exposed = files.exposed

    def bounded(top, levels):
        found = exposed(top, levels)
        if len(found) > MOST_EXPOSED:
            raise NotPossible(f"{names.base(top)} and what is around it have too many entries of others")
        return found

    monkeypatch.setattr(files, "exposed", bounded)
    result = getattr(Desk(world, "sales.orders"), command)()
    assert result.code in (Exit.DONE, Exit.REFUSED), (result.code, result.tables[0].problem)


def test_records_beside_which_others_have_too_much_are_not_believed(monkeypatch):
    """Who may have changed them is not known; what to look at is told."""
    world = World()
    world.add_table(a_table((), name="orders", create_time=7), {"": [1000] * 3})
    desk = Desk(world, "sales.orders", backup_table=False)
    assert desk.compact().code is Exit.DONE

    def refuse(top, _levels):
        raise NotPossible(f"{names.base(top)} and what is around it have too many entries of others")

    monkeypatch.setattr(world.files, "exposed", refuse)
    result = desk.recover()
    assert (result.code, result.tables[0].problem.code) == (Exit.INVESTIGATE, Code.RECORDS_WRITABLE)
    assert desk.control.top in result.tables[0].problem.next
