"""Samplers whose position can be saved: those of StatefulDataLoader, and StatefulDistributedSampler for your own use.

Orders, draws and states are those of torchdata's samplers of the same names. WeightedRandomSampler, and the shuffle of
what is empty as yet, are torch's samplers without a limit of theirs.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sized
from typing import Any

import torch
from torch.utils.data import BatchSampler as _TorchBatchSampler
from torch.utils.data import Dataset, Sampler
from torch.utils.data import RandomSampler as _TorchRandomSampler
from torch.utils.data import WeightedRandomSampler as _TorchWeightedRandomSampler
from torch.utils.data.dataloader import _InfiniteConstantSampler
from torch.utils.data.distributed import DistributedSampler

from infeed._worker.stateful import is_stateful
from infeed.torch._order import draws_on_host

__all__ = ["BatchSampler", "RandomSampler", "StatefulDistributedSampler", "WeightedRandomSampler"]

_CHUNK = 32  # indices drawn at once with replacement
_MOST_OF_MULTINOMIAL = 1 << 24  # weights


class RandomSampler(Sampler[int]):
    """Indices in random order; with `replacement`, `num_samples` independent draws.

    Determinism: all epochs draw from `generator`, one after the other. Without one, a seed drawn from torch's default
    generator at construction makes it. An epoch's first draw is made by iter().
    """

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        if generator is None:
            with draws_on_host():
                seed = int(torch.empty((), dtype=torch.int64).random_().item())
            generator = torch.Generator().manual_seed(seed)
        self.generator = generator
        if not isinstance(replacement, bool):
            raise TypeError(f"replacement should be a boolean value, but got replacement={replacement}")
        if not isinstance(self.num_samples, int) or self.num_samples <= 0:
            raise ValueError(f"num_samples should be a positive integer value, but got num_samples={self.num_samples}")

    @property
    def num_samples(self) -> int:
        """Indices of an epoch; follows the data source where none was given."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> RandomSamplerIterator:
        return RandomSamplerIterator(self)

    def __len__(self) -> int:
        return self.num_samples


class RandomSamplerIterator(Iterator[int]):
    """State: `yielded`, and the generator as it was before this epoch's first draw."""

    def __init__(self, sampler: RandomSampler) -> None:
        self.generator = sampler.generator
        self._size = len(sampler.data_source)
        self._replacement = sampler.replacement
        self._num_samples = sampler.num_samples
        self._begin()

    def _begin(self) -> None:
        self._generator_state = self.generator.get_state()
        self._yielded = 0
        self._draw()

    def _draw(self) -> None:
        with draws_on_host():
            if self._replacement:
                drawn = torch.randint(self._size, (_CHUNK,), dtype=torch.int64, generator=self.generator)
            else:
                drawn = torch.randperm(self._size, generator=self.generator)
            self._drawn: list[int] = drawn.tolist()
        self._place = 0

    def __next__(self) -> int:
        if self._yielded == self._num_samples:
            raise StopIteration
        if self._place == len(self._drawn):
            self._draw()
        index = self._drawn[self._place]
        self._place += 1
        self._yielded += 1
        return index

    def take(self, count: int) -> list[int]:
        """The next `count` indices, fewer at the end."""
        taken: list[int] = []
        count = min(count, self._num_samples - self._yielded)
        self._yielded += count
        while count > 0:
            if self._place == len(self._drawn):
                self._draw()
            part = self._drawn[self._place : self._place + count]
            self._place += len(part)
            count -= len(part)
            taken += part
        return taken

    def state_dict(self) -> dict[str, Any]:
        return {"yielded": self._yielded, "generator": self._generator_state}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.generator.set_state(state_dict["generator"])
        self._begin()
        self.take(state_dict["yielded"])


class BatchSampler(_TorchBatchSampler):
    """torch's BatchSampler with an iterator that can be saved, together with the sampler and the sampler's iterator."""

    def __iter__(self) -> BatchSamplerIterator:
        return BatchSamplerIterator(self.sampler, self.batch_size, self.drop_last)


