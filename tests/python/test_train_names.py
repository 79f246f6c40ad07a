"""Names of nodes and of arguments, beside torch's."""

import inspect
import re

import pytest
from infeed import train
from train_twins import torch

# ---- Nodes: an expression of x and y, both [4, 4], in `lib` and its nn.functional F ----

EXPRESSIONS = """
x + y; x - y; 1 - x; x * y; x / y; x % y; x % 2.0; x ** y; x ** 2; 2 ** x; -x; x.exp(); x.log(); x.sqrt(); x.rsqrt()
x.tanh(); x.sigmoid(); x.relu(); F.gelu(x); F.silu(x); x.clamp(0, 1); x.clamp(min=0); x.clamp(y, y + 1); x.abs(); x.square()
lib.where(x > 0, x, y); lib.maximum(x, y); lib.minimum(x, y); lib.fmod(x, y); lib.div(x, y, rounding_mode="floor")
F.leaky_relu(x); F.elu(x); F.softplus(x); F.logsigmoid(x); F.relu6(x); F.hardtanh(x); lib.atan2(x, y)
lib.lerp(x, y, 0.5); lib.lerp(x, y, y); lib.addcmul(x, x, y); lib.addcdiv(x, x, y); x.reciprocal(); x.floor(); x.round()
x.sum(); x.sum(0); x.mean(); x.mean(0); x.max(); x.max(0).values; x.amax(0); x.min(); x.var(); x.std(); x.prod(); x.prod(0)
x.logsumexp(0); x.norm(); x.norm(2, 0); x.softmax(-1); x.log_softmax(-1); x.cumsum(0)
x @ y; x @ y[0]; x[0] @ y[0]; F.linear(x, y, y[0]); F.linear(x, y); F.linear(x[None], y, y[0]); lib.addmm(x, x, y)
F.conv2d(x[None, None], y[None, None]); F.conv_transpose2d(x[None, None], y[None, None], y[0, :1])
F.max_pool2d(x[None, None], 2); F.max_pool1d(x[None], 2); F.avg_pool2d(x[None, None], 2); F.avg_pool1d(x[None], 2)
F.batch_norm(x[:, :, None, None], None, None, y[0], y[1], True); F.layer_norm(x, (4,), y[0], y[1])
F.dropout(x, 0.5, True); F.embedding(lib.tensor([0, 1]), x); lib.cat([x, y]); lib.stack([x, y]); x.split(2)[0]; x.unbind()[0]
x.gather(0, lib.zeros((1, 4), dtype=lib.int64)); x.scatter(0, lib.zeros((1, 4), dtype=lib.int64), y); x.index_select(0, lib.tensor([0]))
x.scatter_add(0, lib.zeros((1, 4), dtype=lib.int64), y); F.pad(x, (1, 1)); x.flip(0); x.sort()[0]; x.topk(2)[0]; x.triu(); x.tril()
F.cross_entropy(x, lib.tensor([0, 1, 2, 3])); F.cross_entropy(x[..., None], lib.tensor([[0], [1], [2], [3]]))
F.nll_loss(x, lib.tensor([0, 1, 2, 3])); F.binary_cross_entropy(x.sigmoid(), y.detach().sigmoid()); F.mse_loss(x, y); F.l1_loss(x, y)
F.binary_cross_entropy_with_logits(x, y.detach()); F.smooth_l1_loss(x, y); F.huber_loss(x, y); F.kl_div(x, y.detach(), reduction="sum")
x[0]; x[0:2]; x[:, 1]; x[None]; x[lib.tensor([0])]; x[x > 0]; x[...]; x.view(16); x.t(); x.T; x.mT; x.transpose(0, 1); x.permute(1, 0)
x[:1].expand(3, 4); x[:1].squeeze(); x[:1].squeeze(0); x.unsqueeze(0); x.flatten(); x.unflatten(0, (2, 2)); x.narrow(0, 0, 1)
x.select(0, 0); x.unfold(0, 2, 1); x.diagonal(); x.as_strided((2,), (1,)); x.clone(); x.double(); x.masked_fill(x > 0, 0.0)
(x * 1).mul_(2); (x * 1).add_(y); (x * 1).relu_(); (x * 1).zero_(); (x * 1).fill_(2); lib.movedim(x, 0, 1)
"""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("expression", re.split(r";\s*|\n", EXPRESSIONS.strip()))
def test_nodes_are_named_as_torchs(expression):
    names = []
    for lib in (torch, train):
        x, y = ((lib.rand(4, 4) + 0.5).requires_grad_() for _ in range(2))
        result = eval(expression, {"lib": lib, "F": lib.nn.functional, "x": x, "y": y})
        names.append(result.grad_fn.name())
    assert names[0] == names[1]


# ---- Arguments ----

