"""The arrays of a batch: views of the loader's memory, for NumPy, torch and DLPack."""

from __future__ import annotations

import copy
import gc
import pickle
import subprocess
import threading

import infeed
import numpy as np
import pytest
from infeed.datasets import Synthetic
from native_data import numbers, python

FIELDS = {"x": ("float32", (3, 4)), "y": "int64"}
DTYPES = ["bool", "uint8", "int8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32"]


def held(loader: infeed.Loader) -> int:
    gc.collect()
    return loader.stats().batches_held


def test_memory_goes_home_with_the_last_view_in_any_order():
    loader = infeed.Loader(Synthetic(40, FIELDS), 4)
    batches = list(loader)
    assert held(loader) == 10
    views = [batch["x"][1:, ::2] for batch in batches[:3]]
    del batches[5:], batches[1]
    assert held(loader) == 5
    batches.clear()
    assert held(loader) == 3
    views.clear()
    assert held(loader) == 0


def test_memory_goes_home_from_other_threads():
    loader = infeed.Loader(Synthetic(40, FIELDS), 4, num_workers=2)
    batches = list(loader)
    threads = [threading.Thread(target=batches.pop) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert held(loader) == 0


@pytest.mark.parametrize("kind", ["thread", "fork", "spawn"])
def test_arrays_are_writable_and_outlive_their_loader(kind):
    dataset = Synthetic(40, FIELDS)
    with infeed.Loader(dataset, 4, num_workers=2, worker_kind=kind) as loader:
        batches = list(loader)
    del loader
    assert all(np.array_equal(batch["x"][2], dataset[batch.indices[2]]["x"]) for batch in batches)
    batches[0]["x"] += 1
    assert np.array_equal(batches[0]["x"][2], dataset[2]["x"] + 1)
    assert np.array_equal(batches[1]["x"][0], dataset[4]["x"])


@pytest.mark.parametrize("dtype", [*DTYPES, "float64"])
def test_every_dtype_comes_as_numpys(dtype):
    batch = next(iter(infeed.Loader(Synthetic(4, {"x": (dtype, (2, 3))}), 4)))
    assert batch["x"].dtype == np.dtype(dtype)
    assert batch["x"].shape == (4, 2, 3)
    assert batch["x"].flags.c_contiguous and batch["x"].flags.aligned and batch["x"].flags.writeable


def test_bfloat16_is_refused_where_numpy_has_none():
    dataset = Synthetic(4, {"x": ("bfloat16", (2,))})
    with pytest.raises(infeed.ConfigError, match="'x' is bfloat16"):
        infeed.Loader(dataset)
    array = next(iter(infeed.Loader(dataset, output="dlpack")))["x"]
    with pytest.raises(BufferError, match="bfloat16"):
        memoryview(array)


def test_torch_tensors_view_the_same_memory():
    torch = pytest.importorskip("torch")
    dataset = Synthetic(40, {"x": ("bfloat16", (3, 4)), "y": "int64"})
    loader = infeed.Loader(dataset, 4, output="torch", num_workers=2)
    batches = list(loader)
    assert batches[0]["x"].dtype == torch.bfloat16
    assert batches[3]["y"].tolist() == batches[3].indices
    kept = batches[1]["x"].view(-1)[3:]
    batches.clear()
    assert held(loader) == 1
    kept.zero_()
    del kept
    assert held(loader) == 0


def test_torch_takes_part_in_autograd():
    torch = pytest.importorskip("torch")
    batch = next(iter(infeed.Loader(Synthetic(4, FIELDS), 4, output="torch")))
    weight = torch.ones(4, requires_grad=True)
    (batch["x"] @ weight).sum().backward()
    assert torch.equal(weight.grad, batch["x"].sum((0, 1)))


def test_plain_arrays_speak_dlpack_and_buffers():
    loader = infeed.Loader(Synthetic(4, FIELDS), 4, output="dlpack")
    batch = next(iter(loader))
    array = batch["x"]
    assert (array.shape, array.strides, array.dtype, array.nbytes, len(array)) == (
        (4, 3, 4),
        (12, 4, 1),
        "float32",
        192,
        4,
    )
    assert array.__dlpack_device__() == (1, 0)
    seen = np.from_dlpack(array)
    memoryview(array)[0, 0, 0] = 7.0
    assert seen[0, 0, 0] == 7.0
    del array, batch
    assert held(loader) == 1
    del seen
    assert held(loader) == 0


def test_capsules_that_nobody_takes_free_their_memory():
    loader = infeed.Loader(numbers(4), 4, output="dlpack")
    batch = next(iter(loader))
    capsules = [batch["index"].__dlpack__(), batch["index"].__dlpack__(max_version=(1, 0))]
    copied = np.from_dlpack(batch["index"], copy=True)
    del batch
    assert held(loader) == 1
    capsules.clear()
    assert held(loader) == 0
    assert copied.tolist() == [0, 1, 2, 3]


def test_tuples_come_in_the_order_of_the_fields():
    loader = infeed.Loader(Synthetic(8, FIELDS), 4, as_tuple=True)
    x, y = batch = next(iter(loader))
    assert isinstance(batch, tuple) and isinstance(batch, infeed.BatchTuple)
    assert (x.shape, y.tolist(), batch.indices, batch.number) == ((4, 3, 4), [0, 1, 2, 3], [0, 1, 2, 3], 0)


@pytest.mark.parametrize("as_tuple", [False, True])
def test_batches_are_copied_and_pickled_with_what_they_tell(as_tuple):
    batch = next(iter(infeed.Loader(Synthetic(8, FIELDS), 4, as_tuple=as_tuple)))
    for other in (copy.deepcopy(batch), pickle.loads(pickle.dumps(batch))):
        assert type(other) is type(batch)
        assert other.indices == batch.indices
        assert np.array_equal(other[1 if as_tuple else "y"], batch[1 if as_tuple else "y"])


BLOCKED = """
import sys
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {blocked}: raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Blocker())
import infeed
assert not {{"numpy", "torch"}} & set(sys.modules)
dataset = infeed.datasets.Synthetic(10, {{"index": "int64", "x": ("float32", (3,))}})
for kind in "thread", "fork", "spawn":
    with infeed.Loader(dataset, 4, output="{output}", num_workers=2, worker_kind=kind) as loader:
        got = [list(memoryview(batch["index"])) for batch in loader]
        assert got == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]], got
assert not {blocked} & set(sys.modules)
"""


@pytest.mark.parametrize(
    ("blocked", "output"), [({"torch"}, "numpy"), ({"torch", "numpy"}, "dlpack"), ({"torch"}, "dlpack")]
)
def test_it_works_without(blocked, output):
    done = subprocess.run(
        python("-c", BLOCKED.format(blocked=blocked, output=output)), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_what_is_missing_is_an_import_error():
    script = BLOCKED.format(blocked={"torch", "numpy"}, output="torch")
    done = subprocess.run(python("-c", script), capture_output=True, text=True, check=False)
    assert "No module named 'torch'" in done.stderr
