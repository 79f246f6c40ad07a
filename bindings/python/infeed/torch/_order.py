"""The index batches of torch's own samplers, drawn in C++: the same indices from the same random state.

torch.randperm of more than 32,768 runs on all of torch's threads, which then spin beside the loader's workers: 10 ms of
CPU where one thread needs 0.1.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils.data import BatchSampler, RandomSampler

from infeed.samplers import RandomSampler as NativeRandomSampler

_no_context = contextlib.nullcontext()


def draws_on_host() -> contextlib.AbstractContextManager[Any]:
    """Seeds and orders are drawn within: on the CPU, also where torch's default device, which is a mode of functions, is another."""
    return torch.device("cpu") if torch._C._len_torch_function_stack() > 0 else _no_context


def index_batches(index_sampler: Any, iterator: Iterator[Any] | None = None) -> Iterator[Any]:
    """What iter(index_sampler), or `iterator` if it was called, gives; draws its seed, as that does, at the first pull."""
    if _is_plain_shuffle(index_sampler):
        return _shuffled(index_sampler)
    return iter(index_sampler) if iterator is None else iterator


def _is_plain_shuffle(index_sampler: Any) -> bool:
    """Whether it is what `shuffle=True` makes without a generator: what a generator is left in could be seen."""
    if type(index_sampler) is not BatchSampler or type(index_sampler.sampler) is not RandomSampler:
        return False
    sampler = index_sampler.sampler
    return sampler.generator is None and not sampler.replacement and sampler.num_samples == len(sampler.data_source) > 0


def _shuffled(batch_sampler: BatchSampler) -> Iterator[list[int]]:
    seed = int(torch.empty((), dtype=torch.int64).random_().item())
    order = NativeRandomSampler(len(batch_sampler.sampler.data_source), seed=seed)._make()
    order.start_epoch(0)
    size = batch_sampler.batch_size
    while len(batch := order.next(size)) == size or (batch and not batch_sampler.drop_last):
        yield batch
