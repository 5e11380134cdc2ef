from dataclasses import replace

import pytest

from hivekeeper.model import Storage
from hivekeeper.plan import eligibility
from hivekeeper.reasons import Code
from support.builders import ORC, PARQUET, ROOT, a_table, a_unit

HUDI = Storage("org.apache.hudi.hadoop.HoodieParquetInputFormat", *list(eligibility.FORMATS)[0][1:])


@pytest.mark.parametrize("storage", [a_table().storage, ORC])
@pytest.mark.parametrize("kind", ["EXTERNAL_TABLE", "MANAGED_TABLE"])
def test_plain_parquet_and_orc_tables_are_fit(storage, kind):
    assert eligibility.refuse_table(a_table(storage=storage, kind=kind)) is None


@pytest.mark.parametrize(
    ("table", "code"),
    [
        (a_table(kind="VIRTUAL_VIEW"), Code.VIEW),
        (a_table(kind="MATERIALIZED_VIEW"), Code.VIEW),
        (a_table(kind="INDEX_TABLE"), Code.UNKNOWN_TABLE_TYPE),
        (a_table(parameters={"transactional": "TRUE"}), Code.TRANSACTIONAL),
        (a_table(parameters={"hivekeeper.skip": "true"}), Code.SKIP_PROPERTY),
        (a_table(parameters={"table_type": "ICEBERG"}), Code.OTHER_ENGINE),
        (a_table(parameters={"spark.sql.sources.provider": "delta"}), Code.OTHER_ENGINE),
        (a_table(parameters={"spark.sql.sources.provider": "csv"}), Code.OTHER_ENGINE),
        (a_table(parameters={"storage_handler": "org.apache.hadoop.hive.hbase.HBaseStorageHandler"}), Code.OTHER_ENGINE),
        (a_table(buckets=4, bucket_columns=("id",)), Code.BUCKETED),
        (a_table(parameters={"spark.sql.sources.schema.numBuckets": "4"}), Code.BUCKETED),
        (a_table(skewed_columns=("id",)), Code.SKEWED),
        (a_table(sort_columns=("id",)), Code.SORTED),
        (a_table(parameters={"skip.header.line.count": "1"}), Code.SKIPPED_ROWS),
        (a_table(parameters={"skip.footer.line.count": "2"}), Code.SKIPPED_ROWS),
        (a_table(parameters={"skip.header.line.count": "one"}), Code.SKIPPED_ROWS),
        (a_table(storage=replace(ORC, serde_parameters={"skip.header.line.count": "1"})), Code.SKIPPED_ROWS),
        (a_table(storage=HUDI), Code.OTHER_FORMAT),
        (a_table(location=""), Code.NO_LOCATION),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_table_that_could_be_harmed_is_refused_with_a_reason(table, code):
    reason = eligibility.refuse_table(table)
    assert reason.code is code
    assert reason.next


@pytest.mark.parametrize("lines", ["0", "", " 0 "])
def test_a_table_whose_property_skips_no_rows_is_fit(lines):
    assert eligibility.refuse_table(a_table(parameters={"skip.header.line.count": lines, "skip.footer.line.count": lines})) is None


@pytest.mark.parametrize(("layout", "code"), [("bucketed", Code.BUCKETED), ("sorted", Code.SORTED), ("skewed", Code.SKEWED)])
def test_a_partition_that_promises_a_layout_which_its_table_has_given_up_is_refused(layout, code):
    unit = replace(a_unit(), storage=replace(PARQUET, layout=layout))
    assert eligibility.refuse_unit(a_table(["dt"]), unit).code is code
    assert eligibility.refuse_unit(a_table(["dt"]), a_unit()) is None


def test_a_partition_in_another_format_than_its_table_is_refused():
    assert eligibility.refuse_unit(a_table(["dt"]), replace(a_unit(), storage=ORC)).code is Code.OTHER_FORMAT


@pytest.mark.parametrize("location", ["hdfs://nn/warehouse/sales/events_archive/dt=1", "hdfs://other/x", ROOT])
def test_a_partition_outside_the_table_is_refused(location):
    assert eligibility.refuse_unit(a_table(["dt"]), a_unit(live=location)).code is Code.OUTSIDE_TABLE


@pytest.mark.parametrize("place", [".hivekeeper", ".hivekeeper/runs/20260101t020304z-0000/retired/u00001", "dt=1/.hivekeeper-x/y"])
def test_a_partition_in_a_control_directory_is_refused(place):
    assert eligibility.refuse_unit(a_table(["dt"]), a_unit(live=f"{ROOT}/{place}")).code is Code.IN_CONTROL_DIRECTORY


@pytest.mark.parametrize("place", [".snapshot/s1", "a/.snapshot/s1/b", ".reserved/.inodes/17/x"])
def test_a_place_that_hdfs_reserves_is_refused(place):
    assert eligibility.refuse_unit(a_table(["dt"]), a_unit(live=f"{ROOT}/{place}")).code is Code.RESERVED_NAME
    assert eligibility.refuse_kind(a_table(location=f"hdfs://nn/{place}")).code is Code.RESERVED_NAME
