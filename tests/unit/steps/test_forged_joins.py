"""Records of joins that somebody has changed."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from hivekeeper.codes import Exit
from hivekeeper.model import Block
from hivekeeper.runlog.joins import fingerprint
from support.fakes.rows import DataFile
from support.joined_desk import ALL, a_desk, joined_path, rows


def a_desk_with_a_certificate(change):
    """A run was killed before its entry, and its certificate was changed."""
    desk = a_desk()
    desk.kill_before(["entry.json"], lambda: desk.compact(where="dt = '1'"))
    (path,) = (path for path in desk.world.files.contents(desk.control.top) if "certificates-" in path)
    node = desk.world.files.namespace.file(path)
    certificate = json.loads(node.content)
    change(certificate)
    node.content = json.dumps(certificate) + "\n"
    node.length = len(node.content)
    return desk


@pytest.mark.parametrize(
    "change",
    [
        # A block begins at 0, too: HDFS would empty the file.
        pytest.param(lambda certificate: certificate["join"].update(copyBytes=0), id="a copy of no bytes"),
        pytest.param(lambda certificate: certificate["join"].update(copyBytes=5000), id="a copy behind its begin"),
        pytest.param(lambda certificate: certificate.update(files={"strange.parquet": 1}), id="a file that is not there"),
        pytest.param(lambda certificate: certificate.pop("join"), id="no join"),
        pytest.param(lambda certificate: certificate.update(forms=[]), id="no form"),
    ],
)
def test_a_certificate_that_does_not_fit_its_plan_is_refused_and_the_log_stays_readable(change):
    """The first would get into the log, and a cleanup would believe it; two would make the log unreadable."""
    desk = a_desk_with_a_certificate(change)
    assert desk.recover().code is Exit.INVESTIGATE
    assert desk.log().runs == ()


def test_a_plan_of_a_cleanup_cuts_no_file_that_no_run_has_joined():
    """The file in `inside` needs no name that a run gives, and nobody asks the log whether a join has put it there."""
    desk = a_desk()
    large = desk.world.files.namespace.file(f"{desk.live('dt=1')}/large.parquet")
    large.joined = (Block(7, 7, 64 << 20),)
    large.content = DataFile(("large",), before=(DataFile(("no row of it",)),))
    desk.compact()
    desk.world.files.namespace.advance(3_600_000)
    desk.kill_before(["cut "], desk.cleanup)
    (path,) = (path for path in desk.world.files.contents(desk.control.top) if path.endswith("plan.json"))
    plan = desk.world.files.namespace.file(path)
    head, *units = plan.content.splitlines()
    forged = []
    for line in units:
        unit = json.loads(line)
        if unit["partition"] == "dt=1":
            sizes = {"length": large.length, "fileId": large.id, "copyBytes": 64 << 20, "begin": (64 << 20) + 1}
            unit["inside"] = {"file": "large.parquet", **sizes, "blocks": fingerprint(large.blocks)}
        forged.append(json.dumps(unit))
    plan.content = "\n".join([head, *forged]) + "\n"
    plan.length = len(plan.content)
    desk.recover()
    assert rows(desk) == ALL
    assert [unit.code.code for unit in [desk.recover().tables[0].problem]] == ["foreign-record"]


def test_a_cut_that_would_leave_other_rows_is_not_made():
    """Records decide where a file is cut; its footers say whether that is right."""
    desk = a_desk()
    desk.compact(where="dt = '1'")
    desk.world.files.namespace.advance(3_600_000)
    node = desk.world.files.namespace.file(joined_path(desk))
    copy, *others = node.content.before
    node.content = replace(node.content, before=(replace(copy, rows=copy.rows[1:]), *others))
    length = node.length
    (backup,) = desk.cleanup().tables[0].backups
    assert [why.what.partition(" would ")[2] for _, why in backup.kept_units] == ["show other rows without what is inside it"]
    assert node.length == length
