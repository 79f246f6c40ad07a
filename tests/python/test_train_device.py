"""Tensors on a device, the simulated one: moving, computing, training, saving, and what is refused."""

import os
import subprocess
import sys

import pytest
from infeed import train
from infeed.train import nn, optim

HERE, THERE = "cpu", "simulated:0"


def losses(make_model, make_optimizer, device):
    train.manual_seed(1)
    model = make_model().to(device)
    optimizer = make_optimizer(model.parameters())
    x, labels = train.randn(6, 2, 6, 6, device=device), train.tensor([0, 1, 2, 0, 1, 2], device=device)
    return [step(model, optimizer, x, labels) for _ in range(6)]


def step(model, optimizer, x, labels):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), labels)
    loss.backward()
    optimizer.step()
    return loss.item()


def perceptron():
    return nn.Sequential(nn.Flatten(), nn.Linear(72, 16), nn.ReLU(), nn.Linear(16, 3))


def convolutional():
    return nn.Sequential(
        nn.Conv2d(2, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 3)
    )


@pytest.mark.parametrize("model", [perceptron, convolutional])
@pytest.mark.parametrize(
    "optimizer", [lambda p: optim.SGD(p, lr=0.1, momentum=0.9), lambda p: optim.AdamW(p, lr=0.01)], ids=["SGD", "AdamW"]
)
def test_models_train_as_on_the_cpu(model, optimizer):
    assert losses(model, optimizer, THERE) == pytest.approx(losses(model, optimizer, HERE), abs=1e-4)


def test_tensors_are_made_moved_and_read():
    x = train.ones(2, 3, device=THERE)
    assert (x.device, x.is_cpu) == (train.device(THERE), False)
    assert (x * 2 + train.zeros(3).to(x)).tolist() == [[2.0] * 3] * 2
    assert x.sum().item() == 6.0
    assert repr(train.tensor([1.5], device=THERE)) == "tensor([1.5000], device='simulated:0')"
    assert x.cpu().numpy().shape == (2, 3)


def test_a_module_and_its_states_move_between_devices(tmp_path):
    model = perceptron().to(THERE)
    assert {p.device for p in model.parameters()} == {train.device(THERE)}
    train.save(model.state_dict(), tmp_path / "model.safetensors")
    back = perceptron()
    back.load_state_dict(train.load(tmp_path / "model.safetensors"))
    assert all(train.equal(a.cpu(), b) for a, b in zip(model.parameters(), back.parameters(), strict=True))


@pytest.mark.parametrize(
    ("call", "names"),
    [
        (lambda x: x.sort(), "sort"),
        (lambda x: x.to(train.bfloat16), "bfloat16"),
        (lambda x: x % 0.3, "remainder"),
    ],
)
def test_what_a_device_does_not_compute_is_refused_by_name(call, names):
    with pytest.raises(NotImplementedError) as refusal:
        call(train.ones(2, 2, device=THERE))
    assert all(name in str(refusal.value) for name in (names, THERE, ".cpu()"))


def test_devices_do_not_mix():
    with pytest.raises(RuntimeError, match="simulated:0 and cpu"):
        train.ones(2, device=THERE) + train.ones(2)
    with pytest.raises(TypeError, match=r"Tensor.cpu\(\)"):
        train.ones(2, device=THERE).numpy()
    with pytest.raises(BufferError):
        train.ones(2, device=THERE).__dlpack__()


def test_memory_is_counted_and_given_back():
    x = train.ones(1000, device=THERE)
    assert train.device_memory_stats(THERE)["in_use_bytes"] >= 4000
    del x
    train.synchronize(THERE)
    train.empty_device_cache(THERE)
    assert train.device_memory_stats(THERE)["cached_bytes"] == 0


def test_a_cuda_device_that_is_missing_is_an_assertion_error_that_says_what_is():
    code = "from infeed import train; assert not train.cuda.is_available(); train.ones(2, device='cuda')"
    ran = subprocess.run(
        [sys.executable, "-c", code],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
    )
    assert "AssertionError: infeed.train not compiled with CUDA enabled, or no such device: cuda:0" in ran.stderr
