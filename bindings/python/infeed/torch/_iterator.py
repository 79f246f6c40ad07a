"""The multi-process iterator: which worker gets which task when, and what becomes of the replies."""

from __future__ import annotations

import functools
import operator
import os
import pickle
import threading
import time
from collections.abc import Callable
from multiprocessing import process as mp_process
from typing import Any

import torch
from torch.autograd import _profiler_enabled
from torch.utils.data.dataloader import _BaseDataLoaderIter, _DatasetKind, _MultiProcessingDataLoaderIter

from infeed import _codec
from infeed._native import Exchange
from infeed._worker import main as worker_main
from infeed._worker.start import Start
from infeed._worker.team import Team
from infeed.torch import _errors
from infeed.torch._ahead import NO_BATCH, next_on_device
from infeed.torch._live import exiting, live_iterators
from infeed.torch._pin import Pinner
from infeed.torch._staging import Staging
from infeed.torch._stats import Stats
from infeed.torch._user_code import packaged

_BATCH, _ERROR, _END = worker_main.BATCH, worker_main.ERROR, worker_main.END


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
        self._exchange = Exchange(self._num_workers, num_slots, loader.memory_limit or 0, keep_memory=self._pin_memory)
        ranks = self._world_size, self._rank
        self._user_code = packaged(loader, self._dataset, ranks, forked=context.get_start_method() == "fork")
        self._team = Team(context)
        self._workers = self._team.processes
        self._shutdown = False
        live_iterators.add(self)
        try:
            with _errors.descriptors_explained():
                for worker in range(self._num_workers):
                    self._team.start(self._make_start(worker))
        except BaseException:
            self._shutdown_workers()
            raise

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
            data = self._deliver() if self._staging is None else next_on_device(self, self._staging)
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
        return NO_BATCH

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
        while exiting.is_set() and threading.current_thread() is not threading.main_thread():
            time.sleep(1)  # a daemon thread, whose workers were ended: it has nothing to tell any more
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
        _, index = self._exchange.sample_in_hand(worker)
        if index < 0:
            return ""
        return f": worker {worker} (pid {self._workers[worker].pid}) is at dataset index {index}"

    # --- the end ---

    @property
    def usable(self) -> bool:
        """Whether its workers can do another epoch."""
        return not self._shutdown and self._broken is None

    def stats(self) -> Stats:
        times = self._exchange.loader_stats(self._prefetch_factor)
        for part in (self._pinner, self._staging):
            if part is not None:
                part.show(times)
        return Stats(self._exchange.stats(), times)

    def _shutdown_workers(self) -> None:
        if self._shutdown or exiting.is_set() or os.getpid() != self._owner:
            return
        if self._staging is not None:
            self._staging.settle()
        self._shutdown = True
        live_iterators.discard(self)
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
            if self._pinner is not None:
                self._pinner.close()

    def _kill(self) -> None:
        """Ends the workers at once."""
        self._exchange.stop()
        self._team.kill()

    def _abandon(self) -> None:
        """In a forked child: workers and exchange are the parent's; this copy touches neither again."""
        mp_process._children.difference_update(self._workers)  # multiprocessing ends them at exit otherwise
        self._shutdown = True
        self._broken = functools.partial(_errors.of_parent, self._owner)