FUNCTIONS = """add sub mul div true_divide floor_divide remainder fmod pow neg exp log sqrt rsqrt tanh sigmoid relu clamp clip
clamp_min clamp_max abs where eq ne lt le gt ge maximum minimum sum mean max min amax amin argmax argmin var std prod logsumexp norm
any all softmax log_softmax matmul mm bmm mv dot outer addmm baddbmm cat concat stack split chunk unbind gather scatter scatter_add
index_select index_add flip roll sort argsort topk triu tril cumsum cumprod masked_fill masked_select nonzero squeeze unsqueeze
transpose permute movedim swapaxes reshape flatten unflatten ravel narrow select isnan isinf isfinite isclose allclose equal sign
square reciprocal log1p log2 log10 expm1 sin cos tan erf floor ceil trunc logical_and logical_or logical_not logical_xor lerp addcmul
addcdiv atan2 clone count_nonzero zeros ones full empty arange linspace eye rand randn randint randperm zeros_like ones_like""".split()
METHODS = """view expand expand_as view_as reshape_as repeat numpy item tolist detach requires_grad_ retain_grad register_hook
backward zero_ fill_ copy_ add_ sub_ mul_ div_ clamp_ relu_ uniform_ normal_ masked_fill_ scatter_ scatter_add_ index_add_ lerp_
new_zeros new_ones new_full new_empty to cpu type_as float double half contiguous is_contiguous stride size dim""".split()
LAYERS = """Linear Bilinear Identity Conv1d Conv2d ConvTranspose2d MaxPool1d MaxPool2d AvgPool1d AvgPool2d AdaptiveAvgPool1d
AdaptiveAvgPool2d AdaptiveMaxPool1d AdaptiveMaxPool2d BatchNorm1d BatchNorm2d LayerNorm GroupNorm Dropout Flatten Unflatten ReLU GELU
SiLU Softmax LogSoftmax LeakyReLU ELU Softplus ReLU6 Hardtanh ModuleList ModuleDict ParameterList MultiheadAttention
TransformerEncoderLayer CrossEntropyLoss NLLLoss BCELoss BCEWithLogitsLoss MSELoss L1Loss SmoothL1Loss HuberLoss KLDivLoss""".split()
FUNCTIONAL = """relu gelu silu softmax log_softmax linear bilinear conv1d conv2d conv_transpose2d avg_pool1d avg_pool2d adaptive_avg_pool1d
adaptive_avg_pool2d batch_norm layer_norm group_norm dropout embedding pad scaled_dot_product_attention cross_entropy nll_loss
binary_cross_entropy binary_cross_entropy_with_logits mse_loss l1_loss smooth_l1_loss huber_loss kl_div leaky_relu elu softplus
logsigmoid relu6 hardtanh normalize one_hot tanh sigmoid""".split()
# Of other devices and other libraries, and older names of torch's for the same argument.
IGNORED = {"out", "layout", "pin_memory", "names", "memory_format", "generator", "requires_grad", "args", "kwargs"}
IGNORED |= {
    "self",
    "element",
    "value",
    "tensor2",
    "batch2",
    "divisor",
    "dividend",
    "dimension",
    "tensor",
    "reduce",
    "non_blocking",
}
IGNORED |= {"from", "min_value", "max_value"}


def documented(function):
    """Argument names by torch's documentation: compiled functions have no signature."""
    for line in (function.__doc__ or "").strip().splitlines():
        found = re.match(rf"\s*(?:\w+\.)*{function.__name__}\((.*)\)\s*->", line)
        if found:
            return re.findall(r"(?:^|, )(\w+)", re.sub(r"=\([^)]*\)|\[[^]]*\]", "", found[1]))
    return []


def arguments(function):
    made = getattr(function, "__nb_signature__", None)
    if made is None:
        try:
            return list(inspect.signature(function).parameters)
        except ValueError:
            return documented(function)
    return [name for entry in made for name in re.findall(r"(\w+)(?=:|,|\)|$)", entry[0])]


def missing(ours, theirs):
    known = arguments(ours)
    return [name for name in arguments(theirs) if name not in known and name not in IGNORED and "args" not in known]


@pytest.mark.parametrize(
    ("of", "names"), [("", FUNCTIONS), ("Tensor", METHODS), ("nn.functional", FUNCTIONAL), ("nn", LAYERS)]
)
def test_arguments_are_named_as_torchs(of, names):
    lacking = {}
    for name in names:
        ours, theirs = train, torch
        for part in [*filter(None, of.split(".")), name, *(["__init__"] if of == "nn" else [])]:
            ours, theirs = getattr(ours, part), getattr(theirs, part)
        if missing(ours, theirs):
            lacking[name] = missing(ours, theirs)
    assert not lacking
