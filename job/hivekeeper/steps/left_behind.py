"""Finds the records and backups that a rename has left behind: Hive moves the directory of an unpartitioned managed table, not the control
directory beside it.

Reads only. A control directory that belongs to no table can be that of a table created in the same second, by the names and columns in its
records; those of others are not believed.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
from bisect import bisect_left
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Collection, Dict, FrozenSet, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple

from hivekeeper import names, quoting
from hivekeeper.errors import HivekeeperError, NeedsInvestigation, Refused
from hivekeeper.model import Table
from hivekeeper.names import ControlPaths, RunPaths
from hivekeeper.plan import listings, renamed
from hivekeeper.ports import Cluster, FilesError, MetastoreRefused, MetastoreUnavailable, NoPermission, most_files
from hivekeeper.reasons import Code
from hivekeeper.runlog import store
from hivekeeper.runlog.entries import table_id
from hivekeeper.runlog.history import History
from hivekeeper.runlog.outcomes import Outcome
from hivekeeper.runlog.run_files import RunPlan
from hivekeeper.steps import orphans, ownership, renames, rows_away
from hivekeeper.steps.fitness import MOST_AGE_MS
from hivekeeper.steps.whereabouts import usable_until

log = logging.getLogger(__name__)

# Tables by their locations.
Placed = Sequence[Tuple[str, str]]

# By creation time the tables that records are about: the name, and digests of what is known of the columns.
Recorded = Mapping[int, Sequence[Tuple[str, FrozenSet[bytes]]]]

# The same by control directory, by whose records are read, and whether only unfinished runs count.
Read = Dict[Tuple[str, FrozenSet[str], bool], Recorded]

# Control directories of no table, and those at, in or around whose home another table lies than the one that it is named after.
Found = Tuple[Sequence[str], Sequence[str]]

# Stands for a table around a home.
AROUND = ""


@dataclass
class Strays:
    """What a command knows of control directories beside unpartitioned tables: it does not look for them for each table. Other commands may
    make some meanwhile, be killed, and leave rows there that are to be told, before this one gives the table that misses them a log.
    """

    # Until when it may be used, and the tables at their homes, by the directory that they lie in and by whose records are believed; None
    # where there are too many.
    controls: Dict[Tuple[str, FrozenSet[str]], Tuple[float, Optional[Mapping[str, Sequence[str]]]]] = field(default_factory=dict)
    # Those of no table, and those at whose home others lie; with the names of the key's database and the controls that this was judged by.
    orphans: Dict[Tuple[str, FrozenSet[str], str], Tuple[FrozenSet[str], Mapping[str, Sequence[str]], Found]] = field(default_factory=dict)
    # These names, and until when they may be used.
    names: Dict[str, Tuple[float, FrozenSet[str]]] = field(default_factory=dict)
    # Until when it may be used, and what their records are about; by the directory that they lie in.
    tables: Dict[str, Tuple[float, Read]] = field(default_factory=dict)
    # Until when it may be used, and those of no table, or at whose home others lie, in the directories of all databases; by server and by
    # whose records are believed.
    elsewhere: Dict[Tuple[str, FrozenSet[str]], Tuple[float, Sequence[ControlPaths]]] = field(default_factory=dict)
    # The newest `Metastore.table_locations`, and the same in order.
    placed: Optional[Tuple[Mapping[str, str], Placed]] = None


def refuse_left_behind(cluster: Cluster, table: Table, trusted: Collection[str], history: Optional[History] = None) -> None:
    """Raise NeedsInvestigation where the control directory of an unpartitioned table lies beside its former directory: Hive moves the
    directory of a managed table that is renamed, and nothing else. Records of others, which anybody may put there, are not believed.

    `history`: the log at the table's place, None without a control directory. With an entry about this table, all its records are there,
    and nothing is asked. Else it is that of a table which had the name before: then this one is refused only for rows that readers may
    miss. Whoever builds a table anew under another name, and then renames it, needs no old files of it.

    A control directory at whose home another table lies by now counts as that one's, but for unfinished runs of this one: anybody may
    put a table there, and would hide that this one has lost its rows.

    A table without a directory may also have lost its rows in another database, or have been altered since.
    """
    if table.partitioned or not renamed.follows_its_name(table) or (history is not None and _is_about_same_second(table, history)):
        return
    own = ControlPaths.of(table.location, partitioned=False)
    # Records in a directory of somebody else are not believed.
    believed = frozenset([cluster.files.user_at(table.location), *trusted])
    found = _find_orphans(cluster, table.database, names.parent(table.location), believed)
    if found is None:
        raise Refused(
            f"{table.full_name}: there are more than {listings.MOST_BESIDE} hidden directories beside its directory",
            code=Code.TOO_MANY_HIDDEN,
            next="find out who makes them, and remove them",
        )
    homeless, taken = found
    forms, owners = _forms_of(table) if homeless or taken else frozenset(), frozenset(trusted)
    for control, is_taken in [*((ControlPaths(top), False) for top in homeless), *((ControlPaths(top), True) for top in taken)]:
        is_possible = control != own and table.create_time
        former = _find_former_name(cluster, table, forms, control, owners, is_taken) if is_possible else ""
        if former and ((history is None and not is_taken) or _may_hide_rows(cluster, table, control)):
            raise NeedsInvestigation(
                f"{table.full_name}: it was renamed from {former}, and its records and backups stayed in {control.top}",
                code=Code.LEFT_BEHIND,
                state="nothing was touched; where a run was interrupted, the rows may be in that directory alone",
                next=f"{_make_way(table, own) if history is not None else ''}"
                f"hdfs dfs -mv {quoting.hdfs(control.top)} {quoting.hdfs(own.top)}, then: "
                f"hivekeeper recover --table {quoting.shell(table.full_name)}; but if it never had that name, and another table had it, "
                "created in the same second: see docs/runbook.md, the table changed meanwhile",
            )
    _refuse_without_directory(cluster, table, history, believed, owners)


def _refuse_without_directory(
    cluster: Cluster, table: Table, history: Optional[History], believed: FrozenSet[str], owners: FrozenSet[str]
) -> None:
    """Raise NeedsInvestigation if a run that was killed has rows away, beside the place of a table of any database that is gone, and this
    table may be that one (`renames.may_be_without_rows`). Nothing is looked for where it has a directory, as nearly all have: somebody
    else's second and killed run stop none of them.
    """
    if not table.create_time or renames.has_directory(cluster, table):
        return
    own = ControlPaths.of(table.location, partitioned=False)
    if history is not None and any(table_id(plan.table) == table_id(table) for _, plan in _read_plans_away(cluster, own)):
        # A run of its own has them away.
        return
    for control in _find_elsewhere(cluster, table, believed):
        if control == own or not _recorded(cluster, table, control, owners, is_taken=True).get(table.create_time):
            continue
        for paths, plan in _read_plans_away(cluster, control):
            if renames.may_be_without_rows(cluster, plan.table, table) and not is_another(cluster, table, plan.table.full_name):
                possible = _find_possible(cluster, table, plan, paths)
                raise _may_have_lost_its_rows(cluster, table, possible, control, plan, _make_way(table, own) if history is not None else "")


def _find_elsewhere(cluster: Cluster, table: Table, believed: FrozenSet[str]) -> Iterator[ControlPaths]:
    """The control directories of no table beside a table, and in the directories of all databases, from which a rename may have brought it:
    on its own server, as Hive renames nothing to another one.

    Those of all databases are some seconds old, or as old as it took to look for them: a warehouse may have thousands of databases, and
    somebody thousands of tables without a directory.
    """
    yield from _find_in(cluster, table, table.database, names.parent(table.location), believed)
    began_ms, known, key = cluster.clock.monotonic_ms(), cluster.memory.of(Strays).elsewhere, (names.server_of(table.location), believed)
    until_ms, found = known.get(key, (-math.inf, ()))
    if began_ms > until_ms:
        homes = sorted(cluster.metastore.database_locations().items())
        found = [control for database, home in homes for control in _find_in(cluster, table, database, home.rstrip("/"), believed)]
        known[key] = usable_until(cluster.clock, began_ms, MOST_AGE_MS), found
    yield from found


def _find_in(cluster: Cluster, table: Table, database: str, home: str, believed: FrozenSet[str]) -> Sequence[ControlPaths]:
    """Those in one directory. A place that cannot be looked at is anybody's choice, and stops nobody; nor does a database that is closed to
    this user. A snapshot has the past of all tables: what was interrupted then may have been settled since.
    """
    server = names.server_of(table.location)
    if names.server_of(home) != server or home == server or names.is_reserved(home):
        return ()
    try:
        homeless, taken = _find_orphans(cluster, database, home, believed) or ((), ())
    except (FilesError, MetastoreRefused) as error:
        log.info("table=%s step=find-records failed reason=%r", table.log_field, str(error))
        return ()
    return [ControlPaths(top) for top in (*homeless, *taken)]


def _read_plans_away(cluster: Cluster, control: ControlPaths) -> Iterator[Tuple[RunPaths, RunPlan]]:
    """The plans of unfinished runs that have rows away. What cannot be read says nothing."""
    # As in _find_tables.
    cluster = replace(cluster, log_entries={})
    with suppress(HivekeeperError, NoPermission):
        unfinished = orphans.find_unfinished(cluster, control, store.read_history(cluster, control))
        yield from rows_away.read_plans(cluster, control, unfinished)


def _find_possible(cluster: Cluster, table: Table, plan: RunPlan, paths: RunPaths) -> renames.Possible:
    """The tables that may be the renamed one. If not all tables can be read, this one is told all the same."""
    try:
        return renames.find_possible(cluster, plan.table, paths)
    except (HivekeeperError, MetastoreUnavailable) as error:
        log.info("table=%s step=read-tables failed reason=%r", table.log_field, str(error))
        return renames.Possible()


def _may_have_lost_its_rows(
    cluster: Cluster, table: Table, possible: renames.Possible, control: ControlPaths, plan: RunPlan, way: str
) -> NeedsInvestigation:
    others = [one.full_name for one in possible.tables if one.full_name != table.full_name]
    also = f"; so may {', '.join(others)}" if others else ""
    also += "" if possible.are_all else "; whether others may be it is not known"
    how = "find out which of them was renamed"
    if possible.are_all and not others:
        how = f"if it was renamed: {way}{renames.how_to_bring(cluster, table, control)}"
    return NeedsInvestigation(
        f"{table.full_name}: it has no directory, and may have been renamed from {plan.table.full_name} while the interrupted run "
        f"{plan.run} had its rows away: they are in {control.top}{also}",
        code=Code.LEFT_BEHIND,
        state="nothing was touched; the rows may be in that directory alone",
        next=f"{how}; if not: see docs/runbook.md, the table changed meanwhile",
    )


def _is_about_same_second(table: Table, history: History) -> bool:
    """Whether an entry is about a table of this one's second: this one, perhaps under a former name."""
    return table.create_time in map(_created, {run.table_id for run in history.runs})


