"""What all optimizers share: groups of parameters, state by parameter, hooks."""

from __future__ import annotations

import copy
import functools
import warnings
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from typing import Any

from infeed.train._modes import enable_grad, no_grad
from infeed.train._train import Tensor
from infeed.train.nn.hooks import HookList, RemovableHandle
from infeed.train.nn.members import typename
from infeed.train.nn.module import zero_gradient

Params = Iterable[Any]


class Optimizer:
    """Changes parameters from their gradients.

    `param_groups` are dicts: their options may be changed and their lists edited between any two steps. A parameter whose
    grad is None is left alone.
    """

    def __init__(self, params: Params, defaults: dict[str, Any]) -> None:
        self.defaults, self.state, self.param_groups = defaults, defaultdict(dict), []
        self._step_pre_hooks, self._step_post_hooks = HookList(), HookList()
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, but got "
                + typename(params)
            )
        _refuse_sets(params)
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        for group in groups if isinstance(groups[0], dict) else [{"params": groups}]:
            self.add_param_group(group)

    state: defaultdict[Any, Any]
    param_groups: list[dict[str, Any]]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "step" in cls.__dict__:
            cls.step = _with_hooks(cls.__dict__["step"])  # type: ignore[method-assign]

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Adds {"params": [...], options that differ from the defaults}."""
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        given = param_group["params"]
        _refuse_sets(given)
        entries = [given] if isinstance(given, Tensor) else list(given)
        if entries and isinstance(entries[0], tuple):
            param_group["param_names"] = [name for name, _ in entries]
            entries = [param for _, param in entries]
        for param in entries:
            if not isinstance(param, Tensor):
                raise TypeError("optimizer can only optimize Tensors, but one of the params is " + typename(param))
            if not self.defaults.get("differentiable") and not (param.is_leaf or param.retains_grad):
                raise ValueError("can't optimize a non-leaf Tensor")
        param_group["params"] = entries
        for name, value in self.defaults.items():
            param_group.setdefault(name, value)
        ids = {id(param) for param in entries}
        if len(ids) != len(entries):
            warnings.warn("optimizer contains a parameter group with duplicate parameters", stacklevel=3)
        if any(id(param) in ids for group in self.param_groups for param in group["params"]):
            raise ValueError("some parameters appear in more than one parameter group")
        self.param_groups.append(param_group)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Takes one step; `closure` computes the loss anew, and its value is returned."""
        raise NotImplementedError

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drops the gradients, or sets them to zero where they lie."""
        for group in self.param_groups:
            for param in group["params"]:
                zero_gradient(param, set_to_none)

    # ---- State ----

    def state_dict(self) -> dict[str, Any]:
        """State and options, with parameters numbered in order."""
        numbers: dict[int, int] = {}
        for group in self.param_groups:
            for param in group["params"]:
                numbers.setdefault(id(param), len(numbers))
        groups = [{**group, "params": [numbers[id(param)] for param in group["params"]]} for group in self.param_groups]
        state = {
            numbers[id(key)] if isinstance(key, Tensor) else key: value
            for key, value in self.state.items()
            if not isinstance(key, Tensor) or id(key) in numbers
        }
        return {"state": state, "param_groups": groups}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over the options and a copy of the state, in the parameters' dtypes and places."""
        saved = state_dict["param_groups"]
        if len(saved) != len(self.param_groups):
            raise ValueError("loaded state dict has a different number of parameter groups")
        if any(len(old["params"]) != len(new["params"]) for old, new in zip(saved, self.param_groups)):
            raise ValueError(
                "loaded state dict contains a parameter group that doesn't match the size of optimizer's group"
            )
        params = {
            number: param
            for old, new in zip(saved, self.param_groups)
            for number, param in zip(old["params"], new["params"])
        }
        self.state = defaultdict(dict)
        for key, value in state_dict["state"].items():
            if key in params:
                self.state[params[key]] = _fitted(params[key], value)
            else:
                self.state[key] = copy.deepcopy(value)
        for old, new in zip(saved, self.param_groups):
            new.update({key: copy.deepcopy(value) for key, value in old.items() if key != "params"})

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._step_pre_hooks, self._step_post_hooks = HookList(), HookList()

    # ---- Hooks ----

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """hook(optimizer, args, kwargs) before step(); may return other arguments."""
        return self._step_pre_hooks.add(hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """hook(optimizer, args, kwargs) after step()."""
        return self._step_post_hooks.add(hook)

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for number, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {number}")
            lines += [f"    {key}: {group[key]}" for key in sorted(group) if key != "params"]
        return "\n".join([*lines, ")"])

    # ---- For subclasses ----

    def _state_of(self, group: dict[str, Any], first: Callable[[Tensor], dict[str, Any]]) -> list[tuple[Any, ...]]:
        """(parameter, gradient, state) of those with a gradient; a new state is what `first` makes."""
        rows, states = [], self.state
        for param in group["params"]:
            gradient = param.grad
            if gradient is None:
                continue
            state = states[param]
            if not state:
                state.update(first(param))
            rows.append((param, gradient, state))
        return rows


def loss_of(closure: Callable[[], Any] | None) -> Any:
    """What a closure computes, recorded as ever; None without one."""
    if closure is None:
        return None
    with enable_grad():
        return closure()


def _refuse_sets(params: Any) -> None:
    if isinstance(params, (set, frozenset)):
        raise TypeError(
            "optimizer parameters need to be organized in ordered collections, but the ordering of tensors in sets will "
            "change between runs. Please use a list instead."
        )


def _with_hooks(step: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(step)
    def hooked(self: Optimizer, *args: Any, **kwargs: Any) -> Any:
        for hook, _ in self._step_pre_hooks.each():
            changed = hook(self, args, kwargs)
            if changed is not None:
                args, kwargs = changed
        with no_grad():
            result = step(self, *args, **kwargs)
        for hook, _ in self._step_post_hooks.each():
            hook(self, args, kwargs)
        return result

    return hooked


# Counts keep their dtype; moments take the parameter's dtype, device and layout.
def _fitted(param: Tensor, state: Any, key: str = "") -> Any:
    if isinstance(state, Tensor):
        if key == "step":
            return state.detach().clone()
        kind = param.dtype if param.is_floating_point() else state.dtype
        return state.detach().to(param.device, kind, copy=True)
    if isinstance(state, (dict, OrderedDict)):
        return {name: _fitted(param, value, name) for name, value in state.items()}
    return copy.deepcopy(state)
