"""A properties file in a directory with the sticky bit that only a group may write to, as in `/srv/reports` of mode 1770."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest

from hivekeeper.errors import UsageError
from hivekeeper.launch import output_files
from hivekeeper.launch.trusted_files import require_sole_use

TEAM, ME, MALLORY = 65533, 65534, 65532


@pytest.mark.skipif(os.geteuid() != 0, reason="NOT TESTED: only root can make files of two users")
def test_nobody_of_the_group_takes_the_name_of_a_file_while_the_run_is_at_work():
    """The run removes the file of the one before, and writes its own hours later: somebody of the group has taken the name meanwhile, and
    with the sticky bit the run can neither remove nor replace that. A scheduler reads that all went well.
    """
    with tempfile.TemporaryDirectory(dir="/tmp") as shared:
        os.chown(shared, 0, TEAM)
        os.chmod(shared, 0o1770)
        path = Path(shared, "out.properties")
        os.setegid(TEAM)
        os.seteuid(ME)
        try:
            output_files.write_local(str(path), "hivekeeper.exit_code=0")
            # What a run does before it begins (cli.main.run_words).
            output_files.forget_local(str(path))
            with suppress(UsageError):
                output_files.require_writable_here(str(path))
                require_sole_use(str(path), {})
                os.seteuid(0)
                os.seteuid(MALLORY)
                path.write_text("hivekeeper.exit_code=0\nhivekeeper.retry=none\n")
                os.seteuid(0)
                os.seteuid(ME)
                output_files.write_local(str(path), "hivekeeper.exit_code=7")
                os.seteuid(0)
                assert "exit_code=7" in path.read_text(), "the run was not refused, and its file is somebody else's"
        finally:
            os.seteuid(0)
            os.setegid(0)
