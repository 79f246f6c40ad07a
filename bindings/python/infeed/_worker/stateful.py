"""Fetchers of workers whose dataset, or its iterator, may keep a state for checkpoints."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

from infeed._worker.fetchers import Fetcher, IterableFetcher, MapFetcher
from infeed._worker.start import Start

# Keys of a worker's state, as torchdata names them.
WORKER_ID = "worker_id"
DATASET_STATE = "dataset_state"
FETCHER_STATE = "fetcher_state"
DATASET_ITER_STATE = "dataset_iter_state"
FETCHER_ENDED = "fetcher_ended"


def is_stateful(thing: Any) -> bool:
    return hasattr(thing, "state_dict") and hasattr(thing, "load_state_dict")


def state_of(thing: Any) -> Any:
    return thing.state_dict() if is_stateful(thing) else None


def iterable_state(dataset: Any, iterator: Any, ended: bool) -> dict[str, Any]:
    """A dataset that is its own iterator is asked once, as the iterator."""
    return {
        FETCHER_STATE: {DATASET_ITER_STATE: state_of(iterator), FETCHER_ENDED: ended},
        DATASET_STATE: None if iterator is dataset else state_of(dataset),
    }


class _Reporter:
    """Pickles states: at once, so that nothing changes them any more. Says nothing where nothing is new."""

    def __init__(self, worker: int) -> None:
        self.worker = worker
        self.last: bytes | None = None

    def report(self, state: dict[str, Any]) -> bytes | None:
        pickled = pickle.dumps({WORKER_ID: self.worker, **state}, 5)
        if pickled == self.last:
            return None
        self.last = pickled
        return pickled


def _take_state(start: Start) -> dict[str, Any]:
    """The state to restore, for the first fetcher of a worker only."""
    pickled, start.state = start.state, None
    return {} if pickled is None else pickle.loads(pickled)


def _restore_dataset(dataset: Any, state: dict[str, Any]) -> None:
    if state.get(DATASET_STATE) is not None and is_stateful(dataset):
        dataset.load_state_dict(state[DATASET_STATE])


class StatefulMapFetcher(MapFetcher):
    def __init__(self, start: Start, dataset: Any, collate_fn: Any, note: Callable[[int], None]) -> None:
        _restore_dataset(dataset, _take_state(start))
        super().__init__(start, dataset, collate_fn, note)
        self.reporter = _Reporter(start.worker)

    def state(self) -> bytes | None:
        return self.reporter.report({FETCHER_STATE: None, DATASET_STATE: state_of(self.dataset)})


class StatefulIterableFetcher(IterableFetcher):
    """Restores the dataset, makes its iterator, restores that. A part that had ended is not asked again: its dataset may
    be back at the beginning."""

    def __init__(self, start: Start, dataset: Any, collate_fn: Any, note: Callable[[int], None]) -> None:
        state = _take_state(start)
        _restore_dataset(dataset, state)
        super().__init__(start, dataset, collate_fn, note)
        fetcher_state = state.get(FETCHER_STATE) or {}
        iterator_state = fetcher_state.get(DATASET_ITER_STATE)
        if iterator_state is not None and is_stateful(self.iterator):
            self.iterator.load_state_dict(iterator_state)
        self.ended = fetcher_state.get(FETCHER_ENDED, False)
        self.reporter = _Reporter(start.worker)

    def state(self) -> bytes | None:
        return self.reporter.report(iterable_state(self.dataset, self.iterator, self.ended))


def make_stateful_fetcher(start: Start, dataset: Any, collate_fn: Any, note: Callable[[int], None]) -> Fetcher:
    kind = StatefulIterableFetcher if start.iterable else StatefulMapFetcher
    return kind(start, dataset, collate_fn, note)
