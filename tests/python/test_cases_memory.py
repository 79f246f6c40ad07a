"""Faults that users of other loaders reported: descriptors and shared memory that run out, batches that change."""

import contextlib
import gc
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
import torch
from infeed.torch import DataLoader
from loader_datasets import FailsAt, Squares, kill_self

pytestmark = pytest.mark.filterwarnings("ignore:.*pin_memory")


class Filled(Squares):
    """Item i is full of i."""

    def __getitem__(self, index):
        return np.full(30_000, index, np.int32), {"index": index}


FEW_DESCRIPTORS = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
import torch
from infeed.torch import DataLoader
kept = list(DataLoader(list(range(1600)), batch_size=4, num_workers=2))
print(torch.cat(kept).tolist() == list(range(1600)))
"""


def test_held_batches_take_no_descriptors():
    done = subprocess.run([sys.executable, "-c", FEW_DESCRIPTORS], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"


def in_shared_folder():
    """Files of /dev/shm that this process has open or mapped. (Other programs use the folder, too.)"""
    open_files = [os.readlink(entry.path) for entry in os.scandir("/proc/self/fd") if os.path.islink(entry.path)]
    with open("/proc/self/maps") as maps:
        mapped = [line.split(maxsplit=5)[-1].strip() for line in maps]
    return {name for name in (*open_files, *mapped) if name.startswith("/dev/shm/")}


def test_nothing_appears_in_the_folder_of_shared_memory():
    before = in_shared_folder()
    for dataset in (Filled(40), FailsAt(13, kill_self, 40)):
        iterator = iter(DataLoader(dataset, batch_size=4, num_workers=2))
        next(iterator)
        assert in_shared_folder() <= before
        with contextlib.suppress(RuntimeError):
            list(iterator)
    assert in_shared_folder() <= before


@pytest.mark.parametrize("options", [{}, {"persistent_workers": True, "prefetch_factor": 4}, {"batch_size": 7}])
def test_held_batches_stay_what_they_are(options):
    options = {"batch_size": 4, **options}
    loader = DataLoader(Filled(160), num_workers=2, **options)
    kept = [*loader, *loader]
    rows, indices = (torch.cat(columns) for columns in ([x for x, _ in kept], [m["index"] for _, m in kept]))
    assert indices.tolist() == [*range(160)] * 2
    assert rows.amin(1).tolist() == rows.amax(1).tolist() == indices.tolist()


SIZES = [1, 10, 3_000_000, 7, 0, 16_000_000, 5, 1_000_001, 2]


class Mixed(Squares):
    def __getitem__(self, index):
        return np.arange(SIZES[index], dtype=np.int32), b"x" * (SIZES[index] // 100), index


def first(samples):
    return samples[0]


@pytest.mark.parametrize("workers", [1, 2])
def test_batches_of_very_different_sizes_arrive_whole(workers):
    for number, (array, text, index) in enumerate(DataLoader(Mixed(len(SIZES)), collate_fn=first, num_workers=workers)):
        assert (index, len(array), len(text)) == (number, SIZES[number], SIZES[number] // 100)
        assert np.array_equal(array, np.arange(len(array)))


class Empty(Squares):
    def __getitem__(self, index):
        return np.zeros((0, 4), np.float32), torch.zeros(3, 0, dtype=torch.int64), "", b""


@pytest.mark.parametrize("workers", [0, 2])
def test_arrays_without_elements_keep_shape_and_type(workers):
    for array, tensor, text, data in DataLoader(Empty(6), batch_size=3, num_workers=workers):
        assert (array.shape, array.dtype, array.stride()) == ((3, 0, 4), torch.float32, (4, 4, 1))
        assert (tensor.shape, tensor.dtype, tensor.stride()) == ((3, 3, 0), torch.int64, (3, 1, 1))
        assert (list(text), list(data)) == ([""] * 3, [b""] * 3)


def test_pinning_loaders_leave_no_threads():
    before = threading.active_count()
    for early in (False, True, False, True):
        for _ in DataLoader(Squares(40), batch_size=2, num_workers=1, pin_memory=True):
            if early:
                break
    gc.collect()
    assert threading.active_count() == before


class Reused(Squares):
    """Returns one buffer, each time with other content."""

    def __init__(self, size):
        super().__init__(size)
        self.buffer = torch.zeros(3)

    def __getitem__(self, index):
        return self.buffer.fill_(index)


def test_a_buffer_that_a_dataset_reuses_gives_what_it_held_each_time():
    batches = list(DataLoader(Reused(6), batch_size=3, num_workers=1))
    assert [batch[:, 0].tolist() for batch in batches] == [[0, 1, 2], [3, 4, 5]]


def test_a_batch_may_be_written_and_another_does_not_see_it():
    a, b = list(DataLoader(Filled(8), batch_size=4, num_workers=1))
    a[0].zero_()
    assert b[0].amin().item() == 4


class Containers(Squares):
    """Holds 200,000 containers; item: KiB of memory that a garbage collection makes the process's own."""

    def __init__(self, size):
        super().__init__(size)
        self.held = [{"index": index, "list": [index]} for index in range(200_000)]

    def __getitem__(self, index):
        before = private_kib()
        gc.collect()
        return private_kib() - before


def private_kib():
    with open("/proc/self/smaps_rollup") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("Private_Dirty"))


def test_a_collection_in_a_forked_worker_does_not_copy_what_the_parent_made():
    copied = max(batch.item() for batch in DataLoader(Containers(2), num_workers=1, multiprocessing_context="fork"))
    assert copied < 8_000  # all of them: 60,000


ROWS_OF_600_KB = """
import resource
import numpy as np
from infeed.torch import DataLoader

class Rows:
    def __len__(self):
        return 160
    def __getitem__(self, index):
        return np.full(150_000, index, np.float32)

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

iterator = iter(DataLoader(Rows(), batch_size=16))
kept = next(iterator), next(iterator)
before = faults()
for batch in iterator:
    kept = kept[1], batch
print((faults() - before) / 8 / (batch.nbytes / 4096))
"""


def test_without_workers_the_memory_of_samples_is_used_again():
    done = subprocess.run([sys.executable, "-c", ROWS_OF_600_KB], capture_output=True, text=True, check=True)
    assert float(done.stdout) < 1.5  # page faults for a page of a batch; 2 where its samples cost as many


def test_share_memory_and_deepcopy_give_memory_of_their_own():
    import copy

    batch = next(iter(DataLoader(Filled(4), batch_size=4, num_workers=1)))[0]
    copied = copy.deepcopy(batch)
    batch.share_memory_()
    assert batch.is_shared() and torch.equal(batch, copied)
