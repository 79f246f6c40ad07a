"""What all schedules share: counting epochs, setting rates, warning of steps in the wrong order."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

from infeed.train.optim.optimizer import Optimizer

Rates = list[float]


class LRScheduler:
    """Base of the schedules: subclasses give get_lr(), the rates at `last_epoch`."""

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        self.optimizer = optimizer
        for number, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", group["lr"])
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{number}] when resuming an optimizer"
                )
        self.base_lrs: Rates = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch, self._step_count = last_epoch, 0
        self._last_lr: Rates = []
        self._watch()
        self._initial_step()

    # Notices optimizer.step(): the first scheduler.step() before it would skip the first rate.
    def _watch(self) -> None:
        def stepped(optimizer: Optimizer, args: Any, kwargs: Any) -> None:
            optimizer.__dict__["_stepped"] = True

        if "_stepped" not in self.optimizer.__dict__:
            self.optimizer.__dict__["_stepped"] = False
            self.optimizer.register_step_post_hook(stepped)

    def _initial_step(self) -> None:
        self._step_count = 0
        self.step()

    def get_last_lr(self) -> Rates:
        return self._last_lr

    def get_lr(self) -> Rates:
        raise NotImplementedError

    def step(self, epoch: int | None = None) -> None:
        self._step_count += 1
        if self._step_count == 2 and not self.optimizer.__dict__.get("_stepped", True):
            warnings.warn(
                "Detected call of `lr_scheduler.step()` before `optimizer.step()`. In PyTorch 1.1.0 and later, you should "
                "call them in the opposite order: `optimizer.step()` before `lr_scheduler.step()`.  Failure to do this will "
                "result in PyTorch skipping the first value of the learning rate schedule.",
                UserWarning,
                stacklevel=2,
            )
        if epoch is None:
            self.last_epoch += 1
            rates = self.get_lr()
        else:
            self.last_epoch = epoch
            closed = getattr(self, "_get_closed_form_lr", None)
            rates = self.get_lr() if closed is None else closed()
        self._set(rates)

    def _set(self, rates: Iterable[float]) -> None:
        for group, rate in zip(self.optimizer.param_groups, rates):
            group["lr"] = rate
        self._last_lr = self._present()

    def _present(self) -> Rates:
        return [group["lr"] for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.__dict__.update(state_dict)


def one_each(value: Any, optimizer: Optimizer, name: str) -> list[Any]:
    groups = len(optimizer.param_groups)
    if not isinstance(value, (list, tuple)):
        return [value] * groups
    if len(value) != groups:
        raise ValueError(f"Expected {groups} values for {name}, but got {len(value)}")
    return list(value)
