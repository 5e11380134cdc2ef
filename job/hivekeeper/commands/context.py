"""What every command gets: the cluster, the selected tables, their settings and the options of the run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Callable

from hivekeeper.config.settings import Settings
from hivekeeper.model import Selection
from hivekeeper.names import RunId
from hivekeeper.plan.capacity import RoomForValues
from hivekeeper.ports import Cluster
from hivekeeper.report.results import TableOutcome


def go_on(_planned: TableOutcome) -> bool:
    """Confirm without asking."""
    return True


@dataclass(frozen=True)
class Context:
    """One run of a command. `run` is its id, `run_key` the scheduler's, "" for none.

    `confirm` gets the plan for a table and returns whether to go on. `former_tables`: whether a cleanup may also take the old files of
    other tables that lay at a table's place. `most_row_groups`: of so many of each table the command says where they are. `keeps_files`:
    whether the result has each file. `room_for_values`: what all its tables have together.
    """

    cluster: Cluster
    selection: Selection
    settings_for: Callable[[str], Settings]
    backup_prefix: str
    run: RunId
    dry_run: bool = False
    confirm: Callable[[TableOutcome], bool] = go_on
    run_key: str = ""
    former_tables: bool = False
    most_row_groups: int = 0
    keeps_files: bool = False
    room_for_values: RoomForValues = field(default_factory=RoomForValues, repr=False, compare=False)
