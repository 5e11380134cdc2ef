import pytest

from hivekeeper.cluster.java_errors import Cause, explain_job, explain_unusable

ABORTED = Cause("org.apache.spark.SparkException", "Job aborted due to stage failure: Task 0 in stage 1.0 failed 4 times\nat x")


CASES = [
    ("org.apache.spark.SparkUpgradeException", "You may get a different result\nmore", "in which calendar"),
    ("o.a.s.AnalysisException", "[X] Path does not exist: hdfs://nn/t/a b/c.parquet.", "a file is gone: hdfs://nn/t/a b/c.parquet"),
    ("java.io.FileNotFoundException", "File does not exist: /t/a b/c.orc\n\tat org", "a file is gone: /t/a b/c.orc"),
    ("o.a.s.SparkFileNotFoundException", "File file:/t/a b/c.orc does not exist\nIt is possible", "a file is gone: file:/t/a b/c.orc"),
    ("java.io.IOException", "No space left on device", "there is no space left"),
    ("o.a.h.hdfs.protocol.DSQuotaExceededException", "The DiskSpace quota of /t is exceeded", "a quota of the directory is used up"),
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
