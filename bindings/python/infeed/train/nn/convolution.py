"""Convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from infeed.train._train import Tensor
from infeed.train.nn import functional as F
from infeed.train.nn._sizes import Sizes, numbers
from infeed.train.nn.layers import _empty, _reset_like_linear
from infeed.train.nn.module import Module


class _Conv(Module):
    """Options and parameters of all convolutions."""

    _count = 2
    _transposed = False

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Any = 0,
        dilation: Sizes = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if in_channels % groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups != 0:
            raise ValueError("out_channels must be divisible by groups")
        if padding_mode != "zeros" and (isinstance(padding, str) or self._transposed):
            raise NotImplementedError(f"padding_mode={padding_mode!r} works with numbers as padding only")
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size = numbers(kernel_size, self._count, "kernel_size")
        self.stride = numbers(stride, self._count, "stride")
        self.padding = padding if isinstance(padding, str) else numbers(padding, self._count, "padding")
        self.dilation = numbers(dilation, self._count, "dilation")
        self.padding_mode = padding_mode
        ends = (in_channels, out_channels // groups) if self._transposed else (out_channels, in_channels // groups)
        self.weight = _empty(*ends, *self.kernel_size, device=device, dtype=dtype)
        self.register_parameter("bias", _empty(out_channels, device=device, dtype=dtype) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        _reset_like_linear(self.weight, self.bias)

    def _convolve(self, run: Any, input: Tensor) -> Tensor:
        padding: Any = self.padding
        if self.padding_mode != "zeros":
            ends: list[Any] = [end for around in reversed(self.padding) for end in (around, around)]
            input, padding = F.pad(input, ends, self.padding_mode), 0
        return run(input, self.weight, self.bias, self.stride, padding, self.dilation, self.groups)

    def extra_repr(self) -> str:
        parts = [f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"]
        if self.padding != (0,) * self._count:
            parts.append(f"padding={self.padding}")
        if self.dilation != (1,) * self._count:
            parts.append(f"dilation={self.dilation}")
        if self.groups != 1:
            parts.append(f"groups={self.groups}")
        if self.bias is None:
            parts.append("bias=False")
        if self.padding_mode != "zeros":
            parts.append(f"padding_mode={self.padding_mode}")
        return ", ".join(parts)


class Conv1d(_Conv):
    _count = 1

    def forward(self, input: Tensor) -> Tensor:
        return self._convolve(F.conv1d, input)


class Conv2d(_Conv):
    def forward(self, input: Tensor) -> Tensor:
        return self._convolve(F.conv2d, input)


class ConvTranspose2d(_Conv):
    _transposed = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Sizes = 0,
        output_padding: Sizes = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Sizes = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )
        self.output_padding = numbers(output_padding, 2, "output_padding")

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        return F.conv_transpose2d(
            input,
            self.weight,
            self.bias,
            self.stride,
            self.padding,  # type: ignore[arg-type]
            self.output_padding if output_size is None else self._padding_for(input, output_size),
            self.groups,
            self.dilation,
        )

    def _padding_for(self, input: Tensor, output_size: Sequence[int]) -> tuple[int, ...]:
        least = [
            (input.shape[-2 + i] - 1) * self.stride[i]
            - 2 * self.padding[i]
            + self.dilation[i] * (self.kernel_size[i] - 1)
            + 1
            for i in range(2)
        ]
        return tuple(wanted - low for wanted, low in zip(output_size[-2:], least))
