"""Puts the failure of a Spark job into one line that an operator understands.

Pure but for reading the Java exception. What it does not know it quotes.
"""

from __future__ import annotations

import re
from typing import NamedTuple, Sequence

from hivekeeper.cluster.gateway import Cause, first_line, java_causes

_GONE = (
    r"Path does not exist: (.+?)\.?(?:\n|$)",
    r"File does not exist: (.+?)(?:\n|$)",
    r"File (\w+:/.+?) does not exist",
)
_LOST = r"ExecutorLostFailure|ExecutorDeadException|Lost executor|MetadataFetchFailedException|FetchFailedException"

# What a class name or a message holds → our words; {0} is the pattern's group, {first} the innermost message.
_KNOWN = (
    (
        r"SparkUpgradeException|INCONSISTENT_BEHAVIOR_CROSS_VERSION",
        "it holds dates before 1582-10-15 or timestamps before 1900-01-01, and the files do not say in which calendar",
    ),
    *((pattern, "a file is gone: {0}") for pattern in _GONE),
    (r"DSQuotaExceededException|NSQuotaExceededException|QuotaExceededException", "a quota of the directory is used up"),
    (r"No space left on device|could only be written to 0 of|DiskOutOfSpaceException", "there is no space left"),
    (_LOST, "executors were lost: {first}"),
    (r"OutOfMemoryError", "the driver or an executor ran out of memory"),
    (r"(rows of an unknown file: \S+)", "{0}"),
    (r"BlockMissingException", "a block of a file cannot be read: {first}"),
    (r"AccessControlException|Permission denied", "access was denied: {first}"),
)
_NOISE = re.compile(r"^(?:\[[A-Z_.]+\]\s*)?")


class Trouble(NamedTuple):
    """Why a cluster cannot be used. `configured`: it is the configuration that must be mended, so trying again later is no use."""

    what: str
    next: str
    configured: bool = False


KEEP_TICKET = "get a ticket with a longer life, or set kerberos.principal and kerberos.keytab"
_RUN_AGAIN = "read Spark's own messages above; a busy cluster passes, so run again"
_COMPARE_KEYTAB = "compare kerberos.principal with klist -kt KEYTAB; fetch the keytab again if it is old"
_GET_TICKET = "run kinit, or set kerberos.principal and kerberos.keytab; klist shows what there is"
_CORRECT_FILES = "correct spark.python_env, spark.archives, spark.extra_files or spark.py_files"
_SET_CONF_DIR = "set HADOOP_CONF_DIR to the cluster's client configuration, with its yarn-site.xml"

_NO_TICKET = (
    r"No valid credentials provided|Failed to find any Kerberos tgt|Client cannot authenticate via|SIMPLE authentication is not|"
    r"GSS initiate failed|Unable to obtain password from user"
)

# What stands in the exceptions of a session that does not start or a service that does not answer, most telling first.
_UNUSABLE = (
    (
        r"Login failure for |Unable to obtain password from user|Keytab file: \S+ does not exist",
        Trouble("the keytab does not open a session: {first}", _COMPARE_KEYTAB, True),
    ),
    (_NO_TICKET, Trouble("there is no valid Kerberos ticket: {first}", _GET_TICKET)),
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


def lacks_ticket(causes: Sequence[Cause]) -> bool:
    """Whether a server or our own side of a connection asked for a Kerberos ticket in vain."""
    return any(re.search(_NO_TICKET, cause.message) for cause in causes)


def explain_unusable(causes: Sequence[Cause]) -> Trouble:
    """Why a session did not start or a service did not answer, in our words where we have some."""
    text = "\n".join(f"{cause.name}: {cause.message}" for cause in causes)
    first = _innermost(causes)
    for pattern, trouble in _UNUSABLE:
        match = re.search(pattern, text)
        if match:
            found = [group for group in match.groups() if group]
            return trouble._replace(what=trouble.what.format(*found, first=first))
    return Trouble(first or "Spark's Java process went away", _RUN_AGAIN)


def cause_of(error: Exception) -> str:
    causes = java_causes(error)
    if not causes:
        return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    return explain(causes)


def explain(causes: Sequence[Cause]) -> str:
    """The first thing in a chain of Java exceptions that we have words for, else its innermost message."""
    text = "\n".join(f"{cause.name}: {cause.message}" for cause in causes)
    first = _innermost(causes)
    for pattern, words in _KNOWN:
        match = re.search(pattern, text)
        if match:
            return words.format(*match.groups(), first=first)
    return first


def _innermost(causes: Sequence[Cause]) -> str:
    return _NOISE.sub("", first_line(causes))[:300]
