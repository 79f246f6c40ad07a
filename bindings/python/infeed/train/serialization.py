"""save() and load(): nested data with tensors, in one safetensors file.

A dict of tensors is written as every reader of the format expects it. Anything else has its structure beside the tensors,
as JSON in the header's metadata, under "infeed.tree":

    plain          null, true, "text", {"i": "12"}, {"f": "0x1.8p+1"}
    list, tuple    {"l": [...]}, {"t": [...]}
    dict           {"d": [[key, value], ...]}, {"o": ...} for an OrderedDict
    tensor         {"x": [storage, offset, shape, strides, requires_grad, is_parameter]}
    other objects  {"p": name of a uint8 tensor with a pickle}: loaded only with weights_only=False

A storage is written once, so views of one memory are views of one memory again.
"""

from __future__ import annotations

import base64
import io
import json
import os
import pickle
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO

from infeed.train import _train, safetensors
from infeed.train._train import Tensor, device, dtype
from infeed.train._types import Size
from infeed.train.nn.parameter import Parameter
from infeed.train.nn.state import StateDict

TREE = "infeed.tree"
STATE = "infeed.state"  # JSON beside tensors, as the C++ library writes it
FileLike = str | os.PathLike[str] | BinaryIO
MapLocation = str | device | dict[str, str] | Callable[[Tensor, str], Tensor] | None

_REFUSED = (
    "Weights only load failed. This file holds a pickled object ({}), which can run any code when it is loaded. Pass "
    "weights_only=False to infeed.train.load() if you trust where the file comes from."
)


class _Writer:
    """Turns data into a tree; collects storages as flat tensors."""

    def __init__(self) -> None:
        self.tensors: dict[str, Tensor] = {}
        self._storages: dict[tuple[int, str], str] = {}

    def node(self, value: Any) -> Any:
        if value is None or value is True or value is False or type(value) is str:
            return value
        if isinstance(value, Tensor):
            return {"x": self._tensor(value)}
        if type(value) is int:
            return {"i": str(value)}
        if type(value) is float:
            return {"f": value.hex()}
        if type(value) is bytes:
            return {"b": base64.b64encode(value).decode()}
        if isinstance(value, dtype):
            return {"dtype": repr(value).partition(".")[2]}
        if isinstance(value, device):
            return {"device": str(value)}
        kind = _CONTAINERS.get(type(value))
        if kind in ("l", "t", "s"):
            return {kind: [self.node(item) for item in value]}
        if kind is not None:
            return {kind: [[self.node(key), self.node(item)] for key, item in value.items()]}
        return {"p": self._pickled(value), "type": type(value).__qualname__}

    def _tensor(self, tensor: Tensor) -> list[Any]:
        plain = tensor.detach()
        if plain.device.type != "cpu":
            plain = plain.cpu()
        kind = plain.dtype
        key = (plain._storage_ptr(), repr(kind)) if plain.nbytes else (-len(self.tensors) - 1, "")
        name = self._storages.get(key)
        if name is None:
            name = self._storages[key] = f"storage.{len(self._storages)}"
            self.tensors[name] = _whole(plain)
        is_parameter = isinstance(tensor, Parameter)
        requires_grad = tensor.requires_grad and tensor.is_leaf
        return [name, plain.storage_offset(), list(plain.shape), list(plain.stride()), requires_grad, is_parameter]

    def _pickled(self, value: Any) -> str:
        buffer = io.BytesIO()
        pickler = pickle.Pickler(buffer, protocol=4)
        pickler.persistent_id = self._persistent  # type: ignore[method-assign]
        pickler.dump(value)
        name = f"pickle.{len(self.tensors)}"
        self.tensors[name] = _train.tensor(bytearray(buffer.getvalue()))
        return name

    def _persistent(self, value: Any) -> str | None:
        return json.dumps(self._tensor(value)) if isinstance(value, Tensor) else None


_CONTAINERS: dict[type, str] = {
    list: "l",
    tuple: "t",
    Size: "t",
    set: "s",
    dict: "d",
    OrderedDict: "o",
    StateDict: "o",
}


def _whole(tensor: Tensor) -> Tensor:
    """All elements of a storage, as one vector."""
    count = tensor._storage_nbytes() // tensor.element_size()
    return tensor.as_strided((count,), (1,), 0)


