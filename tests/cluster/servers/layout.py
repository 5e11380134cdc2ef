"""Where a cluster's files are and which ports its servers use: one JSON file, so that every later call finds the cluster again."""

from __future__ import annotations

import json
import os
import random
import socket
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Dict, Sequence

REALM = "HIVEKEEPER.TEST"
CHECKOUT = Path(__file__).resolve().parents[3]
JARS = CHECKOUT / ".cluster" / "jars"

# Who may log in. The servers' own principals include the host, as Hadoop's `_HOST` does.
SERVICES = ("hdfs/localhost", "yarn/localhost", "hive/localhost", "HTTP/localhost")
# etl runs Hivekeeper, analyst has no rights, loader writes to tables, scheduler may act for etl.
USERS = ("etl", "analyst", "loader", "scheduler")
GROUPS = "hdfs=supergroup;hive=hive;yarn=yarn;etl=etl,data;loader=loader,data;analyst=analyst;scheduler=scheduler;mayfly=etl,data"

PORTS = (
    "kdc",
    "kms",
    "namenode",
    "namenode_http",
    "datanode",
    "datanode_ipc",
    "datanode_http",
    "resourcemanager",
    "rm_scheduler",
    "rm_tracker",
    "rm_admin",
    "rm_web",
    "nodemanager",
    "nm_localizer",
    "nm_web",
    "nm_collector",
    "metastore",
    "postgres",
)


@dataclass(frozen=True)
class Layout:
    """One cluster. `run` holds everything it writes; removing it removes the cluster's data."""

    run: Path
    secure: bool
    ports: Dict[str, int]
    # For measuring: without YARN, and with HDFS's own sizes instead of those that suit tests.
    bench: bool = False

    @property
    def conf(self) -> Path:
        return self.run / "conf"

    @property
    def keytabs(self) -> Path:
        return self.run / "keytabs"

    @property
    def logs(self) -> Path:
        return self.run / "logs"

    @property
    def audit(self) -> Path:
        """NameNode's audit log, of a cluster for measuring."""
        return self.logs / "audit.log"

    @property
    def namenode(self) -> str:
        return f"hdfs://localhost:{self.ports['namenode']}"

    @property
    def metastore(self) -> str:
        return f"thrift://localhost:{self.ports['metastore']}"

    @property
    def krb5_conf(self) -> Path:
        return self.run / "kdc" / "krb5.conf"

    def keytab(self, principal: str) -> Path:
        return self.keytabs / f"{principal.partition('/')[0]}.keytab"


def choose_run() -> Path:
    """The directory of the cluster for this call."""
    return Path(os.environ.get("HKTEST_CLUSTER_DIR") or CHECKOUT / ".cluster" / "run").absolute()


def make_layout(run: Path, secure: bool, bench: bool = False) -> Layout:
    layout = Layout(run, secure, find_ports(PORTS), bench)
    for directory in (layout.conf, layout.keytabs, layout.logs, run / "pids", run / "tmp"):
        directory.mkdir(parents=True, exist_ok=True)
    (run / "cluster.json").write_text(json.dumps({**asdict(layout), "run": str(run)}, indent=1))
    return layout


def read_layout(run: Path) -> Layout:
    """Raises FileNotFoundError if no cluster was created."""
    known = json.loads((run / "cluster.json").read_text())
    return Layout(Path(known["run"]), known["secure"], known["ports"], known["bench"])


def find_ports(names: Sequence[str]) -> Dict[str, int]:
    """Unused ports, below the range that the kernel gives to clients."""
    found: Dict[str, int] = {}
    while len(found) < len(names):
        port = random.randrange(12000, 30000)
        if port in found.values():
            continue
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        found[names[len(found)]] = port
    return found
