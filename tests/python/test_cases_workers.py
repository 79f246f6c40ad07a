"""Faults that users of other loaders reported: workers that hang, stay, die in silence or are started anew."""

import gc
import logging
import os
import signal
import subprocess
import sys
import threading

import psutil
import pytest
import torch
from infeed.torch import DataLoader
from loader_datasets import FailsAt, Squares, kill_self, sleep_long
from torch.utils.data import IterableDataset

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create", "ignore:.*pin_memory")


def children():
    gc.collect()  # an error that a test caught may hold its iterator
    return [process for process in psutil.Process().children() if process.name() == "pt_data_worker"]


@pytest.fixture(autouse=True)
def no_worker_is_left():
    yield
    assert children() == []


def numbers(loader):
    return [batch.tolist() for batch in loader]


class Odd(Exception):
    """Cannot be made from its text."""

    def __init__(self, code, *, where):
        super().__init__(code, where)


class Chained(Exception):
    message = "one argument of this name"

    def __init__(self, message):
        super().__init__(message)


def raise_odd(index):
    raise Odd(418, where="shard 7")


def raise_chained(index):
    try:
        raise OSError("the disk went away")
    except OSError as error:
        raise Chained("cannot read") from error


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.parametrize(
    ("action", "words"), [(raise_odd, ["418", "shard 7"]), (raise_chained, ["the disk went away"])]
)
def test_unusual_exceptions_keep_their_text_and_their_traceback(action, words, method):
    with pytest.raises(Exception) as caught:
        list(DataLoader(FailsAt(1, action, 4), num_workers=1, multiprocessing_context=method))
    assert all(word in str(caught.value) for word in [*words, "__getitem__", action.__name__])


def test_a_killed_worker_takes_the_others_with_it():
    with pytest.raises(RuntimeError, match="worker"):
        list(DataLoader(FailsAt(9, kill_self, 40), batch_size=2, num_workers=3))


class Stubborn:
    def __reduce__(self):
        raise OSError("the disk went away while saving")


class Deep:
    """Too deep to be pickled."""

    def __init__(self):
        self.inner = []
        for _ in range(100_000):
            self.inner = [self.inner]


@pytest.mark.parametrize(("make", "error"), [(Stubborn, OSError), (Deep, RecursionError), (threading.Lock, TypeError)])
def test_a_batch_that_cannot_be_pickled_is_its_own_error(make, error):
    dataset = [0, 1, make(), 3] if make is Stubborn else FailsAt(2, lambda index: make(), 4)
    iterator = iter(DataLoader(dataset, num_workers=2, batch_size=None))
    assert int(torch.as_tensor(next(iterator)).flatten()[0]) == 0
    next(iterator)
    with pytest.raises(error):
        next(iterator)
    assert int(torch.as_tensor(next(iterator)).flatten()[0]) == 3


def test_a_second_pass_after_an_early_end_is_whole_also_pinned():
    options = {"num_workers": 2, "pin_memory": True, "persistent_workers": True}
    loader = DataLoader(list(range(40)), batch_size=4, **options)
    next(iter(loader))
    next(iter(loader))
    for _ in range(2):
        assert torch.cat(list(loader)).tolist() == list(range(40))


class Remembers:
    """Item: process, how many items it has read, how often it was initialised."""

    def __init__(self):
        self.reads = 0

    def __len__(self):
        return 8

    def __getitem__(self, index):
        self.reads += 1
        return os.getpid(), self.reads, int(os.environ.get("INFEED_TEST_INITIALISED", "0"))


def initialise(worker):
    os.environ["INFEED_TEST_INITIALISED"] = str(int(os.environ.get("INFEED_TEST_INITIALISED", "0")) + 1)


def test_persistent_workers_stay_what_they_are():
    options = {"persistent_workers": True, "worker_init_fn": initialise, "batch_size": None}
    loader = DataLoader(Remembers(), num_workers=2, **options)
    epochs = [list(loader) for _ in range(3)]
    pids = [{pid for pid, _, _ in epoch} for epoch in epochs]
    assert len(pids[0]) == 2 and pids == [pids[0]] * 3
    assert {times for epoch in epochs for _, _, times in epoch} == {1}
    assert max(reads for _, reads, _ in epochs[2]) == 12


CTRL_C = """
import sys
sys.path.insert(0, {folder!r})
from infeed.torch import DataLoader
from loader_datasets import FailsAt, sleep_long
if __name__ == "__main__":
    iterator = iter(DataLoader(FailsAt(2, sleep_long, 1000), num_workers=2, persistent_workers={persistent}))
    next(iterator), next(iterator)
    print(*[worker.pid for worker in iterator._workers], flush=True)
    next(iterator)
"""


