"""Start one server in its own process, wait until its log says it is ready, stop it; on failure show the reason."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Dict, List, Optional

# Lines that say why a Java or C server ended; stack frames do not.
_TELLING = re.compile(r"\b(ERROR|FATAL|Caused by|Exception|error:|Address already in use)\b")


class ServerFailed(Exception):
    """A server did not start or did not stop; the message holds the relevant lines of its log."""


@dataclass(frozen=True)
class Server:
    """How to start a server and how to tell that it is ready. `ready`: a regular expression to find in its log.

    `yields`: once it is ready, other processes get most of the CPU.
    """

    name: str
    command: List[str]
    ready: str
    environment: Dict[str, str] = field(default_factory=dict)
    user: Optional[str] = None
    stop_signal: int = signal.SIGTERM
    yields: bool = False


def start(server: Server, run: Path) -> None:
    """Start it in the background, in its own session so that the terminal's Ctrl-C does not reach it."""
    log = _log(run, server.name)
    command = server.command if server.user is None else ["setpriv", f"--reuid={server.user}", "--init-groups", *server.command]
    with log.open("ab") as output:
        # Before the start: a fast server may be ready before this process goes on.
        begin = output.tell()
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=run / "tmp",
            env={**os.environ, **server.environment},
            start_new_session=True,
        )
    _pid_file(run, server.name).write_text(f"{process.pid} {_started(process.pid)} {begin}")


def wait_until_ready(server: Server, run: Path, timeout_seconds: float = 90) -> None:
    """Raises ServerFailed with the reason if the process ends or the time is up."""
    until = time.monotonic() + timeout_seconds
    pattern = re.compile(server.ready)
    while time.monotonic() < until:
        if pattern.search(_log_since_start(run, server.name)):
            if server.yields:
                _let_others_first(server.name, run)
            return
        if not is_running(server.name, run):
            raise ServerFailed(f"{server.name} ended at once:\n{find_reason(run, server.name)}")
        time.sleep(0.1)
    raise ServerFailed(f"{server.name} was not ready after {timeout_seconds:.0f} s:\n{find_reason(run, server.name)}")


def _let_others_first(name: str, run: Path) -> None:
    pid = find_pid(name, run)
    # The kernel schedules each session as its own group; across groups a process's own niceness has no effect.
    with suppress(OSError):
        Path(f"/proc/{pid}/autogroup").write_text("10")


def is_running(name: str, run: Path) -> bool:
    return find_pid(name, run) is not None


def find_pid(name: str, run: Path) -> Optional[int]:
    """The process started under this name, if it still runs; never another one that has reused its PID."""
    file = _pid_file(run, name)
    if not file.exists():
        return None
    pid, started = file.read_text().split()[:2]
    return int(pid) if started != "gone" and _started(int(pid)) == started else None


def stop(name: str, run: Path, with_signal: int = signal.SIGTERM, timeout_seconds: float = 20) -> None:
    """Stop it, with SIGKILL if it does not react. No error if it is not running."""
    pid = find_pid(name, run)
    if pid is not None:
        os.kill(pid, with_signal)
        if not _wait_gone(name, run, timeout_seconds):
            os.killpg(pid, signal.SIGKILL)
            if not _wait_gone(name, run, timeout_seconds):
                raise ServerFailed(f"{name} (process {pid}) cannot be stopped")
    _pid_file(run, name).unlink(missing_ok=True)


def find_reason(run: Path, name: str, lines: int = 12) -> str:
    """The last telling lines of a server's log, and the path of the whole log."""
    text = _log_since_start(run, name).splitlines()
    telling = [line for line in text if _TELLING.search(line) and not line.startswith("\tat ")] or text
    return "\n".join([*(f"  {line[:300]}" for line in telling[-lines:]), f"  (all of it: {_log(run, name)})"])


def _wait_gone(name: str, run: Path, timeout_seconds: float) -> bool:
    until = time.monotonic() + timeout_seconds
    while is_running(name, run):
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


def _started(pid: int) -> str:
    """When a process started, in clock ticks since boot (field 22 of /proc/PID/stat); `gone` if it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except FileNotFoundError:
        return "gone"
    return "gone" if fields[0] == "Z" else fields[19]


def _log(run: Path, name: str) -> Path:
    return run / "logs" / f"{name}.log"


def _pid_file(run: Path, name: str) -> Path:
    return run / "pids" / name


def _log_since_start(run: Path, name: str) -> str:
    with _log(run, name).open("rb") as log:
        file = _pid_file(run, name)
        # Skip what an earlier process of this name wrote.
        log.seek(int(file.read_text().split()[2]) if file.exists() else 0)
        return log.read().decode(errors="replace")
