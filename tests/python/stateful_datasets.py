"""Datasets and samplers with and without states that tests of checkpoints share."""

from __future__ import annotations

import copy

import torch
from torch.utils.data import Dataset, IterableDataset, Sampler, get_worker_info


class Items(Dataset):
    """Item i is i."""

    def __init__(self, size: int = 11) -> None:
        self.size = size

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: int) -> int:
        return index


class Served(Items):
    """Item i is [i, how many items this copy of the dataset has served]; the count is its state."""

    def __init__(self, size: int = 11) -> None:
        super().__init__(size)
        self.state = {"served": 0, "by": {"parity": [0, 0]}}

    def __getitem__(self, index: int) -> torch.Tensor:
        self.state["served"] += 1
        self.state["by"]["parity"][index % 2] += 1
        return torch.tensor([index, self.state["served"], *self.state["by"]["parity"]])

    def state_dict(self):
        return copy.deepcopy(self.state)

    def load_state_dict(self, state) -> None:
        self.state = state


class Careless(Served):
    """Hands out the very state that it goes on to change: the loader has to copy it."""

    def state_dict(self):
        return self.state


class Stream(IterableDataset):
    """Worker w of n yields w, w + n, ... below `sizes[w]` items. No state."""

    def __init__(self, *sizes: int) -> None:
        self.sizes = sizes

    def _part(self) -> range:
        info = get_worker_info()
        worker, count = (info.id, info.num_workers) if info else (0, 1)
        return range(worker, worker + count * self.sizes[worker % len(self.sizes)], count)

    def __iter__(self):
        return iter(list(self._part()))


class StreamIterator:
    def __init__(self, items) -> None:
        self.items = list(items)
        self.generator = torch.Generator().manual_seed(len(self.items))
        self.place = 0

    def __iter__(self):
        return self

    def __next__(self):
        if self.place == len(self.items):
            raise StopIteration
        self.place += 1
        return [self.items[self.place - 1], int(torch.randint(1000, (), generator=self.generator))]

    def state_dict(self):
        return {"place": self.place, "random": {"torch": self.generator.get_state()}}

    def load_state_dict(self, state) -> None:
        self.place = state["place"]
        self.generator.set_state(state["random"]["torch"])


class StatefulStream(Stream):
    """Its iterator has a state, and so has the dataset: how often it was iterated."""

    def __init__(self, *sizes: int) -> None:
        super().__init__(*sizes)
        self.epoch = 0

    def __iter__(self):
        self.epoch += 1
        return StreamIterator(1000 * self.epoch + item for item in self._part())

    def state_dict(self):
        return {"epoch": self.epoch - 1}  # what iter() makes the present one of

    def load_state_dict(self, state) -> None:
        self.epoch = state["epoch"]


class OwnIterator(Stream):
    """A dataset that is its own iterator."""

    def __init__(self, *sizes: int) -> None:
        super().__init__(*sizes)
        self.place = 0

    def __iter__(self):
        self.place = 0
        self.items = list(self._part())
        return self

    def __next__(self):
        if self.place == len(self.items):
            raise StopIteration
        self.place += 1
        return self.items[self.place - 1]

    def state_dict(self):
        return {"place": self.place}

    def load_state_dict(self, state) -> None:
        self.place = state["place"]


class StatefulSampler(Sampler):
    """From the end to the start; both it and its iterator keep a state."""

    def __init__(self, size: int = 11) -> None:
        self.size = size
        self.epochs = 0

    def __iter__(self):
        self.epochs += 1
        return StreamIndices(self.size)

    def __len__(self) -> int:
        return self.size

    def state_dict(self):
        return {"epochs": self.epochs}

    def load_state_dict(self, state) -> None:
        self.epochs = state["epochs"]


class StreamIndices:
    def __init__(self, left: int) -> None:
        self.left = left

    def __iter__(self):
        return self

    def __next__(self) -> int:
        if self.left == 0:
            raise StopIteration
        self.left -= 1
        return self.left

    def state_dict(self):
        return {"left": self.left}

    def load_state_dict(self, state) -> None:
        self.left = state["left"]


class DrawingSampler(Sampler):
    """No state; draws from every global source of random numbers as it goes."""

    def __init__(self, size: int = 11) -> None:
        self.size = size

    def __iter__(self):
        import random

        import numpy as np

        for _ in range(self.size):
            draws = (random.randrange(self.size), int(np.random.randint(self.size)), int(torch.randint(self.size, ())))
            yield sum(draws) % self.size

    def __len__(self) -> int:
        return self.size


def plain(value):
    """Nested containers with lists in the place of tensors, for comparisons."""
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    return value.tolist() if torch.is_tensor(value) else value


def take(loader, count: int | None = None) -> list:
    """The first `count` batches of an epoch, or all."""
    batches = []
    for batch in loader if count is None or count > 0 else ():
        batches.append(plain(batch))
        if len(batches) == count:
            break
    return batches


def failing_at(bad: int):
    """A map-style dataset that raises at index `bad`, and counts what it served."""

    class Failing(Served):
        def __getitem__(self, index: int):
            item = super().__getitem__(index)
            if index == bad:
                raise ValueError("bad sample")
            return item

    return Failing()


class RefusesStates(Items):
    def state_dict(self):
        return {"version": 1}

    def load_state_dict(self, state) -> None:
        raise LookupError("this state is of another data set")
