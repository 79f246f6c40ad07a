"""Tensors within a batch: the containers that torch's pin_memory knows, and what moves by itself."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from typing import Any

import torch


def _keep(value: Any) -> Any:
    return value


def map_batch(
    data: Any, on_tensor: Callable[[torch.Tensor], torch.Tensor], on_object: Callable[[Any], Any] = _keep
) -> Any:
    """`data` with other tensors, of the types that torch's pin_memory keeps. `on_object` gets what has a to() of its own,
    as PackedSequence has, whatever it is beside that."""
    if isinstance(data, torch.Tensor):
        return on_tensor(data)
    if data is None or isinstance(data, (str, bytes, int, float, bool)):
        return data
    if not isinstance(data, type) and callable(getattr(data, "to", None)):
        return on_object(data)
    if isinstance(data, Mapping):
        return _map_mapping(data, {key: map_batch(value, on_tensor, on_object) for key, value in data.items()})
    if isinstance(data, tuple):
        return _map_tuple(data, [map_batch(value, on_tensor, on_object) for value in data])
    if isinstance(data, Sequence):
        return _map_sequence(data, [map_batch(value, on_tensor, on_object) for value in data])
    return data


def _map_mapping(data: Mapping[Any, Any], values: dict[Any, Any]) -> Any:
    if type(data) is dict:
        return values
    try:
        if not isinstance(data, MutableMapping):
            return type(data)(values)  # type: ignore[call-arg]
        clone = copy.copy(data)
        clone.update(values)
        return clone
    except TypeError:  # of a type that cannot be made so
        return values


def _map_tuple(data: tuple[Any, ...], items: list[Any]) -> Any:
    made = type(data)(*items) if hasattr(data, "_fields") else type(data)(items)
    if getattr(data, "__dict__", None):
        vars(made).update(vars(data))
    return made


def _map_sequence(data: Sequence[Any], items: list[Any]) -> Any:
    if type(data) is list:
        return items
    try:
        return type(data)(items)  # type: ignore[call-arg]
    except TypeError:  # range, and its like
        return items
