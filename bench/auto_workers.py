"""S8 of `make bench`: does infeed.torch.DataLoader(num_workers="auto") find its workers and depth? Lines as infeed-bench's.

    PYTHONPATH=bench:build/release/python .venv/bin/python bench/auto_workers.py build/bench.json [--only bursty] [--rounds 5]

Four pipelines of datasets in Python. Every num_workers from 0 on is measured once with every prefetch_factor; then a
loader with "auto" trains until it rests; then the fastest three of the fixed ones and that loader take turns.
Read: the rate of "auto" by that of the best of the three, round by round.
"""

import argparse
import hashlib
import itertools
import os
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from peers import processes
from peers.bench_rows import Question, line, merge, show

try:
    import torch
    from infeed.torch import DataLoader
except ImportError:
    torch = None

AUTO = Question("S8", "", 0.95, 0.98)
BATCH_SIZE = 16
WARM_UP = 8  # batches, and as many as are in flight
FINALISTS = 3
PREFETCH = (2, 4, 8)
TO_REST_S = 12.0
CHUNK = bytes(1 << 16)


def compute(seconds: float) -> None:
    """Keeps a processor busy for as long, whoever else wants it."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        hashlib.sha256(CHUNK)  # without the interpreter's lock


class Samples:
    """Map-style, endless to speak of; a sample takes what `cost` does with its index."""

    def __init__(self, cost: Callable[[int], None]) -> None:
        self.cost = cost

    def __len__(self) -> int:
        return 1 << 24

    def __getitem__(self, index: int) -> Any:
        self.cost(index)
        return torch.full((64,), index)


def device_computes() -> None:
    time.sleep(6e-3)


def step_on_two_cores() -> None:
    other = threading.Thread(target=compute, args=(8e-3,))
    other.start()
    compute(8e-3)
    other.join()


def decode(index: int) -> None:
    compute(1e-3)


def read(index: int) -> None:
    time.sleep(3e-3)


def cheap(index: int) -> None:
    compute(0.2e-3)


def burst(index: int) -> None:
    compute(40e-3 if index % 200 == 100 else 0.2e-3)


@dataclass(frozen=True)
class Pipeline:
    name: str
    cost: Callable[[int], None]
    most_workers: int
    """Of the sweep: more cannot help."""
    step: Callable[[], None] = device_computes
    batches: int = 50
    """Of a measurement: 800 samples, four costly ones among them."""


PIPELINES = {
    "decode": Pipeline("decode-bound", decode, 4),
    "read": Pipeline("reads that sleep", read, 12),
    "trainer": Pipeline("a step on two cores", cheap, 3, step_on_two_cores),
    "bursty": Pipeline("bursty", burst, 4),
}


class Training:
    """A loader and the trainer that takes its batches."""

    def __init__(self, pipeline: Pipeline, **options: Any) -> None:
        self.loader = DataLoader(Samples(pipeline.cost), batch_size=BATCH_SIZE, **options)
        self._batches: Iterator[Any] = iter(self.loader)
        self._step = pipeline.step

    def run(self, batches: int) -> None:
        for _ in itertools.islice(self._batches, batches):
            self._step()

    def rest(self, seconds: float) -> None:
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            self.run(1)

    def rate(self, batches: int) -> float:
        """Samples a second, when what was made ahead is used up."""
        times = self.loader.stats().times
        self.run(WARM_UP + (times.prefetch if times is not None else 0))
        begin = time.perf_counter()
        self.run(batches)
        return batches * BATCH_SIZE / (time.perf_counter() - begin)


def fixed_rate(pipeline: Pipeline, workers: int, factor: int | None) -> float:
    return Training(pipeline, num_workers=workers, prefetch_factor=factor).rate(pipeline.batches)


def name(workers: int, factor: int | None) -> str:
    return f"{workers} x {factor}" if factor else "no workers"


def answer(pipeline: Pipeline, rounds: int) -> list[dict[str, Any]]:
    settings = [(0, None), *itertools.product(range(1, pipeline.most_workers + 1), PREFETCH)]
    swept = {setting: fixed_rate(pipeline, *setting) for setting in settings}
    finalists = sorted(settings, key=lambda setting: -swept[setting])[:FINALISTS]
    auto = Training(pipeline, num_workers="auto")
    auto.rest(TO_REST_S)
    begin, busy, ours = time.perf_counter(), processes.machine_busy_s(), processes.tree_cpu_s(os.getpid())
    turns = [
        [*(fixed_rate(pipeline, *setting) for setting in finalists), auto.rate(pipeline.batches)] for _ in range(rounds)
    ]
    others = processes.machine_busy_s() - busy - (processes.tree_cpu_s(os.getpid()) - ours)
    share = max(0.0, others) / ((time.perf_counter() - begin) * (os.cpu_count() or 1))
    times = auto.loader.stats().times
    found = f"{times.num_workers} x {times.prefetch_factor}"
    best = max(finalists, key=lambda setting: sorted(turn[finalists.index(setting)] for turn in turns)[rounds // 2])
    bars = {"must": AUTO.must, "aim": AUTO.aim}
    what = f"Python, {pipeline.name}:"
    rates = [turn[finalists.index(best)] for turn in turns]
    ratios = [turn[-1] / rate for turn, rate in zip(turns, rates, strict=True)]
    return [
        line(AUTO, f"{what} fastest of {len(settings)} fixed, {name(*best)}", "samples/s", rates, share),
        line(AUTO, f"{what} auto, {found}, by the fastest", "x", ratios, share, **bars),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description="S8 of `make bench`.")
    parser.add_argument("json", type=Path, help="of infeed-bench; the rows are put into it")
    parser.add_argument("--only", choices=list(PIPELINES))
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    warnings.filterwarnings("ignore", "This DataLoader will create")  # more workers than processors are a part of it
    if torch is None:
        return
    asked = [pipeline for name, pipeline in PIPELINES.items() if options.only in (None, name)]
    rows = [row for pipeline in asked for row in answer(pipeline, options.rounds)]
    for row in rows:
        show(row)
    merge(options.json, rows)


if __name__ == "__main__":
    main()
