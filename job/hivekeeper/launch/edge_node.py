"""Gathers facts about this machine for the edge node checks: its environment, files and Kerberos programs. Decides nothing.

Java is started only if no file gives the version of Spark or Java.
"""

from __future__ import annotations

import os
import pwd
import re
import shutil
import stat
import subprocess
import tempfile
from pathlib import Path
from typing import Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

from hivekeeper.config.layers import Config
from hivekeeper.errors import UsageError
from hivekeeper.launch.hadoop_xml import read_hadoop_file
from hivekeeper.launch.klist import read_ticket
from hivekeeper.launch.shipped_files import HIVE_SITE, require_trusted_shipped
from hivekeeper.plan.edge_node import CORE, HDFS, YARN, ClientConf, JavaFacts, KeytabFacts, SparkFacts, TicketFacts, asks_for_ticket
from hivekeeper.reasons import Reason

# Where Oozie and other launchers put delegation tokens, which replace a ticket.
TOKENS = "HADOOP_TOKEN_FILE_LOCATION"

CONF_VARIABLES = ("HADOOP_CONF_DIR", "YARN_CONF_DIR")


class ThisMachine:
    """This machine. `clock` returns the seconds since 1970."""

    def __init__(self, environ: Mapping[str, str], clock: Callable[[], float]) -> None:
        self._environ = environ
        self._clock = clock

    @property
    def conf_dir(self) -> str:
        return self._environ.get("HIVEKEEPER_CONF_DIR", "")

    @property
    def user(self) -> str:
        try:
            return pwd.getpwuid(os.geteuid()).pw_name
        except KeyError:
            return str(os.geteuid())

    def spark(self, submit: str) -> SparkFacts:
        home = Path(self._environ.get("SPARK_HOME") or Path(submit).resolve().parent.parent)
        return SparkFacts(submit, str(home), self._find_spark_version(home, submit))

    def _find_spark_version(self, home: Path, submit: str) -> str:
        """From the RELEASE file, else the name of a jar, else spark-submit itself, which is slowest."""
        jars = (path.name for path in sorted(home.glob("jars/spark-core_*.jar")))
        found = re.search(r"Spark (\d+\.\d\S*)", _read(home / "RELEASE"))
        found = found or next(filter(None, (re.fullmatch(r"spark-core_[\d.]+-(\d.*)\.jar", name) for name in jars)), None)
        found = found or re.search(r" version (\d+\.\d\S*)", self._run([submit, "--version"])[1])
        return found[1] if found else ""

    def java(self) -> JavaFacts:
        home = self._environ.get("JAVA_HOME")
        path = self._find_program(f"{home}/bin/java" if home else "java") or ""
        return JavaFacts(path, self._find_java_version(path))

    def _find_java_version(self, java: str) -> str:
        """From the release file, which is beside jre/ in a JDK 8, else from java itself."""
        home = Path(java).resolve().parent.parent
        for release in (home / "release", home.parent / "release" if home.name == "jre" else None):
            found = re.search(r'JAVA_VERSION="([^"]+)"', _read(release)) if release else None
            if found:
                return found[1]
        found = re.search(r' version "([^"]*)"', self._run([java, "-version"])[1]) if java else None
        return found[1] if found else ""

    def client_conf(self, spark_home: str) -> ClientConf:
        """`spark_home`: "" if there is no usable Spark."""
        variables = {name: self._environ[name] for name in CONF_VARIABLES if self._environ.get(name)}
        files = {name: _find_readable(variables.values(), name) for name in (CORE, HDFS, YARN)}
        own = [*filter(None, (self._environ.get("SPARK_CONF_DIR"), f"{spark_home}/conf" if spark_home else ""))]
        hive = [Path(directory, HIVE_SITE) for directory in [*filter(None, [variables.get("HADOOP_CONF_DIR")]), *own]]
        spark_env = Path(own[0], "spark-env.sh") if own else None
        return ClientConf(
            variables,
            tuple(name for name, directory in variables.items() if not os.path.isdir(directory)),
            {name: read_hadoop_file(path) for name, path in files.items() if path},
            tuple(read_hadoop_file(path) for path in dict.fromkeys(hive) if os.access(path, os.R_OK)),
            str(spark_env) if spark_env and "HADOOP_CONF_DIR=" in _read(spark_env) else "",
        )

    def needs_own_ticket(self, keytab: Optional[str]) -> bool:
        """Whether a run needs the user's own ticket: there is no keytab and no token, and the cluster requires Kerberos."""
        return keytab is None and not self._environ.get(TOKENS) and asks_for_ticket(self.client_conf(""))

    def keytab(self, path: str) -> KeytabFacts:
        if not os.path.isfile(path):
            return KeytabFacts(path, self.user)
        mode, readable = stat.filemode(os.stat(path).st_mode), os.access(path, os.R_OK)
        klist = self._find_program("klist")
        if klist is None or not readable:
            return KeytabFacts(path, self.user, mode, readable)
        code, listed = self._run([klist, "-kt", path])
        return KeytabFacts(path, self.user, mode, readable, listed, _last_line(listed) if code else "")

    def own_ticket(self) -> TicketFacts:
        """The ticket in the user's own cache."""
        klist = self._find_program("klist")
        if klist is None:
            return TicketFacts(missing="klist")
        code, said = self._run([klist, "-s"])
        return TicketFacts(error=_last_line(said)) if code else self._list_ticket()

    def keytab_ticket(self, principal: str, keytab: str) -> TicketFacts:
        """A new ticket from the keytab, in a temporary private cache."""
        kinit = self._find_program("kinit")
        if kinit is None:
            return TicketFacts(missing="kinit")
        with tempfile.TemporaryDirectory(prefix="hivekeeper.") as private:
            cache = {"KRB5CCNAME": f"FILE:{private}/doctor"}
            code, said = self._run([kinit, "-k", "-t", keytab, principal], cache)
            return TicketFacts(error=_last_line(said)) if code else self._list_ticket(cache)

    def _list_ticket(self, more: Optional[Mapping[str, str]] = None) -> TicketFacts:
        klist = self._find_program("klist")
        return read_ticket(self._run([klist], more)[1] if klist else "", self._clock())

    def can_log_to(self, path: str) -> bool:
        if os.path.isdir(path):
            return os.access(path, os.W_OK | os.X_OK)
        parent = os.path.dirname(path.rstrip("/")) or "."
        return not os.path.lexists(path) and os.access(parent, os.W_OK)

    def find_unreadable(self, paths: Sequence[str]) -> List[str]:
        return [path for path in paths if not os.access(path, os.R_OK)]

    def refuse_shipped(self, config: Config) -> Optional[Reason]:
        """Why a file that the configuration ships is not used; None if all are."""
        try:
            require_trusted_shipped(config, self._environ)
        except UsageError as error:
            return error.reason
        return None

    def _find_program(self, name: str) -> Optional[str]:
        return shutil.which(name, path=self._environ.get("PATH"))

    def _run(self, command: Sequence[str], more: Optional[Mapping[str, str]] = None) -> Tuple[int, str]:
        """The exit code and all output of the program, in English (LC_ALL=C)."""
        environ: Dict[str, str] = {**self._environ, "LC_ALL": "C", **(more or {})}
        try:
            done = subprocess.run(
                command, check=False, env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
            )
        except OSError as error:
            return 127, str(error)
        return done.returncode, done.stdout.decode("utf-8", "replace")


def _find_readable(directories: Iterable[str], name: str) -> Optional[Path]:
    return next((path for path in (Path(directory, name) for directory in directories) if os.access(path, os.R_OK)), None)


def _read(path: Path) -> str:
    """The text of a file; "" if there is none to read."""
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or ["it says nothing"])[-1]
