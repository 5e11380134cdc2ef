"""Whose files on HDFS a run is started from: only those that nobody else can change."""

from __future__ import annotations

import dataclasses

import pytest

from hivekeeper import quoting
from hivekeeper.commands.shipped_files import refuse_untrusted, require_trusted
from hivekeeper.errors import UsageError
from hivekeeper.reasons import Code
from support.fakes.files import FakeFiles

ARCHIVE = "hdfs://nn/apps/hivekeeper/hivekeeper.py"
ROOT, APPS, DIRECTORY = "hdfs://nn/", "hdfs://nn/apps", "hdfs://nn/apps/hivekeeper"


@pytest.fixture
def files():
    """Directories of the superuser, as on a new cluster, and the archive of the user of the runs."""
    files = FakeFiles()
    files.make_directory("/apps/hivekeeper")
    files.writer.add(ARCHIVE, "import this")
    for path in (ROOT, APPS):
        set_attributes(files, path, owner="hdfs", mode=0o755)
    set_attributes(files, DIRECTORY, owner=files.user, mode=0o755)
    set_attributes(files, ARCHIVE, owner=files.user, mode=0o644)
    return files


def set_attributes(files, path, **changed):
    node = files.namespace.find(path)
    more = {"file_mode": changed["mode"]} if "mode" in changed else {}
    node.attributes = dataclasses.replace(node.attributes, **changed, **more)


def refusal(files, *paths, trusted=()):
    why = refuse_untrusted(files, paths or (ARCHIVE,), trusted)
    return None if why is None else why.what.partition("could change it: ")[2]


def test_ones_own_files_below_directories_of_the_superuser_are_trusted(files):
    assert refusal(files) is None
    assert refusal(files, "hdfs:///apps/hivekeeper/hivekeeper.py", "/apps/hivekeeper/hivekeeper.py") is None
    set_attributes(files, ARCHIVE, owner="hdfs")
    assert refusal(files) is None


@pytest.mark.parametrize(
    "path", ["hdfs:///apps/hive%20keeper/hive%2Bkeeper.py", "hdfs:///apps/hive%20keeper/%2A.py", "hdfs:///apps/hive%20keeper/*.py"]
)
def test_a_path_is_judged_as_spark_decodes_it_too(files, path):
    """Spark takes it for a URI (Utils.resolveURI), so what it reads is not what has the text for its name."""
    directory = "hdfs://nn/apps/hive keeper"
    files.make_directory(directory)
    files.writer.add(f"{directory}/hive+keeper.py", "import this")
    set_attributes(files, directory, owner=files.user, mode=0o755)
    set_attributes(files, f"{directory}/hive+keeper.py", owner="mallory", mode=0o644)
    assert refusal(files, path) == f"{directory}/hive+keeper.py belongs to mallory"
    set_attributes(files, f"{directory}/hive+keeper.py", owner=files.user, mode=0o644)
    assert refusal(files, path) is None
    set_attributes(files, directory, owner="mallory")
    assert "belongs to mallory" in refusal(files, path)


def test_a_path_is_judged_as_it_is_written_too(files):
    """So Spark takes those of Hive's classes."""
    written = f"{DIRECTORY}/hive%20keeper.py"
    files.writer.add(written, "import this")
    set_attributes(files, written, owner="mallory", mode=0o644)
    assert refusal(files, written) == f"{written} belongs to mallory"


@pytest.mark.parametrize("path", [APPS, DIRECTORY, ARCHIVE])
def test_what_belongs_to_somebody_else_is_not_unless_that_user_is_trusted(files, path):
    set_attributes(files, path, owner="mallory")
    who = f"{path} belongs to mallory" if path == ARCHIVE else f"{path} (mode 0755) belongs to mallory, who may exchange what is in it"
    assert refusal(files) == who
    assert refusal(files, trusted=["mallory"]) is None


@pytest.mark.parametrize("path", [ROOT, APPS, DIRECTORY, ARCHIVE])
@pytest.mark.parametrize(("mode", "who"), [(0o757, "everybody"), (0o775, "the group team")])
def test_nor_is_what_others_may_write(files, path, mode, who):
    set_attributes(files, path, mode=mode, group="team")
    if path == ARCHIVE:
        assert refusal(files) == f"{who} may write to {path} (mode {mode:04o})"
    else:
        assert f", mode {mode:04o}) may be written by {who}, who may exchange what is in it" in refusal(files)


