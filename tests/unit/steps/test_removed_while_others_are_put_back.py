"""Discovery has dropped many partitions of a run, which are put back one after the other; meanwhile a loader replaces the directory of one:
it removes it, and renames another one to its place. The metastore makes the directory of each partition that it is given, and what is
renamed then would lie inside it, where readers do not look.
"""

from __future__ import annotations

from support.desk import outcomes
from support.hive_statements import Hive
from unit.steps.test_names_that_moved_on import DISCOVERY, a_desk


def test_a_directory_that_a_loader_is_about_to_replace_is_not_made_again():
    desk = a_desk(DISCOVERY)
    files, live = desk.world.files, desk.live("dt=2")
    steps = []

    def act(what):
        if what.startswith("metastore.update_sizes") and not steps:
            # After the exchange, and before the run asks for the last time.
            for name in ("dt=1", "dt=2"):
                list(Hive(desk.world).drop_partition(desk.table, name))
        if what.startswith("metastore.add_partition"):
            steps.append(what)
            if files.namespace.find(live) is not None:
                files.writer.delete(live)

    files.before_step = act
    result = desk.compact()
    assert [what.rpartition("/")[2] for what in steps] == ["dt=1"]
    assert files.namespace.find(live) is None, "a loader's rename would end inside it"
    assert sorted(desk.world.catalog.partitions[desk.table]) == ["dt=1"]
    assert outcomes(result) == {"dt=1": "swapped", "dt=2": "dropped-meanwhile"}
