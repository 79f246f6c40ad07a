"""Batches on their way to a device: for loaders with `device`.

    next()   host batch n+2, page-locked ─▶ copy stream: copies, event          memory of torch's own allocator
    next()   batch n ─▶ compute stream: waits for its event; record_stream ─▶ user
    later    event of n has passed ─▶ its host memory goes home

The host waits for no copy. A batch's device memory may be dropped at any time, as every tensor's: record_stream tells
the allocator of the compute stream; tell it of further ones that use it.
"""

from __future__ import annotations

import contextlib
from collections import deque
from typing import Any

import torch

from infeed._native import LoaderStats, StagerStats
from infeed.torch import _device
from infeed.torch._containers import map_batch
from infeed.torch._device import Event, Streams, TimedEvent


class Transfers:
    """Batches that left the line, until their host memory is read; figures of those whose copies are done."""

    def __init__(self) -> None:
        self._under_way: deque[tuple[Event, _Place]] = deque()
        self.batches = 0  # handed out
        self._nbytes = 0
        self._copy_s = 0.0

    def reset(self) -> None:
        self.batches, self._nbytes, self._copy_s = 0, 0, 0.0

    def add(self, done: Event, place: _Place) -> None:
        self._under_way.append((done, place))

    def look(self) -> None:
        """Lets go of host memory whose copies are done."""
        while self._under_way and self._under_way[0][0].query():
            self._count(self._under_way.popleft()[1])

    def settle(self) -> None:
        """Waits for all of them."""
        while self._under_way:
            done, place = self._under_way.popleft()
            with contextlib.suppress(RuntimeError):  # a lost device reads nothing
                done.synchronize()
                self._count(place)

    def _count(self, place: _Place) -> None:
        nbytes, seconds = place.figures()
        self._nbytes += nbytes
        self._copy_s += seconds

    def show(self, times: LoaderStats) -> None:
        """Puts the figures into `times`, those of the loader whose next() gives the batches; page locks there stay."""
        staging = times.staging or StagerStats()
        staging.batches, staging.bytes, staging.copy_s = self.batches, self._nbytes, self._copy_s
        staging.elapsed_s = times.elapsed_s
        if self._copy_s > 0:
            staging.copy_bytes_per_s = self._nbytes / self._copy_s
        if times.elapsed_s > 0:
            staging.copy_share = min(1.0, self._copy_s / times.elapsed_s)
            staging.starved_share = min(1.0, (times.wait_s + times.sampler_s) / times.elapsed_s)
        times.staging = staging


class Staging:
    """A line of batches that are copied ahead of next(). False while it is empty.

    Where the device has no room for a batch ahead, its copy waits for its turn; MemoryError of torch then leaves it in
    the line: drop tensors and call next() again.
    """

    def __init__(self, streams: Streams, ahead: int, transfers: Transfers | None = None) -> None:
        self._streams = streams
        self.ahead = ahead
        self.transfers = Transfers() if transfers is None else transfers
        self._line: deque[_Place] = deque()

    @classmethod
    def of(cls, loader: Any) -> Staging | None:
        """For a loader with the options of DataLoader."""
        if loader.device is None:
            return None
        return cls(_device.Streams(loader.device, loader.compute_stream), loader.prefetch_to_device)

    def __len__(self) -> int:
        return len(self._line)

    def put(self, host: Any, position: Any = None) -> None:
        """Queues the copies of a batch. `position`: what take() returns beside it."""
        place = _Place(host, position)
        self._line.append(place)
        with contextlib.suppress(Exception):  # it is tried again in its turn, and raised then
            place.stage(self._streams)

    def put_error(self, error: Exception, position: Any = None) -> None:
        """take() raises `error` in its turn."""
        self._line.append(_Place(None, position, error))

    def take(self) -> tuple[Any, Any]:
        """The oldest batch, for work in the compute stream, and its position."""
        self.transfers.look()
        place = self._line[0]
        if place.error is not None:
            del self._line[0]
            raise place.error
        try:
            data, done = place.hand_over(self._streams)
        except torch.OutOfMemoryError:
            raise
        except Exception:  # of what moves itself: it would fail again
            self._leave()
            raise
        del self._line[0]
        self.transfers.add(done, place)
        self.transfers.batches += 1
        return data, place.position

    @property
    def next_position(self) -> Any:
        """Position of what take() gives, or raises, next."""
        return self._line[0].position

    def show(self, times: LoaderStats) -> None:
        """Puts figures of the copies into those of the loader."""
        self.transfers.show(times)

    def clear(self) -> None:
        """Drops what was staged."""
        while self._line:
            self._leave()

    def _leave(self) -> None:
        place = self._line.popleft()
        place.staged = None
        if place.copied is not None:
            self.transfers.add(place.copied, place)

    def settle(self) -> None:
        """Drops all, and waits until the device reads none of it: page locks may end then."""
        self.clear()
        self.transfers.settle()


class _Place:
    def __init__(self, host: Any, position: Any, error: Exception | None = None) -> None:
        self.host = host
        self.position = position
        self.error = error
        self.copied: TimedEvent | None = None  # behind the copies that are queued; None: none are
        self._begun: TimedEvent | None = None
        self._nbytes = 0
        self.staged: Any = None  # the batch, with the copies that are queued
        self._is_staged = False

    def stage(self, streams: Streams) -> Event:
        """Queues copies of the plain tensors. What else can move does so in the compute stream, at hand_over()."""
        self._nbytes = 0
        self._begun = streams.begin_copies()

        def on_tensor(tensor: torch.Tensor) -> torch.Tensor:
            if not _is_plain(tensor):
                return tensor
            self._nbytes += tensor.nbytes
            return streams.copy(tensor)

        try:
            with streams.copying():
                self.staged = map_batch(self.host, on_tensor)
            self._is_staged = True
        finally:
            copied = self.copied = streams.end_copies()
        return copied

    def hand_over(self, streams: Streams) -> tuple[Any, Event]:
        """The batch, and an event behind the last copy that reads its host memory."""
        copied = self.copied if self.copied is not None and self._is_staged else self.stage(streams)
        streams.let_compute_wait(copied)
        late: list[Any] = []

        def on_tensor(tensor: torch.Tensor) -> torch.Tensor:
            if streams.is_there(tensor) and _is_plain(tensor):
                streams.give_to_compute(tensor)
                return tensor
            late.append(tensor)
            return streams.copy(tensor)

        def on_object(value: Any) -> Any:
            late.append(value)
            return _move_object(value, streams)

        with streams.computing():
            data = map_batch(self.staged, on_tensor, on_object)
        self.staged = None
        return data, streams.end_computing() if late else copied

    def figures(self) -> tuple[int, float]:
        """Bytes of its plain tensors, and seconds that their copies took; these are done."""
        if self._begun is None or self.copied is None:
            return 0, 0.0
        return self._nbytes, self._begun.elapsed_time(self.copied) / 1000


def _is_plain(tensor: torch.Tensor) -> bool:
    return tensor.layout is torch.strided and not tensor.is_nested


def _move_object(value: Any, streams: Streams) -> Any:
    try:
        return value.to(streams.device, non_blocking=True)
    except TypeError:
        return value.to(streams.device)
