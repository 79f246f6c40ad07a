"""What happened when, for Perfetto: with infeed.trace("trace.json"): ..."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from infeed import _native

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["trace"]


class trace:
    """While entered, every loader of this process records: infeed.Loader, infeed.torch.DataLoader, their workers.

    The file, in Chrome's Trace Event Format, is written at the end; open it at ui.perfetto.dev. `%p` in its name is the
    process's id. The environment variable INFEED_TRACE names a file for a whole run, without a change of the program.

    Cost: under 5 % of the fastest loader there is. One at a time: ConfigError. A file without a place: DataError.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self._native: _native.Trace | None = None

    def __enter__(self) -> Self:
        self._native = _native.Trace(self.path)
        return self

    def __exit__(self, *exception: object) -> None:
        if self._native is not None:
            self._native.end()
            self._native = None

    def json(self) -> str:
        """What was recorded so far; ValueError where it does not run."""
        if self._native is None:
            raise ValueError("this trace does not run: enter it first")
        return self._native.json()

    @staticmethod
    @contextlib.contextmanager
    def span(name: str) -> Iterator[None]:
        """Draws a block of your own, as `with infeed.trace.span("forward"):`. Free where no trace runs."""
        if not _native.trace_running():
            yield
            return
        begin = time.perf_counter_ns()
        try:
            yield
        finally:
            _native.trace_span(name, begin, time.perf_counter_ns())
