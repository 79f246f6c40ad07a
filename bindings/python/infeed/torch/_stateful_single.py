"""The iterator for num_workers=0, with a state."""

from __future__ import annotations

import contextlib
import logging
import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch.utils.data import IterDataPipe, MapDataPipe
from torch.utils.data._utils.pin_memory import pin_memory
from torch.utils.data.dataloader import _BaseDataLoaderIter, _DatasetKind, _SingleProcessDataLoaderIter
from torch.utils.data.graph_settings import apply_random_seed, apply_sharding

from infeed._worker import standard
from infeed._worker.fetchers import stop_iteration_text
from infeed._worker.heap import keep_freed_memory
from infeed._worker.stateful import (
    DATASET_ITER_STATE,
    DATASET_STATE,
    FETCHER_ENDED,
    FETCHER_STATE,
    is_stateful,
    iterable_state,
    state_of,
)
from infeed.torch._staging import Staging
from infeed.torch._stateful_order import SamplerOrder, copied
from infeed.torch._user_code import ours_for

_log = logging.getLogger(__name__)

# Keys of the state, as torchdata names them; those of the order and of the fetcher come in between.
NUM_YIELDED = "_num_yielded"
LEN_CALLED = "_IterableDataset_len_called"
SHARED_SEED = "_shared_seed"
FINISHED = "_iterator_finished"


def warn_of_fast_forward(steps: int) -> None:
    _log.warning(
        "Neither dataset nor iter(dataset) defines state_dict/load_state_dict so we are naively fast-forwarding your "
        "dataset by %d steps. With these methods on either, a resume skips nothing.",
        steps,
    )


class SingleProgress:
    """What the state is made of; outlives the iterator that fills it."""

    def __init__(self, iterator: _StatefulSingleIterator, order: SamplerOrder) -> None:
        self.order = order
        self.yielded = 0
        self.finished = False
        self.len_called = iterator._IterableDataset_len_called
        self.shared_seed = iterator._shared_seed
        self.iterable = iterator._dataset_kind == _DatasetKind.Iterable
        self.keeps_state = False
        self._fetcher: Callable[[], Any] = lambda: None

    def ask(self, fetcher: Any) -> None:
        """`fetcher`: torch's. It is held only if there is a state to ask for: a dataset's iterator may hold files."""
        self.keeps_state = is_stateful(fetcher.dataset) or (self.iterable and is_stateful(fetcher.dataset_iter))
        self._fetcher = (lambda: fetcher) if self.keeps_state else weakref.ref(fetcher)

    def state_dict(self) -> dict[str, Any]:
        return {
            **self.order.describe(self.order.mark()),
            NUM_YIELDED: self.yielded,
            LEN_CALLED: self.len_called,
            SHARED_SEED: self.shared_seed,
            **self._fetcher_state(),
            FINISHED: self.finished,
        }

    def _fetcher_state(self) -> dict[str, Any]:
        fetcher = self._fetcher()
        if not self.iterable:
            dataset_state = None if fetcher is None else copied(state_of(fetcher.dataset))
            return {FETCHER_STATE: None, DATASET_STATE: dataset_state}
        if fetcher is None:
            return iterable_state(None, None, self.finished)
        return copied(iterable_state(fetcher.dataset, fetcher.dataset_iter, fetcher.ended))


class _SingleProcessIterator(_SingleProcessDataLoaderIter):
    """torch's own, but for a map-style dataset that raises StopIteration: that is an error, not the epoch's end."""

    _staging: Staging | None = None  # of a loader with a device; nothing is ahead in it

    def _next_data(self) -> Any:
        staging = self._staging
        if staging is None:
            return self._next_host()
        if not staging:
            staging.put(self._next_host())
        return staging.take()[0]

    def _next_host(self) -> Any:
        index = self._next_index()
        try:
            data = self._dataset_fetcher.fetch(index)
        except StopIteration as error:
            if self._dataset_kind == _DatasetKind.Iterable:
                raise
            raise RuntimeError(stop_iteration_text(self._dataset, index)) from error
        return pin_memory(data, self._pin_memory_device) if self._pin_memory else data


