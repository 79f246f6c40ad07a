"""Orders of the samples, by torch.utils.data's names and with its values where it has them. They run in C++: the
order of epoch e is torch's for `generator.manual_seed(seed + e)`.

    loader = infeed.Loader(dataset, batch_size=64, sampler=DistributedSampler(dataset, num_replicas=8, rank=rank))

A sampler here is a description: each loader makes its own from it, at the epoch of `loader.set_epoch`. Iterating over
one gives the indices of `epoch`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any

from infeed import _native

__all__ = [
    "BatchSampler",
    "DistributedSampler",
    "FeistelSampler",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "SubsetRandomSampler",
    "WeightedRandomSampler",
]

_CHUNK = 1024


def _size(data: Sized | int) -> int:
    return data if isinstance(data, int) else len(data)


def _repr(self: Any, names: Sequence[str]) -> str:
    return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"


class Sampler:
    """Base of the samplers of this module."""

    epoch: int = 0
    _parameters: tuple[str, ...] = ()

    def _make(self) -> Any:
        """The native sampler, for one owner."""
        raise NotImplementedError

    def set_epoch(self, epoch: int) -> None:
        """Whose order iter() gives. Loaders have their own: loader.set_epoch."""
        self.epoch = epoch

    def __iter__(self) -> Iterator[int]:
        sampler = self._make()
        sampler.start_epoch(self.epoch)
        while indices := sampler.next(_CHUNK):
            yield from indices

    def __len__(self) -> int:
        return self._make().size()

    def __repr__(self) -> str:
        return _repr(self, self._parameters)


class SequentialSampler(Sampler):
    """0, 1, ..., size - 1. `data`: anything with a length, or the number."""

    _parameters = ("size",)

    def __init__(self, data: Sized | int) -> None:
        self.size = _size(data)
        self._make()

    def _make(self) -> Any:
        return _native.Sampler.sequential(self.size)


class RandomSampler(Sampler):
    """Shuffled. Costs 4 bytes a sample (8 above 2**31), none with replacement."""

    _parameters = ("size", "replacement", "num_samples", "seed")

    def __init__(
        self, data: Sized | int, replacement: bool = False, num_samples: int | None = None, *, seed: int = 0
    ) -> None:
        self.size = _size(data)
        self.replacement = replacement
        self.num_samples = num_samples
        self.seed = seed
        self._make()

    def _make(self) -> Any:
        return _native.Sampler.random(
            size=self.size, replacement=self.replacement, num_samples=self.num_samples, seed=self.seed
        )


class SubsetRandomSampler(Sampler):
    """The given indices, each once, shuffled."""

    def __init__(self, indices: Iterable[int], *, seed: int = 0) -> None:
        self.indices = [int(index) for index in indices]
        self.seed = seed
        self._make()

    def _make(self) -> Any:
        return _native.Sampler.subset_random(self.indices, self.seed)

    def __len__(self) -> int:
        return len(self.indices)

    def __repr__(self) -> str:
        return f"SubsetRandomSampler({len(self.indices)} indices, seed={self.seed})"


class WeightedRandomSampler(Sampler):
    """Indices in proportion to `weights`; unlike torch's, also for more than 2**24 of them."""

    def __init__(self, weights: Iterable[float], num_samples: int, replacement: bool = True, *, seed: int = 0) -> None:
        self.weights = [float(weight) for weight in weights]
        self.num_samples = num_samples
        self.replacement = replacement
        self.seed = seed
        self._make()

    def _make(self) -> Any:
        return _native.Sampler.weighted(self.weights, self.num_samples, self.replacement, self.seed)

    def __len__(self) -> int:
        return self.num_samples

    def __repr__(self) -> str:
        rest = _repr(self, ("num_samples", "replacement", "seed")).partition("(")[2]
        return f"WeightedRandomSampler({len(self.weights)} weights, {rest}"


class DistributedSampler(Sampler):
    """One rank's share of an epoch. Its state may be taken up with another `num_replicas`."""

    _parameters = ("size", "num_replicas", "rank", "shuffle", "seed", "drop_last")

    def __init__(
        self,
        data: Sized | int,
        num_replicas: int,
        rank: int,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        self.size = _size(data)
        self.num_replicas = num_replicas
        self.rank = rank
        self.shuffle = shuffle
        self.seed = seed
        self.drop_last = drop_last
        self._make()

    def _make(self) -> Any:
        return _native.Sampler.distributed(
            self.size, self.num_replicas, self.rank, self.shuffle, self.seed, self.drop_last
        )


class FeistelSampler(Sampler):
    """Shuffled in constant memory, for data sets of any size; the order is its own. Shares as DistributedSampler's."""

    _parameters = ("size", "num_replicas", "rank", "seed", "drop_last")

    def __init__(
        self, data: Sized | int, num_replicas: int = 1, rank: int = 0, seed: int = 0, drop_last: bool = False
    ) -> None:
        self.size = _size(data)
        self.num_replicas = num_replicas
        self.rank = rank
        self.seed = seed
        self.drop_last = drop_last
        self._make()

    def _make(self) -> Any:
        return _native.Sampler.feistel(self.size, self.num_replicas, self.rank, self.seed, self.drop_last)


class BatchSampler:
    """Lists of `batch_size` indices of `sampler` (one of this module, or any iterable of integers)."""

    epoch: int = 0

    def __init__(self, sampler: Sampler | Iterable[int], batch_size: int, drop_last: bool = False) -> None:
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last
        self._make()

    def _make(self) -> Any:
        return _native.BatchSampler.fixed(native_sampler(self.sampler), self.batch_size, self.drop_last)

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __iter__(self) -> Iterator[list[int]]:
        sampler = self._make()
        sampler.start_epoch(self.epoch)
        while (batch := sampler.next()) is not None:
            yield batch

    def __len__(self) -> int:
        size = self._make().size()
        if size is None:
            raise TypeError(f"{self.sampler!r} has no length")
        return size

    def __repr__(self) -> str:
        return _repr(self, ("sampler", "batch_size", "drop_last"))


def native_sampler(sampler: Sampler | Iterable[int]) -> Any:
    """The native sampler that draws from `sampler`."""
    if isinstance(sampler, Sampler):
        return sampler._make()
    return _native.Sampler.of_iterable(sampler)


def native_batch_sampler(sampler: Any) -> Any:
    """The same of batches. The largest batch must be known: `max_batch_size` or `batch_size`, else a sized list."""
    if isinstance(sampler, BatchSampler):
        return sampler._make()
    largest = getattr(sampler, "max_batch_size", None) or getattr(sampler, "batch_size", None)
    if largest is None and isinstance(sampler, Sequence):
        largest = max(map(len, sampler), default=1)
    if largest is None:
        raise TypeError(f"batch_sampler {sampler!r} needs an attribute `max_batch_size` or `batch_size`")
    return _native.BatchSampler.of_iterable(sampler, largest)
