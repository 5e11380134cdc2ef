from types import SimpleNamespace

import pytest

from hivekeeper.cluster.java_errors import Cause, explain_job, explain_unusable, files_error, java_causes, metastore_error
from hivekeeper.ports import (
    FilesUnavailable,
    MetastoreNoTicket,
    MetastoreRefused,
    MetastoreUnavailable,
    NoPermission,
    NoSpace,
    NoTicket,
    SourceMissing,
    TargetExists,
)

ABORTED = Cause("org.apache.spark.SparkException", "Job aborted due to stage failure: Task 0 in stage 1.0 failed 4 times\nat x")


CASES = [
    ("org.apache.spark.SparkUpgradeException", "You may get a different result\nmore", "in which calendar"),
    ("o.a.s.AnalysisException", "[X] Path does not exist: hdfs://nn/t/a b/c.parquet.", "a file is gone: hdfs://nn/t/a b/c.parquet"),
    ("java.io.FileNotFoundException", "File does not exist: /t/a b/c.orc\n\tat org", "a file is gone: /t/a b/c.orc"),
    ("o.a.s.SparkFileNotFoundException", "File file:/t/a b/c.orc does not exist\nIt is possible", "a file is gone: file:/t/a b/c.orc"),
    ("java.io.IOException", "No space left on device", "there is no space left"),
    ("o.a.h.hdfs.protocol.DSQuotaExceededException", "The DiskSpace quota of /t is exceeded", "a quota of the directory is used up"),
    ("o.a.h.hdfs.protocol.FSLimitException$MaxDirectoryItemsExceededException", "The directory item limit of /t", "as many entries"),
    ("java.lang.RuntimeException", "rows of an unknown file: file:///t/x", "rows of an unknown file: file:///t/x"),
    ("java.lang.OutOfMemoryError", "Java heap space", "ran out of memory"),
    ("java.io.IOException", "could not read page\nsecond line", "could not read page"),
    ("o.a.s.SparkArithmeticException", "[CAST_OVERFLOW] The value", "The value"),
]


@pytest.mark.parametrize(("name", "message", "says"), CASES)
def test_the_cause_is_one_line_in_words(name, message, says):
    text = explain_job((ABORTED, Cause(name, message)))
    assert says in text
    assert "\n" not in text


def test_lost_executors_are_named_as_such():
    lost = Cause("org.apache.spark.SparkException", "ExecutorLostFailure (executor 3 exited caused by one of the running tasks)")
    text = explain_job((lost,))
    assert text.startswith("executors were lost")


class Thrown(Exception):
    """Like Py4J's: it has the Java exception."""

    def __init__(self, message):
        super().__init__()
        named = SimpleNamespace(getName=lambda: "java.io.IOException")
        self.java_exception = SimpleNamespace(getClass=lambda: named, getMessage=lambda: message, getCause=lambda: None)


def test_a_message_that_quotes_a_name_of_megabytes_is_not_searched_for_hours():
    (cause,) = java_causes(Thrown("no column " + "File a:/" * 1_000_000))
    assert cause.message.startswith("no column File a:/")
    assert len(cause.message) == 20_000


NOT_STARTED = Cause("org.apache.spark.SparkException", "Could not start")
DENIED = "org.apache.hadoop.security.AccessControlException"
UNUSABLE = [
    ("java.io.IOException", "Login failure for user: etl@X from keytab /k javax.security.auth.login.LoginException: x", "the keytab", True),
    (DENIED, "Client cannot authenticate via:[TOKEN, KERBEROS]", "no valid Kerberos ticket", False),
    ("org.ietf.jgss.GSSException", "No valid credentials provided (Mechanism level: Failed to find any Kerberos tgt)", "no valid", False),
    ("o.a.h.y.e.YarnException", "Failed to submit application_1_1 to YARN : by user etl to unknown queue: nope", "queue nope", True),
    (DENIED, "User etl does not have permission to submit application_1_1 to queue closed", "may not submit", True),
    ("o.a.h.h.s.n.SafeModeException", "Cannot create directory /x. Name node is in safe mode.", "safe mode", False),
    ("java.io.FileNotFoundException", "File does not exist: hdfs://nn:8020/env.tar.gz", "not there: hdfs://nn:8020/env.tar.gz", True),
    ("java.net.ConnectException", "Call From h to 0.0.0.0:8032 failed", "no ResourceManager is configured", True),
    ("java.net.ConnectException", "Call From h to nn:8020 failed on connection exception", "does not answer", False),
]


@pytest.mark.parametrize(("name", "message", "says", "configured"), UNUSABLE)
def test_why_a_cluster_cannot_be_used_is_one_line_with_a_next_step(name, message, says, configured):
    trouble = explain_unusable((NOT_STARTED, Cause(name, message + "\n\tat x")))
    assert says in trouble.what
    assert "\n" not in trouble.what
    assert trouble.next
    assert trouble.configured is configured


def test_what_is_not_known_is_quoted_and_may_pass():
    trouble = explain_unusable((Cause("java.lang.IllegalStateException", "the moon is full\n\tat x"),))
    assert (trouble.what, trouble.configured) == ("the moon is full", False)


