"""The checks of this machine that bin/hivekeeper-doctor runs before it starts Java. Changes nothing."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Callable, Dict, Iterator, List, Mapping, Optional, Protocol, Sequence, Tuple

from hivekeeper.config.layers import Config
from hivekeeper.errors import HivekeeperError
from hivekeeper.plan import edge_node
from hivekeeper.plan.doctor import FIX, MACHINE, Check, Level
from hivekeeper.plan.edge_node import ClientConf, JavaFacts, KeytabFacts, SparkFacts, TicketFacts
from hivekeeper.reasons import Reason

METASTORE_PROPERTY = f"spark.hadoop.{edge_node.METASTORE_URIS}"


class Machine(Protocol):
    """The facts that can be read from this machine."""

    @property
    def conf_dir(self) -> str: ...

    @property
    def user(self) -> str: ...

    def spark(self, submit: str) -> SparkFacts: ...

    def java(self) -> JavaFacts: ...

    def client_conf(self, spark_home: str) -> ClientConf: ...

    def keytab(self, path: str) -> KeytabFacts: ...

    def own_ticket(self) -> TicketFacts: ...

    def keytab_ticket(self, principal: str, keytab: str) -> TicketFacts: ...

    def can_log_to(self, path: str) -> bool: ...

    def find_unreadable(self, paths: Sequence[str]) -> List[str]: ...

    def refuse_shipped(self, config: Config, /) -> Optional[Reason]: ...


@dataclass(frozen=True)
class LauncherFacts:
    """What the launcher found in bash, in the same way as for a run.

    `found`: its own checks, and those that failed because something was not found. `shipped`: local files shipped with the job.
    """

    found: Tuple[Check, ...] = ()
    spark_submit: str = ""
    shipped: Tuple[str, ...] = ()


def check_machine(machine: Machine, launcher: LauncherFacts, load_config: Callable[[], Config]) -> Iterator[Check]:
    """Yield every check in order, each as soon as it is made. A check whose prerequisites failed is reported as skipped, never left out."""
    return _Checks(machine, launcher, load_config).make_all()


class _Checks:
    """Keeps the results that later checks need."""

    config: Config

    def __init__(self, machine: Machine, launcher: LauncherFacts, load_config: Callable[[], Config]) -> None:
        self._machine = machine
        self._launcher = launcher
        self._load_config = load_config
        self._levels: Dict[str, Level] = {}
        self._spark: Optional[SparkFacts] = None

    def make_all(self) -> Iterator[Check]:
        found = {check.name: check for check in self._launcher.found}
        make: Mapping[str, Callable[[], Check]] = {
            "configuration": self._check_configuration,
            "spark": self._check_spark,
            "java": self._check_java,
            "hadoop-conf": lambda: edge_node.judge_hadoop_conf(self._client_conf, self.config.spark.master),
            "yarn-conf": lambda: edge_node.judge_yarn_conf(self._client_conf, self.config.spark.master),
            "hive-conf": self._check_hive_conf,
            "keytab": self._check_keytab,
            "ticket": self._check_ticket,
            "log-dir": self._check_log_dir,
            "files": self._check_files,
        }
        for name in edge_node.MACHINE_CHECKS:
            check = found.get(name) or self._skip(name) or make[name]()
            self._levels[name] = check.level
            yield check

    def _fits(self, name: str) -> bool:
        return edge_node.fits(self._levels.get(name))

    def _skip(self, name: str) -> Optional[Check]:
        configured = self._fits("configuration")
        on_yarn = configured and self.config.spark.master == "yarn"
        with_keytab = configured and self.config.kerberos.keytab is not None
        unmet = [needed for needed in edge_node.find_needs(name, on_yarn, with_keytab) if not self._fits(needed)]
        return edge_node.skip(name, f"needs {unmet[0]}") if unmet else None

    @cached_property
    def _client_conf(self) -> ClientConf:
        return self._machine.client_conf(self._spark.home if self._spark and self._fits("spark") else "")

    def _check_configuration(self) -> Check:
        try:
            self.config = self._load_config()
        except HivekeeperError as error:
            return Check("configuration", FIX, error.reason.what, error.reason.next, MACHINE, cause=error.reason.code.code)
        spark = self.config.spark
        return edge_node.judge_configuration(spark.master, spark.deploy_mode, self._machine.conf_dir)

    def _check_spark(self) -> Check:
        self._spark = self._machine.spark(self._launcher.spark_submit)
        return edge_node.judge_spark(self._spark)

    def _check_java(self) -> Check:
        return edge_node.judge_java(self._machine.java(), self._spark.version if self._spark and self._fits("spark") else None)

    def _check_hive_conf(self) -> Check:
        spark = self.config.spark
        return edge_node.judge_hive_conf(self._client_conf, spark.master, spark.extra_conf.get(METASTORE_PROPERTY, ""))

    def _check_keytab(self) -> Check:
        path, principal = self.config.kerberos.keytab, self.config.kerberos.principal
        return edge_node.judge_keytab(self._machine.keytab(path) if path else None, principal or "")

    def _check_ticket(self) -> Check:
        path, principal = self.config.kerberos.keytab, self.config.kerberos.principal
        if path and principal:
            return edge_node.judge_keytab_ticket(self._machine.keytab_ticket(principal, path), principal)
        reason = edge_node.find_no_ticket_reason(self._client_conf, self.config.spark.master)
        return edge_node.judge_no_ticket(reason) if reason else edge_node.judge_own_ticket(self._machine.own_ticket())

    def _check_log_dir(self) -> Check:
        path = self.config.log_dir
        return edge_node.judge_log_dir(path, bool(path) and self._machine.can_log_to(path or ""), self._machine.user)

    def _check_files(self) -> Check:
        shipped = self._launcher.shipped
        return edge_node.judge_files(shipped, self._machine.find_unreadable(shipped), self._machine.refuse_shipped(self.config))
