"""See whether a table is still fit for compaction while a run is at work on it.

Reads only.
"""

from __future__ import annotations

import logging
from typing import Optional

from hivekeeper.model import Table
from hivekeeper.plan import eligibility
from hivekeeper.ports import Cluster, MetastoreUnavailable
from hivekeeper.reasons import Reason

log = logging.getLogger(__name__)

MOST_AGE_MS = 10_000


class FitnessOfTable:
    """A run may take hours, and somebody may meanwhile make the table transactional or another engine's, or set hivekeeper.skip.

    `asked_ms`: when it was fit, if that is known.
    """

    def __init__(self, cluster: Cluster, table: Table, asked_ms: Optional[float] = None) -> None:
        self._metastore, self._clock = cluster.metastore, cluster.clock
        self._table = table
        self._asked_ms = asked_ms
        self._why: Optional[Reason] = None

    def why_unfit(self) -> Optional[Reason]:
        """By an answer that is at most some seconds old. A table that is gone, or another one of its name, is found by the check before an
        exchange.
        """
        now_ms = self._clock.monotonic_ms()
        if self._asked_ms is None or now_ms - self._asked_ms > MOST_AGE_MS:
            self._asked_ms, self._why = now_ms, self._ask()
        return self._why

    def _ask(self) -> Optional[Reason]:
        try:
            found = self._metastore.tables(self._table.database, [self._table.name]).get(self._table.name)
        except MetastoreUnavailable as error:
            # What needs an answer asks before each exchange.
            log.warning("table=%s step=look-for-change failed reason=%r", self._table.log_field, str(error))
            return self._why
        is_same = found is not None and found.create_time == self._table.create_time
        return eligibility.refuse_table(found) if found and is_same else None
