"""A table of corner cases that users of tensor libraries met: (computation, value, gradient), or an error."""

import io
import math

import pytest
from infeed import train
from infeed.train import nn

F = nn.functional
NAN, INF = math.nan, math.inf


def leaf(value, dtype=train.float32):
    return train.tensor(value, dtype=dtype, requires_grad=True)


def close(got, want):
    if isinstance(want, list):
        return len(got) == len(want) and all(close(g, w) for g, w in zip(got, want))
    return (math.isnan(got) and math.isnan(want)) or got == pytest.approx(want, abs=1e-5)


# what it shows: (input, function, value or None, gradient or None)
VALUES = {
    "the gradient of the norm at zero is zero": ([0.0, 0.0], lambda x: x.norm(), 0.0, [0.0, 0.0]),
    "a branch not taken puts no NaN into the gradient": (
        100.0,
        lambda x: train.where(x <= 0, x.exp(), 1 + x),
        101.0,
        1.0,
    ),
    "a masked element puts no NaN into the gradient": (
        [0.0, 0.0],
        lambda x: ((x - train.tensor([0.0, NAN])) ** 2)[train.tensor([True, False])],
        None,
        [0.0, 0.0],
    ),
    "abs at zero has gradient zero": ([0.0, -1.0], lambda x: x.abs(), [0.0, 1.0], [0.0, -1.0]),
    "every target ignored: the mean is NaN": (
        [[1.0, 2.0], [3.0, 4.0]],
        lambda x: F.cross_entropy(x, train.tensor([-100, -100])),
        NAN,
        None,
    ),
    "every target ignored: the sum and its gradient are zero": (
        [[1.0, 2.0], [3.0, 4.0]],
        lambda x: F.cross_entropy(x, train.tensor([-100, -100]), reduction="sum"),
        0.0,
        [[0.0, 0.0], [0.0, 0.0]],
    ),
    "label smoothing leaves ignored rows out": (
        [[1.0, 2.0], [9.0, 4.0]],
        lambda x: F.cross_entropy(x, train.tensor([0, -1]), ignore_index=-1, label_smoothing=0.2),
        1.2132617,
        None,
    ),
    "log softmax of large logits": ([[1000.0, 0.0]], lambda x: F.log_softmax(x, -1), [[0.0, -1000.0]], None),
    "a write that no saved value needs": ([1.0], lambda x: (x + 0).mul_(2), [2.0], [2.0]),
    "the mean of nothing is NaN": ([], lambda x: x.mean(), NAN, None),
    "repeated indices add their gradients": (
        [[1.0], [2.0], [3.0]],
        lambda x: F.embedding(train.tensor([0, 0, 1]), x),
        [[1.0], [1.0], [2.0]],
        [[2.0], [1.0], [0.0]],
    ),
    "the product with one zero has a gradient": ([2.0, 0.0, 3.0], lambda x: x.prod(), 0.0, [0.0, 6.0, 0.0]),
    "the product with two zeros has none": ([0.0, 0.0, 3.0], lambda x: x.prod(), 0.0, [0.0, 0.0, 0.0]),
    "the reshaped transpose copies": (
        [[1.0, 2.0], [3.0, 4.0]],
        lambda x: x.t().reshape(-1),
        [1.0, 3.0, 2.0, 4.0],
        [[1.0, 1.0], [1.0, 1.0]],
    ),
    "the power of zero is one everywhere": ([0.0, 2.0], lambda x: x**0, [1.0, 1.0], [0.0, 0.0]),
    "cumulative products pass zeros": (
        [2.0, 0.0, 3.0],
        lambda x: train.cumprod(x, 0),
        [2.0, 0.0, 0.0],
        [1.0, 8.0, 0.0],
    ),
    "logits far away lose nothing": (
        [200.0, -200.0],
        lambda x: F.binary_cross_entropy_with_logits(x, train.tensor([0.0, 1.0]), reduction="none"),
        [200.0, 200.0],
        [1.0, -1.0],
    ),
    "logsumexp of infinities": ([-INF, -INF], lambda x: x.logsumexp(-1), -INF, None),
}


@pytest.mark.parametrize("row", VALUES)
def test_values_and_gradients(row):
    data, function, value, gradient = VALUES[row]
    x = leaf(data)
    out = function(x)
    assert value is None or close(out.tolist(), value), out
    if gradient is not None:
        out.sum().backward()
        assert close(x.grad.tolist(), gradient), x.grad


