"""What a consumer is told when workers die or are late: RuntimeErrors that begin with PyTorch's words, since programs
match both."""

from __future__ import annotations

import contextlib
import errno
import signal
from collections.abc import Iterator

from infeed.errors import Error, TimeoutError, WorkerError


def _exit_text(pid: int, code: int | None) -> str:
    if code is None:
        return f"DataLoader worker (pid {pid}) exited unexpectedly; its exit code was taken by another wait()."
    if code >= 0:
        return (
            f"DataLoader worker (pid {pid}) exited unexpectedly with exit code {code}. "
            "Its own output may say why; num_workers=0 runs the same code in this process."
        )
    text = f"DataLoader worker (pid {pid}) is killed by signal: {signal.strsignal(-code)}. "
    if -code == signal.SIGBUS:
        text += "Workers may be out of shared memory: raise its limit, or lower prefetch_factor or batch_size."
    elif -code == signal.SIGKILL:
        text += "Likely out of memory: lower num_workers, prefetch_factor or batch_size."
    return text


def worker_death(exits: list[tuple[int, int | None]], in_hand: str) -> WorkerError:
    """`exits`: pid and exit code of each dead worker; `in_hand`: what they were at, a sentence or nothing."""
    pids = ", ".join(str(pid) for pid, _ in exits)
    error = WorkerError(f"DataLoader worker (pid(s) {pids}) exited unexpectedly{in_hand}")
    error.__cause__ = RuntimeError("\n".join(_exit_text(pid, code) for pid, code in exits))
    return error


def timed_out(seconds: float, in_hand: str) -> TimeoutError:
    return TimeoutError(f"DataLoader timed out after {seconds} seconds{in_hand}")


def of_parent(owner: int) -> RuntimeError:
    return RuntimeError(f"this iterator belongs to process {owner}, which forked this one; make a new iterator")


@contextlib.contextmanager
def descriptors_explained() -> Iterator[None]:
    """Says what to do where none is left."""
    try:
        yield
    except OSError as error:
        if error.errno != errno.EMFILE:
            raise
        raise Error(
            "Too many open files: no descriptor is left to start workers with. Raise the limit (`ulimit -n`). Tensors "
            "of a dataset that spawned workers share take one each unless "
            "`torch.multiprocessing.set_sharing_strategy('file_system')` is called first."
        ) from error
