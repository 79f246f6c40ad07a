"""The multi-process iterator with a state: that of the last snapshot, and how many batches came after it.

A snapshot holds what belongs together after some batch: the sampler's mark as it was when that batch's task was posted,
and every worker's state as it was with its last batch until then. `snapshot_every_n_steps` says how often there is one.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import pickle
from collections.abc import Iterator
from typing import Any

from torch.utils.data.dataloader import _DatasetKind

from infeed import _codec
from infeed._worker import main as worker_main
from infeed._worker.start import Start
from infeed._worker.stateful import (
    DATASET_ITER_STATE,
    DATASET_STATE,
    FETCHER_STATE,
    WORKER_ID,
    is_stateful,
    iterable_state,
    make_stateful_fetcher,
)
from infeed.torch import _errors
from infeed.torch._auto import AUTO
from infeed.torch._iterator import _Iterator
from infeed.torch._stateful_order import SamplerOrder
from infeed.torch._stateful_single import FINISHED, LEN_CALLED, SHARED_SEED, warn_of_fast_forward

_log = logging.getLogger(__name__)

# Keys of the state, as torchdata names them.
SNAPSHOT = "_snapshot"
SNAPSHOT_STEP = "_snapshot_step"
LAST_WORKER = "_last_yielded_worker_id"
MAIN_SNAPSHOT = "_main_snapshot"
NUM_WORKERS = "_num_workers"
BASE_SEED = "_base_seed"
FIRST_BATCH = "_first_batch"  # ours, of num_workers="auto": number of the epoch's first batch in its iterator's life
WORKER_SNAPSHOTS = "_worker_snapshots"
STEPS_SINCE = "_steps_since_snapshot"


_FIRST_ACK = 1 << 62  # number of worker 0's acknowledgement, beyond those of batches

# (batches, worker, the order's mark, states) of the last snapshot; batches since the epoch began; whether it ended.
Position = tuple[tuple[int, int, Any, dict[int, bytes]], int, bool]


def warn_of_order() -> None:
    _log.warning(
        "using in_order=False with multiple workers does not give any guarantees for state management: a resume may "
        "skip or repeat batches that came out of order"
    )


def saved_num_workers(state: dict[str, Any] | None) -> int | str | None:
    """Of an iterator with workers, else None."""
    snapshot = (state or {}).get(SNAPSHOT)
    return None if snapshot is None else snapshot[MAIN_SNAPSHOT].get(NUM_WORKERS)


class MultiProgress:
    """What the state is made of; outlives the iterator that fills it."""

    def __init__(self, iterator: _StatefulIterator) -> None:
        self.num_workers: int | str = iterator._num_workers if iterator._auto is None else AUTO
        self.in_order = iterator._in_order
        self.iterable = iterator._dataset_kind == _DatasetKind.Iterable
        self.base_seed = int(iterator._base_seed)

    def begin(self, order: SamplerOrder, len_called: int | None, shared_seed: int | None, first_batch: int) -> None:
        self.order = order
        self.first_batch = first_batch
        self.len_called = len_called
        self.shared_seed = shared_seed
        self.yielded = 0
        self.finished = False
        self.handed_over: Position | None = None  # of the batch that next() gave, where others are staged behind it

    def position(self) -> Position:
        return self.snapshot, self.yielded, self.finished

    def take_snapshot(self, worker: int, mark: Any, states: dict[int, bytes]) -> None:
        """After `yielded` batches; `worker` made the last one."""
        self.snapshot = (self.yielded, worker, mark, states.copy())

    def state_dict(self) -> dict[str, Any]:
        if not self.in_order:
            warn_of_order()
        snapshot_taken, yielded, finished = self.handed_over or self.position()
        step, worker, mark, states = snapshot_taken
        main = {
            NUM_WORKERS: self.num_workers,
            **self.order.describe(mark),
            LEN_CALLED: self.len_called,
            SHARED_SEED: self.shared_seed,
            BASE_SEED: self.base_seed,
        }
        if self.num_workers == AUTO:
            main[FIRST_BATCH] = self.first_batch
        snapshot = {
            SNAPSHOT_STEP: step,
            LAST_WORKER: worker,
            MAIN_SNAPSHOT: main,
            WORKER_SNAPSHOTS: {key: self._worker_state(worker, states) for worker, key in self.worker_keys()},
        }
        return {SNAPSHOT: snapshot, STEPS_SINCE: yielded - step, FINISHED: finished}

    def worker_keys(self) -> Iterator[tuple[int, str]]:
        """None where workers come and go: they keep no states."""
        num_workers = 0 if isinstance(self.num_workers, str) else self.num_workers
        return ((worker, f"worker_{worker}") for worker in range(num_workers))

    def _worker_state(self, worker: int, states: dict[int, bytes]) -> dict[str, Any]:
        if worker in states:
            return pickle.loads(states[worker])
        if self.iterable:
            return {WORKER_ID: worker, **iterable_state(None, None, ended=False)}
        return {WORKER_ID: worker, FETCHER_STATE: None, DATASET_STATE: None}


class _StatefulIterator(_Iterator):
    """`state`: what to resume from. Workers are given its base seed and their own part as they start."""

    def __init__(self, loader: Any, state: dict[str, Any] | None = None) -> None:
        self._loaded = state
        self._interval = loader.snapshot_every_n_steps or 0  # 0: only the one at the start
        self._awaits_workers = loader._awaits_workers
        self._states: dict[int, bytes] = {}  # the last of each worker
        self._acks: dict[int, int] = {}  # worker: number of its INIT or RESUME whose reply was not taken yet
        self._marks: dict[int, tuple[int, Any]] = {}  # number of a task: its worker, the order's mark
        super().__init__(loader)
        self._loaded = None

    # --- workers ---

    def _start_workers(self, loader: Any) -> None:
        self.progress = MultiProgress(self)
        self._asks_workers = self._iterable or is_stateful(self._dataset)
        if self._loaded is not None:
            self._load_workers(self._loaded)
        self._reports_state = self._asks_workers and self._interval == 1
        self._seed_in_use = self._shared_seed
        super()._start_workers(loader)

    def _load_workers(self, state: dict[str, Any]) -> None:
        assert SNAPSHOT in state, f"State doesn't contain key '{SNAPSHOT}' expected for multiprocess dataloader"
        main = state[SNAPSHOT][MAIN_SNAPSHOT]
        saved = main[NUM_WORKERS]
        self._base_seed = self.progress.base_seed = main.get(BASE_SEED, self._base_seed)
        self._shared_seed = main.get(SHARED_SEED, self._shared_seed)
        self._forwards = False
        if AUTO in (saved, self.progress.num_workers) and not self._asks_workers:
            return  # of map-style datasets without states: any number of workers continues it
        assert saved == self._num_workers, f"the state is of {saved} workers, num_workers is {self._num_workers}"
        workers = state[SNAPSHOT][WORKER_SNAPSHOTS]
        keys = dict(self.progress.worker_keys())
        assert set(workers) == set(keys.values()), f"the state is of {sorted(workers)}, expected {list(keys.values())}"
        iterator_states = [(state[FETCHER_STATE] or {}).get(DATASET_ITER_STATE) for state in workers.values()]
        dataset_states = [state[DATASET_STATE] for state in workers.values()]
        self._forwards = self._iterable and all(state is None for state in iterator_states + dataset_states)
        if not self._forwards:
            self._states = {worker: pickle.dumps(workers[key], 5) for worker, key in keys.items()}

    def _make_start(self, worker: int) -> Start:
        if any(b"_main__" in state for state in self._states.values()):
            self._user_code.lean = False
        start = super()._make_start(worker)
        if not self._asks_workers:
            return start
        return dataclasses.replace(
            start,
            fetcher=make_stateful_fetcher,
            state=self._states.get(worker),
            reports_state=self._reports_state,
        )

    # --- an epoch ---

    def _reset(self, loader: Any, first_iter: bool = False) -> None:
        self._order = loader._make_order()
        for number in self._acks.values():
            self._exchange.cancel(number)
        self._acks.clear()
        self._marks.clear()
        super()._reset(loader, first_iter)
        if self._loaded is not None:
            self._catch_up(self._loaded)

    def _begin_epoch(self, first_iter: bool) -> None:
        self._order.attach(self._sampler_iter)
        self._sampler_iter = self._order
        self._counted = 0  # batches received in this epoch, of which `progress.yielded` were handed over
        self._highest = self._next_number - 1  # number of the latest task that came back as a batch
        self._last_worker = self._num_workers - 1
        self._start_epoch_of_workers(first_iter)
        self.progress.begin(self._order, self._IterableDataset_len_called, self._seed_in_use, self._first_number)
        if self._loaded is not None and not self._forwards:
            self._restore(self._loaded[SNAPSHOT])
        self.progress.take_snapshot(self._last_worker, self._order.mark(), self._states)

    def _start_epoch_of_workers(self, first_iter: bool) -> None:
        operation = worker_main.INIT
        if not first_iter:
            operation, self._seed_in_use = worker_main.RESUME, self._shared_seed
        if self._awaits_workers if first_iter else self._asks_workers:
            for worker in range(self._num_workers):
                number = _FIRST_ACK + worker
                self._exchange.post(number, worker, pickle.dumps((operation, self._shared_seed, True)))
                self._acks[worker] = number
        if self._awaits_workers:
            self.await_acks()

    def await_acks(self) -> None:
        """Waits for what workers say of the start of their epoch: states, or errors that keep them from it."""
        while self._acks:
            workers = list(self._acks)
            numbers = [self._acks[worker] for worker in workers]
            place = self._exchange.wait(numbers, self._team.watch, self._wait_seconds)
            if place >= 0:
                self._take_ack(workers[place])
            elif place == -1:
                raise _errors.timed_out(self._timeout, self._in_hand(workers[0]))
            else:
                self._attend_deaths()

    def _take_ack(self, worker: int) -> None:
        tag, error, state = _codec.decode(self._exchange.take(self._acks.pop(worker)))
        if tag == worker_main.ERROR and self._awaits_workers:
            raise error.rebuild()  # else it is the answer to every batch as well
        if state is not None and self._loaded is None:  # what was loaded is its state, until it has more to say
            self._states[worker] = state

    # --- batches ---

    def _wants_state(self) -> bool:
        """Also decides whether the sampler is marked. The task's batch will be the `latest`th, or an earlier one if
        tasks before it give none: where a part of an iterable-style dataset ends, or where order does not matter."""
        latest = self._counted + len(self._tasks) + 1
        interval = self._interval
        if interval <= 1:
            self._marks_next = interval == 1
            return self._reports_state
        earliest = self._counted + 1 if self._iterable or not self._in_order else latest
        self._marks_next = latest // interval * interval >= earliest
        latest += self._num_workers - 1  # workers report their last batch before a snapshot
        return self._asks_workers and (not self._in_order or latest // interval * interval >= earliest)

    def _posted(self, number: int, worker: int) -> None:
        if self._marks_next:
            self._marks[number] = worker, self._order.mark()

    def _received(self, number: int, worker: int, tag: int, extra: Any) -> None:
        if worker in self._acks:
            self._take_ack(worker)  # workers do their tasks in order
        if extra is not None:
            self._states[worker] = extra
        if tag == worker_main.BATCH:
            self._counted += 1

    def _delivered(self, number: int, worker: int) -> None:
        progress = self.progress
        progress.yielded += 1
        self._last_worker = worker
        self._highest = max(self._highest, number)
        if self._tasks and next(iter(self._tasks)) < self._highest:
            return  # batches came out of order: no mark of the sampler tells which
        marked = self._marks.pop(self._highest, None)
        while self._marks and (first := next(iter(self._marks))) < self._highest:
            del self._marks[first]  # of a task that gave no batch
        if marked is not None and not (self._iterable and progress.yielded % self._interval):
            progress.take_snapshot(*marked, self._states)

    def _finish(self) -> None:
        self.progress.finished = True

    def _position(self) -> Position:
        return self.progress.position()

    def _handed_over(self, position: Position) -> None:
        self.progress.handed_over = position

    # --- resuming ---

    def _restore(self, snapshot: dict[str, Any]) -> None:
        main = snapshot[MAIN_SNAPSHOT]
        progress = self.progress
        self._order.restore(main)
        self._IterableDataset_len_called = progress.len_called = main[LEN_CALLED]
        self._last_worker = snapshot[LAST_WORKER]
        self._dispatch.begin((self._last_worker + 1) % self._num_workers)
        self._first_number = progress.first_batch = main.get(FIRST_BATCH, self._first_number)
        self._replies = self._order.yielded
        self._next_number = self._first_number + self._replies
        self._highest = self._next_number - 1
        self._num_yielded = self._counted = progress.yielded = snapshot[SNAPSHOT_STEP]

    def _catch_up(self, state: dict[str, Any]) -> None:
        snapshot = state[SNAPSHOT]
        steps = snapshot[SNAPSHOT_STEP]
        if self._forwards and steps > 0:
            warn_of_fast_forward(steps)
            self._skip(steps)
        if self._last_worker != snapshot[LAST_WORKER]:
            raise ValueError("last_yielded_worker_id does not match, the dataset may have changed")
        self._skip(state[STEPS_SINCE])
        if state[FINISHED]:
            with contextlib.suppress(StopIteration):
                self._next_data()
        self.progress.finished = state[FINISHED]

    def _skip(self, steps: int) -> None:
        for step in range(steps):
            try:
                self._next_data()
            except StopIteration:
                raise ValueError(f"the dataset ends {steps - step} batches before the saved position") from None
            self._num_yielded += 1
