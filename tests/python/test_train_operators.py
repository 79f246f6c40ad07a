"""Every operator, forward and backward, against torch, over drawn shapes, dtypes and layouts."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from infeed import train
from train_twins import both, np, same, torch

FLOATS = ["float32", "float64", "float16", "bfloat16"]
LAYOUTS = ["dense", "transposed", "stepped", "expanded"]

# name: (function of the library and x, smallest number of dimensions)
UNARY = {
    name: ((lambda name: lambda lib, x: getattr(lib, name)(x))(name), 0)
    for name in [
        "neg",
        "abs",
        "sign",
        "square",
        "reciprocal",
        "sqrt",
        "rsqrt",
        "exp",
        "expm1",
        "log",
        "log2",
        "log10",
        "log1p",
        "sin",
        "cos",
        "tan",
        "tanh",
        "sigmoid",
        "erf",
        "floor",
        "ceil",
        "round",
        "trunc",
        "relu",
        "isnan",
        "isinf",
        "isfinite",
        "logical_not",
    ]
}
UNARY |= {
    "clamp": (lambda lib, x: x.clamp(0.75, 1.125), 0),
    "clamp below": (lambda lib, x: x.clamp(min=0.875), 0),
    "pow 3": (lambda lib, x: x**3, 0),
    "pow half": (lambda lib, x: x**0.5, 0),
    "pow 0": (lambda lib, x: x**0, 0),
    "base": (lambda lib, x: 2**x, 0),
    "rsub": (lambda lib, x: 1 - x, 0),
    "rdiv": (lambda lib, x: 3 / x, 0),
    "remainder": (lambda lib, x: x % 0.4375, 0),
    "fmod": (lambda lib, x: lib.fmod(x, 0.4375), 0),
    "leaky_relu": (lambda lib, x: lib.nn.functional.leaky_relu(x - 1, 0.1), 0),
    "gelu": (lambda lib, x: lib.nn.functional.gelu(x - 1), 0),
    "gelu tanh": (lambda lib, x: lib.nn.functional.gelu(x - 1, approximate="tanh"), 0),
    "silu": (lambda lib, x: lib.nn.functional.silu(x - 1), 0),
    "elu": (lambda lib, x: lib.nn.functional.elu(x - 1), 0),
    "softplus": (lambda lib, x: lib.nn.functional.softplus(x), 0),
    "logsigmoid": (lambda lib, x: lib.nn.functional.logsigmoid(x - 1), 0),
}
REDUCTIONS = {
    "sum": (lambda lib, x: x.sum(), 0),
    "sum along": (lambda lib, x: x.sum(-1), 1),
    "sum kept": (lambda lib, x: x.sum((0, -1), keepdim=True), 2),
    "mean": (lambda lib, x: x.mean(), 0),
    "mean along": (lambda lib, x: x.mean(0), 1),
    "prod": (lambda lib, x: x.prod(), 0),
    "prod along": (lambda lib, x: x.prod(0), 1),
    "var": (lambda lib, x: x.var(), 1),
    "var along": (lambda lib, x: x.var(0, unbiased=False), 1),
    "std": (lambda lib, x: x.std(correction=0), 1),
    "logsumexp": (lambda lib, x: x.logsumexp(-1), 1),
    "norm": (lambda lib, x: x.norm(), 0),
    "norm 1": (lambda lib, x: x.norm(1), 0),
    "norm inf": (lambda lib, x: x.norm(float("inf")), 0),
    "norm along": (lambda lib, x: x.norm(3, 0), 1),
    "max": (lambda lib, x: x.max(), 0),
    "min": (lambda lib, x: x.min(), 0),
    "max along": (lambda lib, x: x.max(0).values, 1),
    "min along": (lambda lib, x: x.min(-1).values, 1),
    "argmax": (lambda lib, x: x.argmax(), 0),
    "argmin along": (lambda lib, x: x.argmin(0), 1),
    "amax": (lambda lib, x: x.amax(0), 1),
    "amin": (lambda lib, x: x.amin(), 0),
    "any": (lambda lib, x: (x > 1).any(), 0),
    "all along": (lambda lib, x: (x > 0.5).all(0), 1),
    "count_nonzero": (lambda lib, x: lib.count_nonzero(x), 0),
    "softmax": (lambda lib, x: x.softmax(-1), 1),
    "log_softmax": (lambda lib, x: x.log_softmax(0), 1),
    "cumsum": (lambda lib, x: x.cumsum(0), 1),
}
MOVES = {
    "cat": (lambda lib, x: lib.cat([x, x * 2], -1), 1),
    "stack": (lambda lib, x: lib.stack([x, x * 2], 1), 1),
    "split": (lambda lib, x: x.split(2, 0)[0] * 3, 1),
    "repeat": (lambda lib, x: x.repeat(2, *[1] * x.ndim), 0),
    "flip": (lambda lib, x: x.flip((0,)), 1),
    "roll": (lambda lib, x: x.roll(1, 0), 1),
    "triu": (lambda lib, x: x.triu(1), 2),
    "tril": (lambda lib, x: x.tril(-1), 2),
    "pad": (lambda lib, x: lib.nn.functional.pad(x, (1, 2)), 1),
    "pad with a value": (lambda lib, x: lib.nn.functional.pad(x, (1, 0, 0, 2), value=3.0), 2),
    "sort": (lambda lib, x: x.sort(0, descending=True).values, 1),
    "topk": (lambda lib, x: x.topk(1, 0).values, 1),
    "gather": (lambda lib, x: x.gather(0, lib.zeros(tuple(x.shape), dtype=lib.int64)), 1),
    "index_select": (lambda lib, x: x.index_select(0, lib.tensor([0, 0])), 1),
    "masked_fill": (lambda lib, x: x.masked_fill(x > 1, 0.0), 0),
    "where": (lambda lib, x: lib.where(x > 1, x, x * 3), 0),
    "index": (lambda lib, x: x[[0, -1]], 1),
    "unfold": (lambda lib, x: x.unfold(0, 1, 1), 1),
    "contiguous": (lambda lib, x: x.contiguous() * 1, 0),
    "clone": (lambda lib, x: x.clone(), 0),
    "double": (lambda lib, x: x.double(), 0),
    "scatter_add": (lambda lib, x: x.scatter_add(0, lib.zeros(tuple(x.shape), dtype=lib.int64), x), 1),
    "index_add": (lambda lib, x: x.index_add(0, lib.tensor([0]), x[:1]), 1),
}
BINARY = {
    "add": lambda lib, x, y: x + y,
    "add alpha": lambda lib, x, y: lib.add(x, y, alpha=2),
    "sub": lambda lib, x, y: x - y,
    "mul": lambda lib, x, y: x * y,
    "div": lambda lib, x, y: x / y,
    "div floor": lambda lib, x, y: lib.div(x, y, rounding_mode="floor"),
    "div trunc": lambda lib, x, y: lib.div(x, y, rounding_mode="trunc"),
    "pow": lambda lib, x, y: x**y,
    "remainder": lambda lib, x, y: x % y,
    "maximum": lambda lib, x, y: lib.maximum(x, y),
    "minimum": lambda lib, x, y: lib.minimum(x, y),
    "atan2": lambda lib, x, y: lib.atan2(x, y),
    "lerp": lambda lib, x, y: lib.lerp(x, y, 0.3),
    "addcmul": lambda lib, x, y: lib.addcmul(x, x, y, value=0.5),
    "addcdiv": lambda lib, x, y: lib.addcdiv(x, x, y, value=0.5),
    "where": lambda lib, x, y: lib.where(x > y, x, y),
    "eq": lambda lib, x, y: x == y,
    "lt": lambda lib, x, y: x < y,
    "ge": lambda lib, x, y: x >= y,
    "isclose": lambda lib, x, y: lib.isclose(x, y),
}
SINGLE = UNARY | REDUCTIONS | MOVES

shapes = st.lists(st.integers(1, 5), min_size=0, max_size=4)


def drawn(shape, layout, seed, dtype):
    """A leaf in each library, and views of them in the layout: values in (0.5, 1.5)."""
    values = np.random.default_rng(seed).uniform(0.5, 1.5, shape)
    if layout == "stepped" and shape:
        values = np.random.default_rng(seed).uniform(0.5, 1.5, [2 * shape[0], *shape[1:]])
    if layout == "expanded" and shape:
        values = values[:1]
    leaves = both(values, dtype, requires_grad=True)
    if layout == "transposed" and len(shape) > 1:
        return leaves, [leaf.transpose(0, -1) for leaf in leaves]
    if layout == "stepped" and shape:
        return leaves, [leaf[::2] for leaf in leaves]
    if layout == "expanded" and shape:
        return leaves, [leaf.expand(*shape) for leaf in leaves]
    return leaves, list(leaves)


def compare(function, leaves, views, what):
    ours, theirs = (function(lib, *args) for lib, args in zip((train, torch), views))
    same(ours, theirs, what)
    if not theirs.requires_grad:
        return
    weights, others = both(np.random.default_rng(1).uniform(0.5, 1.5, tuple(theirs.shape)))
    (ours * weights.to(ours.dtype)).sum().backward()
    (theirs * others.to(theirs.dtype)).sum().backward()
    for mine, other in leaves:
        if other.grad is not None:
            same(mine.grad, other.grad, f"gradient of {what}")


@pytest.mark.parametrize("name", SINGLE)
@settings(max_examples=12)
@given(shape=shapes, layout=st.sampled_from(LAYOUTS), dtype=st.sampled_from(FLOATS), seed=st.integers(0, 99))
def test_an_operator_of_one_tensor(name, shape, layout, dtype, seed):
    function, least = SINGLE[name]
    shape = shape + [2] * (least - len(shape))
    leaves, views = drawn(shape, layout, seed, dtype)
    compare(function, [leaves], [[view] for view in views], name)


@pytest.mark.parametrize("name", BINARY)
@settings(max_examples=12)
@given(
    shape=shapes,
    ones=st.lists(st.booleans(), min_size=4, max_size=4),
    cut=st.integers(0, 4),
    layout=st.sampled_from(LAYOUTS[:3]),
    dtype=st.sampled_from(FLOATS),
)
def test_an_operator_of_two_tensors_broadcasts(name, shape, ones, cut, layout, dtype):
    other = [1 if one else size for size, one in zip(shape, ones)][min(cut, len(shape)) :]
    leaves, views = drawn(shape, layout, 0, dtype)
    more, second = drawn(other, layout, 1, dtype)
    if layout == "transposed":  # shapes that fit no longer
        second = [view.transpose(0, -1) if len(other) > 1 else view for view in more]
        views = [view.transpose(0, -1) if len(shape) > 1 else view for view in leaves]
        if len(other) not in (0, len(shape)):
            second = list(more)
            views = list(leaves)
    compare(BINARY[name], [leaves, more], list(zip(views, second)), name)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@settings(max_examples=30)
@given(
    batch=st.lists(st.integers(1, 3), max_size=2),
    sizes=st.lists(st.integers(1, 33), min_size=3, max_size=3),
    transposed=st.booleans(),
)
def test_matrix_products(dtype, batch, sizes, transposed):
    m, k, n = sizes
    generator = np.random.default_rng(0)
    a = both(generator.standard_normal([*batch, m, k]), dtype, requires_grad=True)
    b = both(generator.standard_normal([*batch[1:], n, k] if transposed else [*batch[1:], k, n]), dtype, True)
    views = [(x, y.transpose(-2, -1) if transposed else y) for x, y in zip(a, b)]
    compare(lambda lib, x, y: x @ y, [a, b], views, "matmul")


@pytest.mark.parametrize(
    ("one", "other"), [((5,), (5,)), ((3, 5), (5,)), ((5,), (5, 2)), ((2, 3, 5), (5,)), ((5,), (2, 5, 3))]
)
def test_products_of_vectors(one, other):
    a = both(np.random.default_rng(0).standard_normal(one), requires_grad=True)
    b = both(np.random.default_rng(1).standard_normal(other), requires_grad=True)
    compare(lambda lib, x, y: x @ y, [a, b], list(zip(a, b)), "matmul")


@pytest.mark.parametrize("dtype", ["int64", "int32", "int16", "int8", "uint8", "bool"])
@pytest.mark.parametrize(
    "name", ["sum", "prod", "mean along", "max", "argmax", "cumsum", "sort", "flip", "cat", "abs", "sign"]
)
def test_integers(name, dtype):
    if (dtype == "bool" and name in ("abs", "sign", "cat", "argmax")) or name == "mean along":
        pytest.skip("not defined for these")
    x, y = both(np.array([[3, 1, 2], [0, 5, 4]]), dtype)
    function = SINGLE[name][0]
    same(function(train, x), function(torch, y), name)


LOSSES = {
    "mse": lambda F, x, t, c, **o: F.mse_loss(x, t, **o),
    "l1": lambda F, x, t, c, **o: F.l1_loss(x, t, **o),
    "smooth_l1": lambda F, x, t, c, **o: F.smooth_l1_loss(x, t, beta=0.5, **o),
    "huber": lambda F, x, t, c, **o: F.huber_loss(x, t, delta=0.5, **o),
    "kl": lambda F, x, t, c, **o: F.kl_div(x.log_softmax(1), t.softmax(1), **o),
    "bce": lambda F, x, t, c, **o: F.binary_cross_entropy(x.sigmoid(), t.sigmoid(), **o),
    "bce with logits": lambda F, x, t, c, **o: F.binary_cross_entropy_with_logits(x, t.sigmoid(), **o),
    "cross entropy": lambda F, x, t, c, **o: F.cross_entropy(x, c, **o),
    "smoothed": lambda F, x, t, c, **o: F.cross_entropy(x, c, label_smoothing=0.2, **o),
    "ignoring": lambda F, x, t, c, **o: F.cross_entropy(x, c, ignore_index=1, **o),
    "weighted": lambda F, x, t, c, **o: F.cross_entropy(x, c, weight=t[0].exp(), **o),
    "of probabilities": lambda F, x, t, c, **o: F.cross_entropy(x, t.softmax(1), **o),
    "nll": lambda F, x, t, c, **o: F.nll_loss(x.log_softmax(1), c, **o),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("name", LOSSES)
def test_losses(name, reduction):
    generator = np.random.default_rng(0)
    x = both(generator.standard_normal((6, 4)).astype(np.float32), requires_grad=True)
    t = both(generator.standard_normal((6, 4)).astype(np.float32))
    c = both(generator.integers(0, 4, 6))
    loss = lambda lib, x, t, c: LOSSES[name](lib.nn.functional, x, t, c, reduction=reduction)
    compare(loss, [x], list(zip(x, t, c)), name)


ATTENTION = {
    "plain": {},
    "causal": {"is_causal": True},
    "scaled": {"scale": 0.3},
}


@pytest.mark.parametrize("options", ATTENTION)
def test_attention(options):
    generator = np.random.default_rng(0)
    q, k, v = (both(generator.standard_normal((2, 3, 5, 8)).astype(np.float32), requires_grad=True) for _ in range(3))
    run = lambda lib, q, k, v: lib.nn.functional.scaled_dot_product_attention(q, k, v, **ATTENTION[options])
    compare(run, [q, k, v], list(zip(q, k, v)), options)
