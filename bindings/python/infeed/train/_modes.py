"""Switches of the calling thread, as context managers and as decorators."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from infeed.train import _train

_F = TypeVar("_F", bound=Callable[..., Any])


class Switch:
    """`with Switch():` and `@Switch()`. Guards may be used again, and inside themselves."""

    def __init__(self) -> None:
        self._before: list[Any] = []

    def _enter(self) -> Any:
        """Switches, and returns what _exit restores."""
        raise NotImplementedError

    def _exit(self, before: Any) -> None:
        raise NotImplementedError

    def _again(self) -> Switch:
        """Another one, for a call of a decorated function."""
        return type(self)()

    def __enter__(self) -> Any:
        self._before.append(self._enter())
        return None

    def __exit__(self, *exception: object) -> None:
        self._exit(self._before.pop())

    def __call__(self, function: _F) -> _F:
        if inspect.isgeneratorfunction(function):
            return self._decorate_generator(function)  # type: ignore[return-value]

        @functools.wraps(function)
        def guarded(*args: Any, **kwargs: Any) -> Any:
            with self._again():
                return function(*args, **kwargs)

        return guarded  # type: ignore[return-value]

    # The body of a generator runs switched; what runs between its values does not.
    def _decorate_generator(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def guarded(*args: Any, **kwargs: Any) -> Any:
            with self._again():
                generator = function(*args, **kwargs)
            sent: Any = None
            while True:
                try:
                    with self._again():
                        value = generator.send(sent)
                except StopIteration as end:
                    return end.value
                sent = yield value

        return guarded


class _Plain(Switch):
    """May decorate without parentheses: `@no_grad`."""

    def __new__(cls, function: Callable[..., Any] | None = None) -> Any:
        return super().__new__(cls) if function is None else cls()(function)


class _Recording(_Plain):
    _records: bool

    def _enter(self) -> bool:
        before = _train.is_grad_enabled()
        _train._set_grad_enabled(self._records)
        return before

    def _exit(self, before: bool) -> None:
        _train._set_grad_enabled(before)


class no_grad(_Recording):
    """Operations record no graph; their results do not require grad."""

    _records = False


class enable_grad(_Recording):
    """Records the graph, inside no_grad as well."""

    _records = True


class set_grad_enabled(Switch):
    """Takes effect at once; as a context manager it is undone at the end."""

    def __init__(self, mode: bool) -> None:
        super().__init__()
        self.mode = mode
        self._outer = _train.is_grad_enabled()
        _train._set_grad_enabled(mode)

    def __call__(self, function: _F) -> _F:
        _train._set_grad_enabled(self._outer)
        return super().__call__(function)

    def _again(self) -> Switch:
        return set_grad_enabled(self.mode)

    def _enter(self) -> bool:
        _train._set_grad_enabled(self.mode)
        return self._outer

    def _exit(self, before: bool) -> None:
        _train._set_grad_enabled(before)


class inference_mode(Switch):
    """Evaluation at the least cost: tensors made here have no version and are refused by autograd later."""

    def __new__(cls, mode: Any = True) -> Any:
        return super().__new__(cls) if isinstance(mode, bool) else cls()(mode)

    def __init__(self, mode: bool = True) -> None:
        super().__init__()
        self.mode = mode

    def _again(self) -> Switch:
        return inference_mode(self.mode)

    def _enter(self) -> tuple[bool, bool]:
        before = _train.is_grad_enabled(), _train.is_inference_mode_enabled()
        _train._set_inference_mode(self.mode)
        _train._set_grad_enabled(not self.mode)
        return before

    def _exit(self, before: tuple[bool, bool]) -> None:
        _train._set_inference_mode(before[1])
        _train._set_grad_enabled(before[0])
