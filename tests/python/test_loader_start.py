"""How workers start: start methods, what crosses, and what a worker imports."""

import multiprocessing
import random
import subprocess
import sys

import numpy as np
import pytest
import torch
from infeed._worker.seeds import numpy_seed
from infeed._worker.start import PickledUserCode
from infeed.torch import DataLoader
from loader_datasets import Squares, as_lists
from loader_lean import Lean, Modules

EXPECTED = [[[index, index * index]] for index in range(6)]


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
@pytest.mark.parametrize("package", [multiprocessing, torch.multiprocessing])
def test_every_start_method_loads(method, package):
    for context in (method, package.get_context(method)):
        assert as_lists(DataLoader(Squares(6), num_workers=2, multiprocessing_context=context)) == EXPECTED


def test_a_spawned_worker_imports_torch_only_if_its_code_does():
    loader = DataLoader(Modules(), batch_size=None, num_workers=1, multiprocessing_context="spawn", collate_fn=list)
    assert "torch" not in next(iter(loader))


def test_a_spawned_worker_that_imports_torch_late_is_seeded_like_stocks():
    numbers = []
    for loader_class in (torch.utils.data.DataLoader, DataLoader):
        torch.manual_seed(4)
        options = {"batch_size": None, "num_workers": 2, "multiprocessing_context": "spawn", "collate_fn": list}
        numbers.append(list(loader_class(Lean(), **options)))
    assert numbers[0] == numbers[1]


def test_arrays_cross_without_a_copy_and_stay_private():
    array = np.arange(100_000.0)
    code = PickledUserCode(array, len, None)
    copies = [PickledUserCode.__new__(PickledUserCode) for _ in range(2)]
    for copy in copies:
        copy._spans, copy._descriptors = code._spans, [duplicate(code)]
    first, second = (copy.load()[0] for copy in copies)
    first[0] = -1
    assert (second[0], second[-1], first[0]) == (0, 99_999, -1)
    code.close()


def duplicate(code):
    import os

    return os.dup(code._descriptors[-1])


def test_tensors_of_a_spawned_workers_dataset_are_shared():
    dataset = torch.utils.data.TensorDataset(torch.zeros(4))
    iterator = iter(DataLoader(dataset, num_workers=1, multiprocessing_context="spawn", prefetch_factor=1))
    next(iterator)
    dataset.tensors[0][3] = 7
    assert [batch[0].item() for batch in iterator][-1] == 7


def test_queues_and_events_in_a_dataset_cross_to_spawned_workers():
    context = multiprocessing.get_context("spawn")
    dataset = Lean(context.Queue())
    next(iter(DataLoader(dataset, batch_size=None, num_workers=1, multiprocessing_context=context, collate_fn=list)))
    assert dataset.queue.get() == 0


@pytest.mark.parametrize("defined", ["main", "elsewhere"])
def test_the_main_module_runs_again_only_if_the_dataset_needs_it(tmp_path, defined):
    script = tmp_path / "script.py"
    script.write_text(
        SCRIPT.format(folder=__file__.rpartition("/")[0], dataset={"main": "Mine", "elsewhere": "Lean"}[defined])
    )
    out = subprocess.run([sys.executable, str(script)], capture_output=True, check=False, text=True, timeout=600)
    assert out.stdout.count("main runs") == {"main": 2, "elsewhere": 1}[defined], out.stderr


SCRIPT = """
import sys
sys.path.insert(0, {folder!r})
from loader_lean import Lean
print("main runs", flush=True)
class Mine(Lean):
    pass
if __name__ == "__main__":
    from infeed.torch import DataLoader
    options = {{"batch_size": None, "num_workers": 1, "multiprocessing_context": "spawn", "collate_fn": list}}
    next(iter(DataLoader({dataset}(), **options)))
"""


def test_numpy_seed_is_seed_sequences():
    seeds = random.Random(6)
    for worker in (0, 1, 300):
        base_seed = seeds.randrange(2**63)
        words = np.random.SeedSequence([worker, base_seed & 0xFFFFFFFF, base_seed >> 32]).generate_state(4)
        assert numpy_seed(base_seed, worker) == words.tolist()


def test_forked_workers_survive_threads_of_the_parents_torch():
    threads = torch.get_num_threads()
    torch.set_num_threads(4)
    torch.nn.functional.conv2d(torch.rand(2, 3, 64, 64), torch.rand(8, 3, 3, 3))
    assert as_lists(DataLoader(Squares(6), num_workers=2)) == EXPECTED
    torch.set_num_threads(threads)
