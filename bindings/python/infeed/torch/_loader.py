"""infeed.torch.DataLoader: torch's class with infeed's workers and transport behind it."""

from __future__ import annotations

import copy
import logging
import weakref
from collections.abc import Callable, Iterable
from typing import Any, Literal, TypeVar

import torch.utils.data
from torch.utils.data import Dataset, IterableDataset, Sampler

from infeed._options import is_integer
from infeed.torch._auto import Auto, AutoNumber, is_auto, why_fixed
from infeed.torch._device import checked_compute_stream, checked_device
from infeed.torch._order import draws_on_host
from infeed.torch._stateful_multi import MultiProgress, _StatefulIterator, saved_num_workers
from infeed.torch._stateful_order import ReplayedOrder, SamplerOrder
from infeed.torch._stateful_single import SingleProgress, _StatefulSingleIterator
from infeed.torch._stats import Stats
from infeed.torch.samplers import ShuffleOfNone

_log = logging.getLogger(__name__)

_T_co = TypeVar("_T_co", covariant=True)


class DataLoader(torch.utils.data.DataLoader[_T_co]):
    """`torch.utils.data.DataLoader`: same arguments, order, values, seeds and errors. What it adds:

    Args:
        num_workers: Also "auto": workers come and go while the loader runs, and where prefetch_factor is not given the queue
            becomes deeper, for the shortest time of step and wait together (docs/tuning.md). Batches do not depend on it:
            the random numbers of a batch are seeded by its number. Where the count cannot change (IterableDataset; a
            dataset with a state), it stays what "auto" begins with. The attribute is the count at the latest iter();
            `stats()` tells the present one.
        memory_budget: With num_workers="auto": bytes that this process and its workers may have, shared pages once. It
            begins with one worker then. Default None: what the machine and its cgroups leave.
        memory_limit: Bytes of batches that may be held at once; next() raises MemoryError for one that would exceed
            it, and may be called again. Default None: no limit.
        max_restarts: Dead workers of a map-style loader that are replaced before their death is an error. Default 0.
            The batches a dead worker had not finished are made again: user code runs twice for them.
        order: "strict" is `in_order=True`, the default; "ready" is `in_order=False`: batches as they come.
        device: "cuda:0": batches arrive there, in memory of torch's allocator, for work in `compute_stream`. Tensors, and
            what has a to() of its own, are copied, in containers as pin_memory knows them. Default None: batches stay
            on the host, page-locked with `pin_memory`.
        prefetch_to_device: Batches copied ahead of next(), as far as workers have them ready. Default 2; each costs
            one batch of device memory. With num_workers=0 none is ahead.
        compute_stream: The stream that waits for the copies, and in which the batches are used. Default None: the one
            that is current at next().

    `state_dict()` gives the position in the epoch, `load_state_dict()` returns to it; see docs/python_state.md.
    """

    snapshot_every_n_steps: int | None = 1
    _order_type: type[SamplerOrder] = ReplayedOrder
    _awaits_workers = False  # whether iter() waits until workers are ready
    _keeps_iterator = False  # also where workers do not persist

    def __init__(
        self,
        dataset: Dataset[_T_co],
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Sampler[Any] | Iterable[Any] | None = None,
        batch_sampler: Sampler[list[Any]] | Iterable[list[Any]] | None = None,
        num_workers: int | Literal["auto"] = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: torch.Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
        memory_limit: int | None = None,
        max_restarts: int = 0,
        order: Literal["strict", "ready"] | None = None,
        device: torch.device | str | int | None = None,
        prefetch_to_device: int = 2,
        compute_stream: torch.cuda.Stream | None = None,
        memory_budget: int | None = None,
    ) -> None:
        _check_auto(num_workers, memory_budget)
        self._is_auto = is_auto(num_workers)
        self._deepens = num_workers.deepens if isinstance(num_workers, AutoNumber) else prefetch_factor is None
        self._auto = Auto(memory_budget, self._deepens) if self._is_auto else None
        if shuffle and sampler is None and batch_sampler is None and _is_empty(dataset):
            shuffle, sampler = None, ShuffleOfNone(dataset, generator)
        super().__init__(
            dataset,
            batch_size=batch_size,
            shuffle=shuffle,
            sampler=sampler,
            batch_sampler=batch_sampler,
            num_workers=num_workers if self._auto is None else AutoNumber(self._auto.count.workers, self._deepens),
            collate_fn=collate_fn,
            pin_memory=pin_memory,
            drop_last=drop_last,
            timeout=timeout,
            worker_init_fn=worker_init_fn,
            multiprocessing_context=multiprocessing_context,
            generator=generator,
            prefetch_factor=prefetch_factor,
            persistent_workers=persistent_workers,
            pin_memory_device=pin_memory_device,
            in_order=in_order,
        )
        _check_options(memory_limit, max_restarts, order, in_order)
        self.device = checked_device(device, prefetch_to_device)
        self.prefetch_to_device = prefetch_to_device
        self.compute_stream = checked_compute_stream(compute_stream, self.device)
        if self._auto is not None and (reason := why_fixed(dataset)) is not None:
            _log.info("num_workers=auto is %d and stays: %s.", self.num_workers, reason)
            self._auto = None
        self.memory_budget = memory_budget
        self.memory_limit = memory_limit
        self.max_restarts = max_restarts
        if order is not None:
            self.order = order
        self._live: weakref.ref[_StatefulIterator] | None = None
        self._last_stats = Stats()
        self._progress: MultiProgress | SingleProgress | None = None  # of the latest iterator
        self._next_state: dict[str, Any] | None = None  # for the next iterator to begin with
        self._is_ahead = False  # state_dict() made the iterator that iter() is going to return

    @property
    def order(self) -> Literal["strict", "ready"]:
        """ "strict": in the sampler's order; "ready": as batches come. Another name for `in_order`."""
        return "strict" if self.in_order else "ready"

    @order.setter
    def order(self, order: Literal["strict", "ready"]) -> None:
        self.in_order = order == "strict"

    @property
    def auto_workers(self) -> bool:
        """Whether `num_workers` was given as "auto"."""
        return self._is_auto

    def stats(self) -> Stats:
        """Counters of the live iterator, else of the last one that had workers; empty before the first.

        `stats().verdict` says what bounds the training and which option to turn, `print(loader.stats())` all of it.
        """
        iterator = self._live_iterator()
        return self._last_stats.copy() if iterator is None else iterator.stats()

    def state_dict(self) -> dict[str, Any]:
        """Where the latest iterator stands, counted in the batches that next() returned.

        Before the first iter() it makes the iterator, with its workers, that iter() then returns.
        """
        if self._progress is None:
            self._iterator = self._get_iterator()
            self._is_ahead = True
        iterator = self._live_iterator()
        if iterator is not None:
            iterator.await_acks()
        return self._progress.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any] | None) -> None:
        """The next iter() continues from `state_dict`; from the start if that is empty or None.

        The loader lets go of its current iterator, also of workers that persist.
        """
        self._iterator = self._live = self._progress = None
        self._is_ahead = False
        self._next_state = copy.deepcopy(state_dict) if state_dict else None

    def __iter__(self) -> Any:
        persistent = self.persistent_workers and self.num_workers > 0
        if self._is_ahead:
            self._is_ahead = False
        elif persistent and self._iterator is not None and self._iterator.usable:
            self._iterator._reset(self)
        else:
            self._iterator = None
            self._iterator = self._get_iterator()
        if self._iterator.progress.finished:  # resumed at the end of an epoch: this is the next
            if persistent:
                self._iterator._reset(self)
            else:
                self._iterator = self._get_iterator()
        iterator = self._iterator
        if not (persistent or self._keeps_iterator):
            self._iterator = None
        return iterator

    def _get_iterator(self) -> Any:
        iterator: _StatefulSingleIterator | _StatefulIterator
        state = self._next_state
        if self._is_auto:
            self.num_workers = self._auto_count(state)
        with self._order_type.resuming(state is not None), draws_on_host():
            if self.num_workers == 0:
                iterator = _StatefulSingleIterator(self, state)
                self._live = None
            else:
                if not self._is_auto:
                    self.check_worker_number_rationality()
                iterator = _StatefulIterator(self, state)
                self._live = weakref.ref(iterator)
        self._progress = iterator.progress
        self._next_state = None
        return iterator

    def _auto_count(self, state: dict[str, Any] | None) -> int:
        """What the next iterator begins with: where it stays, that of a state which has a part for each worker."""
        if self._auto is not None:
            return AutoNumber(self._auto.count.workers, self._deepens)
        saved = saved_num_workers(state)
        return AutoNumber(saved, self._deepens) if isinstance(saved, int) else self.num_workers

    def _live_iterator(self) -> _StatefulIterator | None:
        """The latest iterator, while it has workers."""
        iterator = self._live() if self._live is not None else None
        return None if iterator is None or iterator._shutdown else iterator

    def _make_order(self) -> SamplerOrder:
        return self._order_type(self)

    def __getstate__(self) -> dict[str, Any]:
        iterator = self._iterator if self._live_iterator() is not None else None  # if it has workers, it refuses
        return {**self.__dict__, "_iterator": iterator, "_live": None, "_progress": None, "_is_ahead": False}


