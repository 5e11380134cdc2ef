from hypothesis import given
from hypothesis import strategies as st

from hivekeeper.cluster.hash_partitioning import murmur3, task_keys


@given(st.integers(min_value=1, max_value=300))
def test_every_task_gets_exactly_one_key(tasks):
    assert [murmur3(key) % tasks for key in task_keys(tasks)] == list(range(tasks))


def test_the_hash_is_that_of_spark():
    # SELECT hash(0), hash(1), hash(-1), hash(2147483647): checked against Spark in tests/spark/test_rows_write.py.
    assert [murmur3(value) for value in (0, 1, 42)] == [933211791, -559580957, 29417773]
