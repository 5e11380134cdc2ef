"""What a call into the JVM raises, and what it means: the only place that knows Java's and Hadoop's exceptions.

Pure except for reading the Java exception. A chain of causes becomes an error of `ports`, or a line that an operator understands;
an unknown error is quoted.
"""

from __future__ import annotations

import re
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple, Type

from py4j.protocol import Py4JError, Py4JJavaError

from hivekeeper.ports import (
    FilesError,
    FilesUnavailable,
    ForeignTrash,
    MetastoreNoTicket,
    MetastoreRefused,
    MetastoreUnavailable,
    NoPermission,
    NoSpace,
    NoTicket,
    NotPossible,
    SourceMissing,
    SourceReplaced,
    TargetExists,
)
from hivekeeper.reasons import Code

try:
    from pyspark.errors.exceptions.captured import CapturedException
except ImportError:  # Spark 3.3
    from pyspark.sql.utils import CapturedException  # type: ignore[attr-defined]

# What a call raises if Java threw: PySpark replaces some classes (IllegalArgumentException) with exceptions of its own.
JAVA_ERRORS: Tuple[Type[Exception], ...] = (Py4JJavaError, CapturedException)
# The same, or the JVM has ended.
CALL_ERRORS: Tuple[Type[Exception], ...] = (Py4JError, CapturedException)
# The same, or there is no connection to it.
ALL_ERRORS: Tuple[Type[Exception], ...] = (*CALL_ERRORS, OSError)


# ---- the chain of causes

_ERROR_CLASS = re.compile(r"^(?:\[[A-Z_.]+\]\s*)?")
# Of a message, in characters: two paths of HDFS and more. It may quote a name out of a file, of any length, and is searched for patterns.
_MOST_OF_MESSAGE = 20_000


class Cause(NamedTuple):
    """One link in a Java exception's cause chain. For an error from a server, `name` is the class that the server threw."""

    name: str
    message: str

    @property
    def short_name(self) -> str:
        return self.name.rpartition(".")[2].rpartition("$")[2]


def java_causes(error: BaseException) -> Tuple[Cause, ...]:
    """The chain of Java exceptions behind a Python exception, outermost first; () if there is none.

    PySpark's own exceptions keep the Java one as `_origin`.
    """
    java = getattr(error, "java_exception", None)
    if java is None:
        java = getattr(error, "_origin", None)
    chain: List[Cause] = []
    while java is not None and len(chain) < 20:
        name = str(java.getClass().getName())
        if name == "org.apache.hadoop.ipc.RemoteException":
            name = str(java.getClassName())
        chain.append(Cause(name, str(java.getMessage() or "")[:_MOST_OF_MESSAGE]))
        java = java.getCause()
    return tuple(chain)


def first_line(causes: Sequence[Cause]) -> str:
    """The first line of the innermost non-empty message; HDFS appends its server's stack trace to messages."""
    for cause in reversed(causes):
        if cause.message.strip():
            return cause.message.strip().splitlines()[0]
    return causes[0].short_name if causes else ""


def _innermost(causes: Sequence[Cause]) -> str:
    """The first line without Spark's error class in front, at most 300 characters."""
    return _ERROR_CLASS.sub("", first_line(causes))[:300]


def _all_text(causes: Sequence[Cause]) -> str:
    return "\n".join(f"{cause.name}: {cause.message}" for cause in causes)


# ---- Kerberos

KEEP_TICKET = "get a ticket with a longer life, or set kerberos.principal and kerberos.keytab"
_NO_TICKET = (
    r"No valid credentials provided|Failed to find any Kerberos tgt|Client cannot authenticate via|SIMPLE authentication is not|"
    r"GSS initiate failed|Unable to obtain password from user"
)


def lacks_ticket(causes: Sequence[Cause]) -> bool:
    """Whether a server or our own side of a connection failed for lack of a Kerberos ticket."""
    return any(re.search(_NO_TICKET, cause.message) for cause in causes)


# ---- file systems

