"""Parses the tickets printed by klist, of MIT Kerberos and Heimdal, under LC_ALL=C.

Pure. Times are in this machine's time zone.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Optional

from hivekeeper.plan.edge_node import TicketFacts

FORMATS = ("%m/%d/%y %H:%M:%S", "%m/%d/%Y %H:%M:%S", "%Y-%m-%d %H:%M:%S", "%b %d %H:%M:%S %Y")
TIME = r"(?:[\d/]{8,10}|\d{4}-\d\d-\d\d|[A-Z][a-z]{2} [ \d]\d) \d\d:\d\d:\d\d(?: \d{4})?"
TICKET = re.compile(rf"^\s*{TIME}\s+({TIME})\s+krbtgt/", re.MULTILINE)
RENEWABLE = re.compile(rf"^\s*renew until ({TIME})", re.MULTILINE)


def read_ticket(listed: str, now: float) -> TicketFacts:
    """How long the first ticket-granting ticket lasts from `now`, in seconds since 1970."""
    return TicketFacts(seconds_left=_seconds_until(TICKET, listed, now), seconds_renewable=_seconds_until(RENEWABLE, listed, now))


def _seconds_until(line: re.Pattern[str], listed: str, now: float) -> Optional[int]:
    found = line.search(listed)
    end = _read_time(found[1]) if found else None
    return None if end is None else int(end.timestamp() - now)


def _read_time(text: str) -> Optional[datetime]:
    for form in FORMATS:
        try:
            return datetime.strptime(text, form)
        except ValueError:
            continue
    return None
