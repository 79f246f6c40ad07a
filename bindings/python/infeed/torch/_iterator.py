"""The multi-process iterator: which worker gets which task when, and what becomes of the replies."""

from __future__ import annotations

import atexit
import errno
import functools
import operator
import os
import pickle
import threading
import time
import weakref
from collections.abc import Callable
from multiprocessing import process as mp_process
from typing import Any

import torch
from torch.autograd import _profiler_enabled
from torch.utils.data import IterDataPipe, MapDataPipe, default_collate, default_convert
from torch.utils.data.dataloader import (
    _BaseDataLoaderIter,
    _DatasetKind,
    _MultiProcessingDataLoaderIter,
    _sharding_worker_init_fn,
)

from infeed import _codec
from infeed._native import Exchange
from infeed._worker import main as worker_main
from infeed._worker.fetchers import DEFAULT_COLLATE, DEFAULT_CONVERT
from infeed._worker.start import PickledUserCode, Start, UserCode
from infeed._worker.team import Team, pickle_errors_explained
from infeed.torch import _errors
from infeed.torch._device import Staging
from infeed.torch._pin import Pinner
from infeed.torch._stats import Stats

_BATCH, _ERROR, _END = worker_main.BATCH, worker_main.ERROR, worker_main.END
_NO_BATCH = object()


def ours_for(collate_fn: Any, collate: Any, convert: Any) -> Any:
    """`collate` and `convert` in place of torch's functions, any other as it is; it need not be hashable."""
    if collate_fn is default_collate:
        return collate
    return convert if collate_fn is default_convert else collate_fn


