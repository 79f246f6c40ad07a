"""state_dict() and load_state_dict(): a module's tensors by name."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from infeed.train._modes import no_grad
from infeed.train._train import Tensor
from infeed.train.nn.hooks import HookList, RemovableHandle
from infeed.train.nn.parameter import Parameter

_EXTRA_STATE = "_extra_state"


class _Keys(NamedTuple):
    missing_keys: list[str]
    unexpected_keys: list[str]


class IncompatibleKeys(_Keys):
    """What load_state_dict() found too little and too much."""

    __slots__ = ()

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"IncompatibleKeys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"

    __str__ = __repr__


class StateDict(OrderedDict[str, Any]):
    """Tensors by name, and the versions of the layers that wrote them."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._metadata: dict[str, Any] = {}


class ModuleState:
    """What Module saves and loads."""

    _version: int
    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Any]
    _non_persistent_buffers_set: set[str]
    _state_dict_pre_hooks: HookList
    _state_dict_hooks: HookList
    _load_state_dict_pre_hooks: HookList
    _load_state_dict_post_hooks: HookList

    def modules(self) -> Iterator[Any]:
        raise NotImplementedError

    def state_dict(self, *, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> Any:
        """Parameters and persistent buffers by name: detached, of the module's own memory."""
        destination = StateDict() if destination is None else destination
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = {"version": self._version}
        for hook, _ in self._state_dict_pre_hooks.each():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        for hook, _ in self._state_dict_hooks.each():
            changed = hook(self, destination, prefix, {})
            destination = destination if changed is None else changed
        return destination

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        for name, value in self._local_state().items():
            if value is not None:
                destination[prefix + name] = value if keep_vars else value.detach()
        if type(self).get_extra_state is not ModuleState.get_extra_state:
            destination[prefix + _EXTRA_STATE] = self.get_extra_state()

    def _local_state(self) -> dict[str, Tensor | None]:
        buffers = {n: b for n, b in self._buffers.items() if n not in self._non_persistent_buffers_set}
        return {**self._parameters, **buffers}

    def get_extra_state(self) -> Any:
        """What a subclass saves beside its tensors."""
        raise RuntimeError("Reached a code path in Module.get_extra_state() that should never be called.")

    def set_extra_state(self, state: Any) -> None:
        raise RuntimeError("Reached a code path in Module.set_extra_state() that should never be called.")

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> IncompatibleKeys:
        """Copies values into the parameters and buffers; with `assign` puts the given tensors in their place."""
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        state = OrderedDict(state_dict)
        missing: list[str] = []
        unexpected: list[str] = []
        errors: list[str] = []
        metadata = getattr(state_dict, "_metadata", {})
        self._load_below("", state, metadata, strict, assign, missing, unexpected, errors)
        keys = IncompatibleKeys(missing, unexpected)
        for module in self.modules():
            for hook, _ in module._load_state_dict_post_hooks.each():
                hook(module, keys)
        if strict and unexpected:
            errors.insert(0, f"Unexpected key(s) in state_dict: {_quoted(unexpected)}. ")
        if strict and missing:
            errors.insert(0, f"Missing key(s) in state_dict: {_quoted(missing)}. ")
        if errors:
            lines = "\n\t".join(errors)
            raise RuntimeError(f"Error(s) in loading state_dict for {type(self).__name__}:\n\t{lines}")
        return keys

    def _load_below(
        self,
        prefix: str,
        state: Any,
        metadata: Any,
        strict: bool,
        assign: bool,
        missing: list[str],
        unexpected: list[str],
        errors: list[str],
    ) -> None:
        local = dict(metadata.get(prefix[:-1], {}), assign_to_params_buffers=assign)
        self._load_from_state_dict(state, prefix, local, strict, missing, unexpected, errors)
        for name, module in self._modules.items():
            if module is not None:
                below = f"{prefix}{name}."
                part = {key: value for key, value in state.items() if key.startswith(below)}
                module._load_below(below, part, metadata, strict, assign, missing, unexpected, errors)

    def _load_from_state_dict(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        arguments = (state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        for hook, with_module in self._load_state_dict_pre_hooks.each():
            hook(self, *arguments) if with_module else hook(*arguments)
        assign = local_metadata.get("assign_to_params_buffers", False)
        for name, own in self._local_state().items():
            key = prefix + name
            if own is None:
                continue
            if key in state_dict:
                self._load_one(key, name, own, state_dict[key], assign, error_msgs)
            else:
                missing_keys.append(key)
        self._load_extra_state(state_dict, prefix, missing_keys, unexpected_keys)
        known = {*self._local_state(), *self._modules, _EXTRA_STATE}
        ours = (key for key in state_dict if key.startswith(prefix))
        unexpected_keys.extend(key for key in ours if key.removeprefix(prefix).split(".", 1)[0] not in known)

    def _load_one(self, key: str, name: str, own: Tensor, value: Any, assign: bool, error_msgs: list[str]) -> None:
        if not isinstance(value, Tensor):
            error_msgs.append(
                f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like object from checkpoint '
                f"but received {type(value)}"
            )
        elif value.shape != own.shape:
            error_msgs.append(
                f"size mismatch for {key}: copying a param with shape {value.shape} from checkpoint, the shape in "
                f"current model is {own.shape}."
            )
        elif assign:
            if isinstance(own, Parameter) and not isinstance(value, Parameter):
                value = Parameter(value, own.requires_grad)
            setattr(self, name, value)
        else:
            try:
                with no_grad():
                    own.copy_(value)
            except Exception as error:
                error_msgs.append(
                    f'While copying the parameter named "{key}", whose dimensions in the model are {own.size()} and whose '
                    f"dimensions in the checkpoint are {value.size()}, an exception occurred : {error.args}."
                )

    def _load_extra_state(self, state_dict: Any, prefix: str, missing: list[str], unexpected: list[str]) -> None:
        key, has = prefix + _EXTRA_STATE, type(self).set_extra_state is not ModuleState.set_extra_state
        if key in state_dict and has:
            self.set_extra_state(state_dict[key])
        elif key in state_dict:
            unexpected.append(key)
        elif has:
            missing.append(key)

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """hook(module, prefix, keep_vars) before state_dict()."""
        return self._state_dict_pre_hooks.add(hook)

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """hook(module, state_dict, prefix, local_metadata) after it."""
        return self._state_dict_hooks.add(hook)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """hook(module, state_dict, prefix, metadata, strict, missing, unexpected, errors) before loading."""
        return self._load_state_dict_pre_hooks.add(hook, True)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """hook(module, incompatible_keys) after loading; may change the keys."""
        return self._load_state_dict_post_hooks.add(hook)


def _quoted(keys: Iterable[str]) -> str:
    return ", ".join(f'"{key}"' for key in keys)
