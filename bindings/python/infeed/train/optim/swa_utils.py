"""Averages of a model's parameters over the steps of a training: plain, and exponential (EMA)."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from infeed.train import _train
from infeed.train._modes import no_grad
from infeed.train._train import Tensor
from infeed.train.nn.module import Module

Average = Callable[[Tensor, Tensor, Tensor], Tensor]
AverageAll = Callable[[list[Tensor], list[Tensor], Tensor], None]


def get_ema_multi_avg_fn(decay: float = 0.999) -> AverageAll:
    """average = decay average + (1 - decay) parameter, for all parameters at once."""
    if not 0.0 <= decay <= 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")

    def ema_update(ema_param_list: list[Tensor], current_param_list: list[Tensor], _: Tensor) -> None:
        with no_grad():
            for average, current in zip(ema_param_list, current_param_list):
                if average.is_floating_point():
                    average.lerp_(current.detach(), 1 - decay)
                else:
                    average.copy_(current)

    return ema_update


def get_ema_avg_fn(decay: float = 0.999) -> Average:
    if not 0.0 <= decay <= 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")

    def ema_update(ema_param: Tensor, current_param: Tensor, num_averaged: Tensor) -> Tensor:
        with no_grad():
            return decay * ema_param + (1 - decay) * current_param

    return ema_update


class AveragedModel(Module):
    """A copy of `model` whose parameters are averages: call update_parameters(model) after each step.

    Without a function it is the plain mean of all updates; the first update copies.
    """

    def __init__(
        self,
        model: Module,
        device: Any = None,
        avg_fn: Average | None = None,
        multi_avg_fn: AverageAll | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = copy.deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", _train.tensor(0, dtype=_train.int64, device=device))
        self.avg_fn, self.multi_avg_fn, self.use_buffers = avg_fn, multi_avg_fn, use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        averages, currents = self._tensors(self.module), self._tensors(model)
        with no_grad():
            if self.n_averaged.item() == 0:
                for average, current in zip(averages, currents):
                    average.copy_(current)
            elif self.multi_avg_fn is not None:
                self.multi_avg_fn(averages, currents, self.n_averaged)
            else:
                for average, current in zip(averages, currents):
                    average.copy_(self._average(average, current))
            if not self.use_buffers:
                for mine, theirs in zip(self.module.buffers(), model.buffers()):
                    mine.copy_(theirs)
            self.n_averaged.add_(1)

    def _tensors(self, model: Module) -> list[Tensor]:
        tensors: list[Tensor] = [parameter.detach() for parameter in model.parameters()]
        return tensors + ([buffer.detach() for buffer in model.buffers()] if self.use_buffers else [])

    def _average(self, average: Tensor, current: Tensor) -> Tensor:
        if self.avg_fn is not None:
            return self.avg_fn(average, current, self.n_averaged)
        return average + (current - average) / (self.n_averaged + 1)
