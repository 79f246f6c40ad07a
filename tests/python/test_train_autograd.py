"""autograd: graphs, hooks, functions of one's own, modes, in-place writes: as PyTorch's."""

import threading
import warnings

import pytest
from infeed import train
from train_twins import both, np, same, torch


def leaf(*values):
    return train.tensor(list(values), requires_grad=True)


# ---- Graphs ----


def walked(fn):
    return (type(fn).__name__, [None if f is None else walked(f) for f, _ in fn.next_functions])


GRAPHS = {
    "arithmetic": lambda lib, x: ((x * 2 + 1) / x - x**2).sum(),
    "matrices": lambda lib, x: (x.view(2, 2) @ x.view(2, 2).t()).mean(),
    "functions": lambda lib, x: x.exp().log().sqrt().tanh().sigmoid().abs().neg().max(),
    "parts": lambda lib, x: lib.cat([x[:2], x.flip(0)]).sum() + lib.stack([x, x]).prod(),
    "linear": lambda lib, x: lib.nn.functional.linear(x.view(1, 4), lib.ones(2, 4), lib.ones(2)).relu().sum(),
    "losses": lambda lib, x: lib.nn.functional.mse_loss(x, lib.zeros(4)) + x.softmax(0)[0] + x.log_softmax(0)[1],
}


@pytest.mark.parametrize("graph", GRAPHS)
def test_graphs_have_pytorchs_nodes(graph):
    ours, theirs = both(np.array([0.5, 1.0, 1.5, 2.0], np.float32), requires_grad=True)
    assert walked(GRAPHS[graph](train, ours).grad_fn) == walked(GRAPHS[graph](torch, theirs).grad_fn)


def test_a_deep_graph_is_walked_and_freed_without_recursion():
    x = leaf(1.0)
    y = x
    for _ in range(100_000):
        y = y + 1
    y.sum().backward()
    del y
    assert x.grad.tolist() == [1.0]


def test_gradients_of_gradients():
    x, y = both(np.array([0.5, 1.5]), requires_grad=True)
    seconds = []
    for lib, t in ((train, x), (torch, y)):
        (first,) = lib.autograd.grad((t.exp() * t**3 / (1 + t)).sum(), t, create_graph=True)
        (second,) = lib.autograd.grad(first.sum(), t, create_graph=True)
        seconds.append(lib.autograd.grad(second.sum(), t)[0])
    same(*seconds)


def test_unused_inputs_give_none_or_zeros():
    x, w = leaf(1.0), leaf(2.0)
    y = (x * 2).sum()
    assert train.autograd.grad(y, [x, w], retain_graph=True, allow_unused=True)[1] is None
    assert train.autograd.grad(y, [x, w], materialize_grads=True)[1].tolist() == [0.0]


def test_backward_may_be_limited_to_some_inputs():
    x, w = leaf(1.0), leaf(2.0)
    (x * w).sum().backward(inputs=[x])
    assert x.grad.tolist() == [2.0] and w.grad is None


