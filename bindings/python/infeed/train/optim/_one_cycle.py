"""The schedule of one training: OneCycleLR."""

from __future__ import annotations

import math
from typing import Any

from infeed.train.optim._schedule import LRScheduler, Rates, one_each
from infeed.train.optim.optimizer import Optimizer


def _count_steps(total_steps: int | None, epochs: int | None, steps_per_epoch: int | None) -> int:
    if total_steps is not None:
        if total_steps <= 0 or not isinstance(total_steps, int):
            raise ValueError(f"Expected positive integer total_steps, but got {total_steps}")
        return total_steps
    if epochs is None or steps_per_epoch is None:
        raise ValueError(
            "You must define either total_steps OR (epochs AND steps_per_epoch) for CosineAnnealingWarmRestarts."
        )
    return epochs * steps_per_epoch


class OneCycleLR(LRScheduler):
    """Up to max_lr and down to almost nothing within one training; momentum the other way round"""

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | list[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.85,
        max_momentum: float | list[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        self.total_steps = _count_steps(total_steps, epochs, steps_per_epoch)
        if not 0 <= pct_start <= 1:
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self._anneal_strategy, self.cycle_momentum = anneal_strategy, cycle_momentum
        self._phases = self._make_phases(pct_start, three_phase)
        peaks = one_each(max_lr, optimizer, "max_lr")
        if last_epoch == -1:
            for group, peak in zip(optimizer.param_groups, peaks):
                group["initial_lr"] = peak / div_factor
                group["max_lr"] = peak
                group["min_lr"] = group["initial_lr"] / final_div_factor
        if cycle_momentum:
            self._prepare_momentum(optimizer, base_momentum, max_momentum, last_epoch)
        super().__init__(optimizer, last_epoch)

    # (last step, rate at its start, at its end, momentum at its start, at its end)
    def _make_phases(self, pct_start: float, three_phase: bool) -> list[tuple[float, str, str, str, str]]:
        last, top = self.total_steps - 1, pct_start * self.total_steps - 1
        up = (top, "initial_lr", "max_lr", "max_momentum", "base_momentum")
        if not three_phase:
            return [up, (last, "max_lr", "min_lr", "base_momentum", "max_momentum")]
        down = (2 * pct_start * self.total_steps - 2, "max_lr", "initial_lr", "base_momentum", "max_momentum")
        return [up, down, (last, "initial_lr", "min_lr", "max_momentum", "max_momentum")]

    def _prepare_momentum(self, optimizer: Optimizer, base: Any, top: Any, last_epoch: int) -> None:
        if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
            raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
        self.use_beta1 = "betas" in optimizer.defaults
        if last_epoch != -1:
            return
        bases, tops = one_each(base, optimizer, "base_momentum"), one_each(top, optimizer, "max_momentum")
        for group, low, high in zip(optimizer.param_groups, bases, tops):
            self._set_momentum(group, high)
            group["base_momentum"], group["max_momentum"] = low, high

    def _set_momentum(self, group: dict[str, Any], value: float) -> None:
        if self.use_beta1:
            group["betas"] = (value, *group["betas"][1:])
        else:
            group["momentum"] = value

    def _between(self, start: float, end: float, part: float) -> float:
        if self._anneal_strategy == "linear":
            return (end - start) * part + start
        return end + (start - end) / 2.0 * (math.cos(math.pi * part) + 1)

    def get_lr(self) -> Rates:
        if self.last_epoch > self.total_steps:
            raise ValueError(
                f"Tried to step {self.last_epoch} times. The specified number of total steps is {self.total_steps}"
            )
        first, rates = 0.0, []
        for number, phase in enumerate(self._phases):
            if self.last_epoch <= phase[0] or number == len(self._phases) - 1:
                break
            first = phase[0]
        part = (self.last_epoch - first) / (phase[0] - first)
        for group in self.optimizer.param_groups:
            rates.append(self._between(group[phase[1]], group[phase[2]], part))
            if self.cycle_momentum:
                self._set_momentum(group, self._between(group[phase[3]], group[phase[4]], part))
        return rates
