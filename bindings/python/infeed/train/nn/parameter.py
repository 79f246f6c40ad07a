"""Tensors that a Module registers when they are assigned to it."""

from __future__ import annotations

from typing import Any

from infeed.train import _train
from infeed.train._train import Tensor


class Parameter(Tensor):
    """A leaf that requires grad. Shares the memory of `data`."""

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Any:
        return _train._subclass(cls, _train.empty(0) if data is None else data, requires_grad)

    def __init__(self, data: Tensor | None = None, requires_grad: bool = True) -> None:
        pass  # made by __new__

    def __repr__(self) -> str:
        return "Parameter containing:\n" + super().__repr__()

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.data.clone(), self.requires_grad)
        return memo[id(self)]

    def __reduce__(self) -> Any:
        return _rebuild, (self.data, self.requires_grad)


def _rebuild(data: Tensor, requires_grad: bool) -> Parameter:
    return Parameter(data, requires_grad)


class Buffer(Tensor):
    """A tensor that a Module registers as a buffer when it is assigned."""

    persistent: bool

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True) -> Any:
        made = _train._subclass(cls, _train.empty(0) if data is None else data, False)
        made.persistent = persistent
        return made

    def __init__(self, data: Tensor | None = None, *, persistent: bool = True) -> None:
        pass
