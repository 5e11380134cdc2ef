"""What HDFS, or Ranger's plugin in the NameNode, refuses for want of a right, in the helpers that go on without an answer."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hivekeeper.cluster.java_classes import compiled
from hivekeeper.cluster.java_errors import JAVA_ERRORS, files_error, java_causes
from hivekeeper.ports import FilesUnavailable, NoPermission
from support.file_systems import configuration_with

DENIED = "org.apache.hadoop.security.AccessControlException"
RANGER = "org.apache.ranger.authorization.hadoop.exceptions.RangerAccessControlException"
STANDBY = "org.apache.hadoop.ipc.StandbyException"
SAID = 'Permission denied: user=etl, access=READ, inode="/table"'
TABLE = "refusing://nn/table"

# HDFS's client unwraps an error only if it knows the name of its class.
REFUSING = """package hivekeeper.tested;

import java.io.IOException;
import org.apache.hadoop.fs.ContentSummary;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.QuotaUsage;
import org.apache.hadoop.fs.RemoteIterator;
import org.apache.hadoop.fs.permission.FsAction;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.ipc.RemoteException;
import org.apache.hadoop.security.AccessControlException;

public class Refusing extends WithoutServer {
  public QuotaUsage getQuotaUsage(Path path) throws IOException {
    throw refused();
  }

  public ContentSummary getContentSummary(Path path) throws IOException {
    throw refused();
  }

  public void access(Path path, FsAction mode) throws IOException {
    throw refused();
  }

  public RemoteIterator<FileStatus> listStatusIterator(Path path) throws IOException {
    throw refused();
  }

  public void setPermission(Path path, FsPermission permission) throws IOException {
    throw refused();
  }

  private IOException refused() {
    String name = getConf().get("tested.with");
    String said = getConf().get("tested.said");
    return name.equals(AccessControlException.class.getName()) ? new AccessControlException(said) : new RemoteException(name, said);
  }
}
"""


class Refusing:
    """Our helpers on a file system whose NameNode refuses with this error."""

    def __init__(self, gateway: Any, error: str) -> None:
        self.gateway, self.core = gateway, compiled(gateway.java_gateway)
        self.conf = configuration_with(gateway, "refusing", "Refusing", REFUSING, **{"with": error, "said": SAID})

    def make(self, kind: str, folder: str = "") -> Any:
        package = compiled(self.gateway.java_gateway, folder) if folder else self.core
        return self.core.factory.make(package.find(kind), self.conf)


@pytest.fixture(params=[DENIED, RANGER], ids=["HDFS", "Ranger"])
def refusing(request: Any, gateway: Any) -> Refusing:
    return Refusing(gateway, request.param)


def test_a_quota_that_may_not_be_read_counts_as_none(refusing: Refusing) -> None:
    assert json.loads(refusing.make("Room").at(TABLE, json.dumps([TABLE])))["quotas"] == []


def test_a_directory_in_which_nothing_may_be_renamed_is_told_with_the_reason(refusing: Refusing) -> None:
    (ties,) = json.loads(refusing.make("Placement").ties(json.dumps([f"{TABLE}/dt=1"]), "")).values()
    assert (ties["denied"], ties["quota"]) == (SAID, False)


def test_what_may_not_be_listed_is_known_by_its_own_owner_and_mode(refusing: Refusing) -> None:
    assert json.loads(refusing.make("Rights").exposed(TABLE, 1)) == []


def test_what_may_not_be_set_is_told(refusing: Refusing) -> None:
    with pytest.raises(JAVA_ERRORS) as caught:
        refusing.make("Rights").give(json.dumps({TABLE: {"mode": 0o700}}))
    error = files_error(java_causes(caught.value))
    assert isinstance(error, NoPermission)
    assert f"{TABLE}: may not set the mode rwx------: {SAID}" in str(error)


def test_doctor_tells_a_table_without_the_sizes_that_it_may_not_read(refusing: Refusing) -> None:
    assert json.loads(refusing.make("ClusterFacts", "doctor").room(TABLE)) == {"remaining_bytes": 9, "size_bytes": None}


def test_a_namenode_that_does_not_answer_is_no_denial(gateway: Any) -> None:
    with pytest.raises(JAVA_ERRORS) as caught:
        Refusing(gateway, STANDBY).make("Room").at(TABLE, json.dumps([TABLE]))
    assert isinstance(files_error(java_causes(caught.value)), FilesUnavailable)
