"""infeed.Loader and the process round it: forks, signals, threads, the interpreter's end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

import infeed
import pytest
from infeed.datasets import Synthetic
from native_data import numbers, python, resources

ENDLESS = {"cost_us": 600_000_000}  # a sample that no test waits for


def run(script: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(python("-c", script), capture_output=True, text=True, check=False)


@pytest.mark.parametrize("kind", ["thread", "fork", "spawn"])
def test_workers_run_no_python_at_their_end_and_flush_no_buffers(kind):
    done = run(f"""
import atexit, sys, infeed
atexit.register(lambda: sys.stdout.write("at exit\\n"))
sys.stdout.write("buffered\\n")
loader = infeed.Loader(infeed.datasets.Synthetic(40, {{"index": "int64"}}), 4, num_workers=2, worker_kind="{kind}")
print(sum(batch.size for batch in loader))
loader.set_num_workers(3)
loader.set_num_workers(1)
print(sum(batch.size for batch in loader))
""")
    assert (done.stdout, done.stderr, done.returncode) == ("buffered\n40\n40\nat exit\n", "", 0)


@pytest.mark.parametrize("kind", ["inline", "thread", "fork", "spawn"])
def test_the_interpreter_ends_with_everything_alive(kind):
    done = run(f"""
import sys, infeed
workers = 0 if "{kind}" == "inline" else 2
dataset = infeed.datasets.Synthetic(4000, {{"index": "int64"}})
sys.kept = loader = infeed.Loader(dataset, 4, num_workers=workers, worker_kind="{kind}", output="dlpack")
iterator = iter(loader)
sys.held = [next(iterator) for _ in range(5)]
""")
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)


@pytest.mark.parametrize("kind", ["thread", "fork", "spawn"])
def test_the_interpreter_ends_while_a_daemon_thread_waits(kind):
    done = run(f"""
import threading, infeed
dataset = infeed.datasets.Synthetic(4, {{"index": "int64"}}, cost_us=300_000)
loader = infeed.Loader(dataset, 4, num_workers=1, worker_kind="{kind}")
waiting = threading.Event()
def wait():
    iterator = iter(loader)
    waiting.set()
    try:
        next(iterator)
    except infeed.Error:
        pass
threading.Thread(target=wait, daemon=True).start()
waiting.wait()
""")
    assert done.returncode == 0, done.stderr


def test_a_signal_handler_may_close_the_loader_that_waits():
    loader = infeed.Loader(Synthetic(4, {"index": "int64"}, **ENDLESS), 2, num_workers=1, worker_kind="fork")
    iterator = iter(loader)
    before = signal.signal(signal.SIGUSR1, lambda *_: loader.close())
    try:
        timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGUSR1))
        timer.start()
        with pytest.raises(infeed.Error, match="closed"):
            next(iterator)
        timer.join()
    finally:
        signal.signal(signal.SIGUSR1, before)


@pytest.mark.parametrize("kind", ["fork", "spawn"])
def test_ctrl_c_leaves_a_wait_for_a_worker(kind):
    with infeed.Loader(Synthetic(4, {"index": "int64"}, **ENDLESS), 2, num_workers=2, worker_kind=kind) as loader:
        iterator = iter(loader)
        timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
        with pytest.raises(KeyboardInterrupt):
            timer.start()
            next(iterator)
        timer.join()


def test_ctrl_c_leaves_a_loader_that_reads_itself_and_loses_nothing():
    loader = infeed.Loader(Synthetic(400, {"index": "int64"}, cost_us=5_000), 400)
    iterator = iter(loader)
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        timer.start()
        next(iterator)
    timer.join()
    assert next(iterator)["index"].tolist() == list(range(400))


def test_a_signal_handler_runs_while_next_waits():
    loader = infeed.Loader(Synthetic(4, {"index": "int64"}, cost_us=300_000), 4, num_workers=1, worker_kind="fork")
    seen = []
    before = signal.signal(signal.SIGUSR1, lambda *_: seen.append(len(seen)))
    try:
        timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGUSR1))
        timer.start()
        next(iter(loader))
        timer.join()
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert seen == [0]


def test_other_threads_run_while_next_waits():
    loader = infeed.Loader(Synthetic(4, {"index": "int64"}, cost_us=300_000), 4, num_workers=1)
    ran = threading.Event()
    thread = threading.Thread(target=lambda: (len(loader), loader.stats(), ran.set()))
    thread.start()
    next(iter(loader))
    thread.join()
    assert ran.is_set()


def test_closing_from_another_thread_ends_a_wait():
    loader = infeed.Loader(Synthetic(4, {"index": "int64"}, **ENDLESS), 2, num_workers=1, worker_kind="fork")
    iterator = iter(loader)
    timer = threading.Timer(0.2, loader.close)
    timer.start()
    with pytest.raises(infeed.Error, match="closed"):  # a WorkerError, or a ConfigError where the timer was faster
        next(iterator)
    timer.join()


def test_a_loader_is_inert_in_the_users_fork():
    loader = infeed.Loader(numbers(), 10, num_workers=2, worker_kind="fork")
    iterator = iter(loader)
    first = next(iterator)
    child = os.fork()
    if child == 0:
        try:
            next(iterator)
        except infeed.ConfigError:
            os._exit(0 if first["index"].tolist() == list(range(10)) else 2)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert len(list(iterator)) == 9


def test_a_dead_parent_leaves_no_worker():
    child = subprocess.Popen(
        python(
            "-c",
            """
import infeed, time
dataset = infeed.datasets.Synthetic(8, {"index": "int64"}, cost_us=600_000_000)
loader = infeed.Loader(dataset, 4, num_workers=2, worker_kind="fork")
print(*(worker.pid for worker in loader.stats().workers), flush=True)
next(iter(loader))
""",
        ),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    workers = [int(pid) for pid in child.stdout.readline().split()]
    child.kill()
    child.wait()
    child.stdout.close()
    assert len(workers) == 2
    while any(alive(pid) for pid in workers):
        time.sleep(0.01)


def alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_iterators_broken_off_leave_nothing():
    loader = infeed.Loader(numbers(1000), 4, True, num_workers=2, worker_kind="fork")
    next(iter(loader))
    before = resources()
    for _ in range(1000):
        next(iter(loader))
    assert resources() == before
    assert loader.stats().batches_held == 0


@pytest.mark.parametrize(("kind", "count"), [("inline", 200), ("thread", 50), ("fork", 50), ("spawn", 20)])
def test_loaders_dropped_in_mid_epoch_leave_nothing(kind, count):
    def use() -> None:
        workers = 0 if kind == "inline" else 2
        next(iter(infeed.Loader(numbers(1000), 4, num_workers=workers, worker_kind=kind)))

    use()
    before = resources()
    for _ in range(count):
        use()
    assert resources() == before


def test_arguments_are_not_leaked():
    def references() -> tuple[int, ...]:
        return sys.getrefcount(dataset), sys.getrefcount(dataset._native), sys.getrefcount(sampler)

    dataset = numbers()
    sampler = list(range(50))
    before = references()
    for _ in range(20):
        for _ in infeed.Loader(dataset, 4, sampler=sampler):
            break
    assert references() == before
