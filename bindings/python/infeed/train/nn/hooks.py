"""Functions that run around a module's forward() and backward()."""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any
from weakref import ref

from infeed.train._train import Tensor
from infeed.train.autograd import Function

_ids = itertools.count()


class RemovableHandle:
    """Takes a hook away again."""

    def __init__(self, hooks: HookList, id: int) -> None:
        self.id, self._hooks = id, ref(hooks)

    def remove(self) -> None:
        hooks = self._hooks()
        if hooks is not None:
            hooks.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()


class HookList(OrderedDict[int, tuple[Callable[..., Any], Any]]):
    """Hooks in the order in which they run, each with what it was registered with."""

    def add(self, hook: Callable[..., Any], extra: Any = None, prepend: bool = False) -> RemovableHandle:
        id = next(_ids)
        self[id] = hook, extra
        if prepend:
            self.move_to_end(id, last=False)
        return RemovableHandle(self, id)

    def each(self) -> Iterator[tuple[Callable[..., Any], Any]]:
        return iter(list(self.values()))  # a hook may remove itself

    def __deepcopy__(self, memo: dict[int, Any]) -> HookList:
        return HookList(self)


class _Border(Function):
    """The identity over all tensors of a module's inputs or outputs: one node, whose gradients can be seen together."""

    @staticmethod
    def forward(ctx: Any, *tensors: Tensor) -> Any:
        ctx.set_materialize_grads(False)
        return tuple(tensor.detach() for tensor in tensors)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> Any:
        return grads


class BackwardHooks:
    """One call of a module with full backward hooks: wraps its inputs and outputs."""

    def __init__(self, module: Any, hooks: HookList, pre_hooks: HookList) -> None:
        self._module, self._hooks, self._pre_hooks = module, hooks, pre_hooks
        self._outputs: tuple[Tensor | None, ...] = ()
        self._unwatched: tuple[None, ...] | None = None  # in place of the inputs' gradients where none has one

    def inputs(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """`args`, watched: after the module's backward the hooks see the gradients of both sides."""

        watched = self._watched(args, lambda node: node.register_hook(lambda grads, _: self._run_hooks(grads)))
        if watched is args:
            self._unwatched = (None,) * len(args)
        return watched

    def _run_hooks(self, grad_inputs: Any) -> Any:
        for hook, _ in self._hooks.each():
            changed = hook(self._module, grad_inputs, self._outputs)
            if changed is not None:
                grad_inputs = changed if isinstance(changed, tuple) else (changed,)
        return grad_inputs

    def output(self, value: Any) -> Any:
        """What forward() returned, watched: before the module's backward the hooks see its gradients."""

        def before(grads: Any) -> Any:
            for hook, _extra in self._pre_hooks.each():
                changed = hook(self._module, grads)
                if changed is not None:
                    grads = changed if isinstance(changed, tuple) else (changed,)
            self._outputs = grads
            if self._unwatched is not None:
                self._run_hooks(self._unwatched)
            return grads

        single = isinstance(value, Tensor)
        watched = self._watched((value,) if single else tuple(value), lambda node: node.register_prehook(before))
        return watched[0] if single else type(value)(watched)

    @staticmethod
    def _watched(values: tuple[Any, ...], register: Callable[[Any], Any]) -> tuple[Any, ...]:
        tensors = [value for value in values if isinstance(value, Tensor)]
        if not any(tensor.requires_grad for tensor in tensors):
            return values
        through = iter(_Border.apply(*tensors))
        replaced = tuple(next(through) if isinstance(value, Tensor) else value for value in values)
        node = next(v.grad_fn for v in replaced if isinstance(v, Tensor) and v.grad_fn is not None)
        register(node)
        return replaced