def _make_way(table: Table, own: ControlPaths) -> str:
    """How to move the records of the table that had the name before to where they are known to be those of a table that is gone. What
    is moved onto a directory that is there ends inside it.
    """
    aside = f"{own.top}-before-{table.create_time}"
    return f"hdfs dfs -mv {quoting.hdfs(own.top)} {quoting.hdfs(aside)} (of the table that had the name before), then: "


def _find_orphans(cluster: Cluster, database: str, beside: str, believed: FrozenSet[str]) -> Optional[Found]:
    """The control directories of these owners in a directory that belong to no table, or at whose home another one lies; None if it holds
    too many hidden ones to look for them. `database`: in which a table may have been renamed since the places of all tables were read.
    """
    known = cluster.memory.of(Strays)
    controls = _controls_beside(cluster, beside, believed)
    if controls is None:
        return None
    # Without such a directory nothing needs to be known of the tables.
    there = _names_there(cluster, database) if controls else frozenset()
    key = beside, believed, database
    judged_by, judged, found = known.orphans.get(key, (None, None, ((), ())))
    if judged_by is not there or judged is not controls:
        # Not for each of thousands of tables beside thousands of such directories.
        homeless = [control for control, tables in controls.items() if not any(_is_there(table, database, there) for table in tables)]
        locations = cluster.metastore.table_locations() if controls else {}
        others = controls.keys() - homeless
        found = homeless, sorted(control for control in others if not _is_own(control, database, there, locations))
        known.orphans[key] = there, controls, found
    return found


