"""The CUDA device of a loader, and its streams: one for copies, and the compute stream, where the batches are used."""

from __future__ import annotations

import contextlib
from typing import Any, Protocol

import torch

from infeed._options import is_integer
from infeed.errors import ConfigError, DeviceError

_STAYS = "Loaders without a device work, and so does batch.to(device)."


def checked_device(device: Any, prefetch_to_device: Any) -> torch.device | None:
    """`device` as torch's; the CPU, where batches lie in any case, is None. Raises where batches cannot go there, before anything
    is started."""
    if not is_integer(prefetch_to_device) or prefetch_to_device < 0:
        raise ConfigError(f"prefetch_to_device should be a number of batches, 0 or more; it is {prefetch_to_device!r}")
    if device is None:
        return None
    if is_integer(device):
        device = f"cuda:{device}"
    try:
        made = torch.device(device)
    except (RuntimeError, TypeError):
        raise ConfigError(f"device should be one of CUDA, as 'cuda:0', or None; it is {device!r}") from None
    if made.type == "cpu":
        return None
    if made.type != "cuda":
        raise ConfigError(f"device is '{made}'; batches can be copied to CUDA's devices only. {_STAYS}")
    _check_cuda(made)
    return made


def _check_cuda(device: torch.device) -> None:
    if not torch.cuda.is_available():
        if torch.version.cuda is None and torch.version.hip is None:
            missing = f"this torch ({torch.__version__}) is built without CUDA. Install one with it."
        else:
            missing = "torch finds no GPU that it can use. Look at nvidia-smi, and at CUDA_VISIBLE_DEVICES."
        raise DeviceError(f"device is '{device}', but {missing} {_STAYS}")
    count = torch.cuda.device_count()
    if device.index is not None and device.index >= count:
        raise DeviceError(f"device is '{device}', but there are {count}: 'cuda:0' to 'cuda:{count - 1}'.")


def checked_compute_stream(stream: Any, device: torch.device | None) -> torch.cuda.Stream | None:
    """`stream`, if batches that arrive on `device` can be used in it; None is None."""
    if stream is None:
        return None
    if device is None:
        raise ConfigError("compute_stream is given, and no device that batches are copied to: give device='cuda:0'.")
    if not isinstance(stream, torch.cuda.Stream):
        raise ConfigError(f"compute_stream should be a torch.cuda.Stream (or ExternalStream); it is {stream!r}")
    if device.index is not None and stream.device != device:
        raise ConfigError(f"compute_stream is of '{stream.device}', and device is '{device}'; make it for that device.")
    return stream


class Event(Protocol):
    def query(self) -> bool:
        """Whether everything enqueued before the event was recorded is done."""

    def synchronize(self) -> None: ...


class TimedEvent(Event, Protocol):
    def elapsed_time(self, end: Any) -> float:
        """Milliseconds to `end`; both have passed."""


class Streams:
    """torch's side: a stream for copies to `device`, and the compute stream: `compute`, else what is current in a thread."""

    def __init__(self, device: torch.device, compute: torch.cuda.Stream | None = None) -> None:
        self.device = torch.device("cuda", torch.cuda.current_device() if device.index is None else device.index)
        self._copies = torch.cuda.Stream(self.device)
        self._given = compute

    @property
    def _compute(self) -> torch.cuda.Stream:
        return torch.cuda.current_stream(self.device) if self._given is None else self._given

    def copying(self) -> contextlib.AbstractContextManager[Any]:
        """What is copied inside goes through the copy stream, and into memory that the allocator knows as its."""
        return torch.cuda.stream(self._copies)

    def computing(self) -> contextlib.AbstractContextManager[Any]:
        """What is copied inside goes through the compute stream."""
        return torch.cuda.stream(self._compute)

    def begin_copies(self) -> TimedEvent:
        """A mark in the copy stream where the copies of a batch begin."""
        return self.end_copies()

    def end_copies(self) -> TimedEvent:
        event = torch.cuda.Event(enable_timing=True)
        event.record(self._copies)
        return event

    def end_computing(self) -> Event:
        """A mark behind what the compute stream has so far."""
        event = torch.cuda.Event()
        event.record(self._compute)
        return event

    def let_compute_wait(self, event: Event) -> None:
        self._compute.wait_event(event)

    def copy(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor.to(self.device, non_blocking=True)

    def is_there(self, tensor: torch.Tensor) -> bool:
        return tensor.device == self.device

    def give_to_compute(self, tensor: torch.Tensor) -> None:
        tensor.record_stream(self._compute)
