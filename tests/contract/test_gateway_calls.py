"""The gateway is the bottleneck of a PySpark driver: what grows with files must not cost calls."""

from __future__ import annotations

import argparse
import json
import sys
import threading
import time
from dataclasses import replace
from importlib import resources

import pytest

from bench import log as bench_log
from hivekeeper import names
from hivekeeper.cluster.files import HadoopFiles
from hivekeeper.cluster.gateway import Gateway
from hivekeeper.cluster.java_classes import CORE, JavaPackage, JavaSource, compiled, read_sources
from hivekeeper.cluster.java_errors import first_line, java_causes
from hivekeeper.errors import Unusable
from hivekeeper.model import Guard
from hivekeeper.names import ControlPaths
from hivekeeper.runlog import store
from support.builders import a_table
from support.storage import local_only, open_storage

# A file costs milliseconds on HDFS.
FEW, MANY = 10, 200


@pytest.fixture(scope="module")
def directories(spark, tmp_path_factory):
    """Two groups of directories, by the number of files in them: the few in 2 directories, the many in 50."""
    storage = open_storage(spark, tmp_path_factory.mktemp("lots"))
    lots = {}
    for files, count in ((FEW, 2), (MANY, 50)):
        local = tmp_path_factory.mktemp("local")
        for name in (f"d{number}" for number in range(count)):
            (local / name).mkdir()
            for number in range(files // count):
                (local / name / f"f{number}").write_text("x")
        storage.bring(local, f"{storage.root}/lot{files}")
        lots[files] = [f"{storage.root}/lot{files}/d{number}" for number in range(count)]
    yield lots
    storage.close()


def calls_of(gateway, act):
    before = gateway.calls
    act()
    return gateway.calls - before


def test_one_rare_character_does_not_make_a_whole_listing_four_times_as_large(gateway, tmp_path):
    name = "part-\N{GRINNING FACE}"
    (tmp_path / name).touch()
    told = gateway.helper("Listing", gateway.hadoop_conf).look(json.dumps([f"file:{tmp_path}"]), 10, False)
    assert told.isascii()
    assert [entry["name"] for entry in json.loads(told)[0]["entries"]] == [name]


@pytest.mark.parametrize("method", ["look", "attributes", "file_rights", "dress", "read_texts", "qualify", "exposed", "way_to", "guard"])
def test_many_files_cost_as_many_calls_as_few(gateway, directories, method):
    files = HadoopFiles(gateway)
    files.qualify(directories[FEW][0])

    def act(lot):
        paths = directories[lot]
        if method == "look":
            assert sum(len(seen.entries) for seen in files.look(paths).values()) == lot
        elif method == "attributes":
            assert len(files.attributes(paths)) == len(paths)
        elif method == "file_rights":
            assert len(files.file_rights(dict.fromkeys(paths, 0), 10)) == len(paths)
        elif method == "dress":
            files.dress(dict.fromkeys(paths, files.attributes(paths[:1])[paths[0]]))
        elif method == "exposed":
            for mode in (0o666, 0o600):
                files.guard(dict.fromkeys(paths, Guard(0o700, mode)))
                assert len(files.exposed(paths[0].rpartition("/")[0], 2)) == (lot if mode == 0o666 else 0)
        elif method == "way_to":
            assert files.way_to(paths[0])
        elif method == "guard":
            files.guard(dict.fromkeys(paths, Guard(0o755, 0o644)))
        elif method == "read_texts":
            listed = [entry for seen in files.look(paths).values() for entry in seen.entries if not entry.is_dir]
            assert len(files.read_texts(listed[:lot])) == lot
        else:
            assert len({files.qualify(f"{path}/") for path in paths}) == len(paths)

    few, many = (calls_of(gateway, lambda lot=lot: act(lot)) for lot in (FEW, MANY))
    assert few == many
    assert many <= (4 if method == "exposed" else 2)


def calls_to_read_a_log(gateway, root, entries, backups, of_checkpoint):
    """The calls for a log of so many entries and a cleanup; `of_checkpoint`: how many of them a checkpoint repeats, 0 for no checkpoint."""
    files = HadoopFiles(gateway)
    table = a_table(["dt"], create_time=5, location=f"{root}/entries{entries}")
    control = ControlPaths.of(table.location, True)
    files.make_directory(control.log)
    bench_log.write_entries(files, table, control, argparse.Namespace(entries=entries, files=3, kept=backups))
    if of_checkpoint:
        listed = store.list_log(files, control)
        first = replace(listed, entries={version: file for version, file in listed.entries.items() if version < of_checkpoint})
        content = store.make_checkpoint(bench_log.cluster_of(files), control, first, bench_log.RETENTION_MS).content
        files.write_new(names.join(control.log, names.checkpoint(of_checkpoint - 1)), content)
    told = []
    calls = calls_of(gateway, lambda: told.append(store.read_history(bench_log.cluster_of(files), control)))
    assert len(told[0].runs) == entries + 1
    assert len(list(told[0].standing)) == backups
    return calls


def test_a_long_log_with_a_checkpoint_costs_one_call_more_than_a_short_one(gateway, spark, tmp_path):
    storage = open_storage(spark, tmp_path)
    few = calls_to_read_a_log(gateway, storage.root, 9, 5, 0)
    many = calls_to_read_a_log(gateway, storage.root, 300, 30, 290)
    storage.close()
    assert few == 2
    assert many == few + 1


@local_only
def test_bytes_of_a_file_are_taken_over_without_a_call_for_each(gateway, tmp_path):
    (tmp_path / "f").write_bytes(bytes(range(256)) * 200)
    files, calls = HadoopFiles(gateway), []
    (file,) = files.look([f"file:{tmp_path}"])[f"file:{tmp_path}"].entries
    sys.setprofile(lambda _frame, event, _what: calls.append(event) if event == "call" else None)
    try:
        found = b"".join(files.read_bytes(file))
    finally:
        sys.setprofile(None)
    assert found == bytes(range(256)) * 200
    assert len(calls) < 5000


@local_only
def test_an_array_of_strings_costs_the_same_calls_whatever_its_length(gateway):
    gateway.strings(["warm"])
    few, many = (calls_of(gateway, lambda count=count: gateway.strings(['ü "'] * count)) for count in (10, 1000))
    assert few == many < 10
    assert list(gateway.strings(['ü "', ""])) == ['ü "', ""]


def test_a_second_gateway_on_the_same_jvm_has_helpers_that_work(driver, tmp_path):
    first, second = HadoopFiles(Gateway(driver)), HadoopFiles(Gateway(driver))
    assert first.qualify(f"{tmp_path}/") == second.qualify(str(tmp_path))
    assert second.look([str(tmp_path)]) == first.look([str(tmp_path)])


@local_only
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


JAVA = resources.files("hivekeeper.cluster").joinpath("java")
FOLDERS = [CORE, *sorted(one.name for one in JAVA.iterdir() if one.is_dir())]


@local_only
@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder or "core")
def test_sparks_own_compiler_makes_classes_that_a_jvm_loads(gateway, folder):
    """Janino 3.0.16 (Spark 3.3) writes an int for `static final long X = 5`; loading its class then fails with a ClassFormatError."""
    package = compiled(gateway.java_gateway, folder)
    classes = package.class_bytes()
    assert {f"{package.name}.{source.name.partition('.')[0]}" for source in read_sources(folder)} <= set(classes)
    for name, content in classes.items():
        assert content[:4] == bytes.fromhex("cafebabe")
        gateway.jvm.java.lang.Class.forName(name, True, package.loader)


