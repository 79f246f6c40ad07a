"""Workers that die, leave or stop answering."""

import os
import signal
import subprocess
import traceback

import pytest
from infeed.torch import DataLoader
from loader_datasets import FailsAt, Squares, Stream, exit_quietly, exit_seven, kill_self, kill_self_once, sleep_long


def chain_of(dataset, **options):
    """The formatted chain of the error that ends a loader with one worker."""
    with pytest.raises(RuntimeError) as caught:
        list(DataLoader(dataset, num_workers=1, **options))
    return "".join(traceback.format_exception(caught.value))


def test_a_killed_worker_is_named_with_its_signal():
    text = chain_of(FailsAt(3, kill_self))
    assert "is killed by signal: Killed" in text and ") exited unexpectedly" in text


@pytest.mark.parametrize(("action", "code"), [(exit_seven, 7), (exit_quietly, 0)])
def test_a_worker_that_exits_is_named_with_its_code(action, code):
    assert f"exited unexpectedly with exit code {code}" in chain_of(FailsAt(3, action))


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE])
def test_a_fatal_signal_prints_one_line(number, capfd):
    text = chain_of(FailsAt(3, lambda index: os.kill(os.getpid(), number)))
    assert f"is killed by signal: {signal.strsignal(number)}" in text
    assert ("out of shared memory" in text) == (number == signal.SIGBUS)
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) == 1 and lines[0].startswith("ERROR: Unexpected ")


def test_a_worker_that_another_process_terminates_is_reported():
    iterator = iter(DataLoader(FailsAt(2, sleep_long), num_workers=1))
    next(iterator)
    subprocess.run(["kill", "-TERM", str(iterator._workers[0].pid)], check=True)
    with pytest.raises(RuntimeError, match="exited unexpectedly") as caught:
        list(iterator)
    assert "is killed by signal: Terminated" in str(caught.value.__cause__)


def wait_until_it_reads(iterator, index):
    while iterator._exchange.sample_in_hand(0)[1] != index:
        os.sched_yield()


def test_terminate_ends_a_worker_with_code_zero():
    iterator = iter(DataLoader(FailsAt(0, sleep_long), num_workers=1))
    wait_until_it_reads(iterator, 0)
    iterator._workers[0].terminate()
    iterator._workers[0].join()
    assert iterator._workers[0].exitcode == 0


def test_a_death_is_told_with_the_sample_in_hand():
    assert "is at dataset index 3" in chain_of(FailsAt(3, kill_self))


def test_a_worker_that_exits_before_an_iterable_part_is_over_has_died():
    class Quits(Stream):
        def __iter__(self):
            yield 1
            yield exit_quietly(0)

    assert "exited unexpectedly with exit code 0" in chain_of(Quits())


def test_every_next_after_a_death_raises():
    iterator = iter(DataLoader(FailsAt(0, kill_self), num_workers=2))
    for _ in range(3):
        with pytest.raises(RuntimeError, match="exited unexpectedly"):
            for _ in range(3):
                next(iterator)


def test_a_persistent_loader_starts_anew_after_a_death(tmp_path):
    loader = DataLoader(FailsAt(1, kill_self_once(str(tmp_path / "x"))), num_workers=2, persistent_workers=True)
    with pytest.raises(RuntimeError, match="exited unexpectedly"):
        list(loader)
    assert len(list(loader)) == 20


@pytest.mark.parametrize("method", ["fork", "forkserver"])
def test_a_restarted_worker_does_its_tasks_again(tmp_path, method):
    dataset = FailsAt(5, Once(str(tmp_path / "x")))
    loader = DataLoader(dataset, batch_size=2, num_workers=2, max_restarts=1, multiprocessing_context=method)
    assert [row[0].item() for batch in loader for row in batch] == list(range(20))


class Once:
    """kill_self_once, picklable."""

    def __init__(self, path):
        self.path = path

    def __call__(self, index):
        return kill_self_once(self.path)(index)


def test_restarts_are_counted():
    assert "is killed by signal" in chain_of(FailsAt(5, kill_self), max_restarts=2)


def test_a_late_batch_is_an_error_that_names_the_sample():
    iterator = iter(DataLoader(FailsAt(0, sleep_long), num_workers=1, timeout=0.2))
    wait_until_it_reads(iterator, 0)
    with pytest.raises(RuntimeError, match=r"DataLoader timed out after 0\.2 seconds.*dataset index 0"):
        next(iterator)
    for worker in iterator._workers:
        worker.kill()


def test_a_stopped_worker_is_ended_with_the_iterator():
    iterator = iter(DataLoader(Squares(), num_workers=1))
    next(iterator)
    worker = iterator._workers[0]
    os.kill(worker.pid, signal.SIGSTOP)
    iterator._team.kill()
    assert worker.exitcode == -signal.SIGKILL


def test_children_that_are_not_ours_trouble_nobody():
    iterator = iter(DataLoader(Squares(), num_workers=2))
    if (pid := os.fork()) == 0:
        os._exit(3)
    assert len(list(iterator)) == 20
    assert os.waitpid(pid, 0)[1] != 0


def test_ctrl_c_leaves_the_workers_of_this_process_alone():
    iterator = iter(DataLoader(Squares(4), num_workers=2))
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)
        next(iterator)
    assert len(list(iterator)) >= 3
