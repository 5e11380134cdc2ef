"""How tests start Java."""

from __future__ import annotations

# For tests of a few rows, the JVM's second compiler and parallel collector cost more than they save on two cores. Hadoop starts a process
# (chmod) for each local file and directory that it makes, which takes a third less without Java's own helper process in between.
FEW_ROWS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Djdk.lang.Process.launchMechanism=VFORK"
# A test's embedded metastore needs no fsync, unless its process is killed.
WITHOUT_FSYNC = "-Dderby.system.durability=test"