@local_only
def test_a_source_that_does_not_compile_is_told_with_its_line_when_a_class_is_asked_for(gateway):
    sources = [
        JavaSource("Right.java", "package hivekeeper.broken;\n\nimport java.util.List;\n\npublic class Right {}"),
        JavaSource("Wrong.java", "package hivekeeper.broken;\n\npublic class Wrong {\n  List<String> names = 5;\n}"),
    ]
    package = JavaPackage(gateway.jvm, "hivekeeper.broken", sources, compiled(gateway.java_gateway).loader)
    with pytest.raises(Unusable, match="Wrong.java, line 4, Column"):
        package.find("Right")


def connections_of(gateway):
    """Py4J's own list of the connections from Python."""
    field = gateway.jvm.java.lang.Class.forName("py4j.GatewayServer").getDeclaredField("connections")
    field.setAccessible(True)
    return field.get(gateway.java_gateway.java_gateway_server)


@local_only
def test_no_connection_of_any_thread_holds_back_the_rest_of_a_long_answer(gateway):
    gateway.helper("Listing", gateway.hadoop_conf)
    found = []

    def read() -> None:
        found.append([connection.getSocket().getTcpNoDelay() for connection in list(connections_of(gateway))])

    thread = threading.Thread(target=read)
    thread.start()
    thread.join()
    assert len(found[0]) > 1
    assert all(found[0])


@local_only
def test_a_connection_that_is_being_closed_is_passed_over(gateway):
    """Py4J takes its socket away before it takes the connection off its list."""
    connections, package, found = connections_of(gateway), compiled(gateway.java_gateway), []
    thread = threading.Thread(target=lambda: found.append(list(connections)[-1]))
    thread.start()
    thread.join()
    closing = found[0]
    closing.shutdown()
    end = time.monotonic() + 20
    while closing in connections:
        assert time.monotonic() < end
        time.sleep(0.01)
    # Twice: the thread that read from it takes one off, at any moment.
    connections.add(closing)
    connections.add(closing)
    try:
        assert closing.getSocket() is None
        package.factory.make(package.find("PromptAnswers"), gateway.java_gateway.java_gateway_server)
    finally:
        connections.removeAll(gateway.jvm.java.util.Collections.singleton(closing))