ERRORS = {
    "a target outside the classes": lambda x: F.cross_entropy(x, train.tensor([0, -4]), ignore_index=-1),
    "batch norm of one value per channel": lambda x: F.batch_norm(x[:1], None, None, training=True),
    "a write to a saved result": lambda x: x.exp().add_(1).sum().backward(),
    "a write to a saved input": lambda x: (y := x * 1, z := y * y, y.add_(1), z.sum().backward()),
    "a write to a leaf": lambda x: x.add_(1),
    "a write to an expanded tensor": lambda x: train.ones(1).expand(3).add_(1),
    "a view of a transposed tensor": lambda x: x.t().view(-1),
    "a second backward": lambda x: (y := (x * x).sum(), y.backward(), y.backward()),
}


@pytest.mark.parametrize("row", ERRORS)
def test_what_pytorch_refuses_is_refused(row):
    with pytest.raises((RuntimeError, IndexError, ValueError)):
        ERRORS[row](leaf([[1.0, 2.0], [9.0, 4.0]]))


def test_gradients_are_summed_over_what_was_broadcast():
    a, b = leaf([[1.0], [2.0]]), leaf([1.0, 2.0, 3.0])
    (a + b).sum().backward()
    assert (a.grad.tolist(), b.grad.tolist()) == ([[3.0], [3.0]], [2.0, 2.0, 2.0])


def test_sums_of_bytes_wrap():
    a, b = train.tensor([200], dtype=train.uint8), train.tensor([100], dtype=train.uint8)
    assert (a + b).tolist() == [44] and (a + b).dtype is train.uint8


def test_batch_norm_keeps_the_unbiased_variance_and_uses_the_biased():
    norm = nn.BatchNorm1d(1, eps=1e-12, momentum=1.0, affine=False)
    assert close(norm(train.tensor([[1.0], [3.0]])).tolist(), [[-1.0], [1.0]])
    assert close([norm.running_mean.item(), norm.running_var.item()], [2.0, 2.0])


def test_a_clipped_gradient_has_the_norm_asked_for():
    p = leaf([0.0, 0.0])
    p.grad = train.tensor([3.0, 4.0])
    assert close(nn.utils.clip_grad_norm_([p], 1.0).item(), 5.0)
    assert p.grad.tolist() == pytest.approx([0.6, 0.8], abs=1e-4)


def stepped(name, gradients, reload_at=None, **options):
    p = leaf([1.0], train.float64)
    optimizer = getattr(train.optim, name)([p], **options)
    for number, gradient in enumerate(gradients):
        if number == reload_at:
            buffer = io.BytesIO()
            train.save((p.tolist(), optimizer.state_dict()), buffer)
            buffer.seek(0)
            value, state = train.load(buffer)
            p = leaf(value, train.float64)
            optimizer = getattr(train.optim, name)([p], **options)
            optimizer.load_state_dict(state)
        p.grad = train.tensor([gradient], dtype=train.float64)
        optimizer.step()
    return p.tolist()


def test_adam_goes_on_exactly_from_a_file():
    assert stepped("Adam", [0.5, 0.5, 0.5], reload_at=1, lr=0.1) == pytest.approx([0.7])


def test_adamw_decays_the_weight_and_not_its_moments():
    assert stepped("AdamW", [0.5], lr=0.1, weight_decay=0.1) == pytest.approx([0.89])


def test_a_state_saved_before_the_first_step_works():
    p = leaf([1.0])
    one, two = train.optim.Adam([p], lr=0.1), train.optim.Adam([p], lr=0.1)
    two.load_state_dict(one.state_dict())
    p.grad = train.tensor([0.5])
    two.step()
    assert p.tolist() == pytest.approx([0.9])


@pytest.mark.parametrize(
    ("state", "strict"),
    [({"weight": [[1.0, 2.0]], "bias": [0.0, 0.0]}, False), ({"weight": [[1.0, 2.0], [3.0, 4.0]]}, True)],
)
def test_a_state_that_does_not_fit_is_refused(state, strict):
    with pytest.raises(RuntimeError, match=r"Error\(s\) in loading state_dict for Linear"):
        nn.Linear(2, 2).load_state_dict({key: train.tensor(value) for key, value in state.items()}, strict=strict)


def test_a_cosine_schedule_is_its_closed_form_across_a_reload():
    p, rates = leaf([0.0]), []

    def made():
        optimizer = train.optim.SGD([p], lr=1.0)
        return optimizer, train.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=10)

    optimizer, schedule = made()
    for number in range(8):
        if number == 4:
            states = optimizer.state_dict(), schedule.state_dict()
            optimizer, schedule = made()
            optimizer.load_state_dict(states[0])
            schedule.load_state_dict(states[1])
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    assert rates == pytest.approx([(1 + math.cos(math.pi * number / 10)) / 2 for number in range(8)])


def test_a_set_of_parameters_has_no_order():
    with pytest.raises(TypeError, match="ordered collections"):
        train.optim.SGD({leaf([0.0])}, lr=0.1)
