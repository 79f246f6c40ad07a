"""Page-locked batches: for loaders with pin_memory=True where an accelerator is available.

The extents that batches lie in are locked once, so their tensors are pinned as they are; what lies elsewhere (sparse
tensors, objects with their own pin_memory) is pinned by torch's rules. No thread is needed: nothing is copied.

torch's host allocator keeps a pinned block until the copies that read it are done. It does not know this memory, so:
a batch's extent goes home only when the user has dropped the batch and an event, recorded behind all streams of the
device at a later next(), has passed. `x.cuda(non_blocking=True); del x` then reads what it should, in side streams too.
infeed's CUDA plugin records such events; without it they are in the current stream, and copies in other streams must be
waited for before their batch is dropped.
"""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Callable
from typing import Any, ClassVar, Protocol

import torch
from torch.utils.data._utils.pin_memory import pin_memory

from infeed._native import Device, LoaderStats, StagerStats, open_device
from infeed._worker.errors import CaughtError
from infeed.errors import DeviceError

_PAGE = 4096
_PORTABLE = 1  # cudaHostRegisterPortable: for all devices
_log = logging.getLogger(__name__)


class Event(Protocol):
    def query(self) -> bool:
        """Whether everything enqueued before the event was recorded is done."""


class PageLock:
    """Locks memory for CUDA, each extent from its start as far as batches have reached."""

    def __init__(self) -> None:
        self._runtime = torch.cuda.cudart()
        self._locked: dict[int, int] = {}  # address of an extent: bytes locked

    def lock(self, address: int, nbytes: int) -> None:
        have = self._locked.get(address, 0)
        if nbytes <= have:
            return
        if have:
            self._runtime.cudaHostUnregister(address)
        want = -(-max(nbytes, 2 * have) // _PAGE) * _PAGE
        torch.cuda.check_error(self._runtime.cudaHostRegister(address, want, _PORTABLE))
        self._locked[address] = want

    def show(self, times: LoaderStats) -> None:
        staging = times.staging or StagerStats()
        staging.registrations, staging.registered_bytes = len(self._locked), sum(self._locked.values())
        times.staging = staging

    def unlock(self) -> None:
        while self._locked:
            self._runtime.cudaHostUnregister(self._locked.popitem()[0])


class Retention:
    """Keeps the extents of dropped batches until an event that was recorded after the drop has passed.

    `record()` makes an event behind the streams that may read them; where it cannot (DeviceError: a graph is being captured,
    or the device is lost), batches are kept. `next_batch()` is called at the start of every next().
    """

    def __init__(self, record: Callable[[], Event]) -> None:
        self._record = record
        self._lent: list[Any] = []  # leases; the user's tensors hold further references to them
        self._leaving: list[tuple[Event, list[Any]]] = []
        probe = [object()]
        self._only_here = sys.getrefcount(probe[0])

    def keep(self, lease: Any) -> None:
        self._lent.append(lease)

    def next_batch(self) -> None:
        while self._leaving and self._leaving[0][0].query():
            del self._leaving[0]
        lent = self._lent
        dropped = [place for place in range(len(lent)) if sys.getrefcount(lent[place]) == self._only_here]
        if not dropped:
            return
        with contextlib.suppress(DeviceError):
            self._leaving.append((self._record(), [lent.pop(place) for place in reversed(dropped)]))

    @property
    def is_empty(self) -> bool:
        return not self._lent and not self._leaving


class Recorder:
    """Events for Retention: behind all streams of the current device, by infeed's plugin; of the current stream without it.

    The plugin is looked for at the first event, when the workers run.
    """

    def __init__(self) -> None:
        self._devices: dict[int, Device | None] = {}  # by index; None: there is no plugin

    def record(self) -> Event:
        index = torch.accelerator.current_device_index()
        if index not in self._devices:
            self._devices[index] = _open(index)
        device = self._devices[index]
        return _record() if device is None else device.record_all()


def _open(index: int) -> Device | None:
    try:
        return open_device(f"cuda:{index}")
    except DeviceError as error:
        _log.info("page-locked batches are kept for the current stream only: %s", error)
        return None


def _record() -> Event:
    event = torch.cuda.Event()
    event.record()
    return event


class Pinner:
    """What an iterator with pin_memory does to each batch. Errors read as those of PyTorch's pinning thread.

    On devices other than CUDA, and for private copies of messages, torch's own pin_memory copies. `retains`: the user
    copies the batches, so their memory is kept as Retention says; else whoever holds them until the copies are done.
    """

    _outliving: ClassVar[list[Pinner]] = []  # of iterators that are gone while batches of theirs are held

    def __init__(self, device: str | None, retains: bool = True) -> None:
        self._device = device
        self._retains = retains
        self._where = f"in pin memory thread for device {torch.accelerator.current_device_index()}"
        self._lock = PageLock() if device == "cuda" else None
        self._retention = Retention(Recorder().record)

    def next_batch(self) -> None:
        self._retention.next_batch()
        for pinner in list(self._outliving):
            pinner._unlock_when_empty()

    def pin(self, lease: Any, data: Any) -> Any:
        try:
            if self._lock is not None:
                self._lock_extent(lease)
            return pin_memory(data, self._device)
        except Exception:
            error = CaughtError.current(self._where)
        raise error.rebuild()

    def _lock_extent(self, lease: Any) -> None:
        address = torch.frombuffer(lease, dtype=torch.uint8).data_ptr()
        if address % _PAGE == 0:  # else it is a private copy
            self._lock.lock(address, lease.nbytes)
            if self._retains:
                self._retention.keep(lease)

    def show(self, times: LoaderStats) -> None:
        """Puts the page locks into `times`."""
        if self._lock is not None:
            self._lock.show(times)

    def close(self) -> None:
        """The iterator is gone. Memory stays locked while batches are held; later calls of next_batch unlock it."""
        if self._lock is not None:
            self._outliving.append(self)
            self._unlock_when_empty()

    def _unlock_when_empty(self) -> None:
        self._retention.next_batch()
        if self._retention.is_empty:
            self._lock.unlock()
            self._outliving.remove(self)
