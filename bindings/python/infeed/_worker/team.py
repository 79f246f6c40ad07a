"""The worker processes of one iterator, as the consumer sees them."""

from __future__ import annotations

import contextlib
import os
import select
import time
import warnings
from collections.abc import Iterator
from pickle import PicklingError
from typing import Any

from infeed._native import WorkerFork
from infeed._worker.main import run
from infeed._worker.start import Start, without_main_module

_GRACE_SECONDS = 5.0  # for the sample in hand, once told to stop
_TERMINATE_SECONDS = 1.0  # from SIGTERM to SIGKILL

_PICKLE_WARNING = (
    "Got pickle error when attempting to start a worker Process: dataset, collate_fn and worker_init_fn must be "
    "picklable for the start method in use. Define them at the top level of a module, or use the start method 'fork'."
)


@contextlib.contextmanager
def pickle_errors_explained() -> Iterator[None]:
    try:
        yield
    except (TypeError, AttributeError, PicklingError):
        warnings.warn(_PICKLE_WARNING, stacklevel=6)
        raise


class Team:
    """Starts, watches, restarts and ends workers. `watch` holds what polls readable when one of them dies.

    Death: a worker leaves `watch` when its death is noticed (`bury`) or expected (`release`).
    """

    def __init__(self, process_context: Any) -> None:
        self.processes: list[Any] = []
        self.watch: list[int] = []
        self._watched: list[int] = []  # workers, in the order of `watch`
        self._pidfds: dict[int, int] = {}
        self._context = process_context

    def start(self, start: Start) -> None:
        """Starts the next worker, or again one whose death has been noticed."""
        worker = start.worker
        process = self._context.Process(target=run, args=(start,), daemon=True)
        preparation = without_main_module() if start.user_code.lean else contextlib.nullcontext()
        with preparation, WorkerFork(), pickle_errors_explained():
            process.start()
        if worker == len(self.processes):
            self.processes.append(process)
        self.processes[worker] = process
        self._pidfds[worker] = os.pidfd_open(process.pid)
        self.watch.append(self._pidfds[worker])
        self._watched.append(worker)

    def watched(self, place: int) -> int:
        """The worker whose descriptor stands at `place` of `watch`."""
        return self._watched[place]

    def release(self, worker: int) -> None:
        """From now on this worker may die unnoticed."""
        if worker in self._watched:
            place = self._watched.index(worker)
            del self._watched[place], self.watch[place]

    def dismiss(self, worker: int) -> None:
        """After its end, which is dealt with: lets go of what is left of it."""
        self.release(worker)
        os.close(self._pidfds.pop(worker))
        self.processes[worker].join()
        self.processes[worker].close()

    def dead(self) -> list[int]:
        """Workers that are watched and dead."""
        poll = select.poll()
        for fd in self.watch:
            poll.register(fd, select.POLLIN)
        readable = {fd for fd, _ in poll.poll(0)}
        return [worker for fd, worker in zip(self.watch, self._watched) if fd in readable]

    def exit_code(self, worker: int) -> int | None:
        """Of a dead worker; None if someone else has reaped it."""
        self.processes[worker].join(_TERMINATE_SECONDS)
        return self.processes[worker].exitcode

    def restart(self, start: Start) -> None:
        self.dismiss(start.worker)
        self.start(start)

    def end(self) -> None:
        """Waits for all to leave, which they were told to; ends those that do not. None is left behind."""
        self.watch.clear()
        self._watched.clear()
        try:
            self._wait_for_exit(_GRACE_SECONDS)
        finally:
            self.kill()

    def kill(self) -> None:
        """Ends all at once, without regard to a sample in hand."""
        for worker in self._pidfds:
            self.processes[worker].terminate()
        self._wait_for_exit(_TERMINATE_SECONDS)
        for worker in self._pidfds:
            self.processes[worker].kill()
        self._wait_for_exit(_GRACE_SECONDS)

    def _wait_for_exit(self, seconds: float) -> None:
        """Reaps workers that exit, and closes their descriptors; returns when all have, or after `seconds`."""
        poll = select.poll()
        workers = {fd: worker for worker, fd in self._pidfds.items()}
        for fd in workers:
            poll.register(fd, select.POLLIN)
        deadline = time.monotonic() + seconds
        while self._pidfds:
            exited = poll.poll(max(0.0, deadline - time.monotonic()) * 1000)
            if not exited:
                return
            for fd, _ in exited:
                poll.unregister(fd)
                os.close(self._pidfds.pop(workers[fd]))
                self.processes[workers[fd]].join()
