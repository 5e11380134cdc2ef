"""A real Hadoop on loopback for tests: KDC, HDFS, YARN, PostgreSQL and a standalone metastore, each in its own process."""
