"""How tests start Java."""

from __future__ import annotations

# For tests of a few rows, the JVM's second compiler and parallel collector cost more than they save on two cores.
FEW_ROWS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
# A test's embedded metastore needs no fsync, unless its process is killed.
WITHOUT_FSYNC = "-Dderby.system.durability=test"
