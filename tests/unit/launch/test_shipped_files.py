"""Which files a configuration ships with the job, as Spark reads them, and which of them are on this machine."""

from __future__ import annotations

import pytest

from hivekeeper.config import layers
from hivekeeper.errors import UsageError
from hivekeeper.launch.shipped_files import list_on_cluster, require_trusted_shipped
from hivekeeper.reasons import Code


def configure(*sets):
    return layers.load([], {}, {}, [f"spark.{one}" for one in sets])


@pytest.fixture
def theirs(tmp_path):
    """A file that everybody may write to."""
    path = tmp_path / "a b.py"
    path.touch()
    path.chmod(0o666)
    return path


@pytest.mark.parametrize(
    "setting", ["archive", "python_env", "py_files", "extra_files", "archives", "extra_conf.spark.jars", "extra_conf.spark.submit.pyFiles"]
)
@pytest.mark.parametrize("how", ["{path}", "file://{path}", "FILE:{path}", "local:{path}"])
def test_a_local_file_that_others_may_write_is_refused_wherever_it_is_named(theirs, setting, how):
    with pytest.raises(UsageError, match=r"everybody may write to .*a b\.py") as refused:
        require_trusted_shipped(configure(f"{setting}={how.format(path=theirs)}"), {})
    assert refused.value.reason.code is Code.UNTRUSTED_FILE
    theirs.chmod(0o644)
    require_trusted_shipped(configure(f"{setting}={how.format(path=theirs)}"), {})


@pytest.mark.parametrize("how", ["hdfs:///x.py,{path}", "{path}#alias", "file:{coded}", "{directory}/*.py", "{directory}/a[ ]b.py"])
def test_aliases_escapes_and_patterns_are_read_as_spark_does(theirs, how):
    named = how.format(path=theirs, coded=str(theirs).replace(" ", "%20"), directory=theirs.parent)
    with pytest.raises(UsageError, match=r"everybody may write to .*a b\.py"):
        require_trusted_shipped(configure(f"extra_conf.spark.files={named}"), {})


@pytest.mark.parametrize("pattern", ["*.jar", "{a,c}.py"])
def test_the_directory_of_a_pattern_counts_whatever_is_in_it(theirs, pattern):
    theirs.parent.chmod(0o777)
    with pytest.raises(UsageError, match="everybody may write to"):
        require_trusted_shipped(configure(f"extra_conf.spark.jars={theirs.parent}/{pattern}"), {})


def test_what_is_on_the_cluster_is_told_apart():
    shipped = configure(
        "archive=hdfs:///apps/x.py",
        "extra_files=/local,hdfs:/a#b,file:/c,local:///d",
        "extra_conf.spark.jars=viewfs://v/e.jar, hdfs://nn/f.jar",
    )
    assert list_on_cluster(shipped) == ("hdfs:/a", "viewfs://v/e.jar", "hdfs://nn/f.jar", "hdfs:///apps/x.py")
    assert list_on_cluster(configure()) == ()