def _is_empty(dataset: Any) -> bool:
    return not isinstance(dataset, IterableDataset) and hasattr(dataset, "__len__") and len(dataset) == 0


def _check_auto(num_workers: int | str, memory_budget: int | None) -> None:
    if isinstance(num_workers, str) and not is_auto(num_workers):
        raise ValueError(f"num_workers should be a number or 'auto', but got {num_workers!r}")
    if memory_budget is None:
        return
    if not is_auto(num_workers):
        raise ValueError("memory_budget is for num_workers='auto'; a fixed number of workers has none")
    if not is_integer(memory_budget) or memory_budget <= 0:
        raise ValueError(f"memory_budget should be a positive number of bytes or None, but got {memory_budget!r}")


def _check_options(memory_limit: int | None, max_restarts: int, order: str | None, in_order: bool) -> None:
    if memory_limit is not None and (not is_integer(memory_limit) or memory_limit <= 0):
        raise ValueError(f"memory_limit should be a positive number of bytes or None, but got {memory_limit!r}")
    if not is_integer(max_restarts) or max_restarts < 0:
        raise ValueError(f"max_restarts should be a non-negative integer, but got {max_restarts!r}")
    if order not in (None, "strict", "ready"):
        raise ValueError(f"order should be 'strict' or 'ready', but got {order!r}")
    if order == "strict" and not in_order:
        raise ValueError("order='strict' contradicts in_order=False; give one of the two")
