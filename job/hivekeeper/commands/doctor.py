"""doctor: check everything a run needs, and say what to fix. Changes no table; trials run in scratch directories."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from itertools import islice
from typing import Callable, ContextManager, Iterator, List, Optional, Protocol, Sequence, Tuple

from hivekeeper import names, quoting
from hivekeeper.codes import Exit
from hivekeeper.commands import selection
from hivekeeper.commands.open_table import require_own_place
from hivekeeper.commands.shipped_files import refuse_untrusted
from hivekeeper.config.settings import Settings
from hivekeeper.errors import HivekeeperError
from hivekeeper.jail import Jail
from hivekeeper.model import Selection, Table
from hivekeeper.names import ControlPaths, RunId
from hivekeeper.plan import doctor, eligibility, own_place
from hivekeeper.plan.doctor import CLUSTER, FIX, MACHINE, OK, SKIP, WARN, Check, ProbeFailed
from hivekeeper.ports import Clock, Cluster, Files, FilesError, MetastoreUnavailable
from hivekeeper.reasons import Code, Reason
from hivekeeper.report.results import CommandResult
from hivekeeper.steps import ownership
from hivekeeper.steps.observe import find_tied, find_units, qualify_table

log = logging.getLogger(__name__)

# Check the directories of at most this many partitions, a few calls each; in a larger table the rest are usually alike.
MOST_UNITS = 2000
NEEDED_FOR_TABLES = ("file-system", "safe-mode", "metastore")
# A table that does not exist: a server still looks it up, unless it speaks another protocol version.
NO_TABLE = ("default", ("hivekeeper_doctor",))


class Probes(Protocol):
    """The probes of a cluster with an open session. Any method may raise ProbeFailed; none changes a table."""

    # The version of Spark, the master and the application's id, as text.
    session: str
    on_yarn: bool

    @property
    def metastore(self) -> str:
        """The versions of the metastore and Hive's client, as text."""

    def login(self) -> doctor.LoginFacts: ...

    def file_system(self) -> doctor.FileSystemFacts: ...

    def staging(self, scratch: str) -> doctor.StagingFacts:
        """Create a scratch directory where Spark will stage its files, and remove it."""

    def queue(self, name: str) -> Optional[doctor.QueueFacts]:
        """The queue's facts; None if no ResourceManager is configured."""

    def missing(self, paths: Sequence[str]) -> Tuple[str, ...]: ...

    def files(self) -> Files:
        """The files of the cluster; nothing may be changed."""

    def cluster(self) -> Cluster:
        """The ports; connects to the metastore. Raises Unusable."""

    def try_rights(self, root: str, control: str, scratch: str) -> doctor.TrialFacts:
        """Try a run's changes in a scratch directory of this name inside the control directory; beside its place if there is none."""

    def room(self, root: str) -> doctor.RoomFacts: ...


@dataclass(frozen=True)
class Subject:
    """What to check. No cluster is open yet, and opening one may fail.

    `shipped`: paths on the cluster that the configuration ships with the job. `found`: the findings on this machine. `trusted`: who may
    own what is shipped, besides the user of the run.
    """

    selection: Selection
    settings_for: Callable[[str], Settings]
    backup_prefix: str
    run: RunId
    queue: Optional[str] = None
    shipped: Tuple[str, ...] = ()
    found: Tuple[Check, ...] = ()
    trusted: Tuple[str, ...] = ()


def check_up(open_probes: Callable[[], ContextManager[Probes]], clock: Clock, subject: Subject) -> CommandResult:
    """Return all findings, those of this machine first."""
    started, began = clock.now_ms(), clock.monotonic_ms()
    checks = [*subject.found, *examine_cluster(open_probes, subject)]
    seconds = (clock.monotonic_ms() - began) / 1000
    return CommandResult("doctor", subject.run, started, seconds, named=False, checks=tuple(checks))


