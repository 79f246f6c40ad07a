"""What a loader counts: a dict of the exchange's counters, and the figures that the verdict is made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from infeed._native import LoaderStats, Verdict


class Stats(dict[str, Any]):
    """The counters by name. `times` are the same figures as a native loader's, where there were workers."""

    def __init__(self, counters: dict[str, Any] | None = None, times: LoaderStats | None = None) -> None:
        super().__init__(counters or {})
        self.times = times

    @property
    def verdict(self) -> Verdict | None:
        """What bounds the training, and the option to turn. None before the first iterator with workers."""
        return None if self.times is None else self.times.verdict

    def copy(self) -> Stats:
        return Stats(self, self.times)

    def become(self, other: Stats) -> None:
        self.clear()
        self.update(other)
        self.times = other.times

    def __str__(self) -> str:
        return "no workers yet" if self.times is None else str(self.times)
