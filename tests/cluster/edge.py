"""An operator's shell on an edge node: the wrappers with their own configuration, and Hadoop's commands as any user."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any, Dict, Mapping, Optional

import yaml

from cluster.servers.clients import client_environment, find_spark_home
from cluster.servers.hadoop import run_admin
from cluster.servers.kerberos import get_ticket
from cluster.servers.layout import CHECKOUT, REALM, Layout


class Edge:
    """`home` starts empty and belongs to this test; there is no ticket until `login`."""

    def __init__(self, layout: Layout, home: Path) -> None:
        self.layout, self.home = layout, home
        self.environ = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("HIVEKEEPER_", "COV_"))},
            **client_environment(layout),
            "HIVEKEEPER_CONF_DIR": str(home / "conf"),
            "HIVEKEEPER_PYTHON": os.environ.get("HIVEKEEPER_PYTHON", "python3"),
            "HOME": str(home),
            "KRB5CCNAME": f"FILE:{home / 'ticket'}",
            "SPARK_HOME": str(find_spark_home()),
        }
        self.configure()

    def configure(self, user: Optional[str] = "etl", spark: Optional[Mapping[str, Any]] = None, **keys: Any) -> None:
        """Write site.yaml: a user with a keytab (None: the user's own ticket), local[2] unless `spark` says otherwise."""
        site: Dict[str, Any] = {"min_quiet": "0s", "spark": {"master": "local[2]", **(spark or {})}, **keys}
        if user is not None and self.layout.secure:
            site["kerberos"] = {"principal": f"{user}@{REALM}", "keytab": str(self.layout.keytab(user)), **keys.get("kerberos", {})}
        (self.home / "conf").mkdir(exist_ok=True)
        (self.home / "conf" / "site.yaml").write_text(yaml.safe_dump(site))

    def login(self, user: str, lifetime: Optional[str] = None) -> None:
        """kinit, as a user types it. `lifetime`: such as `90s`."""
        get_ticket(self.layout, user, self.home / "ticket", lifetime)

    def run(self, *words: str, program: str = "hivekeeper", **environ: str) -> subprocess.CompletedProcess[str]:
        """Run one command of bin/, without a terminal."""
        return subprocess.run(
            [str(CHECKOUT / "bin" / program), *words],
            check=False,
            cwd=self.home,
            env={**self.environ, **environ},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )

    def start(self, *words: str, program: str = "hivekeeper", **environ: str) -> subprocess.Popen[str]:
        """The same in the background; its output goes to the files `stdout` and `stderr` in `home`."""
        with open(self.home / "stdout", "w") as stdout, open(self.home / "stderr", "w") as stderr:
            return subprocess.Popen(
                [str(CHECKOUT / "bin" / program), *words],
                cwd=self.home,
                env={**self.environ, **environ},
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                text=True,
            )

    def admin(self, *words: str) -> str:
        """Run an HDFS command as superuser: `dfsadmin -safemode enter`, `dfs -chown …`. Returns its stdout."""
        return run_admin(self.layout, words)
