"""A driver that really dies: started and warmed up first, then told which command to run and at which change to SIGKILL itself.

Its Python and its JVM die together, as when a machine fails. Arguments: its own directory; then one line of JSON on stdin.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(CHECKOUT / "job"), str(CHECKOUT / "tests")]

from faults.scenarios import SCENARIOS, SHAPES  # noqa: E402
from hivekeeper.cluster.driver import Driver  # noqa: E402
from support.desk import Desk  # noqa: E402
from support.real_world import KILLED, Fault, Process, RealWorld  # noqa: E402
from support.storage import login_options, open_storage  # noqa: E402

OPTIONS = {
    "spark.master": "local[1]",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.hadoop.dfs.client.block.write.locateFollowingBlock.initial.delay.ms": "5",
    "spark.hadoop.dfs.client.block.write.locateFollowingBlock.retries": "12",
}
NOT_KILLED = 3
# In its directory: the rows that writers added until its death.
WRITTEN = "written.json"


class MortalProcess(Process):
    """A real death."""

    def __init__(self, world: RealWorld, jvm: int) -> None:
        super().__init__()
        self._world, self._jvm = world, jvm

    def die(self) -> None:
        Path(WRITTEN).write_text(json.dumps(self._world.written))
        # The JVM first: when it sees Python gone it would end in good order and release its lock.
        os.kill(self._jvm, signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)


def main(home: str) -> int:
    spark: Any = Driver({**OPTIONS, **login_options()}, "ERROR").session
    jvm = int(spark._jvm.java.lang.ProcessHandle.current().pid())
    storage = open_storage(spark, Path(home))
    spark.sql("SHOW DATABASES").count()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    order = json.loads(sys.stdin.readline())
    scenario = next(scenario for scenario in SCENARIOS if scenario.name == order["scenario"])
    world = RealWorld(spark, order["database"], storage, SHAPES[order["shape"]], order["place"])
    desk = Desk(world, f"{world.database}.events")
    desk.runs += order["runs"]
    world.written.update(order["written"])
    world.process = MortalProcess(world, jvm)
    world.process.fault = Fault(order["name"], order["nth"], KILLED)
    scenario.run(desk)
    return NOT_KILLED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
