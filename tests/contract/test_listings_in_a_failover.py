"""While the servers of an HDFS change places, the client that lists blocks is refused, and another one waits until one answers. Only blocks
tell that some are lost: of a listing without them a cleanup took what runs had put into live for whole, and discarded the only copy.
"""

from __future__ import annotations

from typing import Any

import pytest

from hivekeeper import ports
from hivekeeper.cluster.files import HadoopFiles
from hivekeeper.cluster.gateway import Gateway
from support.file_systems import configuration_with

pytestmark = pytest.mark.jvm

REFUSING = """package hivekeeper.tested;

import java.io.IOException;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.Collections;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.hdfs.DFSClient;
import org.apache.hadoop.hdfs.protocol.ClientProtocol;
import org.apache.hadoop.hdfs.protocol.DatanodeInfo;
import org.apache.hadoop.hdfs.protocol.DirectoryListing;
import org.apache.hadoop.hdfs.protocol.ExtendedBlock;
import org.apache.hadoop.hdfs.protocol.HdfsFileStatus;
import org.apache.hadoop.hdfs.protocol.LocatedBlock;
import org.apache.hadoop.hdfs.protocol.LocatedBlocks;

/** Each directory has a file with a block that no DataNode has. */
public class Refusing extends WithoutServer {
  private static int refusals = -1;

  private static HdfsFileStatus[] file(boolean withBlocks) {
    LocatedBlock block = new LocatedBlock(new ExtendedBlock("BP-1", 1073741825L, 9L, 1001L), new DatanodeInfo[0]);
    LocatedBlocks blocks = new LocatedBlocks(9L, false, Collections.singletonList(block), block, true, null, null);
    return new HdfsFileStatus[] {new HdfsFileStatus.Builder().isdir(false).length(9L).fileId(8L).perm(new FsPermission((short) 0600))
        .mtime(1000L).owner("etl").group("hive").path("file".getBytes()).locations(withBlocks ? blocks : null).build()};
  }

  private Object list(boolean withBlocks) throws IOException {
    if (refusals < 0) refusals = getConf().getInt("tested.refusals", 0);
    if (withBlocks && refusals-- > 0) throw new IOException(getConf().get("tested.says"));
    return new DirectoryListing(file(withBlocks), 0);
  }

  public DFSClient getClient() {
    Class<?>[] kinds = {ClientProtocol.class};
    Object server = Proxy.newProxyInstance(ClientProtocol.class.getClassLoader(), kinds, new InvocationHandler() {
      public Object invoke(Object proxy, Method method, Object[] asked) throws Throwable {
        if (method.getName().equals("getListing")) return list(((Boolean) asked[2]).booleanValue());
        if (method.getName().equals("isFileClosed")) return Boolean.TRUE;
        throw new UnsupportedOperationException(method.getName());
      }
    });
    try {
      return new DFSClient(null, (ClientProtocol) server, getConf(), statistics);
    } catch (IOException failed) {
      throw new IllegalStateException(failed);
    }
  }
}
"""

STANDBY = "Operation category READ is not supported in state standby"
TOO_LONG = "RPC response exceeds maximum data length"


@pytest.mark.parametrize("refusals, says, is_lost", [(0, "", True), (1, STANDBY, True), (2, STANDBY, False), (1, TOO_LONG, False)])
def test_lost_blocks_are_told_where_the_first_request_for_them_was_refused(gateway: Any, refusals: int, says: str, is_lost: bool) -> None:
    """One that is too long is refused again, and costs the NameNode more than all others."""
    another = Gateway(gateway.driver)
    another.hadoop_conf = configuration_with(gateway, "refusing", "Refusing", REFUSING, refusals=str(refusals), says=says)
    (file,) = HadoopFiles(another).look(["refusing://nn/live"], ports.ALL)["refusing://nn/live"].entries
    assert (file.name, file.is_open, file.is_lost) == ("file", False, is_lost)
