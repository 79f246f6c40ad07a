"""Layers, losses and products: what test_train_layers.py compares.

A row draws its own shapes: it takes hypothesis' draw() and returns (function of a library and tensors, arrays, places, S).
"""

from hypothesis import strategies as st
from train_operator_table import F
from train_ulp import LAYOUTS, draw, np

layouts = st.sampled_from(LAYOUTS[:4])
# What draws the values of each input.
SIGNED, UNIT, APART = (-0.1, 1.0), (0.1, 0.9), (-0.6, 1.5)


def number(pick, low, high):
    return pick(st.integers(low, high))


def inputs(pick, *shapes, domain=SIGNED):
    """Arrays and places for `shapes`, each in a layout of its own."""
    places = [(list(shape), pick(layouts)) for shape in shapes]
    return [draw(*place, seed, domain) for seed, place in enumerate(places)], places


# ---- Products ----


def matmul(pick):
    m, k, n, b = (number(pick, 1, high) for high in (20, 40, 20, 3))
    one, other = pick(
        st.sampled_from(
            [
                ([k], [k]),
                ([m, k], [k]),
                ([k], [k, n]),
                ([m, k], [k, n]),
                ([b, m, k], [k]),
                ([k], [b, k, n]),
                ([b, m, k], [k, n]),
                ([m, k], [b, k, n]),
                ([2, 1, m, k], [b, k, n]),
            ]
        )
    )
    return lambda lib, x, y: x @ y, *inputs(pick, one, other), "linear"


def linear(pick):
    batch = pick(st.lists(st.integers(1, 3), max_size=2))
    i, o = number(pick, 1, 40), number(pick, 1, 20)
    shapes = [[*batch, i], [o, i]] + ([[o]] if pick(st.booleans()) else [])
    return lambda lib, x, w, b=None: F(lib).linear(x, w, b), *inputs(pick, *shapes), "linear"


def bilinear(pick):
    n, i, j, o = (number(pick, 1, 5) for _ in range(4))
    return lambda lib, x, y, w, b: F(lib).bilinear(x, y, w, b), *inputs(pick, [n, i], [n, j], [o, i, j], [o]), "linear"


def addmm(pick):
    m, k, n = (number(pick, 1, 9) for _ in range(3))
    return lambda lib, x, a, b: lib.addmm(x, a, b, beta=0.5, alpha=2), *inputs(pick, [n], [m, k], [k, n]), "linear"


# ---- Convolutions ----


def _windows(pick, dims):
    options = {"stride": number(pick, 1, 3), "dilation": number(pick, 1, 2), "padding": number(pick, 0, 2)}
    kernel = [number(pick, 1, 3) for _ in range(dims)]
    least = [max(1, options["dilation"] * (k - 1) + 1 - 2 * options["padding"]) for k in kernel]
    return options, kernel, [low + number(pick, 0, 4) for low in least]


