"""Normalisation of batches, layers and groups."""

from __future__ import annotations

from typing import Any

from infeed.train import _train
from infeed.train._train import Tensor
from infeed.train.nn import functional as F
from infeed.train.nn import init
from infeed.train.nn._sizes import Sizes
from infeed.train.nn.layers import _empty
from infeed.train.nn.module import Module


class _Scaled(Module):
    """What is normalised is scaled and shifted by weights that are learned, where there are any."""

    def reset_parameters(self) -> None:
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)


class _BatchNorm(_Scaled):
    """By the batch in training, by the running statistics in evaluation."""

    _version = 2  # since num_batches_tracked
    _dims: tuple[int, ...] = ()

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        place = {"device": device, "dtype": dtype}
        self.register_parameter("weight", _empty(num_features, **place) if affine else None)
        self.register_parameter("bias", _empty(num_features, **place) if affine and bias else None)
        tracked = track_running_stats
        self.register_buffer("running_mean", _train.zeros(num_features, **place) if tracked else None)
        self.register_buffer("running_var", _train.ones(num_features, **place) if tracked else None)
        count = _train.tensor(0, dtype=_train.int64, device=device) if tracked else None
        self.register_buffer("num_batches_tracked", count)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        self.reset_running_stats()
        super().reset_parameters()

    def _check(self, input: Tensor) -> None:
        if input.ndim not in self._dims:
            names = " or ".join(f"{dim}D" for dim in self._dims)
            raise ValueError(f"expected {names} input (got {input.ndim}D input)")

    def forward(self, input: Tensor) -> Tensor:
        self._check(input)
        average = 0.0 if self.momentum is None else self.momentum
        tracks = self.training and self.track_running_stats
        if tracks and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:  # the plain average of all batches
                average = 1.0 / float(self.num_batches_tracked)
        by_batch = self.training or (self.running_mean is None and self.running_var is None)
        keeps = not self.training or self.track_running_stats
        return F.batch_norm(
            input,
            self.running_mean if keeps else None,
            self.running_var if keeps else None,
            self.weight,
            self.bias,
            by_batch,
            average,
            self.eps,
        )

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"track_running_stats={self.track_running_stats}"
        )


class BatchNorm1d(_BatchNorm):
    _dims = (2, 3)


class BatchNorm2d(_BatchNorm):
    _dims = (4,)


class LayerNorm(_Scaled):
    """The last dimensions of every sample to mean 0 and variance 1."""

    def __init__(
        self,
        normalized_shape: Sizes,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        place = {"device": device, "dtype": dtype}
        affine = elementwise_affine
        self.register_parameter("weight", _empty(*self.normalized_shape, **place) if affine else None)
        self.register_parameter("bias", _empty(*self.normalized_shape, **place) if affine and bias else None)
        self.reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class GroupNorm(_Scaled):
    """Groups of channels of every sample to mean 0 and variance 1."""

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_channels % num_groups != 0:
            raise ValueError("num_channels must be divisible by num_groups")
        self.num_groups, self.num_channels, self.eps, self.affine = num_groups, num_channels, eps, affine
        self.register_parameter("weight", _empty(num_channels, device=device, dtype=dtype) if affine else None)
        with_bias = affine and bias
        self.register_parameter("bias", _empty(num_channels, device=device, dtype=dtype) if with_bias else None)
        self.reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}"