class BatchSamplerIterator(Iterator[list[int]]):
    """State: `samples_yielded`, and `sampler_state`, `sampler_iter_state` where these keep one."""

    def __init__(self, sampler: Iterable[int], batch_size: int, drop_last: bool) -> None:
        self.sampler = sampler
        self.sampler_iter = iter(sampler)
        self._batch_size = batch_size
        self._drop_last = drop_last
        self._samples_yielded = 0

    def __next__(self) -> list[int]:
        if type(self.sampler_iter) is RandomSamplerIterator:
            batch = self.sampler_iter.take(self._batch_size)
        else:
            batch = list(itertools.islice(self.sampler_iter, self._batch_size))
        self._samples_yielded += len(batch)
        if not batch or (self._drop_last and len(batch) < self._batch_size):
            raise StopIteration
        return batch

    def state_dict(self) -> dict[str, Any]:
        state = {"samples_yielded": self._samples_yielded}
        if is_stateful(self.sampler):
            state["sampler_state"] = self.sampler.state_dict()
        if is_stateful(self.sampler_iter):
            state["sampler_iter_state"] = self.sampler_iter.state_dict()
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        if "samples_yielded" not in state_dict:
            raise ValueError(f"Invalid state_dict for a BatchSampler: no 'samples_yielded' in {list(state_dict)}")
        self._samples_yielded = state_dict["samples_yielded"]
        if "sampler_state" in state_dict:
            assert is_stateful(self.sampler), f"the state is of a sampler with state_dict, {self.sampler!r} has none"
            self.sampler.load_state_dict(state_dict["sampler_state"])
        self.sampler_iter = iter(self.sampler)
        if "sampler_iter_state" in state_dict:
            assert is_stateful(self.sampler_iter), (
                f"the state is of a sampler whose iterator keeps one, {self.sampler!r}"
            )
            self.sampler_iter.load_state_dict(state_dict["sampler_iter_state"])
        elif not (is_stateful(self.sampler) or type(self.sampler) is _InfiniteConstantSampler):
            next(itertools.islice(self.sampler_iter, self._samples_yielded, self._samples_yielded), None)

    @property
    def keeps_user_state(self) -> bool:
        """Whether a state holds objects that samplers of other makes may change later."""
        own = type(self.sampler_iter) is RandomSamplerIterator
        return is_stateful(self.sampler) or (is_stateful(self.sampler_iter) and not own)


class StatefulDistributedSampler(DistributedSampler[Any]):
    """torch's DistributedSampler with a state, `yielded`. The epoch is not part of it: call set_epoch as ever."""

    _YIELDED = "yielded"  # the key, under torchdata's name for it

    def __init__(
        self,
        dataset: Dataset[Any],
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        super().__init__(dataset, num_replicas, rank, shuffle, seed, drop_last)
        self.yielded = 0
        self.next_yielded: int | None = None

    def __iter__(self) -> Iterator[int]:
        self.yielded = 0 if self.next_yielded is None else self.next_yielded
        self.next_yielded = None
        for index in itertools.islice(super().__iter__(), self.yielded, None):
            self.yielded += 1
            yield index

    def state_dict(self) -> dict[str, Any]:
        return {self._YIELDED: self.yielded}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        if self._YIELDED not in state_dict:
            raise ValueError("Invalid state_dict: it has no 'yielded'")
        if state_dict[self._YIELDED] < 0:
            raise ValueError("Cannot load state_dict with negative yielded value")
        self.next_yielded = state_dict[self._YIELDED]


class ShuffleOfNone(_TorchRandomSampler):
    """torch's RandomSampler for a source that is empty, as yet: there its constructor refuses."""

    def __init__(self, data_source: Sized, generator: torch.Generator | None) -> None:
        self.data_source = data_source
        self.replacement = False
        self._num_samples = None
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        return super().__iter__() if len(self.data_source) > 0 else iter(())


class WeightedRandomSampler(_TorchWeightedRandomSampler):
    """torch's, for any number of weights, where its own ends at 2^24. Up to there the draws are the same."""

    def __iter__(self) -> Iterator[int]:
        if len(self.weights) <= _MOST_OF_MULTINOMIAL:
            return super().__iter__()
        if not (self.weights.isfinite().all() and (self.weights >= 0).all() and self.weights.any()):
            raise ValueError("weights should be finite and not negative, and not all of them zero")
        return iter((self._independent() if self.replacement else self._distinct()).tolist())

    def _independent(self) -> torch.Tensor:
        """Places of uniform draws among the sums of weights."""
        sums = self.weights.cumsum(0)
        draws = torch.rand(self.num_samples, dtype=sums.dtype, generator=self.generator) * sums[-1]
        last = torch.searchsorted(sums, sums[-1])  # where rounding takes a draw to the very end
        return torch.searchsorted(sums, draws, right=True).clamp_(max=last)

    def _distinct(self) -> torch.Tensor:
        """The earliest of exponential waits, whose rates are the weights."""
        possible = int(self.weights.count_nonzero())
        if self.num_samples > possible:
            raise ValueError(
                f"num_samples is {self.num_samples}, without replacement, and {possible} weights are not zero"
            )
        waits = torch.empty_like(self.weights).exponential_(generator=self.generator) / self.weights
        return waits.topk(self.num_samples, largest=False).indices
