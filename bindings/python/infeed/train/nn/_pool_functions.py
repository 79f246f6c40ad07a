"""Pooling as functions: part of nn.functional. Over the last dimension of [N, C, L], or the last two of [N, C, H, W]."""

from __future__ import annotations

from typing import Any

from infeed.train import _train
from infeed.train._train import Tensor
from infeed.train.nn._sizes import Sizes, numbers

Window = tuple[int, ...]


def _windows(count: int, kernel_size: Sizes, stride: Sizes | None, padding: Sizes) -> tuple[Window, Window, Window]:
    kernel = numbers(kernel_size, count, "kernel_size")
    step = kernel if stride is None or stride == [] or stride == () else numbers(stride, count, "stride")
    return kernel, step, numbers(padding, count, "padding")


def max_pool2d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Largest value of each window; with return_indices also where it is, row * W + column."""
    spread = numbers(dilation, 2, "dilation")
    return _train._max_pool(input, *_windows(2, kernel_size, stride, padding), spread, ceil_mode, return_indices)


def max_pool1d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    spread = numbers(dilation, 1, "dilation")
    return _train._max_pool(input, *_windows(1, kernel_size, stride, padding), spread, ceil_mode, return_indices)


def avg_pool2d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """Mean of each window."""
    windows = _windows(2, kernel_size, stride, padding)
    return _train._avg_pool(input, *windows, ceil_mode, count_include_pad, divisor_override)


def avg_pool1d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    return _train._avg_pool(input, *_windows(1, kernel_size, stride, padding), ceil_mode, count_include_pad, None)


# None keeps the input's size.
def _output_sizes(output_size: Any, input: Tensor, count: int) -> tuple[int, ...]:
    wanted = (output_size,) * count if isinstance(output_size, int) or output_size is None else tuple(output_size)
    return tuple(size if want is None else want for want, size in zip(wanted, input.shape[-count:]))


def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
    """Means of as many windows as asked for."""
    return _train._adaptive_avg_pool(input, _output_sizes(output_size, input, 2))


def adaptive_avg_pool1d(input: Tensor, output_size: Any) -> Tensor:
    return _train._adaptive_avg_pool(input, _output_sizes(output_size, input, 1))


def adaptive_max_pool2d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Largest values of as many windows as asked for."""
    values, indices = _train._adaptive_max_pool(input, _output_sizes(output_size, input, 2))
    return (values, indices) if return_indices else values


def adaptive_max_pool1d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    values, indices = _train._adaptive_max_pool(input, _output_sizes(output_size, input, 1))
    return (values, indices) if return_indices else values
