"""Files of foreign writers, compacted by whole commands; readers that are not Spark say whether they still read the same."""
