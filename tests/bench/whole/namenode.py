"""What was asked of the NameNode: calls by name from its counters in JMX, and by command and kind of path from its audit log."""

from __future__ import annotations

import json
import re
import ssl
import time
import urllib.request
from collections import Counter
from typing import Callable, Iterable, Tuple

from cluster.servers.layout import Layout

# The counters in JMX are at most a second old (`BENCH_METRICS`).
SETTLED_AFTER_SECONDS = 2.5
# The DataNode's own calls come on the same port.
OF_DATANODE = frozenset(
    {"BlockReceivedAndDeleted", "BlockReport", "CacheReport", "ErrorReport", "RegisterDatanode", "SendHeartbeat", "VersionRequest"}
)
_AUDIT = re.compile(
    r"ugi=(?P<user>\S+).*\bcmd=(?P<command>[^\t]+)\tsrc=(?P<src>[^\t]*)\tdst=(?P<dst>[^\t]*)\tperm=[^\t]*\tproto=\S+(?:\tcallerContext=(?P<caller>.*))?"
)


class Calls:
    """Since its creation. `stop` returns how often each call came, and the audited commands by command, path and caller."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        time.sleep(SETTLED_AFTER_SECONDS)
        self._before = read_counters(layout)
        self._audited = layout.audit.stat().st_size

    def stop(self, kind_of: Callable[[str], str]) -> Tuple[Counter, Counter]:
        time.sleep(SETTLED_AFTER_SECONDS)
        calls = read_counters(self._layout) - self._before
        with self._layout.audit.open("rb") as log:
            log.seek(self._audited)
            audited = count_audited(log.read().decode(errors="replace").splitlines(), kind_of)
        return Counter({name: count for name, count in calls.items() if name not in OF_DATANODE}), audited


def read_counters(layout: Layout) -> Counter:
    """Calls by name since the NameNode started."""
    scheme = "https" if layout.secure else "http"
    query = "jmx?qry=Hadoop:service=NameNode,name=RpcDetailedActivityForPort*"
    # Its certificate is self-signed, and it listens on loopback.
    trusting = ssl._create_unverified_context()
    with urllib.request.urlopen(f"{scheme}://localhost:{layout.ports['namenode_http']}/{query}", context=trusting) as answer:
        (bean,) = json.load(answer)["beans"]
    return Counter({name[: -len("NumOps")]: int(count) for name, count in bean.items() if name.endswith("NumOps")})


def count_audited(lines: Iterable[str], kind_of: Callable[[str], str]) -> Counter:
    found: Counter = Counter()
    for line in lines:
        match = _AUDIT.search(line)
        if match:
            user = match["user"].partition("@")[0].partition("/")[0]
            # Spark names its tasks SPARK_TASK_<application>_JId_<job>_SId_<stage>_…; the driver has no context of its own.
            stage = re.search(r"_(JId_\d+_SId_\d+)_", match["caller"] or "")
            found[f"{match['command']} {kind_of(match['src'])}", user, stage[1] if stage else "driver"] += 1
    return found