def examine_cluster(open_probes: Callable[[], ContextManager[Probes]], subject: Subject) -> List[Check]:
    """Run the checks in order; a check that cannot run is reported as skipped, never left out."""
    try:
        with open_probes() as probes:
            checks = [Check("session", OK, probes.session), *_examine_services(probes, subject)]
            possible = all(_is_fit(checks, needed) for needed in NEEDED_FOR_TABLES)
            return [*checks, *_examine_tables(probes, subject, possible)]
    except HivekeeperError as error:
        place = MACHINE if error.reason.exit is Exit.USAGE else CLUSTER
        rest = doctor.CLUSTER_CHECKS[1:]
        session = Check("session", FIX, error.reason.what, error.reason.next, place, cause=error.reason.code.code)
        return [session, *(Check(name, SKIP, "needs session") for name in rest)]


def _examine_services(probes: Probes, subject: Subject) -> Iterator[Check]:
    yield from _ask("login", lambda: [doctor.judge_login(probes.login())])
    of_files = _ask("file-system", lambda: doctor.judge_file_system(probes.file_system()))
    yield from of_files
    if _is_fit(of_files, "file-system"):
        yield from _examine_staging(probes, subject.run, _is_fit(of_files, "safe-mode"))
        yield from _ask("shipped-files", lambda: [_examine_shipped(probes, subject)])
    else:
        needing = ("safe-mode", "acls", "xattrs", "encryption", "space", "staging", "clock", "shipped-files")
        yield from (Check(name, SKIP, "needs file-system") for name in needing)
    yield from _ask("queue", lambda: [_examine_queue(probes, subject.queue)])
    yield from _ask("metastore", lambda: [_examine_metastore(probes)])


def _examine_staging(probes: Probes, run: RunId, writable: bool) -> List[Check]:
    if not writable:
        return [Check(name, SKIP, "needs safe-mode to be off") for name in ("staging", "clock")]

    def examine() -> List[Check]:
        facts = probes.staging(names.trial_directory(run))
        return [Check("staging", OK, f"{facts.path} can be written to"), doctor.judge_clock(facts.difference_ms)]

    found = _ask("staging", examine)
    return found if len(found) > 1 else [*found, Check("clock", SKIP, "needs staging")]


def _examine_shipped(probes: Probes, subject: Subject) -> Check:
    missing = probes.missing(subject.shipped)
    refused = refuse_untrusted(probes.files(), subject.shipped, subject.trusted) if subject.shipped else None
    return doctor.judge_shipped(subject.shipped, missing, refused)


def _examine_queue(probes: Probes, name: Optional[str]) -> Check:
    if probes.on_yarn:
        return Check("queue", OK, f"{name or 'the default queue'} has taken this application")
    facts = probes.queue(name or "default")
    if facts is None:
        return Check("queue", SKIP, "no ResourceManager is configured, and spark.master is not yarn")
    return doctor.judge_queue(facts, probes.login().user)


def _examine_metastore(probes: Probes) -> Check:
    """Try every kind of call that a run makes: a metastore of another protocol version may support only some of them."""
    metastore = probes.cluster().metastore
    databases = metastore.databases()
    metastore.tables(*NO_TABLE)
    return Check("metastore", OK, f"{probes.metastore}, {len(databases)} databases")


def _examine_tables(probes: Probes, subject: Subject, possible: bool) -> Iterator[Check]:
    selected = subject.selection
    if not selected.tables and not selected.databases:
        return
    if not possible:
        yield Check("table", SKIP, f"needs {', '.join(NEEDED_FOR_TABLES)}")
        return
    opened: List[selection.SelectedTables] = []

    def find() -> List[Check]:
        opened.append(selection.SelectedTables(probes.cluster(), selected, subject.backup_prefix))
        return []

    yield from _ask("table", find)
    for found in opened:
        yield from _examine_each(probes, iter(found), subject)
        yield from (_judge_absent(name, why, selected) for name, why in found.absent.items())


def _judge_absent(name: str, why: Reason, selected: Selection) -> Check:
    """A table of a database is its owner's: that it is gone at its turn is no error, as in a run. One that was named may be misspelt."""
    if why.code is Code.NO_SUCH_TABLE and not selected.names(name):
        return Check("table", SKIP, "it was dropped or renamed meanwhile", table=name, cause=why.code.code)
    return Check("table", FIX, why.what, why.next, MACHINE, name, why.code.code)


