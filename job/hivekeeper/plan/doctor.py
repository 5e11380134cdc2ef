"""Decide what the facts of a check-up mean: facts in, one finding each out.

Pure. A finding states a fact and, if something must be fixed, what to do.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import auto
from typing import Iterable, List, Mapping, Optional, Sequence, Tuple

from hivekeeper.codes import Coded, Exit
from hivekeeper.reasons import Code, Reason


class Level(Coded):
    """The severity of a finding. bin/lib/doctor.bash writes the same words."""

    OK = "nothing to do"
    WARN = "look at it"
    FIX = "nothing runs, or something fails, until this is fixed"
    SKIP = "could not be checked, or does not apply"

    @property
    def meaning(self) -> str:
        return str(self.value)


class Place(Coded):
    """Where a finding is fixed: on this machine or in the configuration, or on the cluster."""

    MACHINE = auto()
    CLUSTER = auto()


OK, WARN, FIX, SKIP = Level
MACHINE, CLUSTER = Place

# All checks of the cluster, in order. docs/doctor.md explains each.
CLUSTER_CHECKS = (
    "session",
    "login",
    "file-system",
    "safe-mode",
    "acls",
    "xattrs",
    "encryption",
    "space",
    "staging",
    "clock",
    "shipped-files",
    "queue",
    "metastore",
)
# All checks of one table, in order.
TABLE_CHECKS = ("table", "control", "write", "rename", "owner", "group", "set-acl", "set-xattr", "policy", "units", "room")

# The code of a finding that is not ok, if its cause has no code of its own.
CODES: Mapping[str, Code] = {
    "bash": Code.CHECK_BASH,
    "archive": Code.CHECK_ARCHIVE,
    "python": Code.CHECK_PYTHON,
    "temp-dir": Code.CHECK_TEMP_DIR,
    "configuration": Code.CHECK_CONFIGURATION,
    "spark": Code.CHECK_SPARK,
    "java": Code.CHECK_JAVA,
    "hadoop-conf": Code.CHECK_HADOOP_CONF,
    "yarn-conf": Code.CHECK_YARN_CONF,
    "hive-conf": Code.CHECK_HIVE_CONF,
    "keytab": Code.CHECK_KEYTAB,
    "ticket": Code.CHECK_TICKET,
    "log-dir": Code.CHECK_LOG_DIR,
    "files": Code.CHECK_FILES,
    "session": Code.CHECK_SESSION,
    "login": Code.CHECK_LOGIN,
    "file-system": Code.CHECK_FILE_SYSTEM,
    "safe-mode": Code.CHECK_SAFE_MODE,
    "acls": Code.CHECK_ACLS,
    "xattrs": Code.CHECK_XATTRS,
    "encryption": Code.CHECK_ENCRYPTION,
    "space": Code.CHECK_SPACE,
    "staging": Code.CHECK_STAGING,
    "clock": Code.CHECK_CLOCK,
    "shipped-files": Code.CHECK_SHIPPED_FILES,
    "queue": Code.CHECK_QUEUE,
    "metastore": Code.CHECK_METASTORE,
    "table": Code.CHECK_TABLE,
    "control": Code.CHECK_CONTROL,
    "write": Code.CHECK_WRITE,
    "rename": Code.CHECK_RENAME,
    "owner": Code.CHECK_OWNER,
    "group": Code.CHECK_GROUP,
    "set-acl": Code.CHECK_SET_ACL,
    "set-xattr": Code.CHECK_SET_XATTR,
    "policy": Code.CHECK_POLICY,
    "units": Code.CHECK_UNITS,
    "room": Code.CHECK_ROOM,
}

# Causes that say no more than the check that found them.
_OF_SERVICES = (Code.CLUSTER_UNUSABLE, Code.SPARK_NOT_STARTED, Code.FILE_SYSTEM_UNUSABLE, Code.METASTORE_UNUSABLE)
GENERAL = ("", *(code.code for code in _OF_SERVICES))

# Kerberos fails at five minutes; the log compares times of the NameNode with its own.
MOST_CLOCK_DIFFERENCE_MS = 60_000


@dataclass(frozen=True)
class Check:
    """One finding. `table`: "" if it is about no table; `cause`: the code of the error behind it, or ""."""

    name: str
    level: Level
    what: str
    next: str = ""
    place: Place = CLUSTER
    table: str = ""
    cause: str = field(default="", compare=False)

    @property
    def code(self) -> str:
        """A code of the catalogue if there is something to do, else ""."""
        if self.level in (OK, SKIP):
            return ""
        return CODES[self.name].code if self.cause in GENERAL and self.name in CODES else self.cause


class ProbeFailed(Exception):
    """A probe of the cluster failed. `next` says what to do, `place` where the cause is."""

    def __init__(self, what: str, next: str, place: Place = CLUSTER) -> None:
        super().__init__(what)
        self.next = next
        self.place = place


@dataclass(frozen=True)
class FileSystemFacts:
    """The default file system, according to its server. `acls` and `xattrs`: "" if they work, else why not."""

    uri: str
    is_hdfs: bool
    safe_mode: bool = False
    remaining_bytes: int = 0
    acls: str = ""
    xattrs: str = ""
    key_provider: str = ""


@dataclass(frozen=True)
class LoginFacts:
    """The identity of the job. `proof`: Hadoop's authentication method (KERBEROS, SIMPLE, PROXY, TOKEN)."""

    user: str
    proof: str
    secured: bool
    proved: bool


