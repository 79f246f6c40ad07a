"""The multi-process iterator: which worker gets which task when, and what becomes of the replies."""

from __future__ import annotations

import pickle
import time
from typing import Any

from torch.autograd import _profiler_enabled
from torch.utils.data.dataloader import _BaseDataLoaderIter, _DatasetKind

from infeed import _codec
from infeed._worker import main as worker_main
from infeed.torch import _errors
from infeed.torch._ahead import NO_BATCH, next_on_device
from infeed.torch._pin import Pinner
from infeed.torch._staging import Staging
from infeed.torch._workforce import _Workforce

_BATCH, _ERROR, _END = worker_main.BATCH, worker_main.ERROR, worker_main.END


class _Iterator(_Workforce):
    """One pass over a loader, or all of them where workers persist.

    Tasks are numbered through the iterator's life and handed to workers in turn, or with num_workers="auto" to whoever
    is free, `prefetch_factor` for each ahead of the batch that next() returns. `_tasks` maps the number of each task
    without a delivered reply to its worker.

    For subclasses that keep a state: `_make_start`, `_begin_epoch`, `_wants_state`, `_posted`, `_received`,
    `_delivered`, `_finish`; where batches are staged ahead, `_position` and `_handed_over`.
    """

    _reports_state = False  # whether workers send their states with every batch

    def __init__(self, loader: Any) -> None:
        _BaseDataLoaderIter.__init__(self, loader)
        if loader.device is not None:
            self._pin_memory, self._pin_memory_device = True, loader.device.type
        self._prefetch_factor = loader.prefetch_factor
        self._in_order = loader.in_order
        assert self._num_workers > 0, "num_workers must be greater than 0 for a multi-process iterator"
        assert self._prefetch_factor > 0, "prefetch_factor must be greater than 0 for a multi-process iterator"
        self._iterable = self._dataset_kind == _DatasetKind.Iterable
        self._restarts_left = 0 if self._iterable else loader.max_restarts
        self._wait_seconds = self._timeout if self._timeout > 0 else None
        self._last_stats = loader._last_stats
        self._batch_samples = getattr(loader.batch_sampler, "batch_size", None) or 1  # of a full one, for stats()
        self._pinner = Pinner(self._pin_memory_device, loader.device is None) if self._pin_memory else None
        self._auto = loader._auto.count if loader._auto is not None else None
        self._next_number = 0
        self._first_number = 0  # of this epoch
        self._replies = 0  # of this epoch: batches and errors that the user got
        self._tasks = {}
        self._left = set()
        self._start_workers(loader)
        try:
            self._reset(loader, first_iter=True)
            self._staging = Staging.of(loader)
        except BaseException:
            self._shutdown_workers()
            raise

    # --- an epoch ---

    def _reset(self, loader: Any, first_iter: bool = False) -> None:
        if self._staging is not None:
            self._replies -= len(self._staging)
            self._staging.clear()
        self._drop_tasks()
        _BaseDataLoaderIter._reset(self, loader, first_iter)
        self._dispatch.begin()
        if self._auto is not None:
            self._auto.turn_ended(False, self._exchange)
            self._next_number = self._first_number + self._replies  # how much was made ahead in vain is chance
        self._first_number, self._replies = self._next_number, 0
        self._begin_epoch(first_iter)
        for _ in range(self._dispatch.depth):
            self._post_next()

    def _drop_tasks(self) -> None:
        """Lets workers do what is left of an epoch, and drops it: they have drawn the random numbers for it, as torch's."""
        while self._tasks:
            number = self._wait()
            self._exchange.cancel(number)
            del self._tasks[number]

    def _begin_epoch(self, first_iter: bool) -> None:
        """Called before the sampler is pulled. Tells persistent workers of a next epoch where that concerns them."""

    def _post(self, worker: int, task: list[int] | bytes) -> int:
        number = self._next_number
        self._exchange.post(number, worker, task)
        self._next_number = number + 1
        self._tasks[number] = worker
        return number

    def _post_next(self) -> None:
        """Pulls one index batch from the sampler and posts it, if any worker may have it."""
        begin = time.perf_counter_ns()
        try:
            index = self._next_index()
        except StopIteration:
            return
        finally:
            self._exchange.turn_drew(time.perf_counter_ns() - begin)
        worker = self._dispatch.choose()
        if worker is None:
            return
        wants_state = self._wants_state()
        task = self._fetch_task(index, wants_state)
        try:
            number = self._post(worker, task)
        except (TypeError, OverflowError):  # indices that are no 64-bit ints
            number = self._post(worker, pickle.dumps((worker_main.FETCH, index, wants_state)))
        self._dispatch.posted(worker)
        self._posted(number, worker)

    def _wants_state(self) -> bool:
        """Whether the reply to the task that is about to be posted shall bring its worker's state."""
        return False

    def _posted(self, number: int, worker: int) -> None:
        """Called once a batch's task is posted."""

    def _fetch_task(self, index: Any, wants_state: bool) -> list[int] | bytes:
        """A task of plain ints where that says all, else a pickle."""
        if self._iterable:
            index = len(index) if self._auto_collation else 1
        if wants_state == self._reports_state:
            if type(index) is list and self._auto_collation:
                return index
            if type(index) is int and (self._iterable or not self._auto_collation):
                return [index]
        return pickle.dumps((worker_main.FETCH, index, wants_state))

    # --- replies ---

    def __next__(self) -> Any:
        if self._IterableDataset_len_called is not None or _profiler_enabled():
            return super().__next__()  # counts, warns of a wrong len(), and is a range in profiles
        data = self._next_data()
        self._num_yielded += 1
        return data

    def _next_data(self) -> Any:
        exchange = self._exchange
        exchange.turn_began()
        if self._auto is not None:
            self._auto.turn_began()
            self._see_off()
        samples = -1
        try:
            data = self._deliver() if self._staging is None else next_on_device(self, self._staging)
            samples = self._batch_samples
            return data
        finally:
            exchange.turn_ended(samples)
            if self._auto is not None:
                self._adapt(samples >= 0)

    def _deliver(self) -> Any:
        if self._broken is not None:
            raise self._broken()
        if self._pinner is not None:
            self._pinner.next_batch()
        while self._tasks:
            data = self._attend(self._wait())
            if data is not NO_BATCH:
                return data
        self._finish()
        if not self._persistent_workers:
            self._shutdown_workers()
        raise StopIteration

    def _attend(self, number: int) -> Any:
        """Takes the reply to a task that is done: its batch, NO_BATCH where it has none, or raises its error."""
        worker = self._tasks[number]
        tag, data, extra = self._take(number)
        self._received(number, worker, tag, extra)
        if tag == _END:
            self._worker_ended(worker)
            self._post_next()
        if tag not in (_BATCH, _ERROR):
            return NO_BATCH
        self._replies += 1
        self._dispatch.replied(worker)
        for _ in range(self._dispatch.due(len(self._tasks))):
            self._post_next()
        if tag == _ERROR:
            raise data.rebuild()
        self._delivered(number, worker)
        return data

    def _take_ready(self) -> Any:
        """The next batch if it has come, else NO_BATCH; raises what came in its place."""
        while self._tasks and self._broken is None:
            number = next((number for number in self._due() if self._exchange.ready(number)), None)
            if number is None:
                break
            try:
                data = self._attend(number)
            except Exception:
                if number in self._tasks:  # there was no room for it: later, perhaps
                    break
                raise
            if data is not NO_BATCH:
                return data
        return NO_BATCH

    def _position(self) -> Any:
        """What the loader's state is made of, as of the last batch that was received."""

    def _handed_over(self, position: Any) -> None:
        """`position` is that of the batch, or error, that next() gives; others are staged behind it."""

    def _due(self) -> tuple[int, ...]:
        """Numbers of the tasks that may be next: the oldest, or all where order does not matter."""
        return (next(iter(self._tasks)),) if self._in_order else tuple(self._tasks)

    def _wait(self) -> int:
        """The number of a task that is due and done."""
        while True:
            if self._left:
                self._check_left()
            due = self._due()
            place = self._exchange.wait(due, self._team.watch, self._wait_seconds)
            if place >= 0:
                return due[place]
            if place == -1:
                raise _errors.timed_out(self._timeout, self._in_hand(self._holder(due[0])))
            self._attend_deaths()

    def _take(self, number: int) -> tuple[int, Any, Any]:
        """(tag, data, extra) of a task that is done. MemoryError leaves it where it is: next() may be tried again."""
        lease = self._exchange.take(number)
        del self._tasks[number]
        tag, data, extra = _codec.decode(lease)
        if self._pinner is not None and tag == _BATCH:
            data = self._pinner.pin(lease, data)
        return tag, data, extra

    def _received(self, number: int, worker: int, tag: int, extra: Any) -> None:
        """Called for every reply, before its worker gets more work. `extra`: what fetcher.state() gave, or None."""

    def _delivered(self, number: int, worker: int) -> None:
        """Called for every batch, just before next() returns it."""

    def _finish(self) -> None:
        """Called when an epoch's last batch has been delivered and next() was called again."""

    def _worker_ended(self, worker: int) -> None:
        """The worker's part of an iterable-style dataset is over: what it still has to do will not be done."""
        self._dispatch.ended(worker)
        for number in [number for number, owner in self._tasks.items() if owner == worker]:
            self._exchange.cancel(number)
            del self._tasks[number]
        if not self._persistent_workers:  # it leaves by itself
            self._team.release(worker)
            self._left.discard(worker)
