"""What a user may do wrong, and values at the edge: PyTorch's answer, and never memory of others or a hang."""

import os
import signal

import pytest
from infeed import train
from infeed.train import nn, optim
from train_twins import both, np, same, same_error, torch

REFUSED = {
    "more bytes than 64 bits count": lambda lib: lib.empty(2**62),
    "an endless range": lambda lib: lib.arange(0, float("inf")),
    "NaN as an int": lambda lib: int(lib.tensor(float("nan"))),
    "infinity as an int": lambda lib: int(lib.tensor(float("inf"))),
    "weights of other classes": lambda lib: lib.nn.functional.cross_entropy(
        lib.zeros(2, 3), lib.tensor([0, 1]), weight=lib.zeros(2)
    ),
    "a class beyond the last": lambda lib: lib.nn.functional.one_hot(lib.tensor([0, 3]), 2),
    "a negative class": lambda lib: lib.nn.functional.one_hot(lib.tensor([-1])),
    "parts of negative size": lambda lib: lib.zeros(5).split(-1),
    "a recurrent input of another width": lambda lib: lib.nn.LSTM(3, 4)(lib.zeros(5, 2, 4)),
    "a recurrent input of four dimensions": lambda lib: lib.nn.GRU(3, 4)(lib.zeros(1, 5, 2, 3)),
    "no time steps": lambda lib: lib.nn.LSTM(3, 4)(lib.zeros(0, 2, 3)),
    "a state of another batch": lambda lib: lib.nn.LSTM(3, 4)(
        lib.zeros(5, 2, 3), (lib.zeros(1, 2, 4), lib.zeros(1, 3, 4))
    ),
    "a batch of states for one sequence": lambda lib: lib.nn.GRU(3, 4)(lib.zeros(5, 3), lib.zeros(1, 1, 4)),
    "no hidden units": lambda lib: lib.nn.GRU(3, 0),
}


@pytest.mark.parametrize("run", REFUSED.values(), ids=REFUSED)
def test_refused_as_by_pytorch(run):
    ours, theirs = same_error(run)
    assert ours[:30] == theirs[:30]


MASKS = {
    "too small": lambda lib: lib.ones(2, 2, dtype=lib.bool),
    "of too many heads": lambda lib: lib.ones(3, 3, 3, dtype=lib.bool),
    "of integers": lambda lib: lib.ones(3, 3, dtype=lib.int64),
    "of doubles": lambda lib: lib.ones(3, 3, dtype=lib.float64),
}


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
def test_a_mask_that_does_not_fit_is_refused(mask):
    x = lambda lib: lib.ones(1, 2, 3, 4)
    same_error(lambda lib: lib.nn.functional.scaled_dot_product_attention(x(lib), x(lib), x(lib), attn_mask=mask(lib)))


@pytest.mark.parametrize("make", [lambda p: optim.SGD(p, momentum=0.9), optim.Adam, optim.Adagrad, optim.RMSprop])
def test_the_state_of_another_model_is_refused_at_the_step(make):
    small, large = nn.Parameter(train.ones(2)), nn.Parameter(train.ones(3))
    trained, resumed = make([small]), make([large])
    small.grad, large.grad = train.ones(2), train.ones(3)
    trained.step()
    resumed.load_state_dict(trained.state_dict())
    with pytest.raises(RuntimeError, match=r"shape \[2\], its parameter \[3\]"):
        resumed.step()


@pytest.mark.parametrize("shapes", [((3, 2, 0), (0, 4)), ((3, 1, 2, 3), (2, 3, 0)), ((0, 2, 3), (3, 4))], ids=str)
def test_products_without_elements_have_pytorchs_shape(shapes):
    a, b = shapes
    same(train.ones(a) @ train.ones(b), torch.ones(a) @ torch.ones(b))


@pytest.mark.parametrize("dim", [0, 1, None])
def test_a_product_with_zeros_is_differentiable_twice(dim):
    x, y = both(np.array([[0.0, 2.0, 3.0], [4.0, 0.0, 1.0]]), requires_grad=True)
    for lib, t in ((train, x), (torch, y)):
        product = t.prod() if dim is None else t.prod(dim)
        (g,) = lib.autograd.grad(product.sum(), t, create_graph=True)
        (g * lib.arange(6.0).view(2, 3)).sum().backward()
    same(x.grad, y.grad)


def test_nan_gets_no_gradient_from_clamp():
    x, y = both(np.array([np.nan, 0.0, 2.0, 4.0]), requires_grad=True)
    for t in (x, y):
        t.clamp(1, 3).sum().backward()
    same(x.grad, y.grad)


def test_a_number_may_be_flipped():
    assert train.tensor(2.0).flip(0) == 2.0


def step_of(model, x):
    model(x).sum().backward()
    return model[0].weight.grad.clone()


def test_the_child_of_a_fork_trains_after_its_parent_has():
    model = nn.Sequential(nn.Conv2d(3, 16, 3), nn.ReLU(), nn.Flatten(), nn.Linear(16 * 30 * 30, 10))
    x = train.ones(8, 3, 32, 32)
    step_of(model, x)
    child = os.fork()
    if child == 0:
        signal.alarm(60)  # a hang becomes a signal
        os._exit(0 if step_of(model, x).isfinite().all() else 1)
    assert os.waitpid(child, 0)[1] == 0
