"""Page-locked batches: for loaders with pin_memory=True where an accelerator is available.

The extents that batches lie in are locked once, so their tensors are pinned as they are; what lies elsewhere (sparse
tensors, objects with their own pin_memory) is pinned by torch's rules. No thread is needed: nothing is copied.

torch's host allocator keeps a pinned block until the copies that read it are done. It does not know this memory, so:
a batch's extent goes home only when the user has dropped the batch and an event, recorded on the current stream at a
later next(), has passed. `x.cuda(non_blocking=True); del x` then reads what it should.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Protocol

import torch
from torch.utils.data._utils.pin_memory import pin_memory

from infeed._worker.errors import CaughtError

_PAGE = 4096


class Event(Protocol):
    def query(self) -> bool:
        """Whether everything enqueued before the event was recorded is done."""


class PageLock:
    """Locks memory with the CUDA runtime, each extent as far as batches have reached. Unlocks all at `close`."""

    def __init__(self) -> None:
        self._runtime = torch.cuda.cudart()
        self._locked: dict[int, int] = {}  # address: bytes

    def lock(self, address: int, nbytes: int) -> None:
        begin = address - address % _PAGE
        have = self._locked.get(begin, 0)
        want = -(-(address + nbytes - begin) // _PAGE) * _PAGE
        if want <= have:
            return
        if have:
            self._runtime.cudaHostUnregister(begin)
        torch.cuda.check_error(self._runtime.cudaHostRegister(begin, want, 0))
        self._locked[begin] = want

    def close(self) -> None:
        while self._locked:
            self._runtime.cudaHostUnregister(self._locked.popitem()[0])


class Retention:
    """Keeps extents of dropped batches until an event recorded after the drop has passed.

    `dropped(lease)` says whether only this object still holds the lease; `record()` makes an Event on the current
    stream. `next_batch()` is called at the start of every next().
    """

    def __init__(self, dropped: Callable[[Any], bool], record: Callable[[], Event]) -> None:
        self._dropped = dropped
        self._record = record
        self._lent: list[Any] = []
        self._leaving: list[tuple[Event, list[Any]]] = []

    def keep(self, lease: Any) -> None:
        self._lent.append(lease)

    def next_batch(self) -> None:
        while self._leaving and self._leaving[0][0].query():
            del self._leaving[0]
        dropped = [lease for lease in self._lent if self._dropped(lease)]
        if dropped:
            self._lent = [lease for lease in self._lent if not any(lease is other for other in dropped)]
            self._leaving.append((self._record(), dropped))


class Pinner:
    """What an iterator with pin_memory does to each batch. Errors read as PyTorch's from its pinning thread."""

    def __init__(self, device: str | None) -> None:
        self._device = device
        self._where = f"in pin memory thread for device {torch.accelerator.current_device_index()}"
        self._lock = PageLock() if device == "cuda" else None
        self._retention = Retention(_only_retained, _record)
        self.next_batch = self._retention.next_batch

    def pin(self, lease: Any, data: Any) -> Any:
        try:
            if self._lock is not None and lease.nbytes:
                self._lock.lock(torch.frombuffer(lease, dtype=torch.uint8).data_ptr(), lease.nbytes)
                self._retention.keep(lease)
            return pin_memory(data, self._device)
        except Exception:
            error = CaughtError.current(self._where)
        raise error.rebuild()


def _only_retained(lease: Any) -> bool:
    return sys.getrefcount(lease) <= _IDLE_REFERENCES


def _record() -> Event:
    event = torch.cuda.Event()
    event.record()
    return event
