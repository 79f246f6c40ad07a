"""Batches on their way to a device: for loaders with `device`.

    next()   host batch n+2, page-locked ─▶ copy stream: copies, event          memory of torch's own allocator
    next()   batch n ─▶ current stream: waits for its event; record_stream ─▶ user
    later    event of n has passed ─▶ its host memory goes home

The host waits for no copy. A batch's device memory may be dropped at any time, as every tensor's: record_stream tells
the allocator of the stream that was current at its next(); tell it of further ones that use it.
"""

from __future__ import annotations

import contextlib
import copy
from collections import deque
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from typing import Any, Protocol

import torch

from infeed.errors import ConfigError, DeviceError

_STAYS = "Loaders without a device work, and so does batch.to(device)."


def checked_device(device: Any, prefetch_to_device: Any) -> torch.device | None:
    """`device` as torch's; None is None. Raises where batches cannot go there, before anything is started."""
    if type(prefetch_to_device) is not int or prefetch_to_device < 0:
        raise ConfigError(f"prefetch_to_device should be a number of batches, 0 or more; it is {prefetch_to_device!r}")
    if device is None:
        return None
    if isinstance(device, int) and not isinstance(device, bool):
        device = f"cuda:{device}"
    try:
        made = torch.device(device)
    except (RuntimeError, TypeError):
        raise ConfigError(f"device should be one of CUDA, as 'cuda:0', or None; it is {device!r}") from None
    if made.type == "cpu":
        raise ConfigError("device is the CPU, where batches lie in any case: leave it out, or give None.")
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


class Event(Protocol):
    def query(self) -> bool:
        """Whether everything enqueued before the event was recorded is done."""

    def synchronize(self) -> None: ...


