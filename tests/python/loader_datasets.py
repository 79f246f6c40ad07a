"""Datasets and functions that loader tests share; in a module of their own, so that spawned workers find them."""

from __future__ import annotations

import os
import signal
import sys
import time

import numpy as np
import torch
from torch.utils.data import Dataset, IterableDataset, get_worker_info


class Squares(Dataset):
    """Item i is tensor([i, i * i])."""

    def __init__(self, size: int = 20) -> None:
        self.size = size

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.tensor([index, index * index])


class Draws(Squares):
    """Item i: worker id, its seed, and a number from each source of random numbers."""

    def __getitem__(self, index: int) -> torch.Tensor:
        import random

        info = get_worker_info()
        numbers = [random.random(), torch.rand(()).item(), float(np.random.rand())]
        return torch.tensor([info.id, float(info.seed % 2**31), *numbers], dtype=torch.float64)


class Noisy(Squares):
    """Item i: i, and a number from each source of random numbers."""

    def __getitem__(self, index: int) -> torch.Tensor:
        import random

        numbers = [random.random(), torch.rand(()).item(), float(np.random.rand())]
        return torch.tensor([index, *numbers], dtype=torch.float64)


class FailsAt(Squares):
    """Does `action(index)` at one index."""

    def __init__(self, bad: int, action, size: int = 20) -> None:
        super().__init__(size)
        self.bad = bad
        self.action = action

    def __getitem__(self, index: int) -> torch.Tensor:
        if index == self.bad:
            return self.action(index)
        return super().__getitem__(index)


class Stream(IterableDataset):
    """Worker w yields 10 * w, 10 * w + 1, ...: sizes[w] of them."""

    def __init__(self, *sizes: int) -> None:
        self.sizes = sizes

    def __iter__(self):
        info = get_worker_info()
        worker = info.id if info else 0
        yield from range(10 * worker, 10 * worker + self.sizes[worker])


def raise_key_error(index):
    raise KeyError("no such key")


def raise_odd_error(index):
    class Odd(Exception):
        def __init__(self, one, two):
            super().__init__(one, two)

    raise Odd(1, 2)


def raise_stop_iteration(index):
    raise StopIteration


def unpicklable(index):
    return lambda: index


def kill_self(index):
    os.kill(os.getpid(), signal.SIGKILL)


def kill_self_once(path: str):
    """An action that kills its process the first time only: `path` remembers."""

    def action(index):
        if not os.path.exists(path):
            open(path, "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
        return torch.tensor([index, index * index])

    return action


def exit_quietly(index):
    sys.exit(0)


def exit_seven(index):
    os._exit(7)


def sleep_long(index):
    time.sleep(1000)


def raise_value_error(worker):
    raise ValueError(f"worker {worker} cannot start")


def as_lists(batches) -> list:
    return [batch.tolist() for batch in batches]