class _StatefulSingleIterator(_SingleProcessIterator):
    """Restores in this order: sampler, dataset, the dataset's iterator."""

    def __init__(self, loader: Any, state: dict[str, Any] | None = None) -> None:
        order = loader._make_order()
        _BaseDataLoaderIter.__init__(self, loader)
        if loader.device is not None:
            self._pin_memory, self._pin_memory_device = True, loader.device.type
        assert self._timeout == 0, "timeout must be 0 where there are no workers"
        assert self._num_workers == 0, "num_workers must be 0 for a single-process iterator"
        if isinstance(self._dataset, (IterDataPipe, MapDataPipe)):
            apply_sharding(self._dataset, self._world_size, self._rank)
        order.attach(self._sampler_iter)
        self._sampler_iter = order
        self.progress = SingleProgress(self, order)
        if state is None:
            self._make_fetcher()
        else:
            self._restore(state)
        self._staging = Staging.of(loader)

    def _make_fetcher(self) -> None:
        keep_freed_memory()
        collate_fn = ours_for(self._collate_fn, standard.collate, standard.convert)
        self._dataset_fetcher = _DatasetKind.create_fetcher(
            self._dataset_kind, self._dataset, self._auto_collation, collate_fn, self._drop_last
        )
        self.progress.ask(self._dataset_fetcher)

    def _restore(self, state: dict[str, Any]) -> None:
        key = NUM_YIELDED
        assert key in state, f"State doesn't contain key '{key}' expected for single process dataloader (num_workers=0)"
        progress = self.progress
        self._IterableDataset_len_called = progress.len_called = state[LEN_CALLED]
        self._restore_seed(state[SHARED_SEED])
        if not progress.iterable:
            self._restore_order(state)
        if state[DATASET_STATE] is not None and is_stateful(self._dataset):
            self._dataset.load_state_dict(copied(state[DATASET_STATE]))
        self._make_fetcher()
        if progress.iterable and not progress.keeps_state:
            self._fast_forward(state[NUM_YIELDED], state[FINISHED])
        else:
            if progress.iterable:
                progress.order.restore(state)
                self._restore_dataset_iterator(state[FETCHER_STATE])
            self._num_yielded = progress.yielded = state[NUM_YIELDED]
        progress.finished = state[FINISHED]

    def _restore_seed(self, shared_seed: int | None) -> None:
        self._shared_seed = self.progress.shared_seed = shared_seed
        if shared_seed is not None and isinstance(self._dataset, IterDataPipe):
            self._dataset = apply_random_seed(self._dataset, torch.Generator().manual_seed(shared_seed))

    def _restore_order(self, state: dict[str, Any]) -> None:
        order = self.progress.order
        order.restore(state)
        generator = order.rewound()
        if generator is not None:  # iter() drew the base seed right after the order
            torch.empty((), dtype=torch.int64).random_(generator=generator)
        if state[FINISHED]:
            next(order, None)  # samplers do at their end what the next epoch may depend on

    def _restore_dataset_iterator(self, state: dict[str, Any]) -> None:
        fetcher = self._dataset_fetcher
        if state[DATASET_ITER_STATE] is not None and is_stateful(fetcher.dataset_iter):
            fetcher.dataset_iter.load_state_dict(copied(state[DATASET_ITER_STATE]))
        fetcher.ended = state[FETCHER_ENDED]

    def _fast_forward(self, steps: int, to_the_end: bool) -> None:
        if steps > 0:
            warn_of_fast_forward(steps)
        for step in range(steps):
            try:
                self._next_data()
            except StopIteration:
                raise ValueError(f"the dataset ends after {step} batches, the state was saved after {steps}") from None
        self._num_yielded = steps
        if to_the_end:
            with contextlib.suppress(StopIteration):
                self._next_data()

    def _next_data(self) -> Any:
        try:
            data = super()._next_data()
        except StopIteration:
            self.progress.finished = True
            raise
        self.progress.yielded += 1
        return data
