"""infeed.Loader(device=...): the simulated accelerator, torch's memory (with stand-ins for CUDA), and the plugin over a stand-in runtime."""

import os
import subprocess
import sys

import infeed
import numpy as np
import pytest
import torch
from cuda_stand_ins import COPY_MS, accelerate_copies
from infeed import _native
from infeed.errors import ConfigError, DeviceError
from infeed.torch._native_staging import StagedIterator, Target
from native_data import checksum, golden, numbers

FAKE_RUNTIME = os.environ.get("INFEED_FAKE_CUDART", "")


@pytest.mark.parametrize("options", [{}, {"prefetch_to_device": 1}, {"prefetch_to_device": 0}, {"pin_memory": True}])
def test_what_arrives_on_the_simulated_device_is_what_the_host_gets(options):
    with infeed.Loader(golden(), 64, True, seed=3) as host:
        expected = checksum(host, epochs=2)
    with infeed.Loader(golden(), 64, True, seed=3, num_workers=2, device="simulated:0", **options) as loader:
        assert checksum(loader, epochs=2) == expected


def test_a_state_on_the_simulated_device_is_that_of_the_batches_given():
    loader = infeed.Loader(numbers(40), 4, device="simulated:0")
    iterator = iter(loader)
    taken = [next(iterator) for _ in range(3)]
    other = infeed.Loader(numbers(40), 4)
    other.load_state_dict(loader.state_dict())
    assert taken[-1]["index"].tolist() == [8, 9, 10, 11] and next(iter(other))["index"].tolist() == [12, 13, 14, 15]


def test_torch_can_have_the_simulated_devices_batches_as_tensors():
    loader = infeed.Loader(numbers(8), 4, device="simulated:0", output="torch")
    batches = [batch["index"] for batch in loader]
    assert [batch.device.type for batch in batches] == ["cpu", "cpu"] and torch.cat(batches).tolist() == list(range(8))


def test_a_mark_behind_all_streams_passes():
    event = _native.open_device("simulated:1").record_all()
    assert event.synchronize() and event.query()


def test_page_locks_are_counted_by_address():
    device, memory = _native.open_device("simulated:1"), np.zeros(1 << 16, np.uint8)
    device.register_host(memory.ctypes.data, memory.nbytes)
    assert device.is_registered(memory.ctypes.data, memory.nbytes)
    device.unregister_host(memory.ctypes.data)
    assert not device.is_registered(memory.ctypes.data, memory.nbytes)


def test_numpy_has_no_arrays_on_a_gpu():
    with pytest.raises(ConfigError, match=r'use output="torch", or prefetch_to_device=0'):
        infeed.Loader(numbers(8), device="cuda:0")


@pytest.mark.skipif(torch.cuda.is_available(), reason="torch has a GPU")
def test_without_cuda_the_error_says_what_works():
    with pytest.raises(DeviceError, match="Loaders without a device work"):
        infeed.Loader(numbers(8), device="cuda:0", output="torch")


@pytest.mark.skipif(torch.cuda.is_available(), reason="torch has a GPU")
@pytest.mark.parametrize("device", [0, np.int64(0), "cuda", torch.device("cuda"), torch.device("cuda", 0)])
def test_a_gpu_may_be_named_in_any_way_that_pytorch_knows(device):
    with pytest.raises(DeviceError, match="device is 'cuda"):
        infeed.Loader(numbers(8), device=device, output="torch")


@pytest.mark.parametrize("ahead", [None, 1.0, "2"])
@pytest.mark.parametrize("device", [None, "cuda:0", "simulated:0"])
def test_a_number_of_batches_ahead_that_is_none_is_named(device, ahead):
    with pytest.raises(TypeError, match=f"prefetch_to_device cannot be {ahead!r}"):
        infeed.Loader(numbers(8), device=device, prefetch_to_device=ahead)


@pytest.mark.parametrize("device", ["gpu!", "cpu:1", True])
def test_what_is_no_device_is_refused(device):
    with pytest.raises(ConfigError, match="is no device"):
        infeed.Loader(numbers(8), device=device)


@pytest.fixture
def staged(monkeypatch):
    sides = accelerate_copies(monkeypatch)
    loader = infeed.Loader(numbers(20), 4, num_workers=2, output="torch")
    return loader, StagedIterator(loader._native, Target("cuda:0", 2, None).staging()), sides[0]


def test_copies_of_all_epochs_are_counted_beside_the_loaders_own_figures(monkeypatch):
    accelerate_copies(monkeypatch)
    loader, target = infeed.Loader(numbers(20), 4, output="torch"), Target("cuda:0", 2, None)
    for _ in range(2):
        list(StagedIterator(loader._native, target.staging()))
    target.transfers.settle()
    times = loader.stats()
    target.transfers.show(times)
    assert (times.staging.batches, times.staging.bytes) == (10, 2 * 20 * 8)
    assert times.staging.copy_s == pytest.approx(10 * COPY_MS / 1000) and times.staging.elapsed_s == times.elapsed_s


def test_copies_of_the_engine_are_counted_and_forgotten():
    loader = infeed.Loader(numbers(20), 4, device="simulated:0")
    list(loader)
    assert (loader.stats().staging.batches, loader.stats().staging.bytes) == (5, 20 * 8)
    loader.reset_stats()
    assert loader.stats().staging.batches == 0 and infeed.Loader(numbers(20), 4).stats().staging is None


def test_a_compute_stream_needs_a_gpu_to_be_of():
    with pytest.raises(ConfigError, match="no batches are copied to a GPU"):
        infeed.Loader(numbers(8), device="simulated:0", compute_stream=object())


def test_batches_in_torchs_memory_keep_order_type_and_indices(staged):
    _, iterator, side = staged
    batches = list(iterator)
    side.finish()
    assert [batch["index"].tolist() for batch in batches] == [batch.indices for batch in batches]
    assert [batch.number for batch in batches] == [0, 1, 2, 3, 4]


def test_the_position_is_that_of_the_batch_given_until_the_end(staged):
    loader, iterator, _ = staged
    next(iterator)
    state, epoch = iterator.position
    other = infeed.Loader(numbers(20), 4)
    other._native.load_state_dict(state)
    assert next(iter(other))["index"].tolist() == [4, 5, 6, 7] and epoch == 0
    assert len(list(iterator)) == 4 and iterator.position is None and loader.epoch == 1


PROGRAM = """
import infeed, gc, sys
import numpy as np
from infeed import _native
from infeed.datasets import ArrayDataset
loader = infeed.Loader(ArrayDataset({"x": np.arange(4096.0)}), 64, num_workers=2, pin_memory=True)
device = _native.open_device("cuda:0")
total = 0.0
for batch in loader:
    x = batch["x"]
    assert device.is_registered(x.ctypes.data, x.nbytes)
    total += x.sum()
    del batch, x
assert loader.stats().staging.registrations > 0
event = device.record_all()
event.synchronize()
assert event.query() and total == np.arange(4096.0).sum()
loader.close()
del loader, device, event
gc.collect()
"""


@pytest.mark.skipif(not os.path.exists(FAKE_RUNTIME), reason="the stand-in for CUDA's runtime is not built")
def test_page_locked_batches_over_the_plugin_and_a_strict_stand_in_runtime():
    environment = {**os.environ, "LD_PRELOAD": FAKE_RUNTIME}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, check=False, text=True, timeout=300
    )
    assert (done.returncode, done.stderr) == (0, "")
