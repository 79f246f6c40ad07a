"""One short run of a training loop: a loader, a step, and what they take."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from typing import Any

from infeed import _native
from infeed.errors import ConfigError

_FEWEST_BATCHES = 8  # measured, however short the run
_WARM_UP_BATCHES = 8  # and one for each worker: prefetch, caches and pages are then warm


def run(make: Callable[[], Any], step: Callable[[Any], Any] | None, num_workers: int, seconds: float) -> Any:
    """Makes a loader, warms it up, measures. Ctrl-C leaves figures that say `stopped`."""
    figures = _native.RunFigures()
    loop = _Loop(make, step)
    try:
        loop.turn()
        figures.first_batch_ms = (loop.fetched - loop.began) * 1e3
        for _ in range(_WARM_UP_BATCHES + num_workers):
            loop.turn()
        loop.measure(figures, seconds)
    except KeyboardInterrupt:
        figures.stopped = True
    finally:
        loop.close()
    return figures


class _Loop:
    """A loader, and the trainer that takes its batches, epoch after epoch."""

    def __init__(self, make: Callable[[], Any], step: Callable[[Any], Any] | None) -> None:
        self.began = self.fetched = time.perf_counter()
        self.samples = 0
        self.step_s = 0.0
        self._step = step
        self._loader = make()
        self._iterator: Iterator[Any] = iter(self._loader)

    def turn(self) -> None:
        batch = self._next()
        self.fetched = time.perf_counter()
        if self._step is not None:
            self._step(batch)
        self.step_s += time.perf_counter() - self.fetched
        self.samples += samples_of(batch)

    def _next(self) -> Any:
        for batch in self._iterator:
            return batch
        self._iterator = iter(self._loader)
        for batch in self._iterator:
            return batch
        raise ConfigError("the data set gives no batch; it is smaller than a batch, or empty.")

    def measure(self, figures: Any, seconds: float) -> None:
        if hasattr(self._loader, "reset_stats"):
            self._loader.reset_stats()
        meter = _native.Meter([os.getpid(), *children_of(os.getpid())])
        self.samples, self.step_s = 0, 0.0
        begin, batches = time.perf_counter(), 0
        while batches < _FEWEST_BATCHES or time.perf_counter() - begin < seconds:
            self.turn()
            batches += 1
        elapsed = time.perf_counter() - begin
        figures.others_share = meter.others_share()
        figures.memory_bytes = meter.memory_bytes()
        figures.samples_per_s = self.samples / elapsed
        figures.utilisation = min(1.0, self.step_s / elapsed)
        self._add_stats(figures)

    def _add_stats(self, figures: Any) -> None:
        """What loaders of ours know of themselves beside."""
        stats = self._loader.stats() if hasattr(self._loader, "stats") else None
        times = getattr(stats, "times", stats)
        if not isinstance(times, _native.LoaderStats):
            return
        stages = (times.read_us, times.decode_us, times.transform_us, times.collate_us, times.other_us)
        figures.sample_s = sum(stages) * 1e-6
        if times.on_cpu_share >= 0:
            figures.cpu_share = min(1.0, times.on_cpu_share + max(0.0, times.cpu_queue_share))
        figures.verdict = str(times.verdict)

    def close(self) -> None:
        """Ends the workers, so that the next run has the machine."""
        loader = self._loader
        del self._loader, self._iterator
        if hasattr(loader, "close"):
            loader.close()


def samples_of(batch: Any) -> int:
    """How many samples are in a batch: the length of its first array, wherever that is."""
    shape = getattr(batch, "shape", None)
    if shape is not None:
        return int(shape[0]) if len(shape) > 0 else 1
    if isinstance(getattr(batch, "size", None), int):
        return int(batch.size)
    if isinstance(batch, dict) and batch:
        return samples_of(next(iter(batch.values())))
    if isinstance(batch, (list, tuple)) and batch:
        return len(batch) if isinstance(batch[0], (str, bytes, int, float)) else samples_of(batch[0])
    return 1


def children_of(pid: int) -> list[int]:
    """Processes below `pid`; none where the kernel does not tell."""
    found: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children") as file:
                found += map(int, file.read().split())
    except OSError:  # it, or that thread, ended just now
        return found
    return found + [below for child in found for below in children_of(child)]
