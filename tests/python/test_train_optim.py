"""optim: steps, schedules, averages and states against PyTorch's."""

import copy
import io
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from infeed import train
from infeed.train import nn
from train_twins import both, np, same, same_error, torch

OPTIMIZERS = {
    "SGD": [
        {"lr": 0.1},
        {"lr": 0.1, "momentum": 0.9, "dampening": 0.2, "weight_decay": 0.1},
        {"lr": 0.1, "momentum": 0.9, "nesterov": True},
        {"lr": 0.1, "maximize": True},
    ],
    "Adam": [
        {"lr": 0.01},
        {"lr": 0.01, "amsgrad": True, "weight_decay": 0.1},
        {"lr": 0.01, "betas": (0.5, 0.7), "eps": 1e-3, "maximize": True},
    ],
    "AdamW": [{"lr": 0.01}, {"lr": 0.01, "weight_decay": 0.3, "amsgrad": True}],
    "Adagrad": [{"lr": 0.1}, {"lr": 0.1, "lr_decay": 0.1, "weight_decay": 0.1, "initial_accumulator_value": 0.5}],
    "RMSprop": [{"lr": 0.01}, {"lr": 0.01, "momentum": 0.9, "centered": True, "weight_decay": 0.1}],
}
CASES = [(name, options) for name, several in OPTIMIZERS.items() for options in several]


def runs(name, options, dtype="float32", shape=(3, 5)):
    values = np.random.default_rng(0).standard_normal(shape)
    params = both(values, dtype, requires_grad=True)
    return [(lib, param, getattr(lib.optim, name)([param], **options)) for lib, param in zip((train, torch), params)]


def step(lib, param, optimizer, number):
    gradient = np.cos(np.arange(param.numel(), dtype=np.float64).reshape(tuple(param.shape)) * (number + 1))
    param.grad = lib.from_numpy(gradient).to(param.dtype)
    optimizer.step()


