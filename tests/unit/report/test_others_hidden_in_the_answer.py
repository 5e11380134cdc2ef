"""What one tenant's table tells does not take the room of what another one's tells in the text of an answer."""

from __future__ import annotations

import pytest

from hivekeeper.codes import Exit
from hivekeeper.reasons import Code, Reason
from hivekeeper.report import overview, screen
from hivekeeper.report.results import CommandResult, TableOutcome, UnitOutcome
from hivekeeper.runlog.outcomes import Outcome

RUN = "20260101t020304z-0000"
OTHERS = tuple(TableOutcome(f"sales.t{number}") for number in range(12))


def misplaced(at):
    return UnitOutcome(f"dt={at}", Outcome.MISPLACED, 0, 0, why=Reason(Code.MOVED, f"the rows are in hdfs://nn/{at}", "", ""))


def test_where_rows_are_that_readers_miss_is_told_whatever_another_table_has_to_tell():
    """The partitions of `aaa` had their locations set elsewhere in their gaps, each to another place: as many findings as partitions."""
    mine = TableOutcome("sales.aaa", units=tuple(map(misplaced, range(25))))
    theirs = TableOutcome("sales.zzz", units=(misplaced("theirs"),))
    result = CommandResult("compact-swap", RUN, 0, 1.0, False, False, (mine, *OTHERS, theirs), databases=("sales",))
    assert result.code is Exit.INVESTIGATE
    assert "hdfs://nn/theirs" in screen.render(result)


@pytest.mark.parametrize("command", ["compact-swap", "cleanup", "recover"])
def test_that_a_table_has_to_be_looked_at_is_told_however_many_tables_another_tenant_has(command):
    why = Reason(Code.FOREIGN_RECORD, "a record", "", "")
    mine = tuple(TableOutcome(f"sales.a{number:02}", problem=why.about(f"sales.a{number:02}")) for number in range(25))
    theirs = TableOutcome("sales.zzz", problem=Reason(Code.UNSETTLED, "a partition is away", "", "").about("sales.zzz"))
    result = CommandResult(command, RUN, 0, 1.0, False, False, (*mine, theirs), databases=("sales",))
    assert "a partition is away" in screen.render(result)


def test_lines_of_one_table_stay_together_and_the_last_of_those_with_most_are_left_out():
    found = [(Exit.REFUSED, f"t{at // 15}", f"{at}") for at in range(30)] + [(Exit.REFUSED, "t9", "last")]
    shown = [*map(str, range(10)), *map(str, range(15, 24)), "last"]
    assert overview.render_findings(found) == ["", "refused:", *(f"  {one}" for one in shown), "  … and 11 more (all of them with --json)"]
