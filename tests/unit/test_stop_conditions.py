"""max_duration, stop file and pause file, on a clock that only advances when somebody sleeps."""

from __future__ import annotations

import os
from dataclasses import replace
from types import SimpleNamespace

import pytest

from hivekeeper.cli.main import run
from hivekeeper.config.settings import RunSettings
from hivekeeper.errors import UsageError
from hivekeeper.launch.trusted_files import user_name
from hivekeeper.ports import NoPermission
from hivekeeper.stop_conditions import LOOK_EVERY_MS, Watch, refuse_local_files
from support.world import World

STOP, PAUSE = "hdfs://nn/ops/stop", "hdfs://nn/ops/pause"


@pytest.fixture
def world():
    return World()


def count_looks(world):
    """Counts the calls to the file system from here on."""
    stat, looks = world.files.stat, []

    def count(path):
        looks.append(path)
        return stat(path)

    world.files.stat = count
    return looks


def pass_time(world, ms):
    world.clock.elapsed_ms += ms


def test_without_limits_nothing_is_asked_and_nothing_stops(world):
    looks = count_looks(world)
    watch = Watch(world.cluster, RunSettings())
    pass_time(world, 10**9)
    assert (watch.why(), watch.is_asked(), watch.signal, looks) == ("", False, 0, [])


@pytest.mark.parametrize(
    ("settings", "is_limited"),
    [({}, False), ({"pause_file": PAUSE}, False), ({"stop_file": STOP}, True), ({"max_duration_ms": 60_000}, True)],
)
def test_a_time_limit_and_a_stop_file_limit_a_command(world, settings, is_limited):
    assert Watch(world.cluster, RunSettings(**settings)).is_limited == is_limited


def test_the_time_is_over_when_it_is_over(world):
    watch = Watch(world.cluster, RunSettings(max_duration_ms=60_000))
    pass_time(world, 59_999)
    assert watch.why() == ""
    pass_time(world, 1)
    assert (watch.is_asked(), watch.why()) == (True, "max_duration is over (1m)")


@pytest.mark.parametrize("is_local", [True, False])
def test_a_stop_file_stops(world, tmp_path, is_local):
    path = str(tmp_path / "stop") if is_local else STOP
    watch = Watch(world.cluster, RunSettings(stop_file=path))
    assert watch.why() == ""
    (tmp_path / "stop").touch() if is_local else world.files.writer.add(STOP, "")
    pass_time(world, LOOK_EVERY_MS)
    owner = user_name(os.geteuid()) if is_local else world.files.user
    assert watch.why() == f"the stop file {path} of {owner} is there"


def test_a_stop_is_not_taken_back_because_half_of_the_units_may_be_left_already(world):
    world.files.writer.add(STOP, "")
    watch = Watch(world.cluster, RunSettings(stop_file=STOP))
    reason = watch.why()
    world.files.writer.delete(STOP)
    pass_time(world, LOOK_EVERY_MS)
    assert (watch.why(), watch.is_asked()) == (reason, True)


def test_however_often_it_is_asked_each_file_is_looked_for_once_a_second(world):
    looks = count_looks(world)
    watch = Watch(world.cluster, RunSettings(stop_file=STOP, pause_file=PAUSE))
    for _ in range(1000):
        watch.why()
        watch.is_asked()
        pass_time(world, 3)
    assert len(looks) == 2 * 3


def test_a_pause_lasts_as_long_as_its_file(world):
    world.files.writer.add(PAUSE, "")
    watch = Watch(world.cluster, RunSettings(pause_file=PAUSE))
    assert watch.is_asked()

    def remove_after_a_while(ms):
        pass_time(world, ms)
        if world.clock.elapsed_ms >= 90_000:
            world.files.writer.delete(PAUSE)

    world.clock.sleep_ms = remove_after_a_while
    assert watch.why() == ""
    assert 90_000 <= world.clock.elapsed_ms <= 92_000
    assert not watch.is_asked()


def test_a_pause_is_said_once_a_minute(world, caplog):
    caplog.set_level("INFO", "hivekeeper")
    world.files.writer.add(PAUSE, "")
    assert Watch(world.cluster, RunSettings(max_duration_ms=150_000, pause_file=PAUSE)).why()
    assert [record.message for record in caplog.records].count(f"step=pause waiting pause_file={PAUSE} owner=hive") == 3


def test_the_time_goes_on_in_a_pause(world):
    world.files.writer.add(PAUSE, "")
    watch = Watch(world.cluster, RunSettings(max_duration_ms=60_000, pause_file=PAUSE))
    assert watch.why() == "max_duration is over (1m)"
    assert world.clock.elapsed_ms == 60_000


def test_a_stop_file_ends_a_pause(world):
    world.files.writer.add(PAUSE, "")
    watch = Watch(world.cluster, RunSettings(stop_file=STOP, pause_file=PAUSE))

    def make_stop_file(ms):
        pass_time(world, ms)
        if world.clock.elapsed_ms == 5000:
            world.files.writer.add(STOP, "")

    world.clock.sleep_ms = make_stop_file
    assert watch.why() == f"the stop file {STOP} of hive is there"
    assert world.clock.elapsed_ms == 5000


def test_a_signal_ends_a_pause_and_is_told_before_other_reasons(world):
    world.files.writer.add(PAUSE, "")
    signals = SimpleNamespace(signal=0)
    signals.why = lambda: "stopped by SIGTERM" if signals.signal else ""
    watch = Watch(replace(world.cluster, stopping=signals), RunSettings(max_duration_ms=3_000, pause_file=PAUSE))

    def receive(ms):
        pass_time(world, ms)
        signals.signal = 15 if world.clock.elapsed_ms >= 3000 else 0

    world.clock.sleep_ms = receive
    assert (watch.why(), watch.signal, world.clock.elapsed_ms) == ("stopped by SIGTERM", 15, 3000)


def test_a_file_that_cannot_be_looked_for_stops_nothing_and_is_said_once(world, caplog):
    def deny(_path):
        raise NoPermission("Permission denied: user=etl, access=EXECUTE")

    world.files.stat = deny
    watch = Watch(world.cluster, RunSettings(stop_file=STOP, pause_file=PAUSE))
    for _ in range(3):
        assert watch.why() == ""
        pass_time(world, LOOK_EVERY_MS)
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "Permission denied" in caplog.text


@pytest.mark.parametrize("settings", [RunSettings(stop_file="/tmp/stop"), RunSettings(pause_file="stop")])
def test_a_driver_on_another_machine_takes_no_file_of_this_one(settings):
    with pytest.raises(UsageError, match="a file of this machine"):
        refuse_local_files(settings)


def test_the_command_line_refuses_such_a_file_before_anything_is_started(capsys):
    words = ["--set", "spark.master=yarn", "--set", "spark.deploy_mode=cluster", "--set", "stop_file=/ops/stop"]
    assert run(["compact-swap", "--table", "d.t", *words]) == 2
    assert "name one on HDFS: hdfs:///ops/stop" in capsys.readouterr().err


def test_a_driver_on_another_machine_takes_files_on_the_cluster():
    assert refuse_local_files(RunSettings(stop_file=STOP, pause_file=PAUSE)) is None