def _conv(pick, dims):
    options, kernel, size = _windows(pick, dims)
    groups, n = number(pick, 1, 3), number(pick, 1, 3)
    i, o = groups * number(pick, 1, 3), groups * number(pick, 1, 3)
    shapes = [[n, i, *size], [o, i // groups, *kernel]] + ([[o]] if pick(st.booleans()) else [])
    name = f"conv{dims}d"
    function = lambda lib, x, w, b=None: getattr(F(lib), name)(x, w, b, groups=groups, **options)
    return function, *inputs(pick, *shapes), "linear"


def conv1d(pick):
    return _conv(pick, 1)


def conv2d(pick):
    return _conv(pick, 2)


def conv_transpose2d(pick):
    options = {"stride": number(pick, 2, 3), "dilation": number(pick, 1, 2), "padding": number(pick, 0, 1)}
    options["output_padding"] = number(pick, 0, 1)
    groups, n = number(pick, 1, 2), number(pick, 1, 2)
    i, o = groups * number(pick, 1, 3), number(pick, 1, 3)
    kernel = [number(pick, 2, 3) for _ in range(2)]
    shapes = [n, i, number(pick, 2, 4), number(pick, 2, 4)], [i, o, *kernel], [o * groups]
    function = lambda lib, x, w, b: F(lib).conv_transpose2d(x, w, b, groups=groups, **options)
    return function, *inputs(pick, *shapes), "linear"


# ---- Pools ----


def _pool(pick, dims, function):
    options, kernel, size = _windows(pick, dims)
    options["padding"] = min(options["padding"], min(kernel) // 2)
    size = [max(s, options["dilation"] * (k - 1) + 1) for s, k in zip(size, kernel)]
    options["ceil_mode"] = pick(st.booleans())
    kernel = kernel if dims == 2 else kernel[0]
    batch = pick(st.sampled_from([[2, 3], [3]]))
    return function(kernel, options), *inputs(pick, [*batch, *size]), None


def max_pool1d(pick):
    return _pool(pick, 1, lambda k, o: lambda lib, x: F(lib).max_pool1d(x, k, **o))


def max_pool2d(pick):
    return _pool(pick, 2, lambda k, o: lambda lib, x: F(lib).max_pool2d(x, k, **o))


def max_pool2d_indices(pick):
    return _pool(pick, 2, lambda k, o: lambda lib, x: F(lib).max_pool2d(x, k, return_indices=True, **o)[1])


def _avg(dims, pick):
    counts = pick(st.booleans())
    divisor = {"divisor_override": 3} if dims == 2 and pick(st.booleans()) else {}

    def function(kernel, options):
        options = {key: value for key, value in options.items() if key != "dilation"} | divisor
        return lambda lib, x: getattr(F(lib), f"avg_pool{dims}d")(x, kernel, count_include_pad=counts, **options)

    return (*_pool(pick, dims, function)[:-1], "linear")


def avg_pool1d(pick):
    return _avg(1, pick)


def avg_pool2d(pick):
    return _avg(2, pick)


def _adaptive(name, dims, sums):
    def row(pick):
        output = [number(pick, 1, 5) for _ in range(dims)]
        size = [number(pick, 1, 7) for _ in range(dims)]
        output = output if dims == 2 else output[0]
        return lambda lib, x: getattr(F(lib), name)(x, output), *inputs(pick, [2, 3, *size]), sums

    return row


# ---- Norms ----


def batch_norm(pick):
    size = pick(st.lists(st.integers(2, 4), max_size=2))
    n, c, training = number(pick, 8, 10), number(pick, 1, 4), pick(st.booleans())

    def function(lib, x, mean, w, b):
        mean, var = mean.detach().clone(), mean.detach().abs() + 0.5
        out = F(lib).batch_norm(x, mean, var, w, b, training=training, momentum=0.3)
        return lib.cat([out.flatten(), mean, var])

    return function, *inputs(pick, [n, c, *size], [c], [c], [c], domain=APART), "input"


def layer_norm(pick):
    batch, shape = (
        pick(st.lists(st.integers(1, 4), max_size=2)),
        pick(st.lists(st.integers(8, 12), min_size=1, max_size=2)),
    )
    function = lambda lib, x, w, b: F(lib).layer_norm(x, shape, w, b)
    return function, *inputs(pick, [*batch, *shape], shape, shape, domain=APART), "input"


def group_norm(pick):
    groups, per, n = (number(pick, 1, 3) for _ in range(3))
    size = pick(st.sampled_from([[12], [4, 4]]))
    c = groups * per
    function = lambda lib, x, w, b: F(lib).group_norm(x, groups, w, b)
    return function, *inputs(pick, [n, c, *size], [c], [c], domain=APART), "input"


# ---- The rest ----


def embedding(pick):
    rows, width, padding = number(pick, 1, 5), number(pick, 1, 4), pick(st.sampled_from([None, 0, -1]))
    places = pick(st.lists(st.integers(0, rows - 1), min_size=1, max_size=6))
    function = lambda lib, w: F(lib).embedding(lib.tensor(places), w, padding)
    return function, *inputs(pick, [rows, width]), "linear"


def attention(pick):
    batch = pick(st.lists(st.integers(1, 2), max_size=2))
    length, s, e, v = number(pick, 1, 6), number(pick, 1, 6), number(pick, 1, 9), number(pick, 1, 5)
    kind, scale = pick(st.sampled_from(["none", "causal", "bool", "added"])), pick(st.sampled_from([None, 0.3]))

    def function(lib, q, k, v, mask):
        options = {"is_causal": True} if kind == "causal" else {}
        if kind == "bool":
            options["attn_mask"] = (mask.detach() > 0) | (lib.arange(s) == 0)
        if kind == "added":
            options["attn_mask"] = mask
        return F(lib).scaled_dot_product_attention(q, k, v, scale=scale, **options)

    return function, *inputs(pick, [*batch, length, e], [*batch, s, e], [*batch, s, v], [length, s]), "rounded"


def _loss(function, domain=SIGNED, sums="scale"):
    def row(pick):
        reduction = pick(st.sampled_from(["mean", "sum", "none"]))
        shape = [number(pick, 1, 6), number(pick, 1, 5)]
        made = inputs(pick, shape, shape, domain=domain)
        return lambda lib, x, t: function(F(lib), x, t.detach(), reduction), *made, sums

    return row


def _classes(pick, function):
    n, c = number(pick, 1, 6), number(pick, 2, 6)
    size = pick(st.sampled_from([[], [2]]))
    reduction = pick(st.sampled_from(["mean", "sum", "none"]))
    target = np.array(pick(st.lists(st.integers(0, c - 1), min_size=n * 2, max_size=n * 2)))
    target = target[: n * (2 if size else 1)].reshape([n, *size])
    made = inputs(pick, [n, c, *size], [c])
    return lambda lib, x, w: function(lib, x, lib.from_numpy(target), w, reduction), *made, "scale"


def cross_entropy(pick):
    smoothing, ignored = pick(st.sampled_from([0.0, 0.2])), pick(st.sampled_from([-100, 1]))
    weighted = pick(st.booleans())

    def loss(lib, x, t, w, reduction):
        weight = w.detach().abs() if weighted else None
        options = {"ignore_index": ignored, "label_smoothing": smoothing, "reduction": reduction}
        return F(lib).cross_entropy(x, t, weight, **options)

    return _classes(pick, loss)


def nll_loss(pick):
    return _classes(pick, lambda lib, x, t, w, reduction: F(lib).nll_loss(x, t, w.detach().abs(), reduction=reduction))


ROWS = {
    row.__name__: row
    for row in (
        matmul,
        linear,
        bilinear,
        addmm,
        conv1d,
        conv2d,
        conv_transpose2d,
        max_pool1d,
        max_pool2d,
        max_pool2d_indices,
        avg_pool1d,
        avg_pool2d,
        batch_norm,
        layer_norm,
        group_norm,
        embedding,
        attention,
        cross_entropy,
        nll_loss,
    )
}
ROWS |= {
    "adaptive_avg_pool1d": _adaptive("adaptive_avg_pool1d", 1, "linear"),
    "adaptive_avg_pool2d": _adaptive("adaptive_avg_pool2d", 2, "linear"),
    "adaptive_max_pool1d": _adaptive("adaptive_max_pool1d", 1, None),
    "adaptive_max_pool2d": _adaptive("adaptive_max_pool2d", 2, None),
    "cross_entropy of probabilities": _loss(lambda F, x, t, r: F.cross_entropy(x, t, reduction=r), UNIT),
    "bce": _loss(lambda F, x, t, r: F.binary_cross_entropy(x, t, reduction=r), UNIT),
    "bce with logits": _loss(
        lambda F, x, t, r: F.binary_cross_entropy_with_logits(x, t, pos_weight=t + 1, reduction=r), UNIT, "input"
    ),
    "mse": _loss(lambda F, x, t, r: F.mse_loss(x, t, reduction=r)),
    "l1": _loss(lambda F, x, t, r: F.l1_loss(x, t, reduction=r)),
    "smooth_l1": _loss(lambda F, x, t, r: F.smooth_l1_loss(x, t, beta=0.5, reduction=r)),
    "huber": _loss(lambda F, x, t, r: F.huber_loss(x, t, delta=0.5, reduction=r)),
    "kl": _loss(lambda F, x, t, r: F.kl_div(x, t, reduction="batchmean" if r == "mean" else r), UNIT),
}