class _Iterator(_MultiProcessingDataLoaderIter):
    """One pass over a loader, or all of them where workers persist.

    Tasks are numbered through the iterator's life and handed to workers in turn, `prefetch_factor` to each ahead of
    the batch that next() returns. `_tasks` maps the number of each task without a delivered reply to its worker.

    For subclasses that keep a state: `_make_start`, `_begin_epoch`, `_wants_state`, `_posted`, `_received`,
    `_delivered`, `_finish`; where batches are staged ahead, `_position` and `_handed_over`.
    """

    _shutdown = True  # until there are workers
    _reports_state = False  # whether workers send their states with every batch
    _broken: Callable[[], RuntimeError] | None = None  # makes the error of every further next()
    _staging: Staging | None = None  # of a loader with a device, once the iterator stands where it begins

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
        self._next_number = 0
        self._tasks: dict[int, int] = {}
        self._left: set[int] = set()  # workers that exited with 0 while replies of theirs were waiting
        self._start_workers(loader)
        try:
            self._reset(loader, first_iter=True)
            self._staging = Staging.of(loader)
        except BaseException:
            self._shutdown_workers()
            raise

    # --- workers ---

    def _start_workers(self, loader: Any) -> None:
        context = loader.multiprocessing_context or torch.multiprocessing
        num_slots = operator.index((self._prefetch_factor + 2) * self._num_workers)  # 2: an old task, a resume
        self._owner = os.getpid()
        limit = loader.memory_limit or 0
        self._exchange = Exchange(self._num_workers, num_slots, limit, keep_memory=self._pin_memory)
        self._user_code = self._package_user_code(loader, context.get_start_method() == "fork")
        self._team = Team(context)
        self._workers = self._team.processes
        self._shutdown = False
        _live.add(self)
        try:
            for worker in range(self._num_workers):
                self._team.start(self._make_start(worker))
        except BaseException as error:
            self._shutdown_workers()
            if isinstance(error, OSError) and error.errno == errno.EMFILE:
                raise _errors.out_of_descriptors() from error
            raise

    def _package_user_code(self, loader: Any, forked: bool) -> UserCode | PickledUserCode:
        collate_fn = ours_for(loader.collate_fn, DEFAULT_COLLATE, DEFAULT_CONVERT)
        init_fn = loader.worker_init_fn
        if isinstance(self._dataset, (IterDataPipe, MapDataPipe)):
            init_fn = functools.partial(_sharding_worker_init_fn, init_fn, self._world_size, self._rank)
        if forked:
            return UserCode(self._dataset, collate_fn, init_fn)
        with pickle_errors_explained():
            return PickledUserCode(self._dataset, collate_fn, init_fn)

    def _make_start(self, worker: int) -> Start:
        """What `worker` is started with; again when it is restarted."""
        return Start(
            worker=worker,
            num_workers=self._num_workers,
            consumer=self._owner,
            handle=self._exchange.handle(),
            base_seed=self._base_seed,
            iterable=self._iterable,
            auto_collation=self._auto_collation,
            drop_last=self._drop_last,
            persistent=self._persistent_workers,
            user_code=self._user_code,
            shared_seed=self._shared_seed,
        )

    # --- an epoch ---

    def _reset(self, loader: Any, first_iter: bool = False) -> None:
        if self._staging is not None:
            self._staging.clear()
        self._drop_tasks()
        _BaseDataLoaderIter._reset(self, loader, first_iter)
        self._turn = 0  # the worker whose turn it is
        self._active = [True] * self._num_workers  # not at the end of its part of an iterable-style dataset
        self._in_flight = [0] * self._num_workers
        self._begin_epoch(first_iter)
        for _ in range(self._prefetch_factor * self._num_workers):
            self._post_next()

    def _drop_tasks(self) -> None:
        """Lets workers do what is left of an epoch, and drops it: they have drawn the random numbers for it, as torch's."""
        while self._tasks:
            number = self._wait()
            self._exchange.cancel(number)
            del self._tasks[number]

    def _begin_epoch(self, first_iter: bool) -> None:
        """Called before the sampler is pulled. Tells persistent workers of a next epoch where that concerns them."""
        if self._iterable and not first_iter:
            for worker in range(self._num_workers):
                self._post(worker, pickle.dumps((worker_main.RESUME, self._shared_seed, False)))

    def _post(self, worker: int, task: list[int] | bytes) -> int:
        number = self._next_number
        self._exchange.post(number, worker, task)
        self._next_number = number + 1
        self._tasks[number] = worker
        return number

    def _post_next(self) -> None:
        """Pulls one index batch from the sampler and hands it to the worker whose turn it is, if any may have it."""
        begin = time.perf_counter_ns()
        try:
            index = self._next_index()
        except StopIteration:
            return
        finally:
            self._exchange.turn_drew(time.perf_counter_ns() - begin)
        worker = self._choose_worker()
        if worker is None:
            return
        wants_state = self._wants_state()
        task = self._fetch_task(index, wants_state)
        try:
            number = self._post(worker, task)
        except (TypeError, OverflowError):  # indices that are no 64-bit ints
            number = self._post(worker, pickle.dumps((worker_main.FETCH, index, wants_state)))
        self._in_flight[worker] += 1
        self._posted(number, worker)

    def _wants_state(self) -> bool:
        """Whether the reply to the task that is about to be posted shall bring its worker's state."""
        return False

    def _posted(self, number: int, worker: int) -> None:
        """Called once a batch's task is posted."""

    def _choose_worker(self) -> int | None:
        most = self._prefetch_factor * self._num_workers
        for _ in range(self._num_workers):
            worker = self._turn
            self._turn = (worker + 1) % self._num_workers
            if self._active[worker] and (self._in_order or self._in_flight[worker] < most // sum(self._active)):
                return worker
        return None

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
        samples = -1
        try:
            data = self._deliver() if self._staging is None else self._deliver_staged(self._staging)
            samples = self._batch_samples
            return data
        finally:
            exchange.turn_ended(samples)

    def _deliver(self) -> Any:
        if self._broken is not None:
            raise self._broken()
        if self._pinner is not None:
            self._pinner.next_batch()
        while self._tasks:
            data = self._attend(self._wait())
            if data is not _NO_BATCH:
                return data
        self._finish()
        if not self._persistent_workers:
            self._shutdown_workers()
        raise StopIteration

    def _attend(self, number: int) -> Any:
        """Takes the reply to a task that is done: its batch, _NO_BATCH where it has none, or raises its error."""
        worker = self._tasks[number]
        tag, data, extra = self._take(number)
        self._received(number, worker, tag, extra)
        if tag == _BATCH:
            self._in_flight[worker] -= 1
            self._post_next()
            self._delivered(number, worker)
            return data
        if tag == _ERROR:
            self._in_flight[worker] -= 1
            self._post_next()
            raise data.rebuild()
        if tag == _END:
            self._worker_ended(worker)
            self._post_next()
        return _NO_BATCH

    def _deliver_staged(self, staging: Staging) -> Any:
        """The next batch, on the device. Further ones follow it there as far as they are ready: none is waited for."""
        staging.look()
        if not staging:
            try:
                data = self._deliver()
            except BaseException:
                self._handed_over(self._position())
                raise
            staging.put(data, self._position())
        while len(staging) <= staging.ahead and self._stage_ready(staging):
            pass
        position = staging.next_position
        try:
            data, _ = staging.take()
        except torch.OutOfMemoryError:
            raise  # the batch is still to come
        except BaseException:
            self._handed_over(position)
            raise
        self._handed_over(position)
        return data

    def _stage_ready(self, staging: Staging) -> bool:
        """Stages a batch, or the error in its place, if one has come; False if none."""
        while self._tasks and self._broken is None:
            due = (next(iter(self._tasks)),) if self._in_order else tuple(self._tasks)
            number = next((number for number in due if self._exchange.ready(number)), None)
            if number is None:
                return False
            try:
                data = self._attend(number)
            except Exception as error:
                if number in self._tasks:  # there was no room for it: later, perhaps
                    return False
                staging.put_error(error, self._position())
                return True
            if data is not _NO_BATCH:
                staging.put(data, self._position())
                return True
        return False

    def _position(self) -> Any:
        """What the loader's state is made of, as of the last batch that was received."""

    def _handed_over(self, position: Any) -> None:
        """`position` is that of the batch, or error, that next() gives; others are staged behind it."""

    def _wait(self) -> int:
        """The number of a task that is done: the oldest, or any where order does not matter."""
        while True:
            if self._left:
                self._check_left()
            due = (next(iter(self._tasks)),) if self._in_order else tuple(self._tasks)
            place = self._exchange.wait(due, self._team.watch, self._wait_seconds)
            if place >= 0:
                return due[place]
            if place == -1:
                raise _errors.timed_out(self._timeout, self._in_hand(self._tasks[due[0]]))
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
        self._active[worker] = False
        self._in_flight[worker] = 0
        for number in [number for number, owner in self._tasks.items() if owner == worker]:
            self._exchange.cancel(number)
            del self._tasks[number]
        if not self._persistent_workers:  # it leaves by itself
            self._team.release(worker)
            self._left.discard(worker)

    # --- deaths ---

    def _attend_deaths(self) -> None:
        """Restarts what may be restarted; any other death breaks the iterator."""
        while _exiting and threading.current_thread() is not threading.main_thread():
            time.sleep(1)  # a daemon thread, whose workers _end_all ended: it has nothing to tell any more
        fatal = []
        for worker in self._team.dead():
            code = self._team.exit_code(worker)
            if self._restarts_left > 0:
                self._restarts_left -= 1
                self._exchange.bury(worker)
                self._team.restart(self._make_start(worker))
            elif code == 0 and self._iterable and self._has_reply(worker):  # may be the end of its part
                self._team.release(worker)
                self._left.add(worker)
            else:
                fatal.append(worker)
        if fatal:
            self._break(fatal)

    def _has_reply(self, worker: int) -> bool:
        return any(owner == worker and self._exchange.ready(number) for number, owner in self._tasks.items())

    def _check_left(self) -> None:
        """A worker that left with exit code 0 and replies, but without saying that its part is over, has died."""
        silent = [worker for worker in self._left if worker in self._tasks.values() and not self._has_reply(worker)]
        if silent:
            self._break(silent)

    def _break(self, workers: list[int]) -> None:
        exits = [(self._workers[worker].pid, self._team.exit_code(worker)) for worker in workers]
        self._broken = functools.partial(_errors.worker_death, exits, self._in_hand(workers[0]))
        self._exchange.stop()
        for worker in workers:
            self._team.release(worker)
        raise self._broken()

    def _in_hand(self, worker: int) -> str:
        number, index = self._exchange.sample_in_hand(worker)
        if index < 0:
            return ""
        return f": worker {worker} (pid {self._workers[worker].pid}) is at dataset index {index}"

    # --- the end ---

    @property
    def usable(self) -> bool:
        """Whether its workers can do another epoch."""
        return not self._shutdown and self._broken is None

    def stats(self) -> Stats:
        return Stats(self._exchange.stats(), self._exchange.loader_stats(self._prefetch_factor))

    def _shutdown_workers(self) -> None:
        if self._shutdown or _exiting or os.getpid() != self._owner:
            return
        self._shutdown = True
        _live.discard(self)
        self._last_stats.become(self.stats())
        if self._tasks and self._broken is None:
            self._broken = functools.partial(RuntimeError, "the workers of this iterator have been shut down")
        self._tasks.clear()
        self._exchange.stop()
        try:
            self._team.end()
        finally:
            self._exchange.close()
            self._user_code.close()
            if self._staging is not None:
                self._staging.settle()
            if self._pinner is not None:
                self._pinner.close()

    def _abandon(self) -> None:
        """In a forked child: workers and exchange are the parent's; this copy touches neither again."""
        mp_process._children.difference_update(self._workers)  # multiprocessing ends them at exit otherwise
        self._shutdown = True
        self._broken = functools.partial(
            RuntimeError, f"this iterator belongs to process {self._owner}, which forked this one; make a new iterator"
        )


_live: weakref.WeakSet[_Iterator] = weakref.WeakSet()  # iterators of this process that have workers
_exiting = False


def _abandon_all() -> None:
    for iterator in list(_live):
        iterator._abandon()
    _live.clear()


def _end_all() -> None:
    """At the interpreter's exit. Destructors do nothing from here on."""
    global _exiting
    _exiting = True
    for iterator in list(_live):
        iterator._exchange.stop()
        iterator._team.kill()


os.register_at_fork(after_in_child=_abandon_all)
atexit.register(_end_all)