def _controls_beside(cluster: Cluster, beside: str, believed: FrozenSet[str]) -> Optional[Mapping[str, Sequence[str]]]:
    """As _list_controls, some seconds old, or as old as it takes to list them."""
    began_ms, known = cluster.clock.monotonic_ms(), cluster.memory.of(Strays)
    until_ms, found = known.controls.get((beside, believed), (-math.inf, None))
    if began_ms > until_ms:
        found = _list_controls(cluster, beside, believed)
        known.controls[beside, believed] = usable_until(cluster.clock, began_ms, MOST_AGE_MS), found
    return found


def _list_controls(cluster: Cluster, beside: str, believed: FrozenSet[str]) -> Optional[Mapping[str, Sequence[str]]]:
    """The control directories of these owners, each with the tables that lie at or below its home. Those of others, of which anybody may
    make a hundred thousand in each directory with a table of theirs, are not kept.
    """
    most = most_files(listings.MOST_BESIDE, [beside])
    hidden = cluster.files.look_hidden_directories([beside], most + 1)[beside].entries
    if len(hidden) > most:
        return None
    prefix = f"{names.CONTROL}-"
    own = [entry for entry in hidden if entry.name.startswith(prefix) and entry.owner in believed]
    placed = _placed_tables(cluster) if own else []
    if any(_is_at(placed, above) for above in names.with_above(beside)):
        return {entry.path: (AROUND,) for entry in own}
    return {entry.path: tuple(_at_or_below(placed, f"{beside}/{entry.name[len(prefix) :]}")) for entry in own}