def _examine_each(probes: Probes, tables: Iterator[Table], subject: Subject) -> Iterator[Check]:
    """One after the other: all definitions of several databases may be too much to be held."""
    taken: List[Table] = []

    def take() -> List[Check]:
        taken.extend(islice(tables, 1))
        return []

    while True:
        yield from _ask("table", take)
        if not taken:
            return
        yield from _examine_table(probes, taken.pop(), subject)


def _examine_table(probes: Probes, table: Table, subject: Subject) -> Iterator[Check]:
    """Everything about a table is a finding of that table alone: whoever may change its definition chooses its location."""
    unfit = eligibility.refuse_kind(table)
    if unfit:
        level = FIX if unfit.code in (Code.IN_CONTROL_DIRECTORY, Code.UNREADABLE_DEFINITION) else WARN
        yield Check("table", level, unfit.what, unfit.next, table=table.full_name, cause=unfit.code.code)
        return
    fit: List[Tuple[Table, ControlPaths]] = []

    def find() -> List[Check]:
        fit.append(_find_place(probes.cluster(), table, subject.settings_for(table.full_name)))
        return [Check("table", OK, fit[0][0].location, table=table.full_name)]

    yield from _ask("table", find, table.full_name)
    for qualified, control in fit:
        yield from _examine_place(probes, qualified, control, subject)


def _find_place(cluster: Cluster, table: Table, settings: Settings) -> Tuple[Table, ControlPaths]:
    """The table with its location qualified, and its control directory. Changes nothing.

    Raises as a run would before it makes anything there: on this machine's own files, among another table's or a database's, below names
    that lead out of the table, or in a control directory of somebody else. Trials make, rename and remove directories too.
    """
    table = qualify_table(cluster.files, table)
    control = ControlPaths.of(table.location, table.partitioned)
    cluster.files.require_lockable(control.lock)
    Jail.of(cluster.files, table).require(control.top)
    require_own_place(cluster, table, control)
    ownership.require_own_control(cluster, table, control, settings.trusted_owners)
    return table, control


def _examine_place(probes: Probes, table: Table, control: ControlPaths, subject: Subject) -> Iterator[Check]:
    name = table.full_name

    def try_rights() -> List[Check]:
        facts = probes.try_rights(table.location, control.top, names.trial_directory(subject.run))
        return doctor.judge_trials(name, facts, subject.settings_for(name).owner)

    yield from _ask("control", try_rights, name)
    yield from _ask("units", lambda: [_examine_units(probes.cluster(), table, control)], name)
    yield from _ask("room", lambda: [doctor.judge_room(name, probes.room(table.location))], name)


def _examine_units(cluster: Cluster, table: Table, control: ControlPaths) -> Check:
    units = find_units(cluster, table)
    # Others are refused, and may be on servers that do not answer.
    asked = [unit for unit in units if own_place.is_inside(table, unit)][:MOST_UNITS]
    return doctor.judge_units(table.full_name, find_tied(cluster, control, asked), len(asked), len(units))


def _ask(name: str, examine: Callable[[], List[Check]], table: str = "") -> List[Check]:
    """The findings of a probe; a failed probe is a finding too."""
    try:
        return examine()
    except ProbeFailed as failed:
        return [Check(name, FIX, str(failed), failed.next, failed.place, table)]
    except HivekeeperError as error:
        return [Check(name, FIX, error.reason.what, error.reason.next, CLUSTER, table, error.reason.code.code)]
    except (FilesError, MetastoreUnavailable) as error:
        return [Check(name, FIX, str(error), "fix the cause, then check again", CLUSTER, table, error.code.code)]
    except Exception as error:
        log.exception("table=%s step=%s failed", quoting.log_field(table), name)
        return [Check(name, FIX, f"unexpected error: {error!r}", "report the stack in the log", CLUSTER, table, Code.BUG.code)]


def _is_fit(checks: Sequence[Check], name: str) -> bool:
    return any(check.name == name and check.level in (OK, WARN, SKIP) for check in checks)
