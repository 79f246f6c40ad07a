"""Nothing of a loader is left behind, and nothing waits at the end."""

import gc
import os
import resource
import signal
import subprocess
import sys
import threading

import psutil
import pytest
from infeed.torch import DataLoader
from loader_datasets import FailsAt, Squares, raise_value_error


def possessions():
    """Descriptors, children and threads of this process."""
    gc.collect()
    me = psutil.Process()
    return me.num_fds(), len(me.children()), threading.active_count()


def break_off(**options):
    for _ in DataLoader(Squares(8), num_workers=1, **options):
        break


@pytest.mark.parametrize("persistent", [False, True])
def test_a_thousand_iterators_broken_off_leave_nothing(persistent):
    for _ in range(20):
        break_off(persistent_workers=persistent)
    before, memory = possessions(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(500):
        break_off(persistent_workers=persistent)
    assert possessions() == before
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory < 20_000  # KiB


def test_errors_and_ends_leave_nothing():
    before = possessions()
    for _ in range(20):
        with pytest.raises(ValueError, match="cannot start"):
            list(DataLoader(FailsAt(3, raise_value_error), num_workers=2))
        list(DataLoader(Squares(4), num_workers=2))
    assert possessions() == before


def test_batches_outlive_their_iterator():
    batches = list(DataLoader(Squares(6), num_workers=2))
    gc.collect()
    assert [batch[0].tolist() for batch in batches] == [[index, index * index] for index in range(6)]


def test_workers_leave_with_code_zero_when_the_iterator_is_dropped():
    iterator = iter(DataLoader(Squares(), num_workers=2))
    next(iterator)
    workers = list(iterator._workers)
    del iterator
    assert [worker.exitcode for worker in workers] == [0, 0]


def test_a_shut_down_iterator_says_so():
    iterator = iter(DataLoader(Squares(), num_workers=1))
    iterator._shutdown_workers()
    with pytest.raises(RuntimeError, match="shut down"):
        next(iterator)


def test_a_forked_copy_of_an_iterator_is_inert():
    iterator = iter(DataLoader(Squares(6), num_workers=2))
    next(iterator)
    if (pid := os.fork()) == 0:
        try:
            next(iterator)
        except RuntimeError:
            del iterator
            os._exit(0)
        os._exit(1)
    assert os.waitpid(pid, 0)[1] == 0
    assert len(list(iterator)) == 5


PROGRAM = """
import os, sys
sys.path.insert(0, {folder!r})
from infeed.torch import DataLoader
from loader_datasets import *
if __name__ == "__main__":
    iterator = iter(DataLoader(Squares(10_000), num_workers=2, {options}))
    next(iterator)
    {end}
"""


def run(end, options=""):
    program = PROGRAM.format(folder=os.path.dirname(__file__), options=options, end=end)
    return subprocess.run([sys.executable, "-c", program], capture_output=True, check=False, text=True, timeout=600)


@pytest.mark.parametrize("options", ["", "persistent_workers=True", "pin_memory=True, persistent_workers=True"])
def test_the_interpreter_exits_with_a_live_iterator(options):
    result = run("print('end')", options)
    assert (result.returncode, result.stdout) == (0, "end\n")
    assert "Exception" not in result.stderr


@pytest.mark.parametrize("action", ["int", "sleep_long"])
def test_a_daemon_thread_that_iterates_says_nothing_at_exit(action):
    loader = f"DataLoader(FailsAt(9, {action}, 10**6), num_workers=2, collate_fn=list)"
    thread = f"threading.Thread(target=lambda: [None for _ in {loader}], daemon=True).start()"
    result = run(f"import threading, time; {thread}; time.sleep(1); print('end')")
    assert (result.returncode, result.stdout, result.stderr) == (0, "end\n", "")


def test_an_error_that_keeps_the_iterators_frame_lets_the_process_exit():
    result = run("raise SystemExit(5)", "persistent_workers=True")
    assert (result.returncode, result.stderr) == (5, "")


def test_a_forked_child_that_exits_normally_leaves_the_workers_alone():
    result = run("pid = os.fork(); pid or sys.exit(3); os.waitpid(pid, 0); print(sum(1 for _ in iterator))")
    assert (result.returncode, result.stdout) == (0, "9999\n")


def test_workers_die_with_a_killed_parent():
    program = "print(*[w.pid for w in iterator._workers], flush=True); os.kill(os.getpid(), 9)"
    result = run(program)
    assert result.returncode == -signal.SIGKILL
    workers = [psutil.Process(int(pid)) for pid in result.stdout.split() if psutil.pid_exists(int(pid))]
    assert psutil.wait_procs(workers)[1] == []


def test_a_failing_iter_prints_nothing_else():
    program = (
        "\n    try: iter(DataLoader(Squares(), num_workers=1, prefetch_factor=0))\n    except AssertionError: pass"
    )
    assert run(program).stderr == ""