def _placed_tables(cluster: Cluster) -> Placed:
    """The location of each table, with a slash at its end, and its name, in order: those inside a directory follow it directly. Sorted once
    for each reading of all tables, not for each directory that some of them lie in.

    Without backup tables: one that still shows the live files of a killed run stays at the former place of its table, which Hive has moved.
    """
    locations, known = cluster.metastore.table_locations(), cluster.memory.of(Strays)
    if known.placed is None or known.placed[0] is not locations:
        own = ((name, place) for name, place in locations.items() if not names.may_back_up(name.partition(".")[2], names.base(place)))
        known.placed = locations, sorted((f"{place.rstrip('/')}/", name) for name, place in own)
    return known.placed[1]


def _from(placed: Placed, place: str) -> int:
    """Where the tables at a place, and then those below it, begin."""
    return bisect_left(placed, (f"{place}/", ""))


def _is_at(placed: Placed, place: str) -> bool:
    """Whether a table is there."""
    nth = _from(placed, place)
    return nth < len(placed) and placed[nth][0] == f"{place}/"


def _at_or_below(placed: Placed, place: str) -> Iterator[str]:
    """The tables there."""
    for nth in range(_from(placed, place), len(placed)):
        location, name = placed[nth]
        if not location.startswith(f"{place}/"):
            return
        yield name


def _names_there(cluster: Cluster, database: str) -> FrozenSet[str]:
    """The names of the tables in a database, some seconds old, or as old as it takes to ask for them: the places of all tables may be an
    hour old, and the control directory of one that was renamed since would count as that of the table it was.
    """
    began_ms, known = cluster.clock.monotonic_ms(), cluster.memory.of(Strays).names
    until_ms, found = known.get(database, (-math.inf, frozenset()))
    if began_ms > until_ms:
        try:
            found = frozenset(cluster.metastore.table_names(database))
        except KeyError:
            # It was dropped, with all its tables.
            found = frozenset()
        known[database] = usable_until(cluster.clock, began_ms, MOST_AGE_MS), found
    return found


def _is_there(table: str, database: str, there: FrozenSet[str]) -> bool:
    """Whether a table is, or may be, still there under its name; `there` are those of one database."""
    of, _, name = table.partition(".")
    return of != database or name in there


def _is_own(control: str, database: str, there: FrozenSet[str], locations: Mapping[str, str]) -> bool:
    """Whether the table lies at a control directory's home that Hive gives this place by its name: most do, and are not asked for more.
    Where it has the name and the place of one that was renamed, its own commands tell (`identity.refuse_renamed`).
    """
    home = ControlPaths(control).home
    name = names.base(home)
    return name in there and locations.get(f"{database}.{name}", "").rstrip("/") == home


def _find_former_name(
    cluster: Cluster, table: Table, forms: FrozenSet[bytes], control: ControlPaths, trusted: FrozenSet[str], is_taken: bool
) -> str:
    """The former name of this table, of these `forms`, if the records of a control directory can be its own, by its creation time and its
    columns; else "". Several tables may have been created in one second: one that is still there under its name is none of this one's
    former names, wherever it lies by now. `is_taken`: only by runs that are unfinished.
    """
    for name, known in _recorded(cluster, table, control, trusted, is_taken).get(table.create_time, ()):
        if known <= forms and not is_another(cluster, table, name):
            return name
    return ""


