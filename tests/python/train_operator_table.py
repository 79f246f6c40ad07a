"""Operators as functions of a library and tensors: what test_train_operators.py compares.

A row is (function, inputs, S): for one tensor `inputs` is the domain of its values and the smallest number of dimensions.
S says what a unit of error is (train_ulp.py): None, "linear" or "scale".
"""

from typing import Any, NamedTuple

SIGNED, POSITIVE, INSIDE = (-0.25, 2.0), (0.25, 2.0), (-0.05, 0.9)


class Row(NamedTuple):
    function: Any
    domain: tuple[float, float] = SIGNED
    least: int = 0  # dimensions
    sums: str | None = None


def F(lib):
    return lib.nn.functional


def _called(name, domain=SIGNED):
    return Row(lambda lib, x: getattr(lib, name)(x), domain)


UNARY = {
    name: _called(name)
    for name in "neg abs sign square reciprocal exp expm1 sin cos tan sigmoid erf floor ceil round trunc relu "
    "isnan isinf isfinite logical_not".split()
}
UNARY |= {name: _called(name, POSITIVE) for name in "sqrt rsqrt log log2 log10 log1p".split()}
UNARY |= {
    "tanh": Row(lambda lib, x: x.tanh(), sums="scale"),
    "clamp": Row(lambda lib, x: x.clamp(-0.75, 1.125)),
    "clamp below": Row(lambda lib, x: x.clamp(min=0.875)),
    "clamp_max": Row(lambda lib, x: lib.clamp_max(x, 0.5)),
    "add a number": Row(lambda lib, x: x + 3),
    "rsub": Row(lambda lib, x: 1 - x),
    "mul a number": Row(lambda lib, x: x * 0.5),
    "rdiv": Row(lambda lib, x: 3 / x),
    "div a number": Row(lambda lib, x: x / 3),
    "pow 2": Row(lambda lib, x: x**2),
    "pow 3": Row(lambda lib, x: x**3),
    "pow -1": Row(lambda lib, x: x**-1),
    "pow half": Row(lambda lib, x: x**0.5, POSITIVE),
    "pow 0": Row(lambda lib, x: x**0),
    "a number to the power": Row(lambda lib, x: 2**x),
    "floor_divide": Row(lambda lib, x: x.detach() // 0.4375),
    "remainder": Row(lambda lib, x: x % 0.4375),
    "fmod": Row(lambda lib, x: lib.fmod(x, 0.4375)),
    "leaky_relu": Row(lambda lib, x: F(lib).leaky_relu(x, 0.1)),
    "gelu": Row(lambda lib, x: F(lib).gelu(x), sums="scale"),
    "gelu tanh": Row(lambda lib, x: F(lib).gelu(x, approximate="tanh"), sums="scale"),
    "silu": Row(lambda lib, x: F(lib).silu(x), sums="scale"),
    "elu": Row(lambda lib, x: F(lib).elu(x)),
    "softplus": Row(lambda lib, x: F(lib).softplus(x)),
    "logsigmoid": Row(lambda lib, x: F(lib).logsigmoid(x)),
    "relu6": Row(lambda lib, x: F(lib).relu6(x)),
    "hardtanh at its ends": Row(lambda lib, x: F(lib).hardtanh(x.sign(), -1, 1) + F(lib).relu6(x.sign() - x.sign())),
    "hardtanh": Row(lambda lib, x: F(lib).hardtanh(x, -0.5, 0.5)),
    "to double": Row(lambda lib, x: x.double()),
    "masked_fill": Row(lambda lib, x: x.masked_fill(x > 1, 0.0)),
    "where": Row(lambda lib, x: lib.where(x > 1, x, x * 3)),
    "where a number": Row(lambda lib, x: lib.where(x > 1, x, 0.5)),
    "repeat": Row(lambda lib, x: x.repeat(2, *[1] * x.ndim)),
    "clone": Row(lambda lib, x: x.clone()),
    "contiguous": Row(lambda lib, x: x.contiguous() * 1),
    "flatten": Row(lambda lib, x: x.flatten() * 2),
    "in place": Row(lambda lib, x: (x * 1).mul_(3).add_(x, alpha=2).relu_()),
    "masked assignment": Row(lambda lib, x: _assigned(x * 1, x > 1, 0.5)),
    "masked pick": Row(lambda lib, x: x[x > 1]),
}
REDUCTIONS = {
    "sum": Row(lambda lib, x: x.sum(), sums="linear"),
    "sum along": Row(lambda lib, x: x.sum(-1), least=1, sums="linear"),
    "sum kept": Row(lambda lib, x: x.sum((0, -1), keepdim=True), least=2, sums="linear"),
    "mean": Row(lambda lib, x: x.mean(), sums="linear"),
    "mean along": Row(lambda lib, x: x.mean(0), least=1, sums="linear"),
    "prod": Row(lambda lib, x: x.prod(), (0.5, 1.5), sums="scale"),
    "prod along": Row(lambda lib, x: x.prod(0), least=1),
    "var": Row(lambda lib, x: x.var(), least=1, sums="input"),
    "var along": Row(lambda lib, x: x.var(0, unbiased=False), least=1, sums="input"),
    "var of several": Row(lambda lib, x: x.var((0, 1), keepdim=True), least=2, sums="input"),
    "std": Row(lambda lib, x: x.std(correction=0), least=1, sums="input"),
    "logsumexp": Row(lambda lib, x: x.logsumexp(-1), least=1, sums="scale"),
    "norm": Row(lambda lib, x: x.norm()),
    "norm 1": Row(lambda lib, x: x.norm(1)),
    "norm inf": Row(lambda lib, x: x.norm(float("inf"))),
    "norm along": Row(lambda lib, x: x.norm(3, 0), least=1),
    "vector_norm": Row(lambda lib, x: lib.linalg.vector_norm(x, 2, dim=-1), least=1),
    "max": Row(lambda lib, x: x.max()),
    "min": Row(lambda lib, x: x.min()),
    "max along": Row(lambda lib, x: x.max(0).values, least=1),
    "min along": Row(lambda lib, x: x.min(-1, keepdim=True).values, least=1),
    "where the max is": Row(lambda lib, x: x.max(-1).indices, least=1),
    "argmax": Row(lambda lib, x: x.argmax()),
    "argmin along": Row(lambda lib, x: x.argmin(0), least=1),
    "amax": Row(lambda lib, x: x.amax(0), least=1),
    "amin": Row(lambda lib, x: x.amin()),
    "any": Row(lambda lib, x: (x > 1).any()),
    "all along": Row(lambda lib, x: (x > 0.5).all(0), least=1),
    "count_nonzero": Row(lambda lib, x: lib.count_nonzero(x)),
    "softmax": Row(lambda lib, x: x.softmax(-1), least=1, sums="scale"),
    "log_softmax": Row(lambda lib, x: x.log_softmax(0), least=1, sums="scale"),
    "cumsum": Row(lambda lib, x: x.cumsum(0), least=1, sums="linear"),
    "cumprod": Row(lambda lib, x: x.cumprod(0), (0.5, 1.5), least=1, sums="scale"),
}
MOVES = {
    "cat": Row(lambda lib, x: lib.cat([x, x * 2], -1), least=1),
    "stack": Row(lambda lib, x: lib.stack([x, x * 2], 1), least=1),
    "split": Row(lambda lib, x: x.split(2, 0)[0] * 3, least=1),
    "chunk": Row(lambda lib, x: x.chunk(2, -1)[-1] * 3, least=1),
    "unbind": Row(lambda lib, x: x.unbind(-1)[0] * 3, least=1),
    "flip": Row(lambda lib, x: x.flip((0,)), least=1),
    "roll": Row(lambda lib, x: x.roll(1, 0), least=1),
    "triu": Row(lambda lib, x: x.triu(1), least=2),
    "tril": Row(lambda lib, x: x.tril(-1), least=2),
    "pad": Row(lambda lib, x: F(lib).pad(x, (1, 2)), least=1),
    "pad with a value": Row(lambda lib, x: F(lib).pad(x, (1, 0, 0, 2), value=3.0), least=2),
    "pad to less": Row(lambda lib, x: F(lib).pad(x, (-1, 1)), least=1),
    "sort": Row(lambda lib, x: x.sort(0, descending=True).values, least=1),
    "argsort": Row(lambda lib, x: x.argsort(dim=-1, stable=True), least=1),
    "topk": Row(lambda lib, x: x.topk(1, 0).values, least=1),
    "bottom": Row(lambda lib, x: x.topk(x.shape[-1], largest=False).values, least=1),
    "gather": Row(lambda lib, x: x.gather(0, lib.zeros(tuple(x.shape), dtype=lib.int64)), least=1, sums="linear"),
    "index_select": Row(lambda lib, x: x.index_select(0, lib.tensor([0, 0])), least=1, sums="linear"),
    "index": Row(lambda lib, x: x[[0, -1]], least=1),
    "index of the last": Row(lambda lib, x: x[..., lib.tensor([0, 0, -1])], least=1, sums="linear"),
    "slices": Row(lambda lib, x: x[::2, ..., None, -1] * 2, least=2),
    "assignment": Row(lambda lib, x: _assigned(x * 1, 0, x[-1] * 2), least=1),
    "assignment to a slice": Row(lambda lib, x: _assigned(x * 1, (..., slice(None, None, 2)), 0.5), least=1),
    "unfold": Row(lambda lib, x: x.unfold(0, 1, 1) * 2, least=1),
    "transpose": Row(lambda lib, x: x.transpose(0, 1) * x.transpose(0, 1), least=2),
    "movedim": Row(lambda lib, x: lib.movedim(x, 0, -1) * 2, least=1),
    "squeeze": Row(lambda lib, x: x.unsqueeze(1).squeeze(1) * 2, least=1),
    "reshape": Row(lambda lib, x: x.reshape(-1, 1) * 2, least=1),
    "expand": Row(lambda lib, x: x.unsqueeze(0).expand(3, *x.shape) * 1, least=1, sums="linear"),
    "diagonal": Row(lambda lib, x: x.diagonal() * 2, least=2),
    "scatter": Row(lambda lib, x: x.scatter(0, lib.zeros(x.shape[1:], dtype=lib.int64)[None], x[:1] * 2), least=1),
    "scatter_add": Row(
        lambda lib, x: x.scatter_add(0, lib.zeros(tuple(x.shape), dtype=lib.int64), x), least=1, sums="linear"
    ),
    "index_add": Row(lambda lib, x: x.index_add(0, lib.tensor([0]), x[:1]), least=1),
}
BINARY = {
    "add": Row(lambda lib, x, y: x + y),
    "add alpha": Row(lambda lib, x, y: lib.add(x, y, alpha=2)),
    "sub": Row(lambda lib, x, y: x - y, sums="scale"),
    "mul": Row(lambda lib, x, y: x * y),
    "div": Row(lambda lib, x, y: x / y),
    "div floor": Row(lambda lib, x, y: lib.div(x, y, rounding_mode="floor")),
    "div trunc": Row(lambda lib, x, y: lib.div(x, y, rounding_mode="trunc")),
    "floor_divide": Row(lambda lib, x, y: x.detach() // y.detach()),
    "pow": Row(lambda lib, x, y: x**y, POSITIVE, sums="scale"),
    "remainder": Row(lambda lib, x, y: x % y, sums="scale"),
    "fmod": Row(lambda lib, x, y: lib.fmod(x, y), sums="scale"),
    "maximum": Row(lambda lib, x, y: lib.maximum(x, y)),
    "minimum": Row(lambda lib, x, y: lib.minimum(x, y)),
    "atan2": Row(lambda lib, x, y: lib.atan2(x, y), sums="scale"),
    "lerp": Row(lambda lib, x, y: lib.lerp(x, y, 0.3), sums="scale"),
    "lerp by a tensor": Row(lambda lib, x, y: lib.lerp(x, y, y.detach()), sums="scale"),
    "addcmul": Row(lambda lib, x, y: lib.addcmul(x, x, y, value=0.5), sums="scale"),
    "addcdiv": Row(lambda lib, x, y: lib.addcdiv(x, x, y, value=0.5), sums="scale"),
    "where": Row(lambda lib, x, y: lib.where(x > y, x, y)),
    "clamp by tensors": Row(lambda lib, x, y: x.clamp(y - 1, y + 1), sums="scale"),
    "eq": Row(lambda lib, x, y: x == y),
    "ne": Row(lambda lib, x, y: x != y),
    "lt": Row(lambda lib, x, y: x < y),
    "le": Row(lambda lib, x, y: x <= y),
    "gt": Row(lambda lib, x, y: x > y),
    "ge": Row(lambda lib, x, y: x >= y),
    "isclose": Row(lambda lib, x, y: lib.isclose(x, y)),
    "logical_and": Row(lambda lib, x, y: lib.logical_and(x, y)),
    "logical_xor": Row(lambda lib, x, y: lib.logical_xor(x, y)),
    "copy": Row(lambda lib, x, y: ((x + y) * 0).copy_(y)),
}
INTEGER_BINARY = {
    "bitwise_and": Row(lambda lib, x, y: x & y),
    "bitwise_or": Row(lambda lib, x, y: x | y),
    "bitwise_xor": Row(lambda lib, x, y: x ^ y),
}
SINGLE = UNARY | REDUCTIONS | MOVES


def _assigned(x, where, value):
    x[where] = value
    return x
