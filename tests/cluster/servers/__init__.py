"""A real Hadoop on loopback for tests: KDC, HDFS, YARN, PostgreSQL and a standalone metastore, each a process of its own."""
