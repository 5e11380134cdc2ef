"""A directory without a quota is counted with all below it, level by level on a thread's stack (INodeDirectory.computeContentSummary), and
one in an encryption zone is listed until a file in it has told of the zone's key.

So whoever may write to one table can nest directories there so deeply that the NameNode answers nothing about that of the database: a limit
of 1,000 levels holds for the path that is typed, and /.reserved/.inodes/ID/… begins anew.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from hivekeeper.cluster.java_classes import compiled
from support.file_systems import configuration_with

pytestmark = pytest.mark.jvm

DATABASE, UNIT = "uncounted://nn/warehouse/sales", "uncounted://nn/warehouse/sales/events"

# As Hadoop 3.3.6 answers: the class is Java's, so the client leaves the error wrapped.
UNCOUNTED = """package hivekeeper.tested;

import java.io.IOException;
import org.apache.hadoop.crypto.CipherSuite;
import org.apache.hadoop.crypto.CryptoProtocolVersion;
import org.apache.hadoop.fs.ContentSummary;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.QuotaUsage;
import org.apache.hadoop.fs.RemoteIterator;
import org.apache.hadoop.fs.permission.FsAction;
import org.apache.hadoop.hdfs.protocol.EncryptionZone;
import org.apache.hadoop.ipc.RemoteException;

public class Uncounted extends WithoutServer {
  public void access(Path path, FsAction mode) {}

  public QuotaUsage getQuotaUsage(Path path) throws IOException {
    if (path.getName().equals("sales")) throw new IOException("this would count all tables");
    if (path.getName().equals("routed")) {
      throw new RemoteException(RemoteException.class.getName(), "java.lang.StackOverflowError");
    }
    throw new RemoteException("java.lang.StackOverflowError", "java.lang.StackOverflowError");
  }

  public ContentSummary getContentSummary(Path path) throws IOException {
    throw new RemoteException("java.lang.StackOverflowError", "java.lang.StackOverflowError");
  }

  public FileStatus getFileStatus(Path path) throws IOException {
    FileStatus status = super.getFileStatus(path);
    return new FileStatus(0, true, 1, 1, 1, 1, status.getPermission(), status.getOwner(), "etl", null, path, false, true, false);
  }

  public EncryptionZone getEZForPath(Path path) {
    return new EncryptionZone(1, "/warehouse", CipherSuite.AES_CTR_NOPADDING, CryptoProtocolVersion.ENCRYPTION_ZONES, "key");
  }

  public RemoteIterator<FileStatus> listStatusIterator(Path path) throws IOException {
    if (path.getName().equals("sales")) throw new IOException("this would list all tables");
    return new RemoteIterator<FileStatus>() {
      public boolean hasNext() {
        return false;
      }

      public FileStatus next() {
        throw new java.util.NoSuchElementException();
      }
    };
  }
}
"""


def make(gateway: Any, kind: str) -> Any:
    core = compiled(gateway.java_gateway)
    return core.factory.make(core.find(kind), configuration_with(gateway, "uncounted", "Uncounted", UNCOUNTED))


@pytest.mark.parametrize("unit", [UNIT, f"{DATABASE}/routed"], ids=["told by HDFS", "told by a router"])
def test_a_directory_that_cannot_be_counted_has_no_quota(gateway: Any, unit: str) -> None:
    assert json.loads(make(gateway, "Room").at(unit, json.dumps([unit])))["quotas"] == []


def test_nor_does_it_tie_a_unit_and_that_around_all_units_is_neither_counted_nor_listed_for_it(gateway: Any) -> None:
    """The control directory of a table without partitions lies in that of its database."""
    ties = json.loads(make(gateway, "Placement").ties(json.dumps([UNIT, DATABASE]), DATABASE))
    told = [(ties[place]["denied"], ties[place]["quota"], ties[place]["zone"]) for place in (DATABASE, UNIT)]
    assert told == [("", False, "/warehouse")] * 2
