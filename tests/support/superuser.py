"""HDFS's own client as the superuser of the cluster that runs for tests."""

from __future__ import annotations

from typing import Any

from cluster.servers.kerberos import get_ticket
from cluster.servers.layout import Layout


def open_as_superuser(layout: Layout, gateway: Any) -> Any:
    """HDFS's own DistributedFileSystem."""
    conf = gateway.jvm.org.apache.hadoop.conf.Configuration(gateway.hadoop_conf)
    user = "hdfs"
    if layout.secure:
        cache = layout.run / "tmp" / "superuser"
        get_ticket(layout, "hdfs/localhost", cache)
        conf.set("hadoop.security.kerberos.ticket.cache.path", str(cache))
        user = "hdfs/localhost"
    return gateway.jvm.org.apache.hadoop.fs.FileSystem.newInstance(gateway.jvm.java.net.URI(layout.namenode), conf, user)
