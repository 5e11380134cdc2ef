"""Collects the facts of a cluster that doctor judges, and tries what a run will do in scratch directories.

It decides nothing and touches no table.
"""

from __future__ import annotations

import json
from typing import Any, Callable, Optional, Sequence, Tuple

from hivekeeper.cluster.files import HadoopFiles
from hivekeeper.cluster.gateway import Gateway
from hivekeeper.cluster.java_errors import JAVA_ERRORS, explain_unusable, java_causes
from hivekeeper.errors import Unusable
from hivekeeper.jail import confine_files
from hivekeeper.names import TRIAL_DIRECTORIES
from hivekeeper.plan import doctor
from hivekeeper.ports import Cluster, Files


class ClusterProbes:
    """`commands.doctor.Probes` on an open session."""

    def __init__(self, gateway: Gateway, connect: Callable[[], Cluster]) -> None:
        """`connect` returns the ports on the same session; it is called on first use."""
        self._gateway = gateway
        self._connect = connect
        self._facts = gateway.helper("doctor.ClusterFacts", gateway.hadoop_conf)
        self._trial = gateway.helper("doctor.RightsTrial", gateway.hadoop_conf)
        self._cluster: Optional[Cluster] = None
        context = gateway.context
        self.on_yarn = context.master == "yarn"
        self.session = f"Spark {gateway.driver.spark_version}, master {context.master}, application {context.applicationId}"

    @property
    def metastore(self) -> str:
        uris = self._gateway.hadoop_conf.get("hive.metastore.uris")
        client = self._gateway.jvm.org.apache.hive.common.util.HiveVersionInfo.getVersion()
        return f"{uris or 'embedded'}, through Hive's client {client}"

    def files(self) -> Files:
        return confine_files(HadoopFiles(self._gateway))

    def cluster(self) -> Cluster:
        if self._cluster is None:
            self._cluster = self._connect()
        return self._cluster

    def login(self) -> doctor.LoginFacts:
        return doctor.LoginFacts(**_ask(self._facts.login))

    def file_system(self) -> doctor.FileSystemFacts:
        return doctor.FileSystemFacts(**_ask(self._facts.fileSystem))

    def staging(self, scratch: str) -> doctor.StagingFacts:
        directory = self._gateway.driver.conf.get("spark.yarn.stagingDir", None)
        return doctor.StagingFacts(**_ask(self._facts.staging, directory, scratch))

    def queue(self, name: str) -> Optional[doctor.QueueFacts]:
        found = _ask(lambda: self._gateway.helper("yarn.Queues", self._gateway.hadoop_conf).find(name))
        return doctor.QueueFacts(**{**found, "others": tuple(found["others"])}) if found else None

    def missing(self, paths: Sequence[str]) -> Tuple[str, ...]:
        return tuple(_ask(self._facts.missing, json.dumps(list(paths))))

    def try_rights(self, root: str, control: str, scratch: str) -> doctor.TrialFacts:
        return doctor.TrialFacts(**_ask(self._trial.run, root, control, scratch, TRIAL_DIRECTORIES))

    def room(self, root: str) -> doctor.RoomFacts:
        return doctor.RoomFacts(**_ask(self._facts.room, root))


def _ask(call: Callable[..., Any], *arguments: Any) -> Any:
    """A helper's answer, read from JSON. Raises ProbeFailed, also if a Spark without YARN's jars cannot compile the helper."""
    try:
        return json.loads(call(*arguments))
    except Unusable as error:
        raise doctor.ProbeFailed(error.reason.what, error.reason.next, doctor.CLUSTER) from error
    except JAVA_ERRORS as error:
        trouble = explain_unusable(java_causes(error))
        raise doctor.ProbeFailed(trouble.what, trouble.next, doctor.MACHINE if trouble.configured else doctor.CLUSTER) from error
