"""infeed.Loader's batches on their way to a CUDA device: the native loader page-locks them, torch's allocator has their place."""

from __future__ import annotations

from typing import Any

from infeed._native import Loader
from infeed.errors import MemoryError, TimeoutError
from infeed.torch import _device
from infeed.torch._staging import Staging, Transfers


class Target:
    """Where a loader's batches go, as its options say, and the copies of all its epochs. Raises what is wrong with them."""

    def __init__(self, device: Any, prefetch_to_device: int, compute_stream: Any) -> None:
        self._device = _device.checked_device(device, prefetch_to_device)
        self._compute_stream = _device.checked_compute_stream(compute_stream, self._device)
        self._ahead = prefetch_to_device
        self.transfers = Transfers()

    def staging(self) -> Staging:
        """For one iterator."""
        return Staging(_device.Streams(self._device, self._compute_stream), self._ahead, self.transfers)


class StagedIterator:
    """An iterator of `native` whose batches go by `staging`, `ahead` of them copied before next() gives them.

    `position`: state and epoch of the native loader as of the last batch that was given; None: it knows them itself.
    """

    def __init__(self, native: Loader, staging: Staging) -> None:
        self._native = native
        self._batches = iter(native)
        self._staging = staging
        self._ended = False
        self.position: tuple[str, int] | None = None

    def __iter__(self) -> StagedIterator:
        return self

    def __next__(self) -> Any:
        staging = self._staging
        staging.transfers.look()
        while not self._ended and len(staging) <= staging.ahead:
            if not self._stage_next():
                break
        if not staging:
            self.position = None
            raise StopIteration
        self.position = staging.next_position
        return staging.take()[0]

    def _stage_next(self) -> bool:
        """Stages a batch, or the error in its place. What is not of its place is raised where nothing is staged, else
        left for later."""
        staging = self._staging
        try:
            staging.put(next(self._batches), self._native_position())
        except StopIteration:
            self._ended = True
            return False
        except (MemoryError, TimeoutError):
            if not staging:
                raise
            return False
        except Exception as error:
            if not staging:
                raise
            staging.put_error(error, self._native_position())
        return True

    def _native_position(self) -> tuple[str, int]:
        return self._native.state_dict(), self._native.epoch()

    def drop(self) -> None:
        """What is staged is of a position that the loader left."""
        self._staging.clear()
        self.position = None

    def close(self) -> None:
        self._staging.settle()