class CopyStream:
    """torch's side: a stream for copies to `device`, and whatever stream is current in a thread there."""

    def __init__(self, device: torch.device) -> None:
        self.device = torch.device("cuda", torch.cuda.current_device() if device.index is None else device.index)
        self._stream = torch.cuda.Stream(self.device)

    def copying(self) -> contextlib.AbstractContextManager[Any]:
        """What is copied inside goes through the copy stream, and into memory that the allocator knows as its."""
        return torch.cuda.stream(self._stream)

    def record(self, current: bool = False) -> Event:
        """An event in the copy stream, or in the `current` one."""
        event = torch.cuda.Event()
        event.record(torch.cuda.current_stream(self.device) if current else self._stream)
        return event

    def let_current_wait(self, event: Event) -> None:
        torch.cuda.current_stream(self.device).wait_event(event)

    def copy(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor.to(self.device, non_blocking=True)

    def is_there(self, tensor: torch.Tensor) -> bool:
        return tensor.device == self.device

    def give_to_current(self, tensor: torch.Tensor) -> None:
        tensor.record_stream(torch.cuda.current_stream(self.device))


class Staging:
    """A line of batches that are copied ahead of next(). False while it is empty.

    Where the device has no room for a batch ahead, its copy waits for its turn; MemoryError of torch then leaves it in
    the line: drop tensors and call next() again.
    """

    def __init__(self, side: CopyStream, ahead: int) -> None:
        self._side = side
        self.ahead = ahead
        self._line: deque[_Place] = deque()
        self._read: deque[tuple[Event, Any]] = deque()  # host batches of those that left, until their copies are done

    @classmethod
    def of(cls, loader: Any) -> Staging | None:
        return None if loader.device is None else cls.on(loader.device, loader.prefetch_to_device)

    @classmethod
    def on(cls, device: torch.device, ahead: int) -> Staging:
        return cls(CopyStream(device), ahead)

    def __len__(self) -> int:
        return len(self._line)

    def put(self, host: Any, position: Any = None) -> None:
        """Queues the copies of a batch. `position`: what take() returns beside it."""
        place = _Place(host, position)
        self._line.append(place)
        with contextlib.suppress(Exception):  # it is tried again in its turn, and raised then
            place.stage(self._side)

    def put_error(self, error: Exception, position: Any = None) -> None:
        """take() raises `error` in its turn."""
        self._line.append(_Place(None, position, error))

    def take(self) -> tuple[Any, Any]:
        """The oldest batch, for work in the current stream, and its position."""
        self.look()
        place = self._line[0]
        if place.error is not None:
            del self._line[0]
            raise place.error
        try:
            data, done = place.hand_over(self._side)
        except torch.OutOfMemoryError:
            raise
        except Exception:  # of what moves itself: it would fail again
            self._leave()
            raise
        del self._line[0]
        self._read.append((done, place.host))
        return data, place.position

    @property
    def next_position(self) -> Any:
        """Position of what take() gives, or raises, next."""
        return self._line[0].position

    def look(self) -> None:
        """Lets go of host memory whose copies are done."""
        while self._read and self._read[0][0].query():
            del self._read[0]

    def clear(self) -> None:
        """Drops what was staged."""
        while self._line:
            self._leave()

    def _leave(self) -> None:
        place = self._line.popleft()
        if place.copied is not None:
            self._read.append((place.copied, place.host))

    def settle(self) -> None:
        """Drops all, and waits until the device reads none of it: page locks may end then."""
        self.clear()
        while self._read:
            with contextlib.suppress(RuntimeError):  # a lost device reads nothing
                self._read[0][0].synchronize()
            del self._read[0]


class _Place:
    def __init__(self, host: Any, position: Any, error: Exception | None = None) -> None:
        self.host = host
        self.position = position
        self.error = error
        self.copied: Event | None = None  # behind the copies that are queued; None: none are
        self._staged: Any = None
        self._is_staged = False

    def stage(self, side: CopyStream) -> Event:
        """Queues copies of the plain tensors. What else can move does so in the current stream, at hand_over()."""
        try:
            with side.copying():
                self._staged = map_batch(self.host, lambda tensor: side.copy(tensor) if _is_plain(tensor) else tensor)
            self._is_staged = True
        finally:
            copied = self.copied = side.record()
        return copied

    def hand_over(self, side: CopyStream) -> tuple[Any, Event]:
        """The batch, and an event behind the last copy that reads its host memory."""
        copied = self.copied if self.copied is not None and self._is_staged else self.stage(side)
        side.let_current_wait(copied)
        late: list[Any] = []

        def on_tensor(tensor: torch.Tensor) -> torch.Tensor:
            if side.is_there(tensor) and _is_plain(tensor):
                side.give_to_current(tensor)
                return tensor
            late.append(tensor)
            return side.copy(tensor)

        def on_object(value: Any) -> Any:
            late.append(value)
            return _move_object(value, side)

        data = map_batch(self._staged, on_tensor, on_object)
        return data, side.record(current=True) if late else copied


def _is_plain(tensor: torch.Tensor) -> bool:
    return tensor.layout is torch.strided and not tensor.is_nested


def _move_object(value: Any, side: CopyStream) -> Any:
    try:
        return value.to(side.device, non_blocking=True)
    except TypeError:
        return value.to(side.device)


def _keep(value: Any) -> Any:
    return value


def map_batch(
    data: Any, on_tensor: Callable[[torch.Tensor], torch.Tensor], on_object: Callable[[Any], Any] = _keep
) -> Any:
    """`data` with other tensors, of the types that torch's pin_memory keeps. `on_object` gets what has a to() of its own,
    as PackedSequence has, whatever it is beside that."""
    if isinstance(data, torch.Tensor):
        return on_tensor(data)
    if data is None or isinstance(data, (str, bytes, int, float, bool)):
        return data
    if not isinstance(data, type) and callable(getattr(data, "to", None)):
        return on_object(data)
    if isinstance(data, Mapping):
        return _map_mapping(data, {key: map_batch(value, on_tensor, on_object) for key, value in data.items()})
    if isinstance(data, tuple):
        return _map_tuple(data, [map_batch(value, on_tensor, on_object) for value in data])
    if isinstance(data, Sequence):
        return _map_sequence(data, [map_batch(value, on_tensor, on_object) for value in data])
    return data


def _map_mapping(data: Mapping[Any, Any], values: dict[Any, Any]) -> Any:
    if type(data) is dict:
        return values
    try:
        if not isinstance(data, MutableMapping):
            return type(data)(values)  # type: ignore[call-arg]
        clone = copy.copy(data)
        clone.update(values)
        return clone
    except TypeError:  # of a type that cannot be made so
        return values


def _map_tuple(data: tuple[Any, ...], items: list[Any]) -> Any:
    made = type(data)(*items) if hasattr(data, "_fields") else type(data)(items)
    if getattr(data, "__dict__", None):
        vars(made).update(vars(data))
    return made


def _map_sequence(data: Sequence[Any], items: list[Any]) -> Any:
    if type(data) is list:
        return items
    try:
        return type(data)(items)  # type: ignore[call-arg]
    except TypeError:  # range, and its like
        return items
