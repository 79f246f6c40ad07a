"""How far a result may lie from the exact one.

The exact result is torch's in float64 of the same values. The bar is 4 units, where a unit is what one rounding may cost:

    unit = ulp of the result's dtype at the exact value + ulp of the accumulation's dtype at S

Sums run in float32 for float16 and bfloat16, else in the dtype itself. S is the sum of the terms' absolute values: the bound
on a sum's error is a multiple of u S, whatever the order.

- "linear": S of an operator that is linear in each input is its exact result over |inputs| and |gradients|.
- "scale": of one that normalises or subtracts, its largest element; "input": that or the largest input, or its square.
- "rounded": the same, of one whose terms are rounded to the dtype before they are summed: attention's probabilities.
- None: no terms meet, S is 0. But gradients of what was broadcast or expanded are sums in any case.

Where torch's own result of that dtype is further away, twice its distance is the bar: formulas of several operations round
in between, and so do ours.
"""

from functools import partial
from typing import NamedTuple

from infeed import train
from train_twins import name, np, torch

ULPS = 4
EPSILON = {"float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}
SMALLEST = {"float64": 2.0**-1022, "float32": 2.0**-126, "float16": 2.0**-14, "bfloat16": 2.0**-126}
# ulp of the dtype in ulp of its accumulation
ROUNDED = {"float64": 1, "float32": 1, "float16": 2.0**13, "bfloat16": 2.0**16}


class Run(NamedTuple):
    """An operator's output, and its gradients towards the inputs: None for what has none."""

    output: object
    gradients: list
    terms: list | None = None  # what adds up to the gradients: (gradient of the broadcast view, the way back)


def ulp(value, dtype):
    return EPSILON[dtype] * np.exp2(np.floor(np.log2(np.maximum(np.abs(value), SMALLEST[dtype]))))


def plain(tensor):
    return tensor.detach().double().numpy()


def units(got, exact, sums, dtype):
    """The distance in units, element by element."""
    accumulated = "float64" if dtype == "float64" else "float32"
    unit = ulp(exact, dtype) + (ulp(sums, accumulated) if sums is not None else 0.0)
    with np.errstate(invalid="ignore"):
        distance = np.abs(got - exact) / unit
    return np.where((got == exact) | (np.isnan(got) & np.isnan(exact)), 0.0, distance)


def close(ours, theirs, exact, sums, what):
    assert name(ours.dtype) == name(theirs.dtype), f"{what}: {ours.dtype}, not {theirs.dtype}"
    assert tuple(ours.shape) == tuple(theirs.shape), f"{what}: {ours.shape}, not {theirs.shape}"
    if not theirs.is_floating_point():
        np.testing.assert_array_equal(ours.numpy(), theirs.numpy(), err_msg=what)
        return
    dtype, got, want, true = name(theirs.dtype), plain(ours), plain(theirs), plain(exact)
    ended = ~np.isfinite(want)
    np.testing.assert_array_equal(got[ended], want[ended], err_msg=what)
    scales = None if sums is None else plain(sums)[~ended]
    mine, other = (units(x[~ended], true[~ended], scales, dtype) for x in (got, want))
    bar = max(ULPS, 2 * other.max(initial=0.0))
    assert mine.max(initial=0.0) <= bar, f"{what}: {mine.max():.1f} units, torch {other.max():.1f}\n{got}\n{true}"


def _sums(kind, x, inputs, dtype):
    if kind is None or not x.numel():
        return x.abs()
    largest = x.abs().max()
    if kind in ("input", "rounded"):
        largest = max([largest, *(i.abs().max() for i in inputs), *(i.square().max() for i in inputs)])
    return (largest * ROUNDED[dtype] if kind == "rounded" else largest).expand(x.shape)


def sums_of(kind, exact, absolute, inputs, dtype):
    """S for the output and every gradient; None where nothing is summed."""
    if kind == "linear":
        return absolute
    gradients = []
    for gradient, (terms, fold) in zip(exact.gradients, exact.terms):
        summed = gradient is not None and (kind is not None or terms.numel() != gradient.numel())
        gradients.append(fold(_sums(kind, terms, inputs, dtype)) if summed else None)
    return Run(None if kind is None else _sums(kind, exact.output, inputs, dtype), gradients)


def judge(ours, theirs, exact, sums, what):
    close(ours.output, theirs.output, exact.output, sums.output, what)
    for i, (mine, other) in enumerate(zip(ours.gradients, theirs.gradients)):
        if other is None:
            assert mine is None, f"{what}: gradient {i}"
        else:
            close(mine, other, exact.gradients[i], sums.gradients[i], f"gradient {i} of {what}")


# ---- Inputs ----

LAYOUTS = ["dense", "transposed", "stepped", "sliced", "expanded"]


def base_shape(shape, layout):
    """Of the leaf that has a view of `shape` in `layout`."""
    shape = list(shape)
    if not shape or (layout == "expanded" and shape[0] == 0):
        return shape
    if layout == "transposed":
        return shape[::-1]
    if layout == "stepped":
        return [*shape[:-1], 2 * shape[-1] + 1]
    if layout == "sliced":
        return [shape[0] + 2, *shape[1:]]
    return [1, *shape[1:]] if layout == "expanded" else shape


def view_of(leaf, shape, layout):
    if not shape or (layout == "expanded" and shape[0] == 0) or layout == "dense":
        return leaf
    if layout == "transposed":
        return leaf.permute(*range(len(shape))[::-1])
    if layout == "stepped":
        return leaf[..., 1::2]
    return leaf[1:-1] if layout == "sliced" else leaf.expand(*shape)


def draw(shape, layout, seed, domain):
    """Values in `domain`; a negative lower end: of both signs, and away from zero."""
    random = np.random.default_rng(seed)
    low, high = domain
    values = random.uniform(abs(low), high, base_shape(shape, layout))
    return values * random.choice([-1.0, 1.0], values.shape) if low < 0 else values


def in_library(lib, values, dtype):
    return lib.from_numpy(np.array(values)).to(getattr(lib, dtype))


def run(lib, function, leaves, places, weights):
    """Output and gradients, of fresh leaves. `places`: (shape, layout) of each."""
    leaves = [leaf.detach().requires_grad_(leaf.is_floating_point()) for leaf in leaves]
    views = [view_of(leaf, *place) for leaf, place in zip(leaves, places)]
    output = function(lib, *views)
    if output.requires_grad:
        output.backward(weights(lib, output))
    return Run(output, [leaf.grad for leaf in leaves])


def run_exactly(function, leaves, places, weights, broadcasts):
    """The same in float64, with the terms of the gradients of what was broadcast."""
    leaves = [leaf.detach().requires_grad_(leaf.is_floating_point()) for leaf in leaves]
    views = [view_of(leaf, *place) for leaf, place in zip(leaves, places)]
    views = torch.broadcast_tensors(*views) if broadcasts else views
    views = [view * 1 if view.requires_grad else view for view in views]
    output = function(torch, *views)
    terms = [(None, None)] * len(leaves)
    if output.requires_grad:
        floats = [i for i, view in enumerate(views) if view.requires_grad]
        found = torch.autograd.grad(output, [views[i] for i in floats], weights(torch, output), allow_unused=True)
        for i, term in zip(floats, found):
            if term is not None:
                terms[i] = term, partial(_folded, leaves[i], views[i])
    return Run(output, [None if term is None else fold(term) for term, fold in terms], terms)


def _folded(leaf, view, terms):
    return torch.autograd.grad(view, leaf, terms, retain_graph=True)[0]


def weights_of(dtype, absolute=False):
    """Gradients of an output: drawn, rounded to `dtype`, in the dtype of the output."""

    def weights(lib, output):
        values = draw(tuple(output.shape), "dense", 7, (-0.5, 1.5))
        return in_library(lib, np.abs(values) if absolute else values, dtype).to(output.dtype)

    return weights


def check(function, arrays, places, dtype, sums=None, what="", broadcasts=False):
    """`function(lib, *tensors)` in infeed.train, and how far it is from what torch computes in float64."""
    mine = [in_library(train, a, dtype) if a.dtype.kind == "f" else train.from_numpy(a.copy()) for a in arrays]
    other = [in_library(torch, a, dtype) if a.dtype.kind == "f" else torch.from_numpy(a.copy()) for a in arrays]
    wide = [x.double() if x.is_floating_point() else x for x in other]
    ours = run(train, function, mine, places, weights_of(dtype))
    theirs = run(torch, function, other, places, weights_of(dtype))
    exact = run_exactly(function, wide, places, weights_of(dtype), broadcasts)
    absolute = None
    if sums == "linear":
        positive = [x.abs() if x.is_floating_point() else x for x in wide]
        absolute = run(torch, function, positive, places, weights_of(dtype, absolute=True))
    judge(ours, theirs, exact, sums_of(sums, exact, absolute, wide, dtype), f"{what} {dtype}")


def same_result(run, what):
    """For integers, bool and tensors without elements: what torch refuses is refused, the rest is equal."""
    try:
        theirs = run(torch)
    except (RuntimeError, TypeError, IndexError, ValueError, NotImplementedError):
        return
    ours = run(train)
    assert name(ours.dtype) == name(theirs.dtype), f"{what}: {ours.dtype}, not {theirs.dtype}"
    assert tuple(ours.shape) == tuple(theirs.shape), f"{what}: {ours.shape}, not {theirs.shape}"
    np.testing.assert_allclose(ours.double().numpy(), theirs.double().numpy(), rtol=1e-6, err_msg=what)
