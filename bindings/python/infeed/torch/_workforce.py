"""The worker processes behind an iterator: how they start, change in number, die and end."""

from __future__ import annotations

import functools
import math
import operator
import os
import threading
import time
from collections.abc import Callable
from multiprocessing import process as mp_process
from typing import Any

import torch
from torch.utils.data.dataloader import _MultiProcessingDataLoaderIter

from infeed._native import AutoCount, Exchange
from infeed._worker.start import Start
from infeed._worker.team import Team
from infeed.torch import _errors
from infeed.torch._auto import DEEPEST_QUEUE, Shift
from infeed.torch._dispatch import ANYONE, Pool, Turns
from infeed.torch._live import exiting, live_iterators
from infeed.torch._pin import Pinner
from infeed.torch._staging import Staging
from infeed.torch._stats import Stats
from infeed.torch._user_code import packaged


class _Workforce(_MultiProcessingDataLoaderIter):
    """The part of an iterator that knows its workers. `_tasks`: the number of each task without a delivered reply, and
    its worker."""

    _shutdown = True  # until there are workers
    _broken: Callable[[], RuntimeError] | None = None  # makes the error of every further next()
    _auto: AutoCount | None  # where their number may change
    _staging: Staging | None = None  # of a loader with a device, once the iterator stands where it begins
    _pinner: Pinner | None
    _tasks: dict[int, int]
    _left: set[int]  # workers that exited with 0 while replies of theirs were waiting

    # --- their number ---

    def _start_workers(self, loader: Any) -> None:
        context = loader.multiprocessing_context or torch.multiprocessing
        self._most_workers = self._auto.most if self._auto is not None else self._num_workers
        num_slots = operator.index((self._prefetch_factor + 2) * self._most_workers)  # 2: an old task, a resume
        if self._auto is not None:
            num_slots = max(num_slots, DEEPEST_QUEUE + 2 * self._most_workers)
        self._owner = os.getpid()
        self._exchange = Exchange(self._most_workers, num_slots, loader.memory_limit or 0, keep_memory=self._pin_memory)
        ranks = self._world_size, self._rank
        self._user_code = packaged(loader, self._dataset, ranks, forked=context.get_start_method() == "fork")
        self._team = Team(context)
        self._workers = self._team.processes
        self._shutdown = False
        live_iterators.add(self)
        try:
            with _errors.descriptors_explained():
                self._start_team()
        except BaseException:
            self._shutdown_workers()
            raise

    def _start_team(self) -> None:
        self._shift: Shift | None = None
        self._dispatch: Turns | Pool = Turns(self._num_workers, self._prefetch_factor, self._in_order)
        if self._auto is not None:
            self._shift = Shift(self._exchange, self._team, self._most_workers)
            self._dispatch = Pool(self._num_workers, self._prefetch_factor, DEEPEST_QUEUE)
            self._dispatch.times_deeper = self._auto.times_deeper
            self._resize(self._num_workers)
            return
        for worker in range(self._num_workers):
            self._team.start(self._make_start(worker))

    def _resize(self, num_workers: int) -> None:
        """Workers come or go, at any time, where the number may change. Batches stay what they are."""
        assert self._shift is not None and isinstance(self._dispatch, Pool)
        try:
            self._shift.resize(num_workers, self._make_start)
        finally:
            self._dispatch.num_workers = len(self._shift.working)

    def _adapt(self, with_batch: bool) -> None:
        """Behind a batch, before the user has it: more or fewer workers, or tasks, where that would make steps shorter."""
        assert self._auto is not None and self._shift is not None and isinstance(self._dispatch, Pool)
        self._auto.turn_ended(with_batch, self._exchange)
        self._dispatch.times_deeper = self._auto.times_deeper
        if not with_batch or len(self._shift.working) == self._auto.workers:
            return
        try:
            self._resize(self._auto.workers)
        except OSError as error:  # no process, no descriptor: it goes on with those it has
            self._auto.refuse(len(self._shift.working), str(error))

    def _see_off(self) -> None:
        """Those that were to leave and have left."""
        if self._shift is not None and self._shift.leaving and self._broken is None:
            self._attend_deaths()

    def _make_start(self, worker: int) -> Start:
        """What `worker` is started with; again when it is restarted."""
        return Start(
            worker=worker,
            num_workers=self._most_workers,
            consumer=self._owner,
            handle=self._exchange.handle(),
            base_seed=self._base_seed,
            iterable=self._iterable,
            auto_collation=self._auto_collation,
            drop_last=self._drop_last,
            persistent=self._persistent_workers,
            user_code=self._user_code,
            shared_seed=self._shared_seed,
            seeds_batches=self._auto is not None,
        )

    # --- deaths ---

    def _attend_deaths(self) -> None:
        """Restarts what may be restarted; any other death breaks the iterator."""
        while exiting.is_set() and threading.current_thread() is not threading.main_thread():
            time.sleep(1)  # a daemon thread, whose workers were ended: it has nothing to tell any more
        fatal = [worker for worker in self._team.dead() if not self._settle(worker)]
        if fatal:
            self._break(fatal)

    def _settle(self, worker: int) -> bool:
        """Whether a dead worker is no loss: it was to leave, or may be replaced, or its part may be over."""
        if self._shift is not None and worker in self._shift.leaving:
            return self._settle_leaving(self._shift, worker)
        code = self._team.exit_code(worker)
        if self._restarts_left > 0:
            self._restarts_left -= 1
            self._exchange.bury(worker)
            self._team.restart(self._make_start(worker))
            return True
        if code == 0 and self._iterable and self._has_reply(worker):
            self._team.release(worker)
            self._left.add(worker)
            return True
        return False

    def _settle_leaving(self, shift: Shift, worker: int) -> bool:
        if not shift.left_well(worker):
            if self._restarts_left == 0:
                return False
            self._restarts_left -= 1
        shift.sign_off(worker)
        return True

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

    def _holder(self, number: int) -> int | None:
        worker = self._tasks[number]
        return self._shift.holder(number) if self._shift is not None and worker == ANYONE else worker

    def _in_hand(self, worker: int | None) -> str:
        if worker is None:
            return ""
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
        times = self._exchange.loader_stats(math.ceil(self._dispatch.depth / max(1, self._dispatch.num_workers)))
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
        if self._auto is not None:
            self._auto.closes(self._exchange)
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
