"""amp: which operations autocast lowers, how the scaler works."""

import math

import pytest
from infeed import train
from infeed.train import amp, nn
from train_twins import torch

OPERATIONS = {
    "matmul": lambda lib, x: x @ x,
    "mm": lambda lib, x: lib.mm(x, x),
    "bmm": lambda lib, x: lib.bmm(x[None], x[None]),
    "addmm": lambda lib, x: lib.addmm(x, x, x),
    "linear": lambda lib, x: lib.nn.functional.linear(x, x),
    "conv1d": lambda lib, x: lib.nn.functional.conv1d(x[None], x[:, :, None]),
    "conv2d": lambda lib, x: lib.nn.functional.conv2d(x[None, None], x[None, None]),
    "attention": lambda lib, x: lib.nn.functional.scaled_dot_product_attention(x[None], x[None], x[None]),
    "softmax": lambda lib, x: x.softmax(-1),
    "layer_norm": lambda lib, x: lib.nn.functional.layer_norm(x, (4,)),
    "sum": lambda lib, x: x.sum(),
    "exp": lambda lib, x: x.exp(),
    "add": lambda lib, x: x + x.bfloat16(),
    "mse_loss": lambda lib, x: lib.nn.functional.mse_loss(x, x),
    "smooth_l1_loss": lambda lib, x: lib.nn.functional.smooth_l1_loss(x, x),
    "cross_entropy": lambda lib, x: lib.nn.functional.cross_entropy(x, lib.tensor([0, 1, 2, 3])),
    "nll_loss": lambda lib, x: lib.nn.functional.nll_loss(x, lib.tensor([0, 1, 2, 3])),
    "cat": lambda lib, x: lib.cat([x, x.bfloat16()]),
    "prod": lambda lib, x: x.prod(),
}


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("low", [False, True])
def test_dtypes_under_autocast_are_pytorchs(operation, low):
    kinds = []
    for lib in (train, torch):
        x = lib.ones(4, 4)
        x = x.bfloat16() if low else x
        with lib.amp.autocast("cpu", dtype=lib.bfloat16):
            kinds.append(str(OPERATIONS[operation](lib, x).dtype).partition(".")[2])
    assert kinds[0] == kinds[1]


def test_autocast_decorates_nests_and_ends_with_exceptions():
    @amp.autocast("cpu")
    def product(x):
        with amp.autocast("cpu", enabled=False):
            inner = (x @ x).dtype
        return inner, (x @ x).dtype

    assert product(train.ones(2, 2)) == (train.float32, train.bfloat16)
    with pytest.raises(KeyError), amp.autocast("cpu"):
        raise KeyError
    assert not train.is_autocast_enabled("cpu")


def test_float64_is_left_alone():
    x = train.ones(2, 2, dtype=train.float64)
    with amp.autocast("cpu"):
        assert (x @ x).dtype is train.float64


def test_gradients_accumulate_and_steps_are_seen_within_one_autocast():
    w = nn.Parameter(train.ones(2, 2))
    optimizer = train.optim.SGD([w], lr=0.5)
    x = train.eye(2)
    with amp.autocast("cpu"):
        for _ in range(2):
            (x @ w).sum().backward()
        assert w.grad.tolist() == [[2.0, 2.0], [2.0, 2.0]]
        optimizer.step()
        assert (x @ w).tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_autocast_for_cuda_is_disabled_with_a_warning():
    with pytest.warns(UserWarning, match="CUDA is not available"), train.autocast("cuda"):
        assert (train.ones(2, 2) @ train.ones(2, 2)).dtype is train.float32


def scaled(**options):
    p = nn.Parameter(train.ones(2))
    return p, train.optim.SGD([p], lr=1.0), amp.GradScaler("cpu", **options)


def cycle(p, optimizer, scaler, factor=1.0):
    optimizer.zero_grad()
    scaler.scale((p * factor).sum()).backward()
    scaler.step(optimizer)
    scaler.update()


def test_nested_outputs_are_scaled():
    _, _, scaler = scaled(init_scale=4.0)
    a, (b,) = scaler.scale((train.ones(1), [train.ones(1)]))
    assert (a.item(), b.item()) == (4.0, 4.0)


def test_half_losses_do_not_overflow_when_scaled():
    _, _, scaler = scaled()
    assert scaler.scale(train.tensor(2.0).half()).item() == 131072.0


def test_each_optimizer_skips_for_itself():
    p, one, scaler = scaled(init_scale=2.0)
    q = nn.Parameter(train.ones(1))
    two = train.optim.SGD([q], lr=1.0)
    scaler.scale((p * math.inf).sum() + q.sum()).backward()
    scaler.step(one)
    scaler.step(two)
    scaler.update()
    assert (p.tolist(), q.tolist(), scaler.get_scale()) == ([1.0, 1.0], [0.0], 1.0)


def test_a_step_that_cannot_be_taken_twice():
    p, optimizer, scaler = scaled()
    scaler.scale(p.sum()).backward()
    scaler.step(optimizer)
    with pytest.raises(RuntimeError, match=r"step\(\) has already been called since the last update\(\)"):
        scaler.step(optimizer)


def test_the_scale_falls_and_grows():
    p, optimizer, scaler = scaled(init_scale=8.0, growth_interval=2)
    scales = []
    for factor in (1.0, 1.0, math.inf, 1.0, 1.0):
        cycle(p, optimizer, scaler, factor)
        scales.append(scaler.get_scale())
    assert scales == [8.0, 16.0, 8.0, 8.0, 16.0]


def test_the_scaler_resumes():
    p, optimizer, scaler = scaled(growth_interval=2)
    cycle(p, optimizer, scaler)
    other = amp.GradScaler("cpu", init_scale=2.0)
    other.load_state_dict(scaler.state_dict())
    cycle(p, optimizer, scaler)
    cycle(p, optimizer, other)
    assert scaler.state_dict() == other.state_dict()
    with pytest.raises(RuntimeError, match="source state dict is empty"):
        other.load_state_dict({})


def test_half_gradients_are_refused():
    p, optimizer, scaler = scaled()
    scaler.scale(p.sum())
    p.data = p.data.half()
    p.grad = train.ones(2).half()
    with pytest.raises(ValueError, match="Attempting to unscale FP16 gradients"):
        scaler.unscale_(optimizer)


def test_a_model_trains_in_bfloat16():
    train.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
    optimizer, scaler = train.optim.Adam(net.parameters(), lr=0.01), amp.GradScaler("cpu")
    x = train.randn(64, 4)
    losses = []
    for _ in range(60):
        optimizer.zero_grad()
        with amp.autocast("cpu"):
            loss = nn.functional.mse_loss(net(x).squeeze(1), x.sum(1))
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    assert losses[-1] < 0.2 * losses[0]
    assert {p.dtype for p in net.parameters()} == {train.float32}
