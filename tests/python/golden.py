"""What golden tests compare: datasets of many kinds, and everything about an epoch that a user can see."""

from __future__ import annotations

import collections
import random
import re

import numpy as np
import torch
from torch.utils.data import Dataset, IterableDataset, get_worker_info

Pair = collections.namedtuple("Pair", "left right")


class Rows(Dataset):
    """`size` samples, each made by `make(index)`."""

    def __init__(self, make, size=17):
        self.make = make
        self.size = size

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        return self.make(index)


class Served(Rows):
    """Has __getitems__."""

    def __getitems__(self, indices):
        return [self.make(index) for index in reversed(indices)]


class Stream(IterableDataset):
    """Worker w yields make(100 w), make(100 w + 1), ...: as many as sizes say."""

    def __init__(self, make, *sizes):
        self.make = make
        self.sizes = sizes

    def __iter__(self):
        info = get_worker_info()
        worker = info.id if info else 0
        for index in range(100 * worker, 100 * worker + self.sizes[worker % len(self.sizes)]):
            yield self.make(index)


def tensor(index):
    return torch.tensor([index, -index], dtype=torch.int16)


def strided(index):
    return torch.arange(12.0).reshape(3, 4).t()[1:] + index


def array(index):
    return np.full((2, 1), index, np.uint16)


def labelled(index):
    return array(index), index, float(index), f"name {index}", index % 2 == 0


def mapping(index):
    return {"x": tensor(index), "deep": {"y": [np.float32(index), Pair(index, tensor(index))]}, "key": b"%d" % index}


def mixed(index):
    """dtypes that torch promotes, from an index on; its workers refuse them."""
    return torch.tensor(index) if index < 5 else torch.tensor(float(index))


def growing(index):
    """Shapes that do not stack."""
    return torch.zeros(1 + index // 6)


def draws(index):
    """Whose random numbers these are."""
    info = get_worker_info()
    own = (0, 0, 0) if info is None else (info.id, info.num_workers, info.seed)
    return [index, *own, torch.initial_seed(), torch.rand(()).item(), random.random(), float(np.random.rand())]


def failing(index):
    if index % 7 == 4:
        raise (KeyError, ValueError, OSError)[index % 3](f"no sample {index}")
    return index


MAKERS = (tensor, strided, array, labelled, mapping, growing, draws, failing)


def described(value):
    """Everything that can be seen of a batch, as plain values that compare."""
    if isinstance(value, torch.Tensor):
        return ("tensor", type(value), value.dtype, tuple(value.shape), value.stride(), value.tolist())
    if isinstance(value, np.ndarray):
        return ("array", value.dtype, value.shape, value.tolist())
    if isinstance(value, dict):
        return (type(value), [(key, described(item)) for key, item in value.items()])
    if isinstance(value, (list, tuple)):
        return (type(value), [described(item) for item in value])
    return (type(value), value)


def described_error(error):
    """Type, first and last line: between them stands a traceback."""
    lines = str(error).splitlines()
    return type(error), re.sub(r"\(pid.*", "", lines[0]), lines[-1]


def is_error(item):
    return isinstance(item[0], type) and issubclass(item[0], Exception)


def epoch(iterator, most=None):
    """Batches and errors of a pass, in order, `most` of them."""
    seen = []
    while most is None or len(seen) < most:
        try:
            seen.append(described(next(iterator)))
        except StopIteration:
            break
        except Exception as error:
            seen.append(described_error(error))
            if len(seen) > 200:
                raise
    return seen


def after():
    """The next number of each generator of this process."""
    return torch.rand(()).item(), random.random(), float(np.random.rand())


def seed(number):
    torch.manual_seed(number)
    random.seed(number)
    np.random.seed(number)
