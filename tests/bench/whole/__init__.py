"""Whole commands against other programs, on copies of the same table on a real HDFS: `make bench`."""
