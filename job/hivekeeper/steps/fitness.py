"""See whether a table is still the one that a run is at work on, and still fit for it.

Reads only.
"""

from __future__ import annotations

import logging
from typing import Callable, Optional

from hivekeeper.model import Table
from hivekeeper.plan import eligibility
from hivekeeper.ports import Cluster, MetastoreUnavailable
from hivekeeper.reasons import Code, Reason

log = logging.getLogger(__name__)

# Of an answer about what others may have changed meanwhile: a table's definition, or rights.
MOST_AGE_MS = 10_000


class FitnessOfTable:
    """A run may take hours, and somebody may meanwhile make the table transactional or another engine's, or set hivekeeper.skip; or create
    it again, at the same place and with the same partitions.

    `asked_ms`: when it was fit, if that is known. `refuse`: what a definition must be fit for.
    """

    def __init__(
        self,
        cluster: Cluster,
        table: Table,
        asked_ms: Optional[float] = None,
        refuse: Callable[[Table], Optional[Reason]] = eligibility.refuse_table,
    ) -> None:
        self._metastore, self._clock = cluster.metastore, cluster.clock
        self._table = table
        self._asked_ms = asked_ms
        self._refuse = refuse
        self._why: Optional[Reason] = None

    def why_unfit(self) -> Optional[Reason]:
        """By an answer that is at most some seconds old. One that is gone, perhaps renamed, is found by the check before an exchange.

        Raises MetastoreUnavailable where that answer is missing.
        """
        now_ms = self._clock.monotonic_ms()
        if self._asked_ms is None or now_ms - self._asked_ms > MOST_AGE_MS:
            self._why = self._ask()
            self._asked_ms = now_ms
        return self._why

    def why_known_unfit(self) -> Optional[Reason]:
        """The same for what changes nothing in live, and can wait for an answer: until then by the last one."""
        try:
            return self.why_unfit()
        except MetastoreUnavailable as error:
            log.warning("table=%s step=look-for-change failed reason=%r", self._table.log_field, str(error))
            return self._why

    def _ask(self) -> Optional[Reason]:
        found = self._metastore.tables(self._table.database, [self._table.name]).get(self._table.name)
        if found is None:
            return None
        if found.create_time != self._table.create_time:
            # Its partitions may be at the places of the former ones: the check before an exchange finds nothing wrong then.
            return Reason(Code.TABLE_CREATED_AGAIN, "its table was dropped and created again meanwhile")
        return self._refuse(found)