def test_gradcheck_finds_a_wrong_backward():
    class Wrong(train.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 3

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    x = train.tensor([1.0, 2.0], dtype=train.float64, requires_grad=True)
    assert train.autograd.gradcheck(lambda t: (t**2).sum(), x)
    with pytest.raises(RuntimeError, match="Jacobian mismatch"):
        train.autograd.gradcheck(Wrong.apply, x)


# ---- Functions ----


class Scale(train.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor, y):
        ctx.factor = factor
        ctx.save_for_backward(x, None, y)
        return x * factor, x.sum() + y

    @staticmethod
    def backward(ctx, first, second):
        _, nothing, y = ctx.saved_tensors
        assert nothing is None and ctx.needs_input_grad == (True, False, y.requires_grad)
        return first * ctx.factor + second, None, second * 1


def test_functions_take_numbers_and_return_several():
    x, y = leaf(1.0, 2.0), train.tensor(3.0, requires_grad=True)
    a, b = Scale.apply(x, 4.0, y)
    (a.sum() + 2 * b).backward()
    assert (x.grad.tolist(), y.grad.item()) == ([6.0, 6.0], 2.0)


def test_an_output_without_gradient_counts_as_zeros():
    x = leaf(1.0, 2.0)
    Scale.apply(x, 4.0, train.tensor(0.0))[0].sum().backward()
    assert x.grad.tolist() == [4.0, 4.0]


def test_saved_tensors_are_checked_and_freed():
    x = leaf(1.0)
    a, _ = Scale.apply(x, 2.0, train.tensor(0.0))
    a.sum().backward()
    with pytest.raises(RuntimeError, match="a second time"):
        a.sum().backward()
    a, _ = Scale.apply(x, 2.0, train.tensor(0.0))
    with train.no_grad():
        x.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        a.sum().backward()


def test_a_context_may_be_set_up_apart():
    class Square(train.autograd.Function):
        @staticmethod
        def forward(x):
            return x * x

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return 2 * x * grad

    x = leaf(3.0)
    Square.apply(x).sum().backward()
    assert x.grad.tolist() == [6.0]


def test_functions_are_differentiable_twice():
    class Cube(train.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return 3 * x * x * grad

    x = leaf(2.0)
    (first,) = train.autograd.grad(Cube.apply(x).sum(), x, create_graph=True)
    assert train.autograd.grad(first.sum(), x)[0].tolist() == [12.0]


def test_an_exception_in_backward_arrives_as_it_was():
    class Failing(train.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        Failing.apply(leaf(1.0)).sum().backward()


# ---- Hooks ----


def test_hooks_of_tensors_and_nodes_run_in_pytorchs_order():
    def calls(lib):
        log = []
        x = lib.tensor([1.0, 2.0], requires_grad=True)
        y = x * 3
        x.register_hook(lambda g: log.append(("leaf", g.tolist())))
        x.register_post_accumulate_grad_hook(lambda p: log.append(("after", p.grad.tolist())))
        y.register_hook(lambda g: g * 2)
        y.register_hook(lambda g: log.append(("result", g.tolist())))
        y.grad_fn.register_prehook(lambda g: log.append(("pre", g[0].tolist())))
        y.grad_fn.register_hook(lambda i, o: log.append(("node", i[0].tolist(), o[0].tolist())))
        y.retain_grad()
        y.sum().backward()
        return log, y.grad.tolist()

    assert calls(train) == calls(torch)


def test_hooks_are_refused_where_no_gradient_comes():
    with pytest.raises(RuntimeError, match="doesn't require gradient"):
        train.ones(1).register_hook(print)


# ---- Modes ----


def test_generators_are_switched_inside_only():
    @train.no_grad()
    def numbers():
        for _ in range(2):
            yield train.is_grad_enabled()

    assert [(inside, train.is_grad_enabled()) for inside in numbers()] == [(False, True)] * 2


def test_no_grad_decorates_without_parentheses():
    @train.no_grad
    def inside():
        return train.is_grad_enabled()

    @train.inference_mode
    def inferring():
        return train.is_inference_mode_enabled()

    assert (inside(), inferring(), train.is_grad_enabled()) == (False, True, True)


def test_set_grad_enabled_takes_effect_at_once():
    train.set_grad_enabled(False)
    try:
        assert not train.is_grad_enabled()
    finally:
        train.set_grad_enabled(True)


def test_modes_are_of_one_thread():
    seen = []
    with train.no_grad():
        thread = threading.Thread(target=lambda: seen.append(train.is_grad_enabled()))
        thread.start()
        thread.join()
    assert seen == [True]


def test_other_threads_run_during_backward():
    x = train.ones(1, requires_grad=True)
    reached = threading.Event()
    other = threading.Thread(target=reached.set)

    def hook(_):
        other.start()
        assert reached.wait(60)

    x.register_hook(hook)
    (x * 2).sum().backward()
    other.join()


def test_anomaly_mode_names_the_forward_call():
    x = leaf(-1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with train.autograd.detect_anomaly():
            y = x.sqrt()  # the culprit
            with pytest.raises(RuntimeError, match="returned nan values"):
                y.sum().backward()
    assert not train.is_anomaly_enabled()


# ---- In place ----

WRITES = {
    "add_": lambda lib, y: y.add_(1),
    "mul_": lambda lib, y: y.mul_(y.detach().clone()),
    "exp_": lambda lib, y: y.exp_(),
    "clamp_": lambda lib, y: y.clamp_(max=2.0),
    "zero_ of a part": lambda lib, y: y[1:].zero_(),
    "copy_": lambda lib, y: y.copy_(lib.ones(4)),
    "fill_": lambda lib, y: y[0].fill_(3.0),
    "masked_fill_": lambda lib, y: y.masked_fill_(y > 1, 0.5),
    "assignment": lambda lib, y: y.__setitem__(slice(1, 3), y[:2] * 2),
    "through a view": lambda lib, y: y.view(2, 2).t()[0].mul_(3),
    "index_add_": lambda lib, y: y.index_add_(0, lib.tensor([0, 0]), lib.ones(2)),
}


@pytest.mark.parametrize("write", WRITES)
def test_writes_are_recorded_as_pytorch_does(write):
    x, y = both(np.array([0.5, 1.0, 1.5, 2.0], np.float32), requires_grad=True)
    for lib, t in ((train, x), (torch, y)):
        result = t * 1
        WRITES[write](lib, result)
        (result * lib.arange(1.0, 5.0)).sum().backward()
    same(x.grad, y.grad)


FORBIDDEN = {
    "a leaf": lambda lib, x: x.add_(1),
    "a view of a leaf": lambda lib, x: x[0].zero_(),
    "an expanded tensor": lambda lib, x: lib.ones(1).expand(3).add_(1),
    "a saved result": lambda lib, x: x.exp().add_(1).sum().backward() or x.exp_(),
    "one of several views": lambda lib, x: (x * 1).unbind()[0].add_(1),
    "integers by floats": lambda lib, x: lib.ones(2, dtype=lib.int64).add_(1.5),
    "larger shapes": lambda lib, x: lib.ones(2).add_(lib.ones(3, 2)),
}


@pytest.mark.parametrize("write", FORBIDDEN)
def test_forbidden_writes_are_refused(write):
    texts = []
    for lib in (train, torch):
        with pytest.raises(RuntimeError) as error:
            FORBIDDEN[write](lib, lib.ones(2, requires_grad=True))
        texts.append(str(error.value)[:12])
    assert texts[0] == texts[1]
