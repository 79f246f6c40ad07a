"""next() of an iterator whose batches go to a device: the batch that is due, and behind it what is ready."""

from __future__ import annotations

from typing import Any, Protocol

import torch

from infeed.torch._staging import Staging

NO_BATCH = object()


class Source(Protocol):
    """The iterator that makes the batches."""

    def _deliver(self) -> Any:
        """The next batch on the host, waited for; raises what comes in its place."""

    def _take_ready(self) -> Any:
        """The next batch if it has come, else NO_BATCH; raises what came in its place."""

    def _position(self) -> Any:
        """What the loader's state is made of, as of the last batch that was received."""

    def _handed_over(self, position: Any) -> None:
        """`position` is that of the batch, or error, that next() gives; others are staged behind it."""


def next_on_device(source: Source, staging: Staging) -> Any:
    """The next batch of `source`, on the device. Further ones follow it there as far as they are ready: none is waited for."""
    staging.transfers.look()
    if not staging:
        try:
            data = source._deliver()
        except BaseException:
            source._handed_over(source._position())
            raise
        staging.put(data, source._position())
    while len(staging) <= staging.ahead and _stage_ready(source, staging):
        pass
    position = staging.next_position
    try:
        data, _ = staging.take()
    except torch.OutOfMemoryError:
        raise  # the batch is still to come
    except BaseException:
        source._handed_over(position)
        raise
    source._handed_over(position)
    return data


def _stage_ready(source: Source, staging: Staging) -> bool:
    """Stages a batch, or the error in its place, if one has come; False if none."""
    try:
        data = source._take_ready()
    except Exception as error:
        staging.put_error(error, source._position())
        return True
    if data is NO_BATCH:
        return False
    staging.put(data, source._position())
    return True
