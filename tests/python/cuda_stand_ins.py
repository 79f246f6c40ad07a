"""CUDA as far as loaders ask for it, where there is none: noted calls, events that pass when a test says so."""

from __future__ import annotations

import contextlib
import ctypes

import torch
from infeed.torch import _device, _pin, _stateful_single

COPY_MS = 2.0  # of device time for each batch


class Stream:
    """Records events that pass when the test says so."""

    def __init__(self):
        self.events = []

    def record(self):
        self.events.append(Event())
        return self.events[-1]


class Event:
    passed = False

    def query(self):
        return self.passed


class Runtime:
    """The CUDA runtime's two calls, noted."""

    def __init__(self):
        self.calls = []

    def cudaHostRegister(self, address, nbytes, flags):
        self.calls.append(("lock", address, nbytes))
        return 0

    def cudaHostUnregister(self, address):
        self.calls.append(("unlock", address))


def accelerate(monkeypatch, stream, runtime):
    """Makes torch say that a CUDA device is there, as far as a loader asks."""
    device = torch.device("cuda")
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda: device)
    monkeypatch.setattr(torch.accelerator, "current_device_index", lambda: 0)
    monkeypatch.setattr(torch.cuda, "cudart", lambda: runtime)
    monkeypatch.setattr(torch.cuda, "check_error", lambda code: None)
    monkeypatch.setattr(_pin, "_record", stream.record)
    monkeypatch.setattr(_pin, "pin_memory", lambda data, device: data)


class Copies:
    """In the place of Streams: copies to "the device" are made as late as may be, when their event must have passed."""

    def __init__(self, device="cuda:0", compute=None):
        self.device = torch.device("cpu")  # where the tensors of this test lie in truth
        self.compute = compute
        self.queued = []  # (to, from) without an event
        self.events = []
        self.waits = []  # events that the compute stream waits for
        self.given = []  # tensors that record_stream was called for
        self.room = None  # copies until memory is out

    @contextlib.contextmanager
    def copying(self):
        yield

    computing = copying

    def copy(self, tensor):
        if self.room is not None:
            if self.room == 0:
                raise torch.OutOfMemoryError("CUDA out of memory")
            self.room -= 1
        made = torch.empty_like(tensor)
        self.queued.append((made, tensor.data_ptr()))  # as a driver: the memory is not kept
        return made

    def begin_copies(self):
        return CopyEvent([])

    def end_copies(self):
        event = CopyEvent(self.queued)
        self.queued = []
        self.events.append(event)
        return event

    end_computing = end_copies

    def let_compute_wait(self, event):
        self.waits.append(event)

    def is_there(self, tensor):
        return any(tensor is made for event in self.events for made, _ in event.copies)

    def give_to_compute(self, tensor):
        self.given.append(tensor)

    def finish(self):
        for event in self.events:
            event.synchronize()


class CopyEvent:
    def __init__(self, copies):
        self.copies = copies
        self.passed = False

    def query(self):
        return self.passed

    def synchronize(self):
        if not self.passed:
            for made, source in self.copies:
                ctypes.memmove(made.data_ptr(), source, made.nbytes)
        self.passed = True

    def elapsed_time(self, end):
        assert end.passed
        return COPY_MS


def accelerate_copies(monkeypatch):
    """accelerate(), and Copies for the next loader: the list of those that were made."""
    accelerate(monkeypatch, Stream(), Runtime())
    pinned = []  # torch's own pinned blocks wait for copies by themselves
    monkeypatch.setattr(_stateful_single, "pin_memory", lambda data, device: pinned.append(data) or data)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    made = []

    def make(device, compute):
        made.append(Copies(device, compute))
        return made[-1]

    monkeypatch.setattr(_device, "Streams", make)
    return made
