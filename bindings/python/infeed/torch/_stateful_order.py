"""Where an iterator is in its sampler: what a checkpoint keeps of that, and how it is found again."""

from __future__ import annotations

import collections
import contextlib
import copy
import ctypes
import itertools
import random
import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils.data import (
    BatchSampler,
    DistributedSampler,
    RandomSampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from torch.utils.data.dataloader import _InfiniteConstantSampler

from infeed._worker.stateful import is_stateful, state_of
from infeed.torch import samplers
from infeed.torch._order import draws_on_host, index_batches
from infeed.torch.samplers import BatchSamplerIterator, RandomSamplerIterator

# Keys of the state, as torchdata names them.
INDEX_SAMPLER_STATE = "_index_sampler_state"
SAMPLER_ITER_STATE = "_sampler_iter_state"
SAMPLER_ITER_YIELDED = "_sampler_iter_yielded"

_ATOMS = (int, float, bool, str, bytes, type(None))


def copied(state: Any) -> Any:
    """A copy that later changes of `state` do not reach."""
    kind = type(state)
    if kind in _ATOMS:
        return state
    if kind is dict:
        return {key: copied(value) for key, value in state.items()}
    if kind is list:
        return [value if type(value) in _ATOMS else copied(value) for value in state]
    if kind is tuple:
        return tuple(copied(value) for value in state)
    return copy.deepcopy(state)


class SamplerOrder:
    """StatefulDataLoader's: asks the sampler and its iterator for their states; where neither has one, counts.

    Goes in front of an iterator over the index sampler: attach() it, then pull from this. mark() notes the position
    at little cost, describe() makes of a mark what restore() takes.
    """

    def __init__(self, loader: Any) -> None:
        self._sampler = loader._index_sampler
        self._generator = loader.generator
        self.yielded = 0

    def attach(self, iterator: Iterator[Any]) -> None:
        self._iterator = iterator
        self._has_own_state = type(iterator) is RandomSamplerIterator or (
            type(iterator) is BatchSamplerIterator and not iterator.keeps_user_state
        )

    def __iter__(self) -> SamplerOrder:
        return self

    def __next__(self) -> Any:
        with draws_on_host():
            index = next(self._iterator)
        self.yielded += 1
        return index

    def mark(self) -> Any:
        iterator_state = state_of(self._iterator)
        return (
            copied(state_of(self._sampler)),
            iterator_state if self._has_own_state else copied(iterator_state),
            self.yielded,
        )

    def describe(self, mark: Any) -> dict[str, Any]:
        sampler_state, iterator_state, yielded = mark
        return {
            SAMPLER_ITER_STATE: copied(iterator_state),
            INDEX_SAMPLER_STATE: copied(sampler_state),
            SAMPLER_ITER_YIELDED: yielded,
        }

    def restore(self, state: dict[str, Any]) -> None:
        self.yielded = state[SAMPLER_ITER_YIELDED]
        if is_stateful(self._sampler) or is_stateful(self._iterator):
            if is_stateful(self._sampler) and state[INDEX_SAMPLER_STATE] is not None:
                self._sampler.load_state_dict(copied(state[INDEX_SAMPLER_STATE]))
            self.attach(iter(self._sampler))
            if is_stateful(self._iterator) and state[SAMPLER_ITER_STATE] is not None:
                self._iterator.load_state_dict(copied(state[SAMPLER_ITER_STATE]))
        elif type(self._sampler) is not _InfiniteConstantSampler:
            self.attach(itertools.islice(self._sampler, self.yielded, None))

    def rewound(self) -> torch.Generator | None:
        """The loader's generator if restore() set it back to before what iter() draws from it beside the order."""
        iterator = self._iterator.sampler_iter if type(self._iterator) is BatchSamplerIterator else self._iterator
        shared = type(iterator) is RandomSamplerIterator and iterator.generator is self._generator
        return self._generator if shared else None

    @staticmethod
    @contextlib.contextmanager
    def resuming(from_state: bool) -> Iterator[None]:
        """Surrounds the making of an iterator."""
        yield


class ReplayedOrder(SamplerOrder):
    """DataLoader's: keeps the random states that the sampler started from, and pulls it again as often as before.

    Samplers with a state are asked as by SamplerOrder, under the same keys. Making an iterator from a state leaves the
    random numbers of the process as they were.
    """

    def __init__(self, loader: Any) -> None:
        super().__init__(loader)
        self._sources = _random_sources(loader, _innermost(self._sampler))
        self._before_iter = _states(self._sources)
        self._before_first: dict[str, Any] | None = None  # is set at the first pull
        self._replayed_first: dict[str, Any] | None = None  # what to set then

    def attach(self, iterator: Iterator[Any]) -> None:
        if type(self._sampler) is BatchSampler and not _is_torchs(self._sampler.sampler):
            batches = self._sampler
            self._before_iter = _states(self._sources)
            iterator = BatchSamplerIterator(batches.sampler, batches.batch_size, batches.drop_last)
            self._asks = is_stateful(iterator.sampler) or is_stateful(iterator.sampler_iter)
        else:
            self._asks = is_stateful(self._sampler) or is_stateful(iterator)
        super().attach(index_batches(self._sampler, iterator))

    def __next__(self) -> Any:
        if self._before_first is None:
            self._begin()
        with draws_on_host():
            index = next(self._iterator)
        self.yielded += 1
        return index

    def _begin(self) -> None:
        if self._replayed_first is not None:
            _set_states(self._sources, self._replayed_first)
        self._before_first = _states(self._sources)

    def mark(self) -> Any:
        return super().mark() if self._asks else self.yielded

    def describe(self, mark: Any) -> dict[str, Any]:
        if self._asks:
            return super().describe(mark)
        before_first = self._before_first or self._replayed_first or _states(self._sources)
        start = {"before_iter": copied(self._before_iter), "before_first": copied(before_first)}
        return {SAMPLER_ITER_STATE: start, INDEX_SAMPLER_STATE: None, SAMPLER_ITER_YIELDED: mark}

    def restore(self, state: dict[str, Any]) -> None:
        if self._asks:
            super().restore(state)
        else:
            self.yielded = state[SAMPLER_ITER_YIELDED]
            self._replay(state[SAMPLER_ITER_STATE])

    def _replay(self, start: Any) -> None:
        if not isinstance(start, dict) or "before_first" not in start:
            raise ValueError("this state is not of a DataLoader with such a sampler; load it as it was saved")
        unknown = start["before_first"].keys() - self._sources.keys() - {"numpy"}
        if unknown:
            raise ValueError(f"the state was saved with random numbers from {sorted(unknown)}, which are not used here")
        self._before_iter, self._replayed_first = copied(start["before_iter"]), copied(start["before_first"])
        _set_states(self._sources, self._before_iter)
        self.attach(iter(self._sampler))
        if self.yielded > 0:
            self._begin()
            collections.deque(itertools.islice(self._iterator, self.yielded), maxlen=0)

    def rewound(self) -> None:
        return None

    @staticmethod
    @contextlib.contextmanager
    def resuming(from_state: bool) -> Iterator[None]:
        sources = _global_sources() if from_state else {}
        states = _states(sources)
        try:
            yield
        finally:
            _set_states(sources, states)


# --- sources of random numbers: (get, set) by name ---

_Source = tuple[Callable[[], Any], Callable[[Any], Any]]
_SILENT = (SequentialSampler, _InfiniteConstantSampler, DistributedSampler)  # draw from nothing that others see
_SEEDED = (  # draw from `generator`, or torch's default
    RandomSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
    samplers.ShuffleOfNone,
    samplers.WeightedRandomSampler,
)


def _generator_source(generator: torch.Generator) -> _Source:
    """As bytes: equal states then have equal pickles, which tensors have not."""
    return (
        lambda: ctypes.string_at((state := generator.get_state()).data_ptr(), state.nbytes),
        lambda state: generator.set_state(torch.frombuffer(bytearray(state), dtype=torch.uint8)),
    )


def _global_sources() -> dict[str, _Source]:
    sources: dict[str, _Source] = {
        "torch": _generator_source(torch.default_generator),
        "python": (random.getstate, random.setstate),
    }
    if "numpy" in sys.modules:
        numpy_random = sys.modules["numpy"].random
        sources["numpy"] = (numpy_random.get_state, numpy_random.set_state)
    return sources


def _innermost(index_sampler: Any) -> Any:
    return index_sampler.sampler if type(index_sampler) is BatchSampler else index_sampler


def _is_torchs(sampler: Any) -> bool:
    return type(sampler) in _SILENT or type(sampler) in _SEEDED


def _random_sources(loader: Any, sampler: Any) -> dict[str, _Source]:
    """What `sampler`, the innermost, may draw from: little for torch's own, for others all there is."""
    if type(sampler) in _SILENT or is_stateful(sampler):
        return {}
    own = getattr(sampler, "generator", None)
    generators = {"sampler": own, "loader": loader.generator if loader.generator is not own else None}
    sources = {
        name: _generator_source(generator)
        for name, generator in generators.items()
        if isinstance(generator, torch.Generator) and generator is not torch.default_generator
    }
    if not _is_torchs(sampler):
        return sources | _global_sources()
    if "sampler" not in sources:
        sources["torch"] = _generator_source(torch.default_generator)
    return sources


def _states(sources: dict[str, _Source]) -> dict[str, Any]:
    return {name: get() for name, (get, _) in sources.items()}


def _set_states(sources: dict[str, _Source], states: dict[str, Any]) -> None:
    for name, state in states.items():
        if name in sources:
            sources[name][1](state)
