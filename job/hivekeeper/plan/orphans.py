"""What is left of tables, backups and runs that are not there any more, and what each leftover means.

Pure. `steps/orphans.py` looks for them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Iterable, Optional, Tuple

from hivekeeper import quoting
from hivekeeper.codes import Coded
from hivekeeper.model import Table
from hivekeeper.names import ControlPaths


class OrphanKind(Coded):
    """A kind of leftover, and its meaning."""

    RECORDS = "a control directory that belongs to no table, with the backups in it"
    BACKUP_TABLE = "a backup table of a table that is gone"
    BACKUP = "a backup that the log knows and that is not at its place"
    RUN = "a run without an entry in the log: it is at work, or was interrupted"

    def __init__(self, meaning: str) -> None:
        self.meaning = meaning


@dataclass(frozen=True)
class Orphan:
    """A leftover: a directory, or a backup table by its name. `table` and `run` are "" if not known; files and bytes are of its backups, by
    the log; `last_ms` is the time of the last entry.
    """

    kind: OrphanKind
    place: str
    table: str
    why: str
    next: str
    run: str = ""
    backups: int = 0
    files: int = 0
    size_bytes: int = 0
    last_ms: Optional[int] = None


def explain_records(control: str, table_id: str, tables: Iterable[Table]) -> Tuple[str, str]:
    """Why a control directory belongs to no table, by the last table in its log; and what to do. `tables` are those of the database."""
    name, _, created = table_id.rpartition("@")
    tables = list(tables)
    for table in tables:
        if created.isdigit() and int(created) == table.create_time != 0:
            home = ControlPaths.of(table.location, table.partitioned).top
            return (
                f"{name} was {'moved' if table.full_name == name else 'renamed'}: it is {table.full_name} at {table.location} now",
                "if its columns and its owner say so too: "
                f"hdfs dfs -mv {quoting.shell(control)} {quoting.shell(home)}, then: "
                f"hivekeeper recover --table {quoting.shell(table.full_name)}",
            )
    if any(table.full_name == name for table in tables):
        return f"{name} was dropped and created again elsewhere", _BY_HAND
    return f"{name or 'its table'} was dropped, or is in another database now", _BY_HAND


_BY_HAND = "its old files are readable there as they are; when nobody needs them, remove the directory by hand"


def explain_backup_table(table: Table, of: str) -> Tuple[str, str]:
    """Why a backup table is left, and what to do. Anybody can give a table the property that marks one."""
    is_ours = table.kind == "EXTERNAL_TABLE" and table.parameters.get("external.table.purge", "").lower() == "false"
    then = "DROP TABLE deletes no file of it" if is_ours else "it is not as Hivekeeper makes them: DROP TABLE may delete its files"
    return f"its table {of} is gone", then
