"""What a Loader gives."""

from __future__ import annotations

from typing import Any

from infeed import _native

__all__ = ["Batch", "BatchTuple"]


class _Info:
    """What a batch is beside its arrays."""

    __slots__ = ()
    _info: Any

    @property
    def indices(self) -> list[int]:
        """Dataset index of each sample, in batch order. For streams: the row's number within its shard."""
        return self._info.indices

    @property
    def size(self) -> int:
        """Samples in the batch."""
        return self._info.size

    @property
    def epoch(self) -> int:
        return self._info.epoch

    @property
    def number(self) -> int:
        """Position within the epoch, from 0."""
        return self._info.number


class Batch(_Info, dict[str, Any]):
    """A dict of arrays by field name, each with the batch dimension first.

    The arrays are writable views of the loader's memory; nobody else changes it until the last of them, and of the
    views made of them, is gone, also after the loader's end. Holding them holds memory.
    """

    __slots__ = ("_info",)

    def __reduce__(self) -> tuple[Any, ...]:
        return _batch, (Batch, dict(self), *_parts(self))


class BatchTuple(_Info, tuple[Any, ...]):
    """The same arrays as a tuple, in the order of the dataset's fields."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _batch, (BatchTuple, tuple(self), *_parts(self))


def _parts(batch: Any) -> tuple[Any, ...]:
    info = getattr(batch, "_info", None)  # none where the user, or a framework, made the batch from another
    return () if info is None else (info.indices, info.epoch, info.number)


def _batch(kind: Any, arrays: Any, *parts: Any) -> Any:
    batch = kind(arrays)
    if parts:
        batch._info = _native.BatchInfo(*parts)
    return batch
