"""What `hdfs dfs` does with the paths of commands that messages show for an operator to copy."""

from __future__ import annotations

import subprocess
from typing import List

import pytest

from hivekeeper.names import ControlPaths
from hivekeeper.plan.orphans import explain_records
from hivekeeper.report.text import clean_text
from support.builders import a_table

pytestmark = pytest.mark.jvm


def words_of(command: str) -> List[str]:
    """As Bash understands them."""
    found = subprocess.run(["bash", "-c", f"printf '%s\\0' {command}"], stdout=subprocess.PIPE, check=True)
    return found.stdout.decode("utf-8").split("\0")[:-1]


NAMES = ("{z/y,victim,q}", "v[i]ctim", "vict?m", "v*m", "vic\tim", "vic\\tim")


@pytest.mark.parametrize(("name", "new"), [*((name, "moved") for name in NAMES), ("former", "n{e,w}*?[s]\\t\t")], ids=ascii)
def test_the_name_of_a_directory_is_no_pattern_for_the_directories_of_others(gateway, tmp_path, name, new):
    """Of an unpartitioned table, whose control directory is named after it: `{z/.hivekeeper-y,victim,q}` would be a table beside it."""
    victims = [tmp_path / "victim", tmp_path / ".hivekeeper-victim"]
    former, moved = (ControlPaths.of(f"file:{tmp_path}/{place}", partitioned=False) for place in (name, new))
    for place in (former.top, moved.top.rpartition("/")[0], *(f"file:{victim}" for victim in victims)):
        path = gateway.jvm.org.apache.hadoop.fs.Path(place)
        path.getFileSystem(gateway.hadoop_conf).mkdirs(path)
    table = a_table(name="moved", location=f"file:{tmp_path}/{new}", create_time=7, partition_columns=())
    _, then = explain_records(former.top, "sales.events@7", [table], "sales", is_foreign=lambda _location: False, may_go=True)
    command, _, _ = clean_text(then).partition("owner say so too: hdfs dfs ")[2].partition(", then: ")
    shell = gateway.jvm.org.apache.hadoop.fs.FsShell(gateway.hadoop_conf)
    assert shell.run(gateway.strings(words_of(command))) == 0
    assert all(victim.is_dir() for victim in victims)
    there = gateway.jvm.org.apache.hadoop.fs.Path(moved.top)
    assert there.getFileSystem(gateway.hadoop_conf).exists(there)