@dataclass(frozen=True)
class StagingFacts:
    """A scratch directory that was created. `difference_ms`: its time minus this machine's, measured around the call."""

    path: str
    difference_ms: int


@dataclass(frozen=True)
class QueueFacts:
    """One queue of the ResourceManager. If it does not exist, `others` lists the queues that do.

    `enforced`: whether this machine's yarn-site.xml says that the ResourceManager enforces its ACLs (yarn.acl.enable).
    """

    name: str
    exists: bool
    running: bool = True
    may_submit: bool = True
    enforced: bool = True
    others: Tuple[str, ...] = ()


@dataclass(frozen=True)
class TrialFacts:
    """What was allowed below a table's root. `trials`: name → "" (allowed), a reason (refused), None (not tried or not supported)."""

    owner: str
    group: str
    trials: Mapping[str, Optional[str]]
    left: str = ""


@dataclass(frozen=True)
class RoomFacts:
    """The space a table needs and has. Bytes of disk count every copy; None: no quota, or unknown."""

    size_bytes: Optional[int] = None
    disk_bytes: Optional[int] = None
    objects: Optional[int] = None
    quota_at: str = ""
    disk_left: Optional[int] = None
    names_left: Optional[int] = None
    remaining_bytes: int = 0


def read_bash_check(text: str) -> Check:
    """Read a finding of bin/lib/doctor.bash: `LEVEL NAME WHAT` and, after an arrow, what to do."""
    level, name, rest = text.split(" ", 2)
    what, _, remedy = rest.partition(" → ")
    return Check(name, Level.of_code(level), what, remedy, MACHINE)


def code_of_checks(checks: Iterable[Check]) -> Exit:
    """2 if this machine or the configuration must be fixed first, 8 if only the cluster must, else 0."""
    places = {check.place for check in checks if check.level is FIX}
    if MACHINE in places:
        return Exit.USAGE
    return Exit.UNUSABLE if CLUSTER in places else Exit.DONE


def judge_login(facts: LoginFacts) -> Check:
    if facts.secured and not facts.proved:
        remedy = "run kinit, or set kerberos.principal and kerberos.keytab"
        return Check("login", FIX, f"{facts.user}, not authenticated ({facts.proof})", remedy)
    return Check("login", OK, f"{facts.user} ({facts.proof}{'' if facts.secured else '; Kerberos is off'})")


def judge_file_system(facts: FileSystemFacts) -> List[Check]:
    if not facts.is_hdfs:
        here = "it is not HDFS"
        rest = [Check(name, SKIP, here) for name in ("safe-mode", "acls", "xattrs", "encryption")]
        return [Check("file-system", OK, f"{facts.uri} answers"), *rest, _judge_space(facts)]
    return [
        Check("file-system", OK, f"{facts.uri} answers"),
        _judge_safe_mode(facts.safe_mode),
        _judge_switch("acls", facts.acls, "dfs.namenode.acls.enabled"),
        _judge_switch("xattrs", facts.xattrs, "dfs.namenode.xattrs.enabled"),
        Check("encryption", OK, f"keys by {facts.key_provider}" if facts.key_provider else "no key provider: no encryption zones"),
        _judge_space(facts),
    ]


def _judge_safe_mode(on: bool) -> Check:
    if on:
        return Check("safe-mode", FIX, "HDFS is in safe mode: nothing can be written", "wait until: hdfs dfsadmin -safemode get says OFF")
    return Check("safe-mode", OK, "off")


def _judge_switch(name: str, refusal: str, key: str) -> Check:
    if refusal:
        return Check(name, WARN, f"switched off: {refusal}", f"nothing, unless tables need them: then {key}=true on the NameNode")
    return Check(name, OK, "on")


def _judge_space(facts: FileSystemFacts) -> Check:
    if facts.remaining_bytes <= 0:
        return Check("space", FIX, "the file system is full", "make room: nothing can be rewritten without it")
    return Check("space", OK, f"{_size(facts.remaining_bytes)} free, copies counted")


def judge_clock(difference_ms: int) -> Check:
    text = f"the file system's clock is {abs(difference_ms) / 1000:.1f} s {'ahead of' if difference_ms > 0 else 'behind'} this machine's"
    if abs(difference_ms) > MOST_CLOCK_DIFFERENCE_MS:
        return Check("clock", FIX, text, "let both follow the same time server (chronyc tracking); Kerberos fails at 5 minutes")
    return Check("clock", OK, text)


