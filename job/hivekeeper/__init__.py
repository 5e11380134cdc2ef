"""Hivekeeper: safe compaction of Hive tables on HDFS."""

__version__ = "0.1.0"
