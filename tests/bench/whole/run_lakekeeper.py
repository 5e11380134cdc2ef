"""The launcher that Lakekeeper asks its users to write, which also prints when the session was there. Started by spark-submit."""

from __future__ import annotations

import sys
import time

from lakekeeper.cli import main
from lakekeeper.utils.spark import get_or_create_spark_session

if __name__ == "__main__":
    # Its own commands take this session up.
    get_or_create_spark_session().sql("SHOW DATABASES").collect()
    print(f"session {time.time_ns() // 1_000_000}", flush=True)
    sys.exit(main())