@pytest.mark.parametrize("persistent", [False, True])
def test_ctrl_c_ends_the_program_and_its_workers(persistent):
    program = CTRL_C.format(folder=os.path.dirname(__file__), persistent=persistent)
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "start_new_session": True}
    with subprocess.Popen([sys.executable, "-c", program], **options) as process:
        workers = [psutil.Process(int(pid)) for pid in process.stdout.readline().split()]
        os.killpg(process.pid, signal.SIGINT)
        _, text = process.communicate()
    assert process.returncode != 0 and len(workers) == 2
    assert "KeyboardInterrupt" in text or "exited unexpectedly" in text
    assert psutil.wait_procs(workers, timeout=60)[1] == []


def test_a_timeout_leaves_no_worker():
    loader = DataLoader(FailsAt(4, sleep_long, 10), batch_size=2, num_workers=1, timeout=0.5)
    with pytest.raises(RuntimeError, match="timed out"):
        list(loader)
    for child in children():
        child.kill()


def multiply(_=None):
    matrix = torch.ones(300, 300)
    return (matrix @ matrix).sum() + torch.sort(torch.arange(100_000.0)).values[5]


class Multiplies(Squares):
    def __getitem__(self, index):
        return multiply()


def test_workers_may_use_threads_that_the_parent_has_used_and_uses():
    expected, stop, log = multiply().item(), threading.Event(), logging.getLogger("cases")
    log.addHandler(logging.NullHandler())

    def write():
        while not stop.wait(0.001):
            log.warning("busy")

    threads = [threading.Thread(target=write) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(3):
            assert torch.cat(list(DataLoader(Multiplies(8), batch_size=2, num_workers=2))).tolist() == [expected] * 8
    finally:
        stop.set()
    for thread in threads:
        thread.join()


def test_a_lambda_that_cannot_be_spawned_leaves_no_worker():
    options = {"num_workers": 2, "batch_size": 2, "collate_fn": lambda samples: samples[0] + samples[1]}
    with pytest.warns(UserWarning, match="^Got pickle error"), pytest.raises(Exception, match=r"(?i)pickle|lambda"):
        list(DataLoader([1, 2, 3, 4], multiprocessing_context="spawn", **options))
    assert list(DataLoader([1, 2, 3, 4], multiprocessing_context="fork", **options)) == [3, 7]


@pytest.mark.parametrize("persistent", [False, True])
def test_more_workers_than_batches_end_cleanly(persistent):
    loader = DataLoader(list(range(3)), batch_size=2, num_workers=6, persistent_workers=persistent)
    assert [numbers(loader) for _ in range(2)] == [[[0, 1], [2]]] * 2


@pytest.mark.parametrize("workers", [0, 2])
def test_iterators_of_one_loader_are_independent(workers):
    loader = DataLoader(list(range(12)), batch_size=3, num_workers=workers)
    expected = [list(range(first, first + 3)) for first in range(0, 12, 3)]
    assert [(a.tolist(), b.tolist()) for a, b in zip(loader, loader)] == list(zip(expected, expected))
    assert sum(1 for _ in loader for _ in loader) == 16


def raise_value_error(index):
    raise ValueError(f"bad item {index}")


@pytest.mark.parametrize("workers", [0, 1, 3])
@pytest.mark.parametrize("bad", [0, 3, 11])
def test_one_bad_sample_costs_one_batch(workers, bad):
    iterator = iter(DataLoader(FailsAt(bad, raise_value_error, 12), batch_size=2, num_workers=workers))
    good, errors = [], 0
    while True:
        try:
            good += next(iterator)[:, 0].tolist()
        except ValueError:
            errors += 1
        except StopIteration:
            break
    assert errors == 1
    assert good == [index for index in range(12) if index // 2 != bad // 2]


def cannot_open(worker):
    if worker == 1:
        raise OSError("cannot open the shard index")


def test_an_error_of_one_workers_init_fn_leaves_no_worker():
    with pytest.raises(OSError, match="cannot open the shard index"):
        list(DataLoader(list(range(8)), num_workers=2, worker_init_fn=cannot_open))


class LeavesAFile(IterableDataset):
    """Endless; makes a file when its generator is closed."""

    def __init__(self, path):
        self.path = path

    def __iter__(self):
        try:
            yield from iter(int, 1)
        finally:
            self.path.touch()


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_generators_of_a_dataset_are_closed_with_their_worker(tmp_path, method):
    iterator = iter(DataLoader(LeavesAFile(tmp_path / "closed"), num_workers=1, multiprocessing_context=method))
    next(iterator)
    del iterator
    assert (tmp_path / "closed").exists()