@pytest.mark.parametrize(("name", "options"), CASES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_steps_are_pytorchs(name, options, dtype):
    ours, theirs = runs(name, options, dtype)
    for number in range(5):
        step(*ours, number)
        step(*theirs, number)
    same(ours[1], theirs[1])
    for key, value in theirs[2].state[theirs[1]].items():
        if torch.is_tensor(value):
            same(ours[2].state[ours[1]][key], value, key)


@pytest.mark.parametrize(("name", "options"), CASES)
def test_a_saved_state_goes_on_identically(name, options):
    (lib, param, optimizer), _ = runs(name, options)
    for number in range(3):
        step(lib, param, optimizer, number)
    buffer = io.BytesIO()
    train.save((param.detach(), optimizer.state_dict()), buffer)
    buffer.seek(0)
    value, state = train.load(buffer)
    other = value.clone().requires_grad_()
    resumed = type(optimizer)([other], **options)
    resumed.load_state_dict(state)
    for number in range(3, 6):
        step(lib, param, optimizer, number)
        step(lib, other, resumed, number)
    assert train.equal(param, other)


def test_a_state_of_torch_is_taken_over():
    (_, mine, ours), (_, other, theirs) = runs("Adam", {"lr": 0.01})
    step(torch, other, theirs, 0)
    state = copy.deepcopy(theirs.state_dict())
    state["state"][0] = {key: train.from_numpy(value.numpy()) for key, value in state["state"][0].items()}
    ours.load_state_dict(state)
    with train.no_grad():
        mine.copy_(train.from_numpy(other.detach().numpy()))
    step(train, mine, ours, 1)
    step(torch, other, theirs, 1)
    same(mine, other)


@given(
    sizes=st.lists(st.integers(0, 40_000), min_size=1, max_size=5),
    transposed=st.booleans(),
    name=st.sampled_from(sorted(OPTIMIZERS)),
)
def test_many_parameters_of_any_size_and_layout(sizes, transposed, name):
    params, gradients = [], []
    for size in sizes:
        values = np.linspace(-1, 1, 2 * size).reshape(2, size)
        params.append(both(values.T if transposed else values, "float32", requires_grad=True))
        gradients.append(both(np.sin(np.asarray(params[-1][1].detach())), "float32"))
    for which, lib in enumerate((train, torch)):
        optimizer = getattr(lib.optim, name)([pair[which] for pair in params], lr=0.1)
        for pair, gradient in zip(params, gradients):
            pair[which].grad = gradient[which]
        optimizer.step()
    for mine, other in params:
        same(mine, other)


WRONG = [
    ("SGD", {"lr": -1.0}),
    ("SGD", {"momentum": -0.1}),
    ("SGD", {"weight_decay": -1.0}),
    ("SGD", {"nesterov": True}),
    ("Adam", {"betas": (1.0, 0.9)}),
    ("Adam", {"eps": -1.0}),
    ("RMSprop", {"alpha": -1.0}),
    ("Adagrad", {"lr_decay": -1.0}),
]


@pytest.mark.parametrize(("name", "options"), WRONG)
def test_wrong_options_are_refused_as_pytorch_does(name, options):
    p = {lib: lib.ones(1, requires_grad=True) for lib in (train, torch)}
    ours, theirs = same_error(lambda lib: getattr(lib.optim, name)([p[lib]], **options))
    assert ours == theirs


def test_states_of_other_groups_are_refused():
    a, b = train.ones(1, requires_grad=True), train.ones(1, requires_grad=True)
    one, two = train.optim.Adam([a]), train.optim.Adam([{"params": [a]}, {"params": [b]}])
    with pytest.raises(ValueError, match="different number of parameter groups"):
        two.load_state_dict(one.state_dict())
    with pytest.raises(ValueError, match="doesn't match the size of optimizer's group"):
        train.optim.Adam([a, b]).load_state_dict(one.state_dict())


def test_a_closure_is_recorded_and_its_loss_returned():
    p = nn.Parameter(train.ones(1))
    optimizer = train.optim.SGD([p], lr=0.5)

    def closure():
        optimizer.zero_grad()
        loss = (p * p).sum()
        loss.backward()
        return loss

    assert optimizer.step(closure).item() == 1.0 and p.item() == 0.0


def test_hooks_run_around_a_step():
    p, log = nn.Parameter(train.ones(1)), []
    optimizer = train.optim.SGD([p])
    optimizer.register_step_pre_hook(lambda *_: log.append("before"))
    handle = optimizer.register_step_post_hook(lambda *_: log.append("after"))
    optimizer.step()
    handle.remove()
    optimizer.step()
    assert log == ["before", "after", "before"]


def test_a_step_is_seen_by_the_graph():
    p = nn.Parameter(train.ones(2))
    loss = (p * p).sum()
    p.grad = train.ones(2)
    train.optim.SGD([p], lr=0.1).step()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


# ---- Schedules ----

SCHEDULES = {
    "StepLR": lambda s, o: s.StepLR(o, 3, 0.5),
    "MultiStepLR": lambda s, o: s.MultiStepLR(o, [2, 2, 7], 0.3),
    "ExponentialLR": lambda s, o: s.ExponentialLR(o, 0.9),
    "CosineAnnealingLR": lambda s, o: s.CosineAnnealingLR(o, 5, 0.01),
    "CosineAnnealingWarmRestarts": lambda s, o: s.CosineAnnealingWarmRestarts(o, 3, 2, 0.01),
    "LinearLR": lambda s, o: s.LinearLR(o, 0.2, 0.9, 6),
    "ConstantLR": lambda s, o: s.ConstantLR(o, 0.5, 4),
    "PolynomialLR": lambda s, o: s.PolynomialLR(o, 8, 2.0),
    "LambdaLR": lambda s, o: s.LambdaLR(o, lambda epoch: 0.95**epoch),
    "MultiplicativeLR": lambda s, o: s.MultiplicativeLR(o, lambda epoch: 0.9),
    "OneCycleLR": lambda s, o: s.OneCycleLR(o, 1.0, 20),
    "OneCycleLR of three phases": lambda s, o: s.OneCycleLR(
        o, 1.0, epochs=5, steps_per_epoch=4, anneal_strategy="linear", three_phase=True
    ),
    "SequentialLR": lambda s, o: s.SequentialLR(o, [s.LinearLR(o, 0.1, 1.0, 4), s.CosineAnnealingLR(o, 10)], [4]),
    "ChainedScheduler": lambda s, o: s.ChainedScheduler([s.ConstantLR(o, 0.1, 3), s.ExponentialLR(o, 0.9)]),
}


def optimizers():
    return [lib.optim.SGD([lib.ones(1, requires_grad=True)], lr=0.4, momentum=0.9) for lib in (train, torch)]


def rates(scheduler, optimizer, steps):
    seen = []
    for _ in range(steps):
        seen.append((optimizer.param_groups[0]["lr"], optimizer.param_groups[0]["momentum"], *scheduler.get_last_lr()))
        optimizer.step()
        scheduler.step()
    return seen


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_rates_are_pytorchs(schedule):
    ours, theirs = optimizers()
    mine = SCHEDULES[schedule](train.optim.lr_scheduler, ours)
    other = SCHEDULES[schedule](torch.optim.lr_scheduler, theirs)
    np.testing.assert_allclose(rates(mine, ours, 18), rates(other, theirs, 18), rtol=1e-12)


@pytest.mark.parametrize("schedule", sorted(set(SCHEDULES) - {"LambdaLR", "MultiplicativeLR"}))
def test_a_schedule_resumes(schedule):
    first, _ = optimizers()
    scheduler = SCHEDULES[schedule](train.optim.lr_scheduler, first)
    rates(scheduler, first, 5)
    second, _ = optimizers()
    resumed = SCHEDULES[schedule](train.optim.lr_scheduler, second)
    second.load_state_dict(first.state_dict())
    resumed.load_state_dict(copy.deepcopy(scheduler.state_dict()))
    assert rates(resumed, second, 8) == rates(scheduler, first, 8)


@pytest.mark.parametrize("mode", ["min", "max"])
def test_a_plateau_lowers_the_rate(mode):
    metrics = [1.0, 0.9, 0.9, 0.91, math.nan, 0.9, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5]
    seen = []
    for lib, optimizer in zip((train, torch), optimizers()):
        options = {"patience": 1, "factor": 0.5, "cooldown": 1, "min_lr": 0.05}
        scheduler = lib.optim.lr_scheduler.ReduceLROnPlateau(optimizer, mode, **options)
        for metric in metrics:
            scheduler.step(metric)
            seen.append(optimizer.param_groups[0]["lr"])
    assert seen[: len(metrics)] == seen[len(metrics) :]


def test_a_schedule_before_the_first_step_is_warned_of():
    scheduler = train.optim.lr_scheduler.StepLR(optimizers()[0], 1)
    with pytest.warns(UserWarning, match="before `optimizer.step"):
        scheduler.step()


# ---- Averages, clipping ----


def test_an_exponential_average_follows_the_model():
    model = nn.Linear(1, 1, bias=False)
    average = train.optim.swa_utils.AveragedModel(model, multi_avg_fn=train.optim.swa_utils.get_ema_multi_avg_fn(0.75))
    for value in (1.0, 5.0, 9.0):
        model.weight.data.fill_(value)
        average.update_parameters(model)
    assert average.module.weight.item() == pytest.approx(0.75 * 2.0 + 0.25 * 9.0)
    assert average.n_averaged.item() == 3


@pytest.mark.parametrize("norm", [1.0, 2.0, math.inf])
def test_clipping_is_pytorchs(norm):
    gradients = [[3.0, -4.0], [0.5], [12.0]]
    results = []
    for lib in (train, torch):
        params = [lib.zeros(len(g), requires_grad=True) for g in gradients]
        for param, gradient in zip(params, gradients):
            param.grad = lib.tensor(gradient)
        total = lib.nn.utils.clip_grad_norm_(params, 2.0, norm)
        results.append([float(total), *(param.grad.tolist() for param in params)])
    np.testing.assert_allclose(results[0][0], results[1][0], rtol=1e-6)
    for mine, other in zip(*results):
        np.testing.assert_allclose(mine, other, rtol=1e-6)


def test_a_norm_that_is_not_finite_may_be_refused():
    p = train.ones(1, requires_grad=True)
    p.grad = train.tensor([math.inf])
    with pytest.raises(RuntimeError, match="is non-finite, so it cannot be clipped"):
        nn.utils.clip_grad_norm_([p], 1.0, error_if_nonfinite=True)
    nn.utils.clip_grad_value_([p], 0.5)
    assert p.grad.tolist() == [0.5]
