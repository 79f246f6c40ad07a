"""How a worker gets the data of one task from the dataset and collates it into the task's extent."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from infeed import _codec
from infeed._worker import standard

if TYPE_CHECKING:
    from infeed._worker.start import Start

# Stand for torch's own functions, so that naming them in a pickle does not import torch.
DEFAULT_COLLATE = "default_collate"
DEFAULT_CONVERT = "default_convert"

ENDED = object()  # what IterableFetcher.fetch returns once the dataset has no more


_STANDARD = {DEFAULT_COLLATE: standard.collate, DEFAULT_CONVERT: standard.convert}


def stop_iteration_text(dataset: Any, index: Any) -> str:
    return (
        f"{type(dataset).__name__} raised StopIteration for {index!r}. In a map-style dataset this is an error of its "
        "__getitem__ (often a next() on an exhausted iterator); it does not end the epoch."
    )


class Fetcher:
    """Base of the two: `fetch` gives the data of a task, `state` what a checkpoint keeps of this worker."""

    def __init__(self, start: Start, dataset: Any, collate_fn: Any, note: Callable[[int], None]) -> None:
        self.dataset = dataset
        self.auto_collation = start.auto_collation
        self.drop_last = start.drop_last
        self.in_place = collate_fn == DEFAULT_COLLATE and start.auto_collation
        self.collate_fn = _STANDARD[collate_fn] if isinstance(collate_fn, str) else collate_fn
        self.note = note
        self.collate_ns = 0  # since the task began

    def fetch(self, message: _codec.Message, task: Any) -> Any:
        raise NotImplementedError

    def state(self) -> Any:
        return None

    def collate(self, message: _codec.Message, samples: Any) -> Any:
        """Collates samples that are there; by torch's rules in the extent where the structure allows."""
        samples = self._gathered(message, samples)
        return samples if samples is _codec.COLLATED else self._collated(message, samples)

    def _collated(self, message: _codec.Message, samples: Any) -> Any:
        """Lets collate_fn make a batch; its time is counted apart."""
        begin = time.perf_counter_ns()
        data = message.collate(self.collate_fn, samples)
        self.collate_ns += time.perf_counter_ns() - begin
        return data

    def _gathered(self, message: _codec.Message, samples: Any) -> Any:
        """COLLATED, or the samples where collate_fn is to have them."""
        if not self.in_place or type(samples) is not list:
            return samples
        odd = message.gather(samples)
        return _codec.COLLATED if odd is None else odd


class MapFetcher(Fetcher):
    """A map-style dataset. A task is a list of indices, or one index without batching."""

    def fetch(self, message: _codec.Message, task: Any) -> Any:
        try:
            samples = self._samples(message, task)
        except StopIteration as error:
            raise RuntimeError(stop_iteration_text(self.dataset, task)) from error
        return samples if samples is _codec.COLLATED else self._collated(message, samples)

    def _samples(self, message: _codec.Message, task: Any) -> Any:
        """What collate_fn gets; COLLATED: already collated in the extent."""
        dataset = self.dataset
        if not self.auto_collation:
            return dataset[task]
        if getattr(dataset, "__getitems__", None):
            return self._gathered(message, dataset.__getitems__(task))
        if self.in_place:
            odd = message.fetch(dataset, task if type(task) is list else list(task), self.note)
            return _codec.COLLATED if odd is None else odd
        samples = []
        for index in task:
            if type(index) is int:
                self.note(index)
            samples.append(dataset[index])
        return samples


class IterableFetcher(Fetcher):
    """An iterable-style dataset. A task is how many samples to take."""

    def __init__(self, start: Start, dataset: Any, collate_fn: Any, note: Callable[[int], None]) -> None:
        super().__init__(start, dataset, collate_fn, note)
        self.iterator = iter(dataset)
        self.ended = False

    def fetch(self, message: _codec.Message, task: int) -> Any:
        if not self.auto_collation:
            sample = self._next()
            return ENDED if self.ended else message.collate(self.collate_fn, sample)
        samples: list[Any] = []
        while len(samples) < task and not self.ended:
            sample = self._next()
            if not self.ended:
                samples.append(sample)
        if not samples or (self.drop_last and len(samples) < task):
            return ENDED
        return self.collate(message, samples)

    def _next(self) -> Any:
        if not self.ended:
            try:
                return next(self.iterator)
            except StopIteration:
                self.ended = True
        return None


def make_fetcher(start: Start, dataset: Any, collate_fn: Any, note: Callable[[int], None]) -> Fetcher:
    kind = IterableFetcher if start.iterable else MapFetcher
    return kind(start, dataset, collate_fn, note)