_OF_FILES: Dict[str, Type[FilesError]] = {
    "FileAlreadyExistsException": TargetExists,
    "AlreadyBeingCreatedException": TargetExists,
    "FileNotFoundException": SourceMissing,
    "NoSuchFileException": SourceMissing,
    "ParentNotDirectoryException": SourceMissing,
    "InvalidPathHandleException": SourceReplaced,
    "ForeignTrash": ForeignTrash,
    "UnsupportedOperationException": NotPossible,
    "AccessControlException": NoPermission,
    # Of Ranger's plugin in the NameNode, for a path that a policy denies.
    "RangerAccessControlException": NoPermission,
    "AccessDeniedException": NoPermission,
    # HDFS lets nobody make a name of so many bytes; its message quotes that.
    "PathComponentTooLongException": NoPermission,
    # A KMS that does not let this user use a key.
    "AuthorizationException": NoPermission,
    "QuotaExceededException": NoSpace,
    "NSQuotaExceededException": NoSpace,
    "DSQuotaExceededException": NoSpace,
    "QuotaByStorageTypeExceededException": NoSpace,
    # A directory has as many entries as the NameNode allows.
    "MaxDirectoryItemsExceededException": NoSpace,
}
# Another client has the file open, or the lease of a dead client is being recovered.
BEING_RECOVERED = "RecoveryInProgressException"
HELD_BY_ANOTHER = frozenset(["AlreadyBeingCreatedException", BEING_RECOVERED])
# With what Hadoop's client or server begins; the last is that of a server where authorization is on and authentication is not.
_ABOUT_LOGIN = re.compile(r"(client cannot |simple )?authenticat|authorization \(hadoop\.", re.IGNORECASE)


def files_error(causes: Sequence[Cause]) -> FilesError:
    """The error for the outermost exception with a known name. With any other exception the effect is unknown.

    The name comes first: a message quotes a path, and whoever may make directories chooses what that says.
    """
    message = first_line(causes)
    for cause in causes:
        meaning = _OF_FILES.get(cause.short_name)
        if meaning is not None and not _is_about_login(cause):
            return meaning(message)
    if lacks_ticket(causes):
        return NoTicket(f"there is no valid Kerberos ticket: {KEEP_TICKET} ({message})")
    if any("No space left on device" in cause.message for cause in causes):
        return NoSpace(message)
    if any(_is_about_login(cause) for cause in causes):
        return FilesUnavailable(message)
    # Our threads and Hadoop's wrap the original exception in their own.
    said = next((cause for cause in reversed(causes) if cause.message.strip()), causes[0])
    return FilesUnavailable(f"{said.short_name}: {message}")


def _is_about_login(cause: Cause) -> bool:
    """Hadoop's RPC reports a missing ticket with the same class as a missing permission; its first words tell them apart."""
    return cause.short_name == "AccessControlException" and _ABOUT_LOGIN.match(cause.message) is not None


# ---- the metastore

# A metastore that moves or restarts, an expired ticket, a server with another protocol version.
_NO_METASTORE = frozenset(
    [
        "TTransportException",
        "TApplicationException",
        "TProtocolException",
        "ConnectException",
        "SocketException",
        "SocketTimeoutException",
        "UnknownHostException",
        "NoRouteToHostException",
        "GSSException",
    ]
)
# Of our own reader, at each try.
_PARTITIONS_CHANGE = "PartitionsChange"
# The answer of a Thrift server whose own code threw: not a version mismatch.
_FAILED_INSIDE = "Internal error processing"
# Hive's client puts the failure of all its tries into the text of one exception.
_NO_CONNECTION = "Could not connect to meta store"
# What its answers are: they may quote HDFS, and so a path, which says whatever the one who made it has chosen.
_ANSWERS = "org.apache.hadoop.hive.metastore.api."
_REFUSED_PACKAGES = ("org.apache.hadoop.hive.", "org.apache.thrift.", "org.apache.spark.", "org.apache.hadoop.security.")


def metastore_error(causes: Sequence[Cause]) -> Optional[MetastoreUnavailable]:
    """The metastore error for a Java exception; None if it is not about the metastore."""
    message = first_line(causes)
    if any(cause.short_name == _PARTITIONS_CHANGE for cause in causes):
        return MetastoreUnavailable(message)
    if any(cause.message.startswith(_FAILED_INSIDE) for cause in causes):
        return MetastoreUnavailable(f"the metastore failed at a request, its own log says why ({message})")
    if any(cause.short_name == "TApplicationException" for cause in causes):
        return MetastoreUnavailable(f"the metastore speaks another protocol version than this Spark's Hive client ({message})")
    if any(cause.name.startswith(_ANSWERS) and not cause.message.startswith(_NO_CONNECTION) for cause in causes):
        return MetastoreRefused(message)
    if lacks_ticket(causes):
        return MetastoreNoTicket(f"the metastore got no valid Kerberos ticket: {KEEP_TICKET} ({message})")
    if any(cause.short_name in _NO_METASTORE or _NO_CONNECTION in cause.message for cause in causes):
        return MetastoreUnavailable(f"the metastore does not answer ({message})")
    if any(cause.name.startswith(_REFUSED_PACKAGES) for cause in causes):
        return MetastoreRefused(message)
    return None


# ---- Spark jobs

