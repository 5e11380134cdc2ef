"""The output of a driver in cluster mode, in a directory of real files: what a later driver removes there."""

from __future__ import annotations

import os

import pytest

from hivekeeper.cli import configuration
from hivekeeper.cluster import driver_output

DAY_S = 86_400


@pytest.fixture
def own_name(capfdbinary):
    """As the launcher names it."""
    configuration.print_submit_options(["analyze", "--table", "d.t", "--set", "spark.master=yarn", "--set", "spark.deploy_mode=cluster"])
    word = next(word for word in capfdbinary.readouterr().out.split(b"\0") if word.startswith(b"driver_output="))
    return os.path.basename(word.decode())


@pytest.mark.usefixtures("driver")
def test_a_driver_removes_old_documents_of_drivers_and_nothing_else_that_is_there(tmp_path, own_name):
    """The directory may be any of the user's: other programs write JSON files, too."""
    theirs = ["report.json", "2026-01-01.json", "20260101t020304z-1f0c.json", f"{own_name}.bak", f"x{own_name}"]
    killed = f"{own_name}.0123abcd"
    for name in (own_name, killed, *theirs):
        (tmp_path / name).write_text("{}")
        os.utime(tmp_path / name, times=(0, 8 * DAY_S))
    driver_output.send(f"file://{tmp_path}/20260101t020304z-{16 * '0'}.json", "answer")
    left = {path.name for path in tmp_path.iterdir() if not path.name.endswith(".crc")}
    assert {*theirs} <= left
    assert not {own_name, killed} & left