def judge_queue(facts: QueueFacts, user: str) -> Check:
    if not facts.exists:
        known = f"; there are {', '.join(sorted(facts.others))}" if facts.others else ""
        return Check("queue", FIX, f"there is no queue {facts.name}{known}", "correct spark.queue", MACHINE)
    if not facts.running:
        return Check("queue", FIX, f"the queue {facts.name} is stopped", "have it started, or choose another by spark.queue")
    if not facts.may_submit and not facts.enforced:
        text = f"the ACLs of the queue {facts.name} leave {user} out, but yarn-site.xml here does not say that they are enforced"
        return Check("queue", WARN, text, "submit something to it to be sure: spark.master: yarn")
    if not facts.may_submit:
        return Check("queue", FIX, f"{user} may not submit to the queue {facts.name}", "have it allowed, or choose another by spark.queue")
    return Check("queue", OK, f"{facts.name} takes applications of {user}")


def judge_shipped(wanted: Sequence[str], missing: Sequence[str], refused: Optional[Reason]) -> Check:
    if missing:
        remedy = "upload them, or correct the configuration under spark:"
        return Check("shipped-files", FIX, f"not there: {', '.join(missing)}", remedy, MACHINE)
    if refused is not None:
        return Check("shipped-files", FIX, refused.what, refused.next, cause=refused.code.code)
    return Check("shipped-files", OK, f"{len(wanted)} on the cluster to be shipped with the job")


def judge_trials(table: str, facts: TrialFacts, owner_setting: str) -> List[Check]:
    """Judge the trials made in a scratch directory in or beside the table's control directory."""
    remedies = {
        "control": "let this user write and enter the table's root (for an unpartitioned table: its parent)",
        "write": "fix what HDFS reports; quota and space are below",
        "rename": "let this user write to the table's root and to the parents of its partitions",
        "group": "make this user a member of the table's group, or set owner: try",
        "set-acl": "see the check acls, or let this user own the table's directories",
        "set-xattr": "see the check xattrs",
        "policy": "let this user set storage policies, or remove the table's",
    }
    checks = []
    for name, result in facts.trials.items():
        if name == "owner":
            checks.append(_judge_owner(facts, owner_setting))
        elif result is None:
            checks.append(Check(name, SKIP, "not tried"))
        elif result:
            level = WARN if name == "group" and owner_setting != "require" else FIX
            checks.append(Check(name, level, f"refused: {result}", remedies[name]))
        else:
            checks.append(Check(name, OK, "allowed"))
    if facts.left:
        checks.append(Check("control", WARN, f"the scratch directory could not be removed: {facts.left}", "remove it by hand"))
    return [_about(table, check) for check in checks]


def _judge_owner(facts: TrialFacts, setting: str) -> Check:
    refused = facts.trials["owner"]
    if refused is None:
        return Check("owner", SKIP, "not tried")
    if not refused:
        return Check("owner", OK, f"files can be given to {facts.owner}")
    what = f"files cannot be given to {facts.owner}: {refused}"
    if setting == "require":
        return Check("owner", FIX, what, f"run as {facts.owner} or the superuser, or set owner: try in the configuration")
    return Check("owner", WARN, what, f"nothing, if new files may be this user's: owner is set to {setting}")


def judge_units(table: str, tied: Mapping[str, Reason], asked: int, all_of: int) -> Check:
    """Judge the units. `tied`: units whose directories must not be renamed; a run refuses these and compacts the others."""
    if tied:
        name, reason = sorted(tied.items())[0]
        more = f" (and {len(tied) - 1} more of {asked})" if len(tied) > 1 else ""
        level = WARN if len(tied) < asked else FIX
        return Check("units", level, f"{name or 'the table'}: {reason.what}{more}", reason.next, table=table)
    some = f" of {all_of}" if asked < all_of else ""
    return Check("units", OK, f"{asked} directories{some} can be renamed, and lose nothing by it", table=table)


def judge_room(table: str, facts: RoomFacts) -> Check:
    """Judge the space for old and new files until cleanup: at worst the table's size again, and one more file and directory per unit."""
    if facts.disk_bytes is None:
        return Check("room", WARN, "the table's size cannot be read", "let this user read all of the table", table=table)
    need = f"the table takes {_size(facts.disk_bytes)} of disk and {facts.objects:,} names"
    remedy = "raise the quota, run cleanup, or compact fewer partitions at a time (--where, --max-units)"
    if facts.disk_left is not None and facts.disk_left < facts.disk_bytes:
        return Check("room", WARN, f"{need}; the quota at {facts.quota_at} leaves {_size(facts.disk_left)}", remedy, table=table)
    if facts.names_left is not None and facts.objects is not None and facts.names_left < facts.objects:
        return Check("room", WARN, f"{need}; the quota at {facts.quota_at} leaves {facts.names_left:,} names", remedy, table=table)
    if facts.remaining_bytes < facts.disk_bytes:
        return Check("room", WARN, f"{need}; the file system has {_size(facts.remaining_bytes)} left", remedy, table=table)
    return Check("room", OK, f"{need}; there is room to rewrite all of it at once", table=table)


def _about(table: str, check: Check) -> Check:
    return replace(check, table=table)


def _size(size_bytes: int) -> str:
    return f"{size_bytes / 2**30:,.1f} GiB" if size_bytes >= 2**30 else f"{size_bytes / 2**20:,.1f} MiB"