def test_a_sticky_directory_is_passed_if_only_the_superuser_may_have_put_there_what_is_on_the_way(files):
    set_attributes(files, APPS, mode=0o1777)
    set_attributes(files, DIRECTORY, owner="hdfs")
    assert refusal(files) is None
    set_attributes(files, APPS, mode=0o1755)
    set_attributes(files, DIRECTORY, owner=files.user)
    assert refusal(files) is None
    set_attributes(files, APPS, mode=0o1757)
    assert refusal(files) == (
        f"everybody may make names in {APPS} (mode 1757), and may have renamed a directory of {files.user} to {DIRECTORY} "
        "while none was there"
    )


def test_a_sticky_directory_holds_no_trusted_file(files):
    set_attributes(files, DIRECTORY, mode=0o1777)
    assert refusal(files).startswith("everybody") and refusal(files).endswith(f" may put files into {DIRECTORY} (mode 1777)")
    # It may be /tmp, which must stay so.
    assert refuse_untrusted(files, (ARCHIVE,), ()).next == "use a directory that only this user can write to"


def test_what_is_missing_is_left_to_spark_but_not_a_directory_in_which_it_can_be_put(files):
    assert refusal(files, "hdfs:///apps/hivekeeper/*.py") is None
    set_attributes(files, DIRECTORY, mode=0o777)
    assert "may be written by everybody" in refusal(files, "hdfs:///apps/hivekeeper/*.py")
    assert refusal(files, "hdfs:///") is None


def test_what_a_pattern_may_find_is_judged_as_well(files):
    """Spark takes `*.jar` for all that is there (DependencyUtils.resolveGlobPaths)."""
    set_attributes(files, ARCHIVE, mode=0o646)
    assert refusal(files, "hdfs:///apps/hivekeeper/*.py") == f"everybody may write to {ARCHIVE} (mode 0646)"
    assert refusal(files, "hdfs:///apps/hivekeeper/h?vekeeper.py") == f"everybody may write to {ARCHIVE} (mode 0646)"
    set_attributes(files, ARCHIVE, owner="mallory", mode=0o644)
    assert refusal(files, "hdfs:///apps/hivekeeper/*.py") == f"{ARCHIVE} belongs to mallory"
    set_attributes(files, DIRECTORY, mode=0o777)
    assert f"{DIRECTORY} (owner {files.user}, mode 0777)" in refusal(files, "hdfs:///apps/hivekeeper/*.py")


def test_a_pattern_finds_no_file_in_a_directory_and_costs_two_calls_however_many_files_there_are(files, monkeypatch):
    for nth in range(20):
        files.writer.add(f"{DIRECTORY}/{nth}.jar", "")
        set_attributes(files, f"{DIRECTORY}/{nth}.jar", owner=files.user, mode=0o644)
    files.writer.make_directory(f"{DIRECTORY}/old")
    set_attributes(files, f"{DIRECTORY}/old", owner="mallory")
    way_to, exposed, asked = files.way_to, files.exposed, []
    monkeypatch.setattr(files, "way_to", lambda path: asked.append(path) or way_to(path))
    monkeypatch.setattr(files, "exposed", lambda top, levels: asked.append((top, levels)) or exposed(top, levels))
    assert refusal(files, f"{DIRECTORY}/*.jar") is None
    assert asked == [DIRECTORY, (DIRECTORY, 1)]


@pytest.mark.parametrize("pattern", ["hdfs:///apps/*/hivekeeper.py", "hdfs:///apps/{hivekeeper/hivekeeper.py,x}"])
def test_a_pattern_for_directories_is_refused(files, pattern):
    """Of one that it finds, nothing is known."""
    set_attributes(files, DIRECTORY, owner="mallory")
    why = refuse_untrusted(files, [pattern], ())
    assert why is not None
    assert why.code is Code.UNTRUSTED_FILE


def test_each_path_is_looked_at_once_and_none_where_nothing_is_shipped(files, monkeypatch):
    way_to, looked = files.way_to, []
    monkeypatch.setattr(files, "way_to", lambda path: looked.append(path) or way_to(path))
    assert refusal(files, ARCHIVE, f"{DIRECTORY}/other.py", ARCHIVE) is None
    assert looked == [ARCHIVE, f"{DIRECTORY}/other.py"]
    looked.clear()
    assert refuse_untrusted(files, (), ()) is None
    assert not looked


def test_modes_of_other_file_systems_say_nothing(files):
    assert refusal(files, "s3a://bucket/hivekeeper.py") is None


def test_a_refusal_has_its_code_and_says_what_to_do(files):
    set_attributes(files, ARCHIVE, mode=0o666)
    with pytest.raises(UsageError) as refused:
        require_trusted(files, (ARCHIVE,), ())
    assert (refused.value.reason.code, refused.value.reason.next) == (Code.UNTRUSTED_FILE, f"hdfs dfs -chmod go-w {quoting.hdfs(ARCHIVE)}")
