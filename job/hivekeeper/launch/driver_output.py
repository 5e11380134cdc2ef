"""What a driver in YARN cluster mode returns to the machine that started it: one JSON document.

Pure. The driver has neither that machine's files nor its stdout, so paths in its command line are replaced by files beside it.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Dict, List, Mapping, Sequence, Tuple

from hivekeeper.errors import HivekeeperError
from hivekeeper.launch import output_files

# The driver's copy of its own log.
LOG = "hivekeeper-stderr.log"

# The launcher ships the file of --tables-file under this name.
TABLES = "hivekeeper-tables.txt"

# Options that name a file to write.
OUTPUTS = ("--report-file", "--properties-out")

# A log with more characters than this is returned without its beginning.
LOG_LIMIT = 200_000

VERSION = 1


@dataclass(frozen=True)
class DriverOutput:
    """The exit code, the printed text, the driver's own log, and the contents of files by their requested names."""

    code: int
    text: str
    log: str
    files: Mapping[str, str]


def bring_near(words: Sequence[str]) -> Tuple[List[str], Dict[str, str]]:
    """The words with paths replaced by files beside the driver, and the local file of each requested output."""
    near: List[str] = []
    asked_for: Dict[str, str] = {}
    option = ""
    for word in words:
        name, sign, value = word.partition("=")
        if option:
            near.append(_near(option, word, asked_for))
            option = ""
        elif sign and name in (*OUTPUTS, "--tables-file"):
            near.append(f"{name}={_near(name, value, asked_for)}")
        else:
            near.append(word)
            option = word if word in (*OUTPUTS, "--tables-file") else ""
    return near, asked_for


def _near(option: str, path: str, asked_for: Dict[str, str]) -> str:
    if option == "--tables-file":
        return TABLES
    if path == "-" or output_files.is_remote(path):
        return path
    return asked_for.setdefault(path, f"hivekeeper-output-{len(asked_for)}")


def cut_log(log: str) -> str:
    """The end of a log that is too long, starting at a line."""
    if len(log) <= LOG_LIMIT:
        return log
    return f"(the beginning is left out)\n{log[-LOG_LIMIT:].partition(chr(10))[2]}"


def write(output: DriverOutput) -> str:
    return json.dumps({"version": VERSION, **asdict(output)}, ensure_ascii=False)


def read(text: str) -> DriverOutput:
    """Raises HivekeeperError for anything but a whole document."""
    try:
        found = json.loads(text)
        version = found.pop("version")
        output = DriverOutput(**found)
    except (ValueError, TypeError, AttributeError, KeyError) as error:
        raise _unreadable(f"it is not what a driver writes ({error})") from None
    if version != VERSION:
        raise _unreadable(f"it has version {version}, this launcher knows {VERSION}")
    return output


def _unreadable(why: str) -> HivekeeperError:
    return HivekeeperError(
        f"the driver's output cannot be read: {why}",
        state="the run has ended; what it did is in the tables' logs",
        next="see it with hivekeeper history; use the same version of Hivekeeper here and in spark.archive",
    )
