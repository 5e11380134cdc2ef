"""The tables in the docs that are generated from the program's codes: outcomes, statuses and reasons.

Each is between two comments on its page, `<!-- made from the code: NAME -->` and `<!-- end -->`; the rest of the page stays as it is.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Dict, Iterable, List, Sequence

ROOT = Path(__file__).resolve().parents[1]
PAGES = ("docs/json.md", "docs/refusals.md", "docs/runbook.md")

MADE = re.compile(r"(<!-- made from the code: ([\w ]+) -->\n)(.*?)(<!-- end -->\n)", re.DOTALL)


def fill_pages() -> Dict[str, str]:
    """The text of each page, by its path in the repository."""
    tables = render_tables()
    pages = {path: (ROOT / path).read_text("utf-8") for path in PAGES}
    return {path: MADE.sub(lambda found: found[1] + tables[found[2]] + found[4], text) for path, text in pages.items()}


def render_tables() -> Dict[str, str]:
    """Each table, keyed by its name in the comments."""
    from hivekeeper.plan.analysis import Status
    from hivekeeper.reasons import Code, Topic
    from hivekeeper.report.results import BackupState
    from hivekeeper.runlog.outcomes import Outcome

    of_topic = {topic: [code for code in Code if code.topic is topic] for topic in Topic}
    ends = [code for topic in (Topic.COMMAND, Topic.RUN) for code in of_topic[topic] if code.exit is not None]
    stays = [code for code in of_topic[Topic.RUN] if code.exit is None]
    return {
        "outcomes": _table(
            ["outcome", "of", "exit code", "means"],
            ([_code(one), ", ".join(one.commands), str(int(one.exit)), one.meaning] for one in Outcome),
        ),
        "statuses": _table(["status", "means"], ([_code(one), one.meaning] for one in Status)),
        "outcomes of backups": _table(
            ["outcome", "exit code", "means"], ([_code(one), str(int(one.exit)), one.meaning] for one in BackupState)
        ),
        **{f"reasons {topic.code}": _reasons(codes) for topic, codes in of_topic.items()},
        "messages": _table(
            ["exit code", "code", "means", "what to do"],
            ([str(int(one.exit or 0)), _code(one), one.meaning, one.advice] for one in sorted(ends, key=lambda one: one.exit or 0)),
        ),
        "messages of units": _reasons(stays),
    }


def _reasons(codes: Iterable[object]) -> str:
    return _table(["code", "means", "what to do"], ([_code(one), one.meaning, one.advice] for one in codes))  # type: ignore[attr-defined]


def _code(one: object) -> str:
    return f"`{one.code}`"  # type: ignore[attr-defined]


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines: List[Sequence[str]] = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
