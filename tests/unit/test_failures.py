import pytest

from hivekeeper.cluster.failures import explain
from hivekeeper.cluster.gateway import Cause

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
    text = explain((ABORTED, Cause(name, message)))
    assert says in text
    assert "\n" not in text


def test_lost_executors_are_named_as_such():
    lost = Cause("org.apache.spark.SparkException", "ExecutorLostFailure (executor 3 exited caused by one of the running tasks)")
    text = explain((lost,))
    assert text.startswith("executors were lost")
