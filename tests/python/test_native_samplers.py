"""infeed.samplers, and the user's own, in infeed.Loader."""

from __future__ import annotations

import pickle
from collections.abc import Iterator

import infeed
import numpy as np
import pytest
from infeed.samplers import (
    BatchSampler,
    DistributedSampler,
    FeistelSampler,
    RandomSampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from native_data import indices, numbers

SAMPLERS = [
    SequentialSampler(20),
    RandomSampler(20, seed=3),
    RandomSampler(20, replacement=True, num_samples=30),
    SubsetRandomSampler(range(5, 15), seed=1),
    WeightedRandomSampler(np.arange(20.0), 12),
    DistributedSampler(20, num_replicas=3, rank=1),
    FeistelSampler(20, seed=9),
]


@pytest.mark.parametrize("sampler", SAMPLERS, ids=lambda sampler: type(sampler).__name__)
def test_a_loader_draws_what_the_sampler_yields(sampler):
    loader = infeed.Loader(numbers(20), 7, sampler=sampler)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        assert [index for batch in loader for index in batch.indices] == list(sampler)
        assert len(list(sampler)) == len(sampler)


@pytest.mark.parametrize("sampler", SAMPLERS, ids=lambda sampler: type(sampler).__name__)
def test_samplers_pickle_and_print(sampler):
    other = pickle.loads(pickle.dumps(sampler))
    assert list(other) == list(sampler)
    assert repr(other) == repr(sampler)
    assert repr(sampler).startswith(type(sampler).__name__)


def test_orders_are_torchs():
    data = pytest.importorskip("torch.utils.data")
    import torch

    def generator() -> torch.Generator:
        return torch.Generator().manual_seed(3 + 2)

    ours = [
        RandomSampler(50, seed=3),
        SubsetRandomSampler(range(9), seed=3),
        WeightedRandomSampler([1.0, 2.0, 3.0], 20, seed=3),
        DistributedSampler(50, 3, 1, seed=3),
    ]
    theirs = [
        data.RandomSampler(range(50), generator=generator()),
        data.SubsetRandomSampler(range(9), generator=generator()),
        data.WeightedRandomSampler([1.0, 2.0, 3.0], 20, generator=generator()),
        data.DistributedSampler(range(50), 3, 1, seed=3),  # type: ignore[arg-type]
    ]
    theirs[3].set_epoch(2)
    for sampler, stock in zip(ours, theirs, strict=True):
        sampler.set_epoch(2)
        assert list(sampler) == [int(index) for index in stock]


def test_samplers_take_a_dataset_or_its_size():
    assert repr(RandomSampler(numbers(12))) == "RandomSampler(size=12, replacement=False, num_samples=None, seed=0)"


def test_impossible_parameters_are_refused_when_the_sampler_is_made():
    with pytest.raises(infeed.ConfigError, match="rank"):
        DistributedSampler(10, num_replicas=2, rank=2)
    with pytest.raises(infeed.ConfigError, match="batch_size"):
        BatchSampler(SequentialSampler(4), 0)


def test_batch_samplers_compose_the_batches():
    batches = BatchSampler(RandomSampler(10, seed=1), 4, drop_last=True)
    loader = infeed.Loader(numbers(10), batch_sampler=batches)
    assert len(loader) == len(batches) == 2
    assert indices(loader) == list(batches)
    assert indices(infeed.Loader(numbers(10), batch_sampler=[[1, 2, 3], [4]])) == [[1, 2, 3], [4]]


class Alternating:
    """The user's own: forwards in even epochs, backwards in odd ones; NumPy's integers."""

    epoch = 0

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __iter__(self) -> Iterator[np.int64]:
        return iter(np.arange(10)[:: 1 if self.epoch % 2 == 0 else -1])

    def __len__(self) -> int:
        return 10


@pytest.mark.parametrize("workers", [0, 2])
def test_any_iterable_is_a_sampler_and_hears_the_epoch(workers):
    loader = infeed.Loader(numbers(10), 4, sampler=Alternating(), num_workers=workers)
    assert len(loader) == 3
    assert indices(loader) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert indices(loader) == [[9, 8, 7, 6], [5, 4, 3, 2], [1, 0]]


def test_an_iterable_is_resumed_where_it_was():
    loader = infeed.Loader(numbers(10), 4, sampler=Alternating())
    loader.set_epoch(1)
    iterator = iter(loader)
    next(iterator)
    other = infeed.Loader(numbers(10), 4, sampler=Alternating(), num_workers=2)
    other.load_state_dict(loader.state_dict())
    assert indices(other) == [[5, 4, 3, 2], [1, 0]]


def test_an_iterable_without_length_is_a_sampler_too():
    class Endless:
        def __iter__(self) -> Iterator[int]:
            while True:
                yield from range(10)

    iterator = iter(infeed.Loader(numbers(10), 4, sampler=Endless()))
    assert [next(iterator).indices for _ in range(3)] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 0, 1]]


def test_errors_of_a_sampler_come_out_as_they_are():
    class Failing:
        def __iter__(self) -> Iterator[int]:
            yield from range(4)
            raise LookupError("no more")

    iterator = iter(infeed.Loader(numbers(10), 2, sampler=Failing(), num_workers=1))
    with pytest.raises(LookupError, match="no more"):  # drawn ahead: it may come before the last good batches
        list(iterator)


def test_an_index_beyond_the_dataset_is_an_index_error():
    with pytest.raises(IndexError, match="index 10") as caught:
        list(infeed.Loader(numbers(10), 2, sampler=[1, 10]))
    assert isinstance(caught.value, infeed.IndexError)
    with pytest.raises(TypeError, match="str"):
        list(infeed.Loader(numbers(10), 2, sampler="ab"))  # type: ignore[arg-type]
