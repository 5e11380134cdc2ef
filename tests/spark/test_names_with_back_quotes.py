"""ORC's Java library takes the names of columns for quoted text: of a`b, which Arrow writes as it is, it sees a."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.orc as po
import pytest

from hivekeeper.cluster.rows import SparkRows
from hivekeeper.plan.fidelity import refuse_copy, unfaithful
from hivekeeper.ports import RowsError
from support.data_files import arrow_table, batch_of, form_of, outputs


@pytest.fixture
def unit(tmp_path):
    """A unit of two files, each with this column; nested ones are in a struct."""

    def made(name, is_nested):
        place = tmp_path / "u"
        place.mkdir()
        values = pa.array([{name: 2}, {name: 1}]) if is_nested else pa.array([2, 1])
        for number in range(2):
            po.write_table(pa.table({"s" if is_nested else name: values}), place / f"{number}.orc", compression="snappy")
        return place

    return made


@pytest.mark.parametrize("name", ["a`b", "a``b", "`a`"])
@pytest.mark.parametrize("is_nested", [False, True], ids=["top", "nested"])
def test_such_columns_are_copied_and_never_written_as_rows(gateway, tmp_path, unit, name, is_nested):
    rows, place = SparkRows(gateway), unit(name, is_nested)
    form = form_of(rows, "orc", place)
    assert "back-quote" in unfaithful(form, "orc", "3.5.9", "UTC")
    assert refuse_copy(form, "orc", "snappy", "3.5.9") is None
    with pytest.raises(RowsError, match="back-quote"):
        rows.write_stage(batch_of(rows, "orc", tmp_path / "sorted", [place], sort_columns=("s" if is_nested else "a",)))
    batch = batch_of(rows, "orc", tmp_path / "copied", [place], is_copied=True)
    rows.write_stage(batch)
    read = arrow_table("orc", outputs(batch, 1))
    assert read.schema == po.ORCFile(place / "0.orc").schema
    assert read.num_rows == 4
