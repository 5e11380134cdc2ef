"""A run over a database skips a table without an error if a writer is at work in it; not if its readers miss rows as well."""

from __future__ import annotations

import pytest

from hivekeeper import names
from hivekeeper.codes import Exit
from hivekeeper.commands import compact_swap
from hivekeeper.model import Selection
from hivekeeper.report import screen
from hivekeeper.report.results import TableOutcome, UnitOutcome, code_of_tables
from hivekeeper.reasons import Code, Reason
from hivekeeper.runlog.outcomes import Outcome
from support.builders import a_table
from support.contexts import a_context
from support.desk import Desk, outcomes
from support.world import World

MIB = 2**20


@pytest.mark.parametrize("writer", [False, True])
def test_a_writer_in_one_partition_does_not_hide_that_another_one_was_dropped_in_its_gap(writer):
    world = World()
    world.add_table(a_table(["dt"]), {"dt=1": [MIB] * 3, "dt=2": [MIB] * 3})
    world.add_table(a_table(name="healthy", location="hdfs://nn/warehouse/sales.db/healthy"), {"": [200 * MIB]})
    desk = Desk(world)
    world.files.writer.make_directory(names.join(desk.live("dt=2"), "_temporary" if writer else "other"))
    world.files.namespace.advance(3_600_000)

    def drop(what):
        if what.startswith("rename_exact") and "/ready/u00001 " in what:
            world.catalog.partitions[desk.table].pop("dt=1", None)

    world.files.before_step = drop
    result = compact_swap.compact_swap(a_context(world.cluster, Selection(databases=("sales",)), desk._new_run(), desk.settings))
    (table,) = [one for one in result.tables if one.table == desk.table]
    told = {unit.name: unit.outcome for unit in table.units}
    assert told == {"dt=1": Outcome.DROPPED_MEANWHILE, "dt=2": Outcome.REFUSED}, screen.render(result)
    assert result.code is Exit.PARTIAL, f"exit code {int(result.code)}\n{screen.render(result)}"


@pytest.mark.parametrize("outcome", [one for one in Outcome if one.exit is Exit.PARTIAL and "compact-swap" in one.commands], ids=str)
def test_a_writer_in_one_partition_hides_no_failure_of_others(outcome):
    writer = UnitOutcome("dt=2", Outcome.REFUSED, 2, 2, why=Reason(Code.WRITER_AT_WORK, "a writer is at work (_temporary)"))
    table = TableOutcome("sales.events", units=(UnitOutcome("dt=1", outcome, 2, 2), writer))
    assert code_of_tables([table, TableOutcome("sales.healthy")], named=False) is not Exit.DONE
