"""Print which code makes the calls to the NameNode, for one whole command on a table of a shape.

  make bench-callers [SHAPE=quick] [COMMAND=compact-swap]

Needs a cluster for measuring. A line: calls, calls a file, calls a unit, the call, Hadoop's method, and below it the innermost frames of
the code that called it.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Dict, List, Sequence

from bench.whole.bench_table import DRIVER_MEMORY, HERE, BenchTable, Tables
from bench.whole.programs import run_hivekeeper
from bench.whole.shapes import SHAPES
from cluster.edge import Edge
from cluster.servers.artifacts import find_program
from cluster.servers.layout import choose_run, read_layout

# What must have run before a command.
BEFORE: Dict[str, List[str]] = {"compact-swap": [], "verify": ["compact-swap"], "rollback": ["compact-swap"]}
LOG4J2 = """\
packages = {package}
rootLogger.level = error
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.calls.type = CallStacks
appender.calls.name = calls
appender.calls.fileName = {file}
logger.calls.name = org.apache.hadoop.ipc.ProtobufRpcEngine2
logger.calls.level = debug
logger.calls.additivity = false
logger.calls.appenderRef.calls.ref = calls
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", choices=SHAPES, default="quick")
    parser.add_argument("--command", choices=BEFORE, default="compact-swap")
    parser.add_argument("--least", type=float, default=0.5, help="calls a unit below which a line is left out")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-callers-") as home:
        edge = Edge(read_layout(choose_run()), Path(home))
        edge.login("etl")
        tables, table = Tables(edge), BenchTable(SHAPES[asked.shape], "bench_callers", "events")
        tables.define(table.database, [table])
        tables.fill(table)
        edge.configure(None, {"driver_memory": DRIVER_MEMORY})
        for command in BEFORE[asked.command]:
            run_hivekeeper(edge, table, command)
        edge.configure(None, {"driver_memory": DRIVER_MEMORY, "extra_conf": recording(edge)})
        run_hivekeeper(edge, table, asked.command)
        print_calls(table.shape.all_files, table.shape.units, (edge.home / "calls").read_text().splitlines(), asked.least)
        tables.drop(table.database)


def recording(edge: Edge) -> Dict[str, str]:
    """What makes Spark's driver count its calls, in the file `calls` of the home directory."""
    classes, jars = edge.home / "classes", Path(edge.environ["SPARK_HOME"]) / "jars"
    path = ":".join(str(jar) for jar in jars.glob("log4j-*.jar"))
    compiler = find_program("javac")
    subprocess.run([compiler, "-proc:none", "-cp", path, "-d", str(classes), str(HERE / "CallStacks.java")], check=True)
    config = edge.home / "calls.properties"
    config.write_text(LOG4J2.format(package="bench", file=edge.home / "calls"))
    return {
        "spark.driver.extraClassPath": str(classes),
        # After the default options, so that this configuration wins.
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={config.as_uri()}",
    }


def print_calls(files: int, units: int, lines: Sequence[str], least: float) -> None:
    print(f"{len(lines)} calls for {files} files in {units} units, by those who make at least {least} a unit")
    for line, count in Counter(lines).most_common():
        call, api, callers = line.split("\t")
        if count / units >= least:
            print(f"{count:7} {count / files:7.3f} {count / units:7.2f}  {call:28} {api}\n{'':26}{callers}")


if __name__ == "__main__":
    sys.exit(main())
