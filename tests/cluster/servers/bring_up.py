"""The order in which servers start and stop, and the command line of `cluster`."""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import Dict, Iterator, List, Mapping, Sequence

from cluster.servers import hadoop, kerberos, metastore, process
from cluster.servers.artifacts import Missing, fetch_jars, install_programs
from cluster.servers.clients import write_clients
from cluster.servers.layout import Layout, choose_run, make_layout, read_layout
from cluster.servers.process import Server, ServerFailed
from cluster.servers.router import stop_router

ORDER = ("kdc", "postgres", "kms", "namenode", "datanode", "resourcemanager", "nodemanager", "metastore")
YARN = ("resourcemanager", "nodemanager")
Properties = Mapping[str, Mapping[str, str]]


def bring_up(run: Path, secure: bool = True, extra: Properties = {}, bench: bool = False) -> Layout:  # noqa: B006 - never changed
    """Start a new cluster in `run`, or use the one already running there. Raises Missing, ServerFailed, RuntimeError."""
    if runs_whole(run):
        return read_layout(run)
    take_down(run)
    shutil.rmtree(run, ignore_errors=True)
    install_programs()
    fetch_jars()
    layout = make_layout(run, secure, bench)
    try:
        _start_all(layout, extra)
    except BaseException:
        take_down(run)
        raise
    return layout


def runs_whole(run: Path) -> bool:
    try:
        return all(process.is_running(name, run) for name in _names(read_layout(run)))
    except FileNotFoundError:
        return False


def _names(layout: Layout) -> List[str]:
    return [name for name in ORDER if (layout.secure or name != "kdc") and not (layout.bench and name in YARN)]


def _start_all(layout: Layout, extra: Properties) -> None:
    """Start each server as soon as its dependencies are up; independent servers start in parallel."""
    servers: Dict[str, Server] = {}
    if layout.secure:
        with _step("kdc"):
            servers["kdc"] = kerberos.make_kdc(layout)
            _start_and_wait(layout, servers["kdc"])
    with _step("configuration, PostgreSQL, format"):
        hadoop.write_configuration(layout, extra)
        metastore.write_configuration(layout, extra.get("metastore-site", {}))
        servers["postgres"] = metastore.make_postgres(layout)
        process.start(servers["postgres"], layout.run)
        hadoop.make_keys(layout)
        hadoop.format_namenode(layout)
        process.wait_until_ready(servers["postgres"], layout.run)
    servers.update({server.name: server for server in hadoop.make_servers(layout)})
    servers["metastore"] = metastore.make_metastore(layout)
    _write_commands(layout, servers)
    write_clients(layout)
    of_hadoop = [name for name in _names(layout) if name in ("kms", "namenode", "datanode", *YARN)]
    with _step(", ".join(of_hadoop)):
        for name in of_hadoop:
            process.start(servers[name], layout.run)
        metastore.make_schema(layout)
        process.wait_until_ready(servers["namenode"], layout.run)
    with _step("metastore, directories"):
        hadoop.make_directories(layout)
        # It creates its warehouse when it starts.
        process.start(servers["metastore"], layout.run)
        for name in (*of_hadoop, "metastore"):
            process.wait_until_ready(servers[name], layout.run)


def _start_and_wait(layout: Layout, server: Server) -> None:
    process.start(server, layout.run)
    process.wait_until_ready(server, layout.run)


@contextmanager
def _step(name: str) -> Iterator[None]:
    begin = time.monotonic()
    yield
    print(f"cluster: {name} in {time.monotonic() - begin:.0f} s", file=sys.stderr)


def _write_commands(layout: Layout, servers: Mapping[str, Server]) -> None:
    """How each server is restarted after a test has killed it."""
    (layout.run / "servers.json").write_text(json.dumps({name: vars(server) for name, server in servers.items()}, indent=1))


def read_server(run: Path, name: str) -> Server:
    return Server(**json.loads((run / "servers.json").read_text())[name])


def take_down(run: Path) -> None:
    """Stop every server that runs there, in reverse order of start; also after a start that failed half-way."""
    stop_router(run)
    for name in reversed(ORDER):
        try:
            with_signal = read_server(run, name).stop_signal
        except (FileNotFoundError, KeyError):
            with_signal = signal.SIGINT
        process.stop(name, run, with_signal)


def start_server(run: Path, name: str) -> None:
    server = read_server(run, name)
    if not process.is_running(name, run):
        process.start(server, run)
    process.wait_until_ready(server, run)


def main(words: Sequence[str], about: str) -> int:
    """The command line; returns its exit code."""
    parser = argparse.ArgumentParser(prog="cluster", description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("act", choices=["up", "down", "status", "env", "start", "stop", "kill", "ticket"], metavar="COMMAND")
    parser.add_argument("names", nargs="*", metavar="SERVER")
    parser.add_argument("--unsecured", action="store_true", help="without Kerberos")
    parser.add_argument("--bench", action="store_true", help="without YARN, and with HDFS's own sizes: for measuring")
    known = parser.parse_args(words)
    try:
        return _act(choose_run(), known.act, known.names, not known.unsecured, known.bench)
    except (Missing, ServerFailed, RuntimeError) as error:
        print(f"cluster: {error}", file=sys.stderr)
        return 1
    except FileNotFoundError:
        print("cluster: there is none; start one with: make cluster-up", file=sys.stderr)
        return 2


def _act(run: Path, act: str, names: Sequence[str], secure: bool, bench: bool) -> int:
    if act == "up":
        begin = time.monotonic()
        bring_up(run, secure, bench=bench)
        print(
            f"cluster: up after {time.monotonic() - begin:.0f} s; client settings: {run / 'env.sh'}; logs: {run / 'logs'}", file=sys.stderr
        )
    elif act == "down":
        take_down(run)
        print(f"cluster: down; logs: {run / 'logs'}", file=sys.stderr)
    elif act == "env":
        read_layout(run)
        sys.stdout.write((run / "env.sh").read_text())
    elif act == "ticket":
        kerberos.get_ticket(read_layout(run), names[0], Path(names[1]))
    elif act == "status":
        states = {name: process.find_pid(name, run) for name in _names(read_layout(run))}
        sys.stdout.write("".join(f"{name:16}{'process ' + str(pid) if pid else 'not running'}\n" for name, pid in states.items()))
        return 0 if all(states.values()) else 1
    else:
        for name in names:
            if act == "start":
                start_server(run, name)
            else:
                process.stop(name, run, signal.SIGKILL if act == "kill" else signal.SIGTERM)
    return 0
