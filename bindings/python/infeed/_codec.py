"""Messages of workers: any structure of tensors and arrays, written in place and read without a copy.

A worker writes with `Message`, the consumer reads with `decode`. Tensors, arrays and buffers travel out of band; all else
is pickled, with the reducers of multiprocessing.reduction.ForkingPickler. Neither torch nor NumPy is imported here.
"""

from __future__ import annotations

import copy
import copyreg
import io
import pickle
import sys
from collections.abc import Callable
from multiprocessing.reduction import ForkingPickler
from typing import Any

from infeed import _native
from infeed._native import decode
from infeed._worker.imports import when_imported

__all__ = ["COLLATED", "Message", "decode", "install_stack"]

COLLATED = object()
"""Stands for what `Message.fetch` or `Message.gather` collated in place."""

_COLLATE_MODULE = "torch.utils.data._utils.collate"

# Takes the place of a leaf while its pickle is written; unpickling puts the next leaf of the message there.
_PLACEHOLDER = pickle.PickleBuffer(bytearray())


class Message(_native.Message):
    """A reply that is being written into `memory`, a writable buffer."""

    def finish(self, tag: int, data: Any, extra: Any) -> int:
        """Writes (tag, data, extra); returns the length. Raises what pickling raises: then nothing is written."""
        try:
            data_pickle = self._pickle_collated() if data is COLLATED else self._pickle(data)
            return self.write(tag, data_pickle, None if extra is None else self._pickle(extra))
        finally:
            self.drop_leaves()

    def collate(self, collate_fn: Callable[[Any], Any], samples: Any) -> Any:
        """collate_fn(samples), while default_collate stacks tensors in this memory (see install_stack)."""
        self.stacking = True
        try:
            return collate_fn(samples)
        finally:
            self.stacking = False

    def _pickle_collated(self) -> bytes:
        written = self.collated_pickle()
        return self._pickle(self.collated_value()) if written is None else written

    def _pickle(self, value: Any) -> bytes:
        file = io.BytesIO()
        pickler = pickle.Pickler(file, 5, buffer_callback=self._add_buffer)
        pickler.dispatch_table = _dispatch_table(self)
        pickler.dump(value)
        return file.getvalue()

    def _add_buffer(self, buffer: pickle.PickleBuffer) -> None:
        if buffer is not _PLACEHOLDER:
            self.add_buffer(buffer)

    def _reduce_array(self, array: Any) -> Any:
        flags = array.flags
        dense = array if flags.c_contiguous or flags.f_contiguous else array.copy()
        if self.add_array(dense):
            return _native.leaf, (_PLACEHOLDER,)
        return (dense if dense.flags.writeable else dense.copy()).__reduce_ex__(5)

    def _reduce_tensor(self, tensor: Any) -> Any:
        torch = _module("torch")
        if tensor.is_quantized or tensor.layout is torch._mkldnn:
            return tensor.__reduce_ex__(5)  # torch.multiprocessing's way loses or refuses them
        if not tensor.is_leaf or not self.add_tensor(tensor.detach().resolve_conj().resolve_neg()):
            return torch.multiprocessing.reductions.reduce_tensor(tensor)  # of a non-leaf: says why it cannot be
        return (_requiring_grad if tensor.requires_grad else _native.leaf), (_PLACEHOLDER,)

    def _reduce_parameter(self, parameter: Any) -> Any:
        if not self.add_tensor(parameter.detach().resolve_conj().resolve_neg()):
            return _module("torch").multiprocessing.reductions.reduce_tensor(parameter)
        return _parameter, (_PLACEHOLDER, parameter.requires_grad)

    def _reduce_storage(self, storage: Any) -> Any:
        torch = _module("torch")
        if storage.device.type != "cpu":
            return torch.multiprocessing.reductions.reduce_storage(storage)
        tensor = torch.empty(0, dtype=torch.uint8).set_(storage)
        self.add_tensor(tensor)
        return _storage, (_PLACEHOLDER,)


def _module(name: str) -> Any:
    return sys.modules[name]