_GONE = (
    r"Path does not exist: (.+?)\.?(?:\n|$)",
    r"File does not exist: (.+?)(?:\n|$)",
    r"File (\w+:/.+?) does not exist",
)
_LOST = r"ExecutorLostFailure|ExecutorDeadException|Lost executor|MetadataFetchFailedException|FetchFailedException"

# Pattern in a class name or message → our wording; {0} is the pattern's group, {first} the innermost message.
_OF_JOBS = (
    (
        r"SparkUpgradeException|INCONSISTENT_BEHAVIOR_CROSS_VERSION",
        "it holds dates before 1582-10-15 or timestamps before 1900-01-01, and the files do not say in which calendar",
    ),
    *((pattern, "a file is gone: {0}") for pattern in _GONE),
    (r"DSQuotaExceededException|NSQuotaExceededException|QuotaExceededException", "a quota of the directory is used up"),
    (r"MaxDirectoryItemsExceededException", "a directory has as many entries as the NameNode allows: {first}"),
    (r"No space left on device|could only be written to 0 of|DiskOutOfSpaceException", "there is no space left"),
    (_LOST, "executors were lost: {first}"),
    (r"OutOfMemoryError", "the driver or an executor ran out of memory"),
    (r"(rows of an unknown file: \S+)", "{0}"),
    (r"BlockMissingException", "a block of a file cannot be read: {first}"),
    (r"AccessControlException|Permission denied", "access was denied: {first}"),
)


def explain_job_error(error: Exception) -> str:
    causes = java_causes(error)
    if not causes:
        return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    return explain_job(causes)


def explain_job(causes: Sequence[Cause]) -> str:
    """Our wording for the first known pattern in a chain of Java exceptions, else its innermost message."""
    first = _innermost(causes)
    for pattern, words in _OF_JOBS:
        match = re.search(pattern, _all_text(causes))
        if match:
            return words.format(*match.groups(), first=first)
    return first


# ---- a session that does not start, a service that does not answer


class Trouble(NamedTuple):
    """Why a cluster cannot be used. `configured`: the configuration has to be corrected, so a retry does not help."""

    what: str
    next: str
    configured: bool = False
    code: Optional[Code] = None


_RUN_AGAIN = "read Spark's own messages above; a busy cluster passes, so run again"
_COMPARE_KEYTAB = "compare kerberos.principal with klist -kt KEYTAB; fetch the keytab again if it is old"
_GET_TICKET = "run kinit, or set kerberos.principal and kerberos.keytab; klist shows what there is"
_CORRECT_FILES = "correct spark.python_env, spark.archives, spark.extra_files or spark.py_files"
_SET_CONF_DIR = "set HADOOP_CONF_DIR to the cluster's client configuration, with its yarn-site.xml"

# Patterns in the exceptions of a session that does not start or a service that does not answer, most specific first.
_UNUSABLE = (
    (
        r"Login failure for |Unable to obtain password from user|Keytab file: \S+ does not exist",
        Trouble("the keytab does not open a session: {first}", _COMPARE_KEYTAB, True),
    ),
    (_NO_TICKET, Trouble("there is no valid Kerberos ticket: {first}", _GET_TICKET, code=Code.NO_TICKET)),
    (r"unknown queue: ?(\S+)", Trouble("there is no YARN queue {0}", "correct spark.queue", True)),
    (
        r"does not have permission to submit \S+ to queue|cannot submit applications? to queue",
        Trouble("this user may not submit to the YARN queue: {first}", "have it allowed, or choose another by spark.queue", True),
    ),
    (
        r"SafeModeException|is in safe mode",
        Trouble("HDFS is in safe mode", "wait until it has left it (hdfs dfsadmin -safemode get), then run again"),
    ),
    (
        r"File (?:file )?does not exist: (\S+)|File (\w+:/\S+) does not exist",
        Trouble("a file of the configuration is not there: {0}", _CORRECT_FILES, True),
    ),
    (r"0\.0\.0\.0:80\d\d", Trouble("no ResourceManager is configured: {first}", _SET_CONF_DIR, True)),
    (
        r"ConnectException|NoRouteToHostException|UnknownHostException|SocketTimeoutException|Connection refused",
        Trouble("a server does not answer: {first}", "see that it runs and that HADOOP_CONF_DIR names the right cluster, then run again"),
    ),
)


def explain_unusable(causes: Sequence[Cause]) -> Trouble:
    """Why a session did not start or a service did not answer, in our wording if a pattern matches."""
    first = _innermost(causes)
    for pattern, trouble in _UNUSABLE:
        match = re.search(pattern, _all_text(causes))
        if match:
            found = [group for group in match.groups() if group]
            return trouble._replace(what=trouble.what.format(*found, first=first))
    return Trouble(first or "Spark's Java process went away", _RUN_AGAIN)
