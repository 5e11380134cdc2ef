"""The properties say of an exit code the reason that it has, not that of a table which another tenant keeps refused."""

from __future__ import annotations

from hivekeeper.codes import Exit
from hivekeeper.reasons import Code, Reason
from hivekeeper.report import properties
from hivekeeper.report.results import CommandResult, TableOutcome, UnitOutcome
from hivekeeper.runlog.outcomes import Outcome

RUN = "20260101t020304z-0000"


def test_the_error_of_exit_code_7_is_of_the_table_that_needs_attention():
    refused = Reason(Code.SKIP_PROPERTY, "sales.aaa: its property hivekeeper.skip is true", "unset the property", "nothing was changed")
    elsewhere = Reason(Code.MOVED, "the metastore has it at hdfs://nn/b now; its files are in hdfs://nn/a", "compare the places")
    tables = (
        TableOutcome("sales.aaa", problem=refused),
        TableOutcome("sales.events", RUN, (UnitOutcome("dt=1", Outcome.MISPLACED, 3, 3, why=elsewhere),)),
    )
    result = CommandResult("compact-swap", RUN, 0, 1.0, False, tables=tables)
    told = properties.render(result)
    assert result.code is Exit.INVESTIGATE and "hivekeeper.exit_code=7" in told
    assert "sales.events" in told and "skip" not in told, told
