"""The gateway is the bottleneck of a PySpark driver: what grows with files must not cost calls."""

from __future__ import annotations

import pytest

from hivekeeper.cluster.files import HadoopFiles
from hivekeeper.cluster.gateway import Gateway, first_line, java_causes


@pytest.fixture
def directories(tmp_path):
    """Two lots of directories by the number of files in them: 10 in 2 directories, 1,000 in 50."""
    lots = {}
    for files, count in ((10, 2), (1000, 50)):
        lots[files] = [tmp_path / f"lot{files}" / f"d{number}" for number in range(count)]
        for directory in lots[files]:
            directory.mkdir(parents=True)
            for number in range(files // count):
                (directory / f"f{number}").write_text("x")
    return lots


def calls_of(gateway, act):
    before = gateway.calls
    act()
    return gateway.calls - before


@pytest.mark.parametrize("method", ["look", "tree", "attributes", "dress", "read_texts", "qualify"])
def test_a_thousand_files_cost_as_many_calls_as_ten(gateway, directories, method):
    files = HadoopFiles(gateway)
    files.qualify("file:/warm")

    def act(lot):
        paths = [str(directory) for directory in directories[lot]]
        if method == "tree":
            assert len([entry for entry in files.tree(paths[0].rpartition("/")[0]) if not entry.is_dir]) == lot
        elif method == "look":
            assert sum(len(seen.entries) for seen in files.look(paths).values()) == lot
        elif method == "attributes":
            assert len(files.attributes(paths)) == len(paths)
        elif method == "dress":
            files.dress(dict.fromkeys(paths, files.attributes(paths[:1])[paths[0]]))
        elif method == "read_texts":
            names = [f"{path}/f{number}" for path in paths for number in range(lot // len(paths))]
            assert len(files.read_texts(names)) == lot
        else:
            assert len({files.qualify(f"file:{path}/") for path in paths}) == len(paths)

    few, many = (calls_of(gateway, lambda lot=lot: act(lot)) for lot in (10, 1000))
    assert few == many
    assert many <= 2


def test_an_array_of_strings_costs_the_same_calls_whatever_its_length(gateway):
    gateway.strings(["warm"])
    few, many = (calls_of(gateway, lambda count=count: gateway.strings(['ü "'] * count)) for count in (10, 1000))
    assert few == many < 10
    assert list(gateway.strings(['ü "', ""])) == ['ü "', ""]


def test_a_second_gateway_on_the_same_jvm_has_helpers_that_work(spark, tmp_path):
    first, second = HadoopFiles(Gateway(spark)), HadoopFiles(Gateway(spark))
    assert first.qualify(f"{tmp_path}/") == second.qualify(str(tmp_path))
    assert second.look([str(tmp_path)]) == first.look([str(tmp_path)])


def test_the_chain_of_java_causes_is_told_from_outside_in(gateway):
    task = gateway.jvm.java.util.concurrent.CompletableFuture()
    task.completeExceptionally(gateway.jvm.java.io.FileNotFoundException("gone\n\tat org.example"))
    with pytest.raises(Exception, match="gone") as raised:
        task.get()
    causes = java_causes(raised.value)
    assert [cause.short_name for cause in causes] == ["ExecutionException", "FileNotFoundException"]
    assert first_line(causes) == "gone"


def test_a_python_error_has_no_java_causes():
    assert java_causes(ValueError("x")) == ()
