"""`--run-key`: a command whose key is in a table's log does nothing there, and answers as the run that bore the key first.

So a scheduler's retry never rolls back twice. The key is written with the plan, and therefore also into the entry of a run that another one
finished; not of a cleanup, of which another one ends only what was begun.
"""

from __future__ import annotations

from typing import Optional

from hivekeeper.commands.context import Context
from hivekeeper.errors import Refused
from hivekeeper.model import Table
from hivekeeper.reasons import Code
from hivekeeper.report.results import TableOutcome
from hivekeeper.runlog.entries import table_id
from hivekeeper.runlog.history import History
from hivekeeper.steps import identity


def answer(context: Context, table: Table, history: History, operation: str) -> Optional[TableOutcome]:
    """The outcome of this table's run with this command's key; None if there is none. Of a table that was dropped, and created again by the
    same execution, the new one has had none. Raises Refused if the key is another operation's, and NeedsInvestigation if the log is another
    table's: a scheduler may give one key for all tables.
    """
    if not context.run_key or history.find_key(context.run_key) is None:
        return None
    run = identity.know_history(context.cluster, table, history).find_key(context.run_key, table_id(table))
    if run is None:
        return None
    if run.operation != operation:
        raise Refused(
            f"{table.full_name}: the run key {context.run_key} is that of run {run.run}, a {run.operation}",
            code=Code.RUN_KEY_TAKEN,
            state="nothing was touched",
            next="give each command a key of its own",
        )
    return TableOutcome(table.full_name, run.run, log_version=run.version, answered_by=run)
