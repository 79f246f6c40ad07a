"""The life of a worker process: prepare, then answer tasks until the consumer stops it."""

from __future__ import annotations

import contextlib
import gc
import pickle
from types import ModuleType
from typing import Any

from infeed import _codec
from infeed._native import WorkerPort, handle_worker_signals
from infeed._worker.errors import CaughtError
from infeed._worker.fetchers import ENDED
from infeed._worker.heap import keep_freed_memory
from infeed._worker.imports import when_imported
from infeed._worker.seeds import Seeds
from infeed._worker.start import Start

# Tags of replies.
BATCH = 0
ERROR = 1
END = 2  # this worker's part of an iterable-style dataset is over
DONE = 3  # acknowledges INIT and RESUME

# Operations of pickled tasks (operation, payload, wants_state). A task that is a list of ints is a FETCH. Where a state
# is wanted of INIT or RESUME, an error that keeps the worker from its work is the reply; else every batch gets it.
FETCH = "fetch"  # payload: indices, or how many samples
INIT = "init"  # reply once the worker is ready
RESUME = "resume"  # a persistent worker's next epoch; payload: shared seed

_CLAIM_SECONDS = 5.0


def run(start: Start) -> None:
    """What a worker process runs. Ctrl-C ends it quietly: the consumer raises KeyboardInterrupt itself."""
    with contextlib.suppress(KeyboardInterrupt):
        worker = Worker(start)
        worker.serve()
        worker.fetcher = None  # generators of the dataset end as they do anywhere: by their `finally`


class Worker:
    def __init__(self, start: Start) -> None:
        self.start = start
        self.where = f"in DataLoader worker process {start.worker}"
        self.port = WorkerPort(start.handle, start.worker)
        self.message: _codec.Message | None = None
        self.failure: CaughtError | None = None
        self.fetcher: Any = None
        self.leaving = False
        self.wants_state = False  # of the task in hand
        self.number = 0
        _prepare_process(start.consumer)
        self.seeds = Seeds(start.base_seed, start.worker)
        self._load()

    def _load(self) -> None:
        """Dataset, worker info, worker_init_fn, fetcher. An error is kept: it is the answer to every batch."""
        _codec.install_stack(lambda: self.message)
        try:
            self.dataset, self.collate_fn, init_fn = self.start.user_code.load()
            self._seed_pipe(self.start.shared_seed)
            when_imported("torch.utils.data._utils.worker", self._tell_torch)
            if init_fn is not None:
                init_fn(self.start.worker)
            self._make_fetcher()
        except Exception:
            self.failure = CaughtError.current(self.where)

    def _tell_torch(self, module: ModuleType) -> None:
        """Fills the slot that torch.utils.data.get_worker_info reads."""
        module._worker_info = module.WorkerInfo(
            id=self.start.worker,
            num_workers=self.start.num_workers,
            seed=self.start.base_seed + self.start.worker,
            dataset=self.dataset,
        )

    def _seed_pipe(self, shared_seed: int | None) -> None:
        if shared_seed is None:
            return
        import torch
        from torch.utils.data.graph_settings import apply_random_seed

        generator = torch.Generator()
        generator.manual_seed(shared_seed)
        self.dataset = apply_random_seed(self.dataset, generator)

    def _make_fetcher(self) -> None:
        self.fetcher = self.start.fetcher(self.start, self.dataset, self.collate_fn, self.port.note)

    def serve(self) -> None:
        port = self.port
        while not self.leaving and not port.stopping:
            claimed = port.claim(_CLAIM_SECONDS)
            if claimed is not None:
                self.number, task = claimed
                nbytes = self._answer(task)
                port.publish(nbytes, self._collate_ns())
                del claimed, task

    def _collate_ns(self) -> int:
        fetcher = self.fetcher
        if fetcher is None:
            return 0
        taken, fetcher.collate_ns = fetcher.collate_ns, 0
        return taken

    def _answer(self, task: list[int] | bytes) -> int:
        """Writes the reply into the claimed extent; returns its length."""
        self.message = _codec.Message(self.port.memory())
        try:
            return self.message.finish(*self._perform(task))
        except Exception:  # of the user's code, or data that cannot be pickled
            error = CaughtError.current(self.where)
        finally:
            self.message = None
        return _codec.Message(self.port.memory()).finish(ERROR, error, self._state_after_error())

    def _state_after_error(self) -> Any:
        """A failed sample may have moved the dataset on."""
        if not self.wants_state:
            return None
        try:
            return self.fetcher.state()
        except Exception:  # likely the error itself
            return None

    def _perform(self, task: list[int] | bytes) -> tuple[int, Any, Any]:
        if type(task) is list:
            self.wants_state = self.start.reports_state
            return self._fetch(task if self.start.auto_collation and not self.start.iterable else task[0])
        operation, payload, self.wants_state = pickle.loads(task)
        if operation == FETCH:
            return self._fetch(payload)
        if operation == RESUME:
            self._resume(payload)
        if not self.wants_state:
            return DONE, None, None
        return (DONE, None, self.fetcher.state()) if self.failure is None else (ERROR, self.failure, None)

    def _fetch(self, task: Any) -> tuple[int, Any, Any]:
        if self.failure is not None:
            return ERROR, self.failure, None
        if self.start.seeds_batches:
            self.seeds.begin_batch(self.number)
        data = self.fetcher.fetch(self.message, task)
        if data is ENDED:
            self.leaving = not self.start.persistent
            return END, None, self.fetcher.state()
        return BATCH, data, self.fetcher.state() if self.wants_state else None

    def _resume(self, shared_seed: int | None) -> None:
        try:
            self._seed_pipe(shared_seed)
            self._make_fetcher()
            self.failure = None
        except Exception:
            self.failure = CaughtError.current(self.where)


def _prepare_process(consumer: int) -> None:
    handle_worker_signals(consumer)
    keep_freed_memory()
    gc.freeze()  # collections would write to every container that the parent made, and so copy its pages
    with contextlib.suppress(OSError), open("/proc/self/comm", "w") as name:
        name.write("pt_data_worker")
    when_imported("torch", lambda torch: torch.set_num_threads(1))