def _recorded(cluster: Cluster, table: Table, control: ControlPaths, trusted: FrozenSet[str], is_taken: bool) -> Recorded:
    """As _find_tables, some seconds old, or as old as it takes to read all beside one another: there may be thousands of such directories,
    or long logs, and thousands of tables beside them, all created in one second.
    """
    tables, beside, which = cluster.memory.of(Strays).tables, names.parent(control.top), (control.top, trusted, is_taken)
    began_ms = cluster.clock.monotonic_ms()
    until_ms, read = tables.get(beside, (-math.inf, {}))
    if began_ms > until_ms:
        until_ms, read = began_ms + MOST_AGE_MS, {}
    if which not in read:
        read[which] = _find_tables(cluster, table, control, trusted, is_taken)
        # While they are read, and for as long after that.
        until_ms += 2 * (cluster.clock.monotonic_ms() - began_ms)
    tables[beside] = until_ms, read
    return read[which]


def _may_hide_rows(cluster: Cluster, table: Table, control: ControlPaths) -> bool:
    """Whether rows that readers miss may be there: a run was interrupted that had begun to exchange files, or ended with them at another
    place than the table's. One that was killed while it wrote copies, as nearly all are, has changed nothing.
    """
    # As in _find_tables.
    cluster = replace(cluster, log_entries={})
    try:
        history = store.read_history(cluster, control)
        unfinished = [control.run(directory) for directory in orphans.find_unfinished(cluster, control, history)]
        may_miss = rows_away.may_miss_rows(cluster.files, [(paths, store.read_plan(cluster, table, paths)) for paths in unfinished])
    except (HivekeeperError, NoPermission):
        return True
    return may_miss or any(unit.outcome is Outcome.MISPLACED for run in history.runs for unit in run.units)


def _created(known: str) -> int:
    """When the table with this id was created, 0 if that is not known."""
    created = known.rpartition("@")[2]
    return int(created) if created.isdigit() else 0


def is_another(cluster: Cluster, table: Table, name: str) -> bool:
    """Whether another table of this name was created in the same second as this one."""
    database, _, base = name.partition(".")
    found = None if name == table.full_name else cluster.metastore.tables(database, [base]).get(base)
    return found is not None and found.create_time == table.create_time


def _find_tables(cluster: Cluster, table: Table, control: ControlPaths, trusted: FrozenSet[str], is_taken: bool) -> Recorded:
    """The tables that the records are about, by creation time: the name, and what is known of the forms. What cannot be read says nothing.
    `table`: for whom they are read. `is_taken`: only those of unfinished runs.
    """
    found: Dict[str, FrozenSet[bytes]] = {}
    # There may be thousands, whose logs are not held together.
    cluster = replace(cluster, log_entries={})
    try:
        ownership.require_own_records(cluster, table, control, trusted)
        directories = [] if is_taken else store.find_runs(cluster.files, control)
    except (NeedsInvestigation, NoPermission):
        return {}
    with suppress(HivekeeperError, NoPermission):
        history = store.read_history(cluster, control)
        if is_taken:
            directories = orphans.find_unfinished(cluster, control, history)
        for run in () if is_taken else history.runs:
            logged = frozenset() if run.partition_columns is None else frozenset([_form_of_partitions(run.partition_columns)])
            found[run.table_id] = found.get(run.table_id, frozenset()) | logged
    for directory in directories:
        with suppress(HivekeeperError, NoPermission):
            plan = store.read_plan(cluster, table, control.run(directory))
            # The newest one tells, and the log alone where there is no plan any more.
            found.update({table_id(plan.table): frozenset([_form_of_definition(plan.table)])} if plan else {})
    by_time: Dict[int, List[Tuple[str, FrozenSet[bytes]]]] = {}
    for known, forms in found.items():
        by_time.setdefault(_created(known), []).append((known.rpartition("@")[0], forms))
    return by_time


def _forms_of(table: Table) -> FrozenSet[bytes]:
    """All that records may know of a table's form: it can be one of which they know no other."""
    return frozenset([_form_of_definition(table), _form_of_partitions([column.name for column in table.partition_columns])])


def _form_of_definition(table: Table) -> bytes:
    """The same for two definitions that are alike (`renamed.is_alike`)."""
    columns = ([[column.name, column.type] for column in some] for some in (table.columns, table.partition_columns))
    return _digest([table.kind, *columns])


def _form_of_partitions(columns: Iterable[str]) -> bytes:
    """As `identity._is_partitioned_alike` compares them."""
    return _digest([column.lower() for column in columns])


def _digest(form: List[Any]) -> bytes:
    """Kept in place of thousands of columns for each of thousands of directories."""
    return hashlib.sha256(json.dumps(form).encode()).digest()
