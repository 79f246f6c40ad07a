"""LSTM and GRU, step by step over linear layers."""

from __future__ import annotations

import math
from typing import Any

from infeed.train import _train
from infeed.train._train import Tensor
from infeed.train.nn import functional as F
from infeed.train.nn import init
from infeed.train.nn.layers import _empty
from infeed.train.nn.module import Module


class _Recurrent(Module):
    """Weights named weight_ih_l0, weight_hh_l0, bias_ih_l0, ..., with _reverse for the second direction."""

    _gates = 1

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if hidden_size <= 0:
            raise ValueError("hidden_size must be greater than zero")
        if num_layers <= 0:
            raise ValueError("num_layers must be greater than zero")
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.dropout, self.bidirectional = bias, batch_first, dropout, bidirectional
        self._suffixes = [
            f"_l{layer}{reverse}" for layer in range(num_layers) for reverse in ("", "_reverse")[: 1 + bidirectional]
        ]
        gates, place = self._gates * hidden_size, {"device": device, "dtype": dtype}
        for number, suffix in enumerate(self._suffixes):
            first = number < 1 + bidirectional
            width = input_size if first else hidden_size * (1 + bidirectional)
            self.register_parameter("weight_ih" + suffix, _empty(gates, width, **place))
            self.register_parameter("weight_hh" + suffix, _empty(gates, hidden_size, **place))
            if bias:
                self.register_parameter("bias_ih" + suffix, _empty(gates, **place))
                self.register_parameter("bias_hh" + suffix, _empty(gates, **place))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def _zeros(self, x: Tensor) -> Tensor:
        return _train.zeros(len(self._suffixes), x.shape[1], self.hidden_size, dtype=x.dtype, device=x.device)

    # One direction of one layer over [L, N, ...]: outputs [L, N, H] and the last state.
    def _run(self, x: Tensor, suffix: str, state: tuple[Tensor, ...]) -> tuple[Tensor, tuple[Tensor, ...]]:
        bias_ih = getattr(self, "bias_ih" + suffix) if self.bias else None
        bias_hh = getattr(self, "bias_hh" + suffix) if self.bias else None
        weight_hh = getattr(self, "weight_hh" + suffix)
        inputs = F.linear(x, getattr(self, "weight_ih" + suffix), bias_ih).unbind(0)
        backwards = suffix.endswith("_reverse")
        outputs = []
        for step in reversed(inputs) if backwards else inputs:
            state = self._step(step, F.linear(state[0], weight_hh, bias_hh), state)
            outputs.append(state[0])
        return _train.stack(outputs[::-1] if backwards else outputs), state

    def _step(self, from_input: Tensor, from_hidden: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        raise NotImplementedError

    def _layers(self, input: Tensor, states: tuple[Tensor, ...]) -> tuple[Tensor, tuple[Tensor, ...]]:
        ways, x, last = 1 + self.bidirectional, input, []
        for layer in range(self.num_layers):
            outputs = []
            for way in range(ways):
                at = layer * ways + way
                output, state = self._run(x, self._suffixes[at], tuple(s[at] for s in states))
                outputs.append(output)
                last.append(state)
            x = outputs[0] if ways == 1 else _train.cat(outputs, -1)
            if layer + 1 < self.num_layers:
                x = F.dropout(x, self.dropout, self.training and self.dropout > 0.0)
        return x, tuple(_train.stack(list(parts)) for parts in zip(*last))

    def _check(self, input: Tensor, states: tuple[Tensor, ...] | None) -> None:
        name, batched = type(self).__name__, input.ndim == 3
        if input.ndim not in (2, 3):
            raise ValueError(f"{name}: Expected input to be 2D or 3D, got {input.ndim}D instead")
        if input.shape[-1] != self.input_size:
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.shape[-1]}"
            )
        if input.shape[1 if batched and self.batch_first else 0] == 0:
            raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
        batch = [input.shape[0 if self.batch_first else 1]] if batched else []
        expected = (len(self._suffixes), *batch, self.hidden_size)
        for at, state in enumerate(states or ()):
            if state.ndim != input.ndim:
                raise RuntimeError(
                    f"For {'' if batched else 'un'}batched {input.ndim}-D input, hx should also be {input.ndim}-D "
                    f"but got {state.ndim}-D tensor"
                )
            if tuple(state.shape) != expected:
                which = f"hidden[{at}]" if isinstance(self, LSTM) else "hidden"
                raise RuntimeError(f"Expected {which} size {expected}, got {list(state.shape)}")

    def _forward(self, input: Tensor, states: tuple[Tensor, ...] | None) -> tuple[Tensor, tuple[Tensor, ...]]:
        self._check(input, states)
        batched = input.ndim == 3
        x = input if batched else input.unsqueeze(0 if self.batch_first else 1)
        x = x.transpose(0, 1) if self.batch_first else x
        if states is None:
            states = (self._zeros(x),) * (2 if isinstance(self, LSTM) else 1)
        elif not batched:
            states = tuple(state.unsqueeze(1) for state in states)
        out, last = self._layers(x, states)
        out = out.transpose(0, 1) if self.batch_first else out
        if batched:
            return out, last
        return out.squeeze(0 if self.batch_first else 1), tuple(state.squeeze(1) for state in last)

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}" + (f", num_layers={self.num_layers}" * (self.num_layers != 1))


class LSTM(_Recurrent):
    """Outputs of every step, and (h, c) after the last."""

    _gates = 4

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, tuple[Tensor, ...]]:
        return self._forward(input, hx)

    def _step(self, from_input: Tensor, from_hidden: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        i, f, g, o = (from_input + from_hidden).chunk(4, -1)
        c = f.sigmoid() * state[1] + i.sigmoid() * g.tanh()
        return o.sigmoid() * c.tanh(), c


class GRU(_Recurrent):
    """Outputs of every step, and h after the last."""

    _gates = 3

    def forward(self, input: Tensor, hx: Tensor | None = None) -> tuple[Tensor, Tensor]:
        out, (last,) = self._forward(input, None if hx is None else (hx,))
        return out, last

    def _step(self, from_input: Tensor, from_hidden: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        (ir, iz, inn), (hr, hz, hn) = from_input.chunk(3, -1), from_hidden.chunk(3, -1)
        reset, update = (ir + hr).sigmoid(), (iz + hz).sigmoid()
        new = (inn + reset * hn).tanh()
        return (new + update * (state[0] - new),)
