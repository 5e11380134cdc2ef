"""Work that is done while a job runs: in the caller's thread, at the same time, and nothing of either is left running or unnoticed."""

import threading

import pytest

from hivekeeper.cluster.beside import BesideJobs
from hivekeeper.ports import Beside

WAIT_S = 10.0


@pytest.mark.parametrize("kind", [Beside, BesideJobs])
def test_a_job_alone_runs_in_the_callers_thread(kind):
    assert kind().run(threading.get_ident) == threading.get_ident()


@pytest.mark.parametrize("kind", [Beside, BesideJobs])
def test_all_work_is_done_once_in_order_and_by_the_caller(kind):
    beside, done = kind(), []
    for number in range(3):
        beside.add(lambda number=number: done.append((number, threading.get_ident())))
    assert beside.run(lambda: "result") == "result"
    beside.do()
    assert done == [(number, threading.get_ident()) for number in range(3)]


def test_work_and_job_run_at_the_same_time():
    beside, begun, done = BesideJobs(), threading.Event(), threading.Event()

    def work():
        assert begun.wait(WAIT_S)
        done.set()

    def job():
        begun.set()
        return done.wait(WAIT_S)

    beside.add(work)
    assert beside.run(job)


@pytest.mark.parametrize("kind", [Beside, BesideJobs])
def test_the_error_of_a_job_comes_after_the_work(kind):
    beside, done = kind(), []
    beside.add(lambda: done.append(1))

    def job():
        raise LookupError("the job fails")

    with pytest.raises(LookupError):
        beside.run(job)
    assert done == [1]


def test_an_error_of_the_work_waits_for_the_end_of_the_job():
    beside, failed, ended = BesideJobs(), threading.Event(), []

    def work():
        failed.set()
        raise KeyboardInterrupt

    def job():
        assert failed.wait(WAIT_S)
        ended.append(1)

    beside.add(work)
    with pytest.raises(KeyboardInterrupt):
        beside.run(job)
    assert ended == [1]


def test_all_jobs_have_the_same_thread():
    beside, threads = BesideJobs(), set()
    for _ in range(3):
        beside.add(lambda: None)
        threads.add(beside.run(threading.get_ident))
    assert len(threads) == 1
    assert threading.get_ident() not in threads