def test_a_java_process_that_went_away_has_no_exception():
    assert explain_unusable(()).what == "Spark's Java process went away"


RPC = "java.io.IOException"
SASL = "javax.security.sasl.SaslException"
GSS = ("org.ietf.jgss.GSSException", "No valid credentials provided (Mechanism level: Failed to find any Kerberos tgt)")
FAILED = "DestHost:destPort nn:8020 , LocalHost:localPort h:0. Failed on local exception: "


@pytest.mark.parametrize(
    "causes",
    [
        [(RPC, f"{FAILED}{RPC}: {DENIED}: Client cannot authenticate via:[TOKEN]"), (DENIED, "Client cannot authenticate via:[TOKEN]")],
        [(DENIED, "SIMPLE authentication is not enabled.  Available:[TOKEN, KERBEROS]")],
        [(RPC, f"{FAILED}{SASL}: GSS initiate failed"), (SASL, "GSS initiate failed"), GSS],
    ],
    ids=["client", "server", "gss"],
)
def test_a_missing_ticket_is_told_from_a_missing_right_by_what_hadoop_says_first(causes):
    assert type(files_error([Cause(*cause) for cause in causes])) is NoTicket


def test_another_failure_to_log_in_is_no_missing_right_either():
    assert type(files_error([Cause(DENIED, "Authentication required")])) is FilesUnavailable


NO_TICKET = ["authenticated=true", "GSS initiate failed", "No valid credentials provided", "Client cannot authenticate via:"]
TELLING = [*NO_TICKET, "No space left on device"]
RANGER = "org.apache.ranger.authorization.hadoop.exceptions.RangerAccessControlException"
DENIAL = 'Permission denied: user=etl, access=EXECUTE, inode="/user/mallory/{}":mallory:users:drwx------\n\tat x'
OF_PATHS = {
    "denied": (DENIED, DENIAL, NoPermission),
    "denied by Ranger": (RANGER, 'Permission denied: user=etl, access=READ, inode="/user/mallory/{}"', NoPermission),
    "too long": (
        "org.apache.hadoop.hdfs.protocol.FSLimitException$PathComponentTooLongException",
        "The maximum path component name limit of .hivekeeper-{} in directory /user/mallory is exceeded: limit=255 length=256",
        NoPermission,
    ),
    "missing": ("java.io.FileNotFoundException", "File does not exist: /user/mallory/{}", SourceMissing),
    "there": ("org.apache.hadoop.fs.FileAlreadyExistsException", "rename destination /user/mallory/{} already exists", TargetExists),
    "full": ("org.apache.hadoop.hdfs.protocol.NSQuotaExceededException", "The NameSpace quota of /user/mallory/{} is exceeded", NoSpace),
    "crowded": (
        "org.apache.hadoop.hdfs.protocol.FSLimitException$MaxDirectoryItemsExceededException",
        "The directory item limit of /user/mallory/{} is exceeded: limit=1048576 items=1048576",
        NoSpace,
    ),
}


@pytest.mark.parametrize("name", [*TELLING, "plain"])
@pytest.mark.parametrize("kind", OF_PATHS)
def test_the_name_of_a_directory_does_not_decide_what_an_error_about_it_means(kind, name):
    """Whoever named it so could have every command end for want of a ticket."""
    error, message, meaning = OF_PATHS[kind]
    said = Cause(error, message.format(name))
    wrapped = Cause("java.util.concurrent.ExecutionException", f"{error}: {said.message}")
    assert type(files_error([wrapped, said])) is meaning


@pytest.mark.parametrize("said", [DENIAL.format("plain"), "User etl is not a super user (non-super user cannot change owner)."])
def test_nor_does_the_name_of_a_table_whose_rights_may_not_be_kept(said):
    """Attributes.java and Rights.java say in front what they may not do, and where."""
    told = f"hdfs://nn/warehouse/authentication.db/logins/.hivekeeper/runs/r/stage/b00000: may not give it to hive:hive: {said}"
    wrapped = Cause("java.util.concurrent.ExecutionException", f"{DENIED}: {told}")
    assert type(files_error([wrapped, Cause(DENIED, told)])) is NoPermission


@pytest.mark.parametrize("name", [*TELLING, "plain"])
def test_nor_what_the_metastore_says_of_a_directory(name):
    """As an answer: a metastore with storage-based authorization quotes HDFS."""
    answer = Cause("org.apache.hadoop.hive.metastore.api.MetaException", f"{DENIED}: {DENIAL.format(name)}")
    assert type(metastore_error([answer])) is MetastoreRefused


def test_a_metastore_that_cannot_be_logged_in_to_or_connected_to_is_known_by_what_the_client_says_first():
    client = "Could not connect to meta store using any of the URIs provided. Most recent failure: "
    transport = "org.apache.thrift.transport.TTransportException"
    answer = "org.apache.hadoop.hive.metastore.api.MetaException"
    assert type(metastore_error([Cause(answer, f"{client}{transport}: GSS initiate failed")])) is MetastoreNoTicket
    assert type(metastore_error([Cause(answer, f"{client}{transport}: Connection refused")])) is MetastoreUnavailable
    assert type(metastore_error([Cause(transport, "GSS initiate failed"), Cause(*GSS)])) is MetastoreNoTicket
