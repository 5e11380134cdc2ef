"""What goes by the id of a directory, behind a router that has a default nameservice, as all have unless a site changed it
(dfs.federation.router.default.nameservice.enable, dfs.federation.router.default.nameserviceId).

Such a router asks the NameNode of that nameservice for all that begins with /.reserved/.inodes. What lies in another nameservice has an id
there that may be anything's here: both count from the same number.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest

from hivekeeper.cluster.java_classes import compiled
from hivekeeper.cluster.java_errors import JAVA_ERRORS
from support.file_systems import configuration_with

pytestmark = pytest.mark.jvm

ROUTED = """package hivekeeper.tested;

import java.io.IOException;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.hdfs.protocol.HdfsFileStatus;

public class RoutedToOne extends WithoutServer {
  private static int ofCatalogue = 0700;
  private static int ofAnother = 0700;

  private static boolean isById(Path path) {
    return path.toUri().getPath().startsWith("/.reserved/");
  }

  public FileStatus getFileStatus(Path path) throws IOException {
    int mode = isById(path) ? ofAnother : ofCatalogue;
    HdfsFileStatus found = new HdfsFileStatus.Builder().isdir(true).fileId(7L).perm(new FsPermission((short) mode))
        .owner(isById(path) ? "payroll" : "hive").group("hive").path(path.getName().getBytes()).build();
    return found.makeQualified(getUri(), path.getParent());
  }

  public void setPermission(Path path, FsPermission permission) throws IOException {
    if (isById(path)) ofAnother = permission.toShort();
    else ofCatalogue = permission.toShort();
  }
}
"""
CATALOGUE = "routed2://router/catalogue"
# Of the default nameservice: another table's, which has the id that the catalogue's has in its own.
ANOTHER = "routed2://router/.reserved/.inodes/7"


@pytest.fixture
def helper(gateway: Any) -> Any:
    core, conf = compiled(gateway.java_gateway), configuration_with(gateway, "routed2", "RoutedToOne", ROUTED)
    return lambda kind: core.factory.make(core.find(kind), conf)


def test_the_rights_of_a_catalogue_are_given_to_nothing_in_the_default_nameservice(helper: Any) -> None:
    """As `catalogue/store` gives them, with the id that a listing by the path has shown."""
    stat = helper("Listing").stat
    assert json.loads(stat(ANOTHER))["entry"]["owner"] == "payroll"
    # That may be refused, too.
    with suppress(*JAVA_ERRORS):
        helper("Rights").give(json.dumps({CATALOGUE: {"mode": 0o750, "file_id": 7}}))
    assert oct(json.loads(stat(ANOTHER))["entry"]["mode"]) == oct(0o700)