def _dispatch_table(message: Message) -> dict[type, Callable[[Any], Any]]:
    table = {**copyreg.dispatch_table, **ForkingPickler._extra_reducers}
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    if numpy is not None and hasattr(numpy, "ndarray"):
        table[numpy.ndarray] = message._reduce_array
    if torch is not None and hasattr(torch, "multiprocessing"):
        table[torch.Tensor] = message._reduce_tensor
        table[torch.nn.Parameter] = message._reduce_parameter
        table[torch.UntypedStorage] = message._reduce_storage
    return table


# --- what pickles of leaves call when they are read ---


def _requiring_grad(tensor: Any) -> Any:
    return tensor.requires_grad_()


def _parameter(tensor: Any, requires_grad: bool) -> Any:
    from torch.nn import Parameter

    return Parameter(tensor, requires_grad)


def _storage(tensor: Any) -> Any:
    return tensor.untyped_storage()


# --- what _native calls ---


def collated_mapping(first: Any, values: dict[Any, Any]) -> Any:
    """A batch's mapping, made as default_collate makes it of the first sample's."""
    try:
        clone = copy.copy(first)
        clone.update(values)
        return clone
    except TypeError:
        return values


def copied_mapping(first: Any, values: dict[Any, Any]) -> Any:
    """A sample's mapping again, of the batch's first one and the values under its keys."""
    clone = copy.copy(first)
    for key, value in values.items():
        dict.__setitem__(clone, key, value)
    return clone


def move_out(tensor: Any) -> None:
    """Gives a tensor that outlives its message memory of its own."""
    tensor.data = tensor.detach().clone()


def map_is_standard(types: list[type]) -> bool:
    """Whether default_collate uses torch's own functions for objects of these types."""
    module = sys.modules[_COLLATE_MODULE]
    registered = module.default_collate_fn_map
    standard = _standard_map(module)
    numpy = sys.modules.get("numpy")
    if numpy is not None and any(issubclass(kind, numpy.ndarray) for kind in types):
        types = [*types, sys.modules["torch"].Tensor]  # what default_collate makes of them first
    return all(_is_torchs(_entry(registered, kind), _entry(standard, kind)) for kind in types)


def _standard_map(module: Any) -> dict[Any, Any]:
    standard: dict[Any, Any] = {sys.modules["torch"].Tensor: module.collate_tensor_fn}
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        standard[numpy.ndarray] = module.collate_numpy_array_fn
        standard[(numpy.bool_, numpy.number, numpy.object_)] = module.collate_numpy_scalar_fn
    standard.update({float: module.collate_float_fn, int: module.collate_int_fn})
    standard.update({str: module.collate_str_fn, bytes: module.collate_str_fn})
    return standard


def _entry(collate_map: dict[Any, Any], kind: type) -> Any:
    """The function that torch's collate() chooses for an object of type `kind`."""
    if kind in collate_map:
        return collate_map[kind]
    return next((function for key, function in collate_map.items() if issubclass(kind, key)), None)


def _is_torchs(function: Any, torchs: Any) -> bool:
    return function is torchs or getattr(function, "in_place_of", None) is torchs is not None


# --- stacking for the users' collate functions ---


def install_stack(message_of: Callable[[], Message | None]) -> None:
    """In a worker: default_collate stacks tensors in the memory of message_of(), while Message.collate runs."""
    when_imported(_COLLATE_MODULE, lambda module: _replace_stack(module, message_of))


def _replace_stack(module: Any, message_of: Callable[[], Message | None]) -> None:
    torchs = module.collate_tensor_fn
    tensor_type = module.torch.Tensor
    current = module.default_collate_fn_map.get(tensor_type)
    if current is not torchs and not hasattr(current, "in_place_of"):
        return  # the user's

    def collate_tensor_fn(batch: Any, *, collate_fn_map: Any = None) -> Any:
        message = message_of()
        stacked = None if message is None else message.stack(batch)
        if stacked is not None:
            return stacked
        if any(tensor.dtype != batch[0].dtype for tensor in batch):
            return module.torch.stack(batch)  # torch's would make all of the first one's type, or refuse
        return torchs(batch, collate_fn_map=collate_fn_map)

    collate_tensor_fn.in_place_of = torchs
    module.default_collate_fn_map[tensor_type] = collate_tensor_fn