class _Reader:
    """Builds the data of a tree again."""

    def __init__(self, tensors: dict[str, Tensor], weights_only: bool) -> None:
        self._tensors, self._weights_only = tensors, weights_only

    def value(self, node: Any) -> Any:
        if not isinstance(node, dict):
            return node
        kind, of = next(iter(node.items()))
        if kind == "x":
            return self._tensor(of)
        if kind in ("l", "t", "s"):
            return {"l": list, "t": tuple, "s": set}[kind](self.value(item) for item in of)
        if kind in ("d", "o"):
            pairs = [(self.value(key), self.value(item)) for key, item in of]
            return dict(pairs) if kind == "d" else OrderedDict(pairs)
        if kind == "p":
            return self._unpickled(of, node.get("type"))
        return _LEAVES[kind](of)

    def _tensor(self, description: list[Any]) -> Tensor:
        name, offset, shape, strides, requires_grad, is_parameter = description
        flat = self._tensors[name]
        last = offset + sum((size - 1) * stride for size, stride in zip(shape, strides))
        if 0 not in shape and not 0 <= offset <= last < flat.numel():
            raise safetensors.SafetensorError(f"a tensor of shape {shape} ends at element {last} of {flat.numel()}")
        tensor = flat.as_strided(tuple(shape), tuple(strides), offset)
        if is_parameter:
            return Parameter(tensor, requires_grad)
        return tensor.requires_grad_() if requires_grad else tensor

    def _unpickled(self, name: str, type_name: Any) -> Any:
        if self._weights_only:
            raise pickle.UnpicklingError(_REFUSED.format(type_name))
        unpickler = pickle.Unpickler(io.BytesIO(bytes(self._tensors[name].tolist())))
        unpickler.persistent_load = lambda text: self._tensor(json.loads(text))  # type: ignore[method-assign]
        return unpickler.load()


_LEAVES: dict[str, Callable[[Any], Any]] = {
    "i": int,
    "f": float.fromhex,
    "b": base64.b64decode,
    "dtype": _train._dtype_named,
    "device": device,
}


def _is_plain(obj: Any) -> bool:
    """A dict of tensors that any reader understands: names are texts, nothing shares memory."""
    if type(obj) not in (dict, OrderedDict, StateDict) or not obj:
        return False
    if not all(type(name) is str and name != safetensors.METADATA for name in obj):
        return False
    if not all(isinstance(t, Tensor) and not isinstance(t, Parameter) and not t.requires_grad for t in obj.values()):
        return False
    places = [tensor._storage_ptr() for tensor in obj.values() if tensor.nbytes and not tensor.is_meta]
    return len(set(places)) == len(places) and not any(tensor.is_meta for tensor in obj.values())


def pack(obj: Any) -> safetensors.Contents:
    """The tensors and the metadata of a file that holds `obj`."""
    if _is_plain(obj):
        return dict(obj), {}
    writer = _Writer()
    tree = json.dumps(writer.node(obj), separators=(",", ":"))
    return writer.tensors, {TREE: tree}


def unpack(contents: safetensors.Contents, map_location: MapLocation = None, weights_only: bool = True) -> Any:
    """What pack() packed, or a dict of another writer's tensors."""
    tensors, metadata = contents
    moved = {name: _placed(tensor, map_location) for name, tensor in tensors.items()}
    try:
        if TREE in metadata:
            return _Reader(moved, weights_only).value(json.loads(metadata[TREE]))
        if STATE in metadata:
            state = json.loads(metadata[STATE])
            return {"tensors": moved, "state": state} if moved else state
        return OrderedDict(moved)
    except (KeyError, TypeError, AttributeError, RecursionError, json.JSONDecodeError) as error:
        raise safetensors.SafetensorError(f"the tree of the file is damaged: {type(error).__name__}: {error}") from None


def save(obj: Any, f: FileLike) -> None:
    """Writes nested dicts, lists, tuples, numbers, texts and tensors; other objects are pickled inside.

    A path appears whole or not at all, and is on the disk when this returns.
    """
    if isinstance(f, (str, os.PathLike)):
        safetensors.save_path(f, *pack(obj))
    else:
        safetensors.write(f, *pack(obj))


def load(f: FileLike, map_location: MapLocation = None, *, weights_only: bool = True, mmap: bool | None = None) -> Any:
    """Reads what save() or another writer of safetensors wrote. A path is mapped, not read, unless mmap=False.

    Changes of the tensors are never written to the file.
    """
    if isinstance(f, (str, os.PathLike)):
        contents = safetensors.load_path(f, mmap is not False)
    else:
        contents = safetensors.load_bytes(bytearray(f.read()))
    return unpack(contents, map_location, weights_only)


def _placed(tensor: Tensor, where: MapLocation) -> Tensor:
    if where is None:
        return tensor
    if callable(where):
        return where(tensor, "cpu")
    if isinstance(where, Mapping):
        return tensor.to(where.get("cpu", "cpu"))
    return tensor.to(where)
