"""Layers as functions of their parameters. Under autocast products run in its dtype, losses in float32."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

from infeed.train import _train
from infeed.train._train import Tensor, dtype
from infeed.train.nn._loss_functions import binary_cross_entropy as binary_cross_entropy
from infeed.train.nn._loss_functions import binary_cross_entropy_with_logits as binary_cross_entropy_with_logits
from infeed.train.nn._loss_functions import cross_entropy as cross_entropy
from infeed.train.nn._loss_functions import huber_loss as huber_loss
from infeed.train.nn._loss_functions import kl_div as kl_div
from infeed.train.nn._loss_functions import l1_loss as l1_loss
from infeed.train.nn._loss_functions import mse_loss as mse_loss
from infeed.train.nn._loss_functions import nll_loss as nll_loss
from infeed.train.nn._loss_functions import smooth_l1_loss as smooth_l1_loss
from infeed.train.nn._pool_functions import adaptive_avg_pool1d as adaptive_avg_pool1d
from infeed.train.nn._pool_functions import adaptive_avg_pool2d as adaptive_avg_pool2d
from infeed.train.nn._pool_functions import adaptive_max_pool1d as adaptive_max_pool1d
from infeed.train.nn._pool_functions import adaptive_max_pool2d as adaptive_max_pool2d
from infeed.train.nn._pool_functions import avg_pool1d as avg_pool1d
from infeed.train.nn._pool_functions import avg_pool2d as avg_pool2d
from infeed.train.nn._pool_functions import max_pool1d as max_pool1d
from infeed.train.nn._pool_functions import max_pool2d as max_pool2d
from infeed.train.nn._sizes import Sizes as Sizes
from infeed.train.nn._sizes import numbers

gelu, logsigmoid, softplus = _train.gelu, _train.logsigmoid, _train.softplus
pad, one_hot = _train.pad, _train.one_hot
tanh, sigmoid = _train.tanh, _train.sigmoid


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    return input.relu_() if inplace else _train.relu(input)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    return _train.silu_(input) if inplace else _train.silu(input)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    return _train.elu_(input, alpha) if inplace else _train.elu(input, alpha)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    return _train.leaky_relu_(input, negative_slope) if inplace else _train.leaky_relu(input, negative_slope)


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    return _train.hardtanh_(input, min_val, max_val) if inplace else _train.hardtanh(input, min_val, max_val)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    return hardtanh(input, 0.0, 6.0, inplace)


def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: dtype | None = None) -> Tensor:
    return _train.softmax(input, _chosen(dim, input, "softmax"), dtype)


def log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: dtype | None = None) -> Tensor:
    return _train.log_softmax(input, _chosen(dim, input, "log_softmax"), dtype)


def _chosen(dim: int | None, input: Tensor, name: str) -> int:
    if dim is not None:
        return dim
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.",
        stacklevel=3,
    )
    return 0 if input.ndim in (0, 1, 3) else 1


# ---- Layers ----


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """input weight^T + bias over the last dimension."""
    return _train.linear(input, weight, bias)


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """out[..., k] = input1 weight[k] input2"""
    if input1.dtype in (_train.float16, _train.bfloat16):  # rounded once
        wide = [x if x is None else x.float() for x in (input1, input2, weight, bias)]
        return bilinear(*wide).to(input1.dtype)  # type: ignore[arg-type]
    products = (input1.unsqueeze(-1) * input2.unsqueeze(-2)).flatten(-2)
    return _train.linear(products, weight.flatten(1), bias)


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Rows of `weight`; the one at padding_idx gets no gradient."""
    if max_norm is not None or scale_grad_by_freq or sparse:
        raise NotImplementedError("embedding(): max_norm, scale_grad_by_freq and sparse are not supported")
    rows = weight.shape[0]
    if padding_idx is not None and not -rows <= padding_idx < rows:
        raise AssertionError("Padding_idx must be within num_embeddings")
    return _train.embedding(weight, input, -1 if padding_idx is None else padding_idx % rows)


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Elements become zero with probability p, the others are divided by 1 - p; only in training."""
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    if not training:
        return input
    return _train.dropout_(input, p) if inplace else _train.dropout(input, p)


# `padding` may be "valid", or "same" where the stride is 1: then more zeros stand behind than before.
def _padded(
    input: Tensor, weight: Tensor, stride: tuple[int, ...], padding: Any, dilation: tuple[int, ...]
) -> tuple[Tensor, tuple[int, ...]]:
    count = len(stride)
    if not isinstance(padding, str):
        return input, numbers(padding, count, "padding")
    if padding == "valid":
        return input, (0,) * count
    if padding != "same":
        raise RuntimeError(f"Invalid padding string {padding!r}, should be one of 'valid', 'same'")
    if any(step != 1 for step in stride):
        raise RuntimeError("padding='same' is not supported for strided convolutions")
    total = [d * (k - 1) for d, k in zip(dilation, weight.shape[2:])]
    if all(t % 2 == 0 for t in total):
        return input, tuple(t // 2 for t in total)
    ends = [end for t in reversed(total) for end in (t // 2, t - t // 2)]
    return pad(input, ends), (0,) * count


def _conv(
    run: Any,
    count: int,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sizes,
    padding: Any,
    dilation: Sizes,
    groups: int,
) -> Tensor:
    steps, spread = numbers(stride, count, "stride"), numbers(dilation, count, "dilation")
    x, around = _padded(input, weight, steps, padding, spread)
    return run(x, weight, bias, steps, around, spread, groups)


def conv1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Any = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:
    """Cross-correlation of [N, C, L] with [O, C / groups, k]."""
    return _conv(_train.conv1d, 1, input, weight, bias, stride, padding, dilation, groups)


def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Any = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:
    """Cross-correlation of [N, C, H, W] with [O, C / groups, kh, kw]."""
    return _conv(_train.conv2d, 2, input, weight, bias, stride, padding, dilation, groups)


def conv_transpose2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    output_padding: Sizes = 0,
    groups: int = 1,
    dilation: Sizes = 1,
) -> Tensor:
    """What conv2d's backward computes: [N, C, H, W] with [C, O / groups, kh, kw]."""
    return _train.conv_transpose2d(
        input,
        weight,
        bias,
        numbers(stride, 2, "stride"),
        numbers(padding, 2, "padding"),
        numbers(output_padding, 2, "output_padding"),
        numbers(dilation, 2, "dilation"),
        groups,
    )


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Each channel by the batch's mean and variance, or by the running ones; training moves those."""
    if training and math.prod(input.shape) == input.shape[1]:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {input.size()}")
    return _train.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)


def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """The last dimensions to mean 0 and variance 1."""
    return _train.layer_norm(input, tuple(normalized_shape), weight, bias, eps)


def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """Groups of channels to mean 0 and variance 1."""
    return _train.group_norm(input, num_groups, weight, bias, eps)


def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Tensor:
    return input / input.norm(p, dim, keepdim=True).clamp_min(eps).expand_as(input)


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """softmax(query key^T scale + mask) value over the last two dimensions."""
    if attn_mask is not None and is_causal:
        raise RuntimeError("scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True")
    return _train.scaled_dot_product_attention(query, key, value, attn_mask, dropout_p, is_causal, scale)
