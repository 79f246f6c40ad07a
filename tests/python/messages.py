"""Verbs for the tests of messages: write into memory, read back, collate, compare."""

import mmap
from collections import namedtuple
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from infeed import _codec

Point = namedtuple("Point", "x y")


class Dataset:
    """Samples that are made when they are asked for."""

    def __init__(self, make: Callable[[int], Any]) -> None:
        self.make = make

    def __getitem__(self, index: int) -> Any:
        return self.make(index)


def written(data: Any, extra: Any = None, tag: int = 0, nbytes: int = 1 << 20) -> memoryview:
    memory = mmap.mmap(-1, nbytes)
    length = _codec.Message(memory).finish(tag, data, extra)
    return memoryview(memory)[:length]


def sent(data: Any) -> Any:
    """What a consumer gets of `data`."""
    return _codec.decode(written(data))[1]


def fetched(make: Callable[[int], Any], count: int = 4, nbytes: int = 1 << 20) -> Any:
    """("in place", batch) as the consumer gets it, or ("samples", list)."""
    memory = mmap.mmap(-1, nbytes)
    message = _codec.Message(memory)
    samples = message.fetch(Dataset(make), list(range(count)), None)
    if samples is not None:
        return "samples", samples
    length = message.finish(0, _codec.COLLATED, None)
    return "in place", _codec.decode(memoryview(memory)[:length])[1]


def assert_same(one: Any, other: Any) -> None:
    """Values, dtypes, shapes and container types. NaN equals NaN."""
    assert type(one) is type(other)
    if isinstance(one, torch.Tensor):
        assert one.dtype == other.dtype and one.shape == other.shape and one.layout == other.layout
        assert (
            torch.equal(one.contiguous().view(torch.uint8), other.contiguous().view(torch.uint8))
            if one.dim()
            else (torch.equal(one.reshape(1).view(torch.uint8), other.reshape(1).view(torch.uint8)))
        )
    elif isinstance(one, np.ndarray):
        assert one.dtype == other.dtype and np.array_equal(one, other)
    elif isinstance(one, Mapping):
        assert list(one) == list(other)
        for key in one:
            assert_same(one[key], other[key])
    elif isinstance(one, (list, tuple)):
        assert len(one) == len(other)
        for left, right in zip(one, other):
            assert_same(left, right)
    else:
        assert one == other


def tensors_of(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, Mapping):
        value = list(value.values())
    return [tensor for item in value for tensor in tensors_of(item)] if isinstance(value, (list, tuple)) else []
