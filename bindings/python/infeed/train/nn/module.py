"""Module: what is called, trained, moved and printed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from infeed.train import _train
from infeed.train._modes import no_grad
from infeed.train._train import Tensor, device, dtype
from infeed.train.nn.hooks import BackwardHooks, HookList, RemovableHandle
from infeed.train.nn.members import ModuleMembers
from infeed.train.nn.parameter import Parameter

if TYPE_CHECKING:
    from typing_extensions import Self


class Module(ModuleMembers):
    """Base of all layers and models.

    Parameters, buffers and modules that are assigned as attributes are registered under their names:

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(784, 10)

            def forward(self, x):
                return self.fc(x.flatten(1))
    """

    training: bool
    _version = 1  # of a layer's state, beside its tensors in a state_dict

    def __init__(self) -> None:
        own = self.__dict__  # __setattr__ looks into these
        own.update(training=True, _parameters={}, _buffers={}, _modules={}, _non_persistent_buffers_set=set())
        own.update((name, HookList()) for name in _HOOKS)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')

    # ---- Calling ----

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not (
            self._forward_pre_hooks
            or self._forward_hooks
            or self._backward_hooks
            or self._backward_pre_hooks
            or _global_hooks
        ):
            return self.forward(*args, **kwargs)
        return self._call_with_hooks(args, kwargs)

    def _call_with_hooks(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        always = [hook for hook, extra in self._forward_hooks.each() if extra[1]]
        try:
            args, kwargs = self._run_pre_hooks(args, kwargs)
            backward = None
            if self._backward_hooks or self._backward_pre_hooks:
                backward = BackwardHooks(self, self._backward_hooks, self._backward_pre_hooks)
                args = backward.inputs(args)
            result = self.forward(*args, **kwargs)
            for hook, (with_kwargs, is_always) in [*_global_hooks.forward.each(), *self._forward_hooks.each()]:
                if is_always:
                    always.remove(hook)
                changed = hook(self, args, kwargs, result) if with_kwargs else hook(self, args, result)
                result = result if changed is None else changed
            return result if backward is None else backward.output(result)
        except Exception:
            for hook in always:  # what was to run in any case, and did not
                hook(self, args, None)
            raise

    def _run_pre_hooks(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        for hook, with_kwargs in [*_global_hooks.pre.each(), *self._forward_pre_hooks.each()]:
            changed = hook(self, args, kwargs) if with_kwargs else hook(self, args)
            if changed is None:
                continue
            if with_kwargs:
                if not (isinstance(changed, tuple) and len(changed) == 2):
                    raise RuntimeError(
                        f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got {changed}."
                    )
                args, kwargs = changed
            else:
                args = changed if isinstance(changed, tuple) else (changed,)
        return args, kwargs

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """hook(module, args) before forward(); may return other arguments."""
        return self._forward_pre_hooks.add(hook, with_kwargs, prepend)

    def register_forward_hook(
        self,
        hook: Callable[..., Any],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:
        """hook(module, args, output) after forward(); may return another output."""
        return self._forward_hooks.add(hook, (with_kwargs, always_call), prepend)

    def register_full_backward_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """hook(module, grad_input, grad_output) after the module's backward; may return another grad_input."""
        return self._backward_hooks.add(hook, None, prepend)

    def register_full_backward_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """hook(module, grad_output) before the module's backward; may return another grad_output."""
        return self._backward_pre_hooks.add(hook, None, prepend)

    def apply(self, fn: Callable[[Module], Any]) -> Self:
        """Calls `fn` on every module, children first."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    # ---- Modes ----

    def train(self, mode: bool = True) -> Self:
        """Sets `training` here and below: dropout and batch norm look at it."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Self:
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        for parameter in self.parameters():
            zero_gradient(parameter, set_to_none)

    # ---- Moving ----

    def _apply(self, fn: Callable[[Tensor], Tensor]) -> Self:
        for module in self.children():
            module._apply(fn)
        with no_grad():
            for name, parameter in self._parameters.items():
                if parameter is not None:
                    self._parameters[name] = _moved(parameter, fn)
            for name, buffer in self._buffers.items():
                if buffer is not None:
                    self._buffers[name] = fn(buffer)
        return self

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """to(device), to(dtype), to(device, dtype), to(tensor): every parameter and buffer; integers keep their dtype."""
        kwargs.pop("non_blocking", None), kwargs.pop("memory_format", None)
        where: device | str | None = kwargs.pop("device", None)
        kind: dtype | None = kwargs.pop("dtype", None)
        for arg in args:
            if isinstance(arg, Tensor):
                where, kind = arg.device, arg.dtype
            elif isinstance(arg, dtype):
                kind = arg
            elif arg is not None and not isinstance(arg, bool):
                where = arg
        if kind is not None and not kind.is_floating_point:
            raise TypeError(f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={kind}")
        return self._apply(lambda x: x.to(where, kind if x.is_floating_point() else None))

    def cpu(self) -> Self:
        return self._apply(lambda x: x.cpu())

    def cuda(self, device: Any = None) -> Self:
        return self._apply(lambda x: x.cuda())

    def type(self, dst_type: dtype) -> Self:
        return self._apply(lambda x: x.to(dst_type))

    def float(self) -> Self:
        return self.to(_train.float32)

    def double(self) -> Self:
        return self.to(_train.float64)

    def half(self) -> Self:
        return self.to(_train.float16)

    def bfloat16(self) -> Self:
        return self.to(_train.bfloat16)

    def to_empty(self, *, device: Any, recurse: bool = True) -> Self:
        return self._apply(lambda x: _train.empty_like(x, device=device))

    # ---- Printing ----

    def extra_repr(self) -> str:
        """What stands in the parentheses of a layer."""
        return ""

    def __repr__(self) -> str:
        lines = [f"({name}): " + repr(child).replace("\n", "\n  ") for name, child in self._modules.items()]
        extra = self.extra_repr()
        if not lines:
            return f"{type(self).__name__}({extra})"
        return f"{type(self).__name__}(\n  " + "\n  ".join(([extra] if extra else []) + lines) + "\n)"


_HOOKS = (
    "_forward_pre_hooks",
    "_forward_hooks",
    "_backward_pre_hooks",
    "_backward_hooks",
    "_state_dict_pre_hooks",
    "_state_dict_hooks",
    "_load_state_dict_pre_hooks",
    "_load_state_dict_post_hooks",
)


class _GlobalHooks:
    """Of every module."""

    def __init__(self) -> None:
        self.pre, self.forward = HookList(), HookList()

    def __bool__(self) -> bool:
        return bool(self.pre or self.forward)


_global_hooks = _GlobalHooks()


def register_module_forward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    return _global_hooks.pre.add(hook, False)


def register_module_forward_hook(
    hook: Callable[..., Any], *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    return _global_hooks.forward.add(hook, (with_kwargs, always_call))


def zero_gradient(parameter: Tensor, set_to_none: bool) -> None:
    """Drops the gradient, or clears it where it lies."""
    gradient = parameter.grad
    if gradient is None:
        return
    if set_to_none:
        parameter.grad = None
        return
    if gradient.grad_fn is not None:
        gradient.detach_()
    else:
        gradient.requires_grad_(False)
    gradient.zero_()


# The same object with other memory, so that optimizers stay bound; another one where the device has no memory.
def _moved(parameter: Parameter, fn: Callable[[Tensor], Tensor]) -> Parameter:
    moved, gradient = fn(parameter), parameter.grad
    if moved.is_meta != parameter.is_meta:
        made = Parameter(moved, parameter.requires_grad)
        if gradient is not None:
            made.grad = fn(gradient)
        return made
    parameter.data = moved
    if gradient is not None:
        gradient.data = fn(gradient)
    return parameter
