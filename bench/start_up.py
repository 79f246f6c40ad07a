#!/usr/bin/env python3
"""How a drop-in loader starts, hands over and ends, beside torch's: milliseconds and microseconds, a table and JSON.

    PYTHONPATH=build/release/python .venv/bin/python bench/start_up.py --rounds 5 --json FILE
    ... bench/start_up.py --only "fork;spawn"

Two workers, W2's rows in batches of 256: 4,096 torch tensors, under spawn 50,000 numpy arrays. Each measurement is a
process of its own, infeed's and torch's in turn; a figure is the median of the rounds.
"""

import argparse
import gc
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch
from peers import processes
from peers.datasets import TinyRows

CLASSES = {"infeed": "infeed.torch", "torch": "torch.utils.data"}
WORKERS, ROWS, BATCH_SIZE = 2, 4096, 256
HANDED_OVER, DOZE_S = 5000, 0.002


class FewRows(TinyRows):
    def __len__(self) -> int:
        return ROWS


class Scalars:
    """The smallest batch there is; `doze` seconds go by before each, so that the consumer falls asleep."""

    def __init__(self, doze: float) -> None:
        self.doze = doze

    def __len__(self) -> int:
        return HANDED_OVER if self.doze == 0 else HANDED_OVER // 10

    def __getitem__(self, index: int) -> int:
        if self.doze:
            time.sleep(self.doze)
        return index


class Watch:
    """Milliseconds since the last look."""

    def __init__(self) -> None:
        self.last = time.perf_counter()

    def lap(self) -> float:
        last, self.last = self.last, time.perf_counter()
        return (self.last - last) * 1e3


def drain(batches: Iterable[Any]) -> None:
    for _ in batches:
        pass


def life(loader_class: type, dataset: Any, context: str, persistent: bool = True) -> dict[str, float]:
    """First batch, first batch of the next epoch, and the end, each from the call that begins it."""
    loader = loader_class(
        dataset,
        BATCH_SIZE,
        shuffle=True,
        num_workers=WORKERS,
        persistent_workers=persistent,
        multiprocessing_context=context,
    )
    figures = {}
    watch = Watch()
    batches = iter(loader)
    next(batches)
    figures["first batch"] = watch.lap()
    drain(batches)
    watch.lap()
    batches = iter(loader)
    next(batches)
    figures["next epoch" if persistent else "second loader"] = watch.lap()
    drain(batches)
    watch.lap()
    if persistent:
        batches._shutdown_workers()  # type: ignore[attr-defined]
    del batches, loader
    figures["tear-down"] = watch.lap()
    return figures


def forks(count: int) -> float:
    """Milliseconds for as many bare forks of this process."""
    watch = Watch()
    children = []
    for _ in range(count):
        if (pid := os.fork()) == 0:
            os._exit(0)
        children.append(pid)
    passed = watch.lap()
    for pid in children:
        os.waitpid(pid, 0)
    return passed


def by_fork(loader_class: type) -> dict[str, float]:
    return life(loader_class, FewRows(tensors=True), "fork")


def by_fork_of_a_large_process(loader_class: type) -> dict[str, float]:
    dataset, ballast = FewRows(tensors=True), torch.ones(1 << 28)
    bare = statistics.median(forks(WORKERS) for _ in range(3))
    figures = life(loader_class, dataset, "fork")
    del ballast
    return {"first batch": figures["first batch"], "first batch less two bare forks": figures["first batch"] - bare}


def by_spawn(loader_class: type) -> dict[str, float]:
    """This module imports torch, the dataset's does not."""
    return life(loader_class, TinyRows(tensors=False), "spawn")


def by_forkserver(loader_class: type) -> dict[str, float]:
    """The server has torch loaded, and has made workers before: what a second loader of a program waits for."""
    torch.multiprocessing.set_forkserver_preload(["torch"])
    dataset = FewRows(tensors=True)
    life(loader_class, dataset, "forkserver", persistent=False)
    return life(loader_class, dataset, "forkserver", persistent=False)


def hand_over(loader_class: type, doze: float) -> dict[str, float]:
    """CPU of all processes a batch, less what the dataset alone takes."""
    dataset = Scalars(doze)
    loader = loader_class(dataset, 1, num_workers=WORKERS, persistent_workers=True)
    drain(loader)
    me = os.getpid()
    gc.collect()
    begin = processes.tree_cpu_s(me)
    for _ in range(3):
        drain(loader)
    cpu_s = processes.tree_cpu_s(me) - begin
    alone = time.process_time()
    for index in range(len(dataset)):
        dataset[index]
    alone = time.process_time() - alone
    return {"CPU a batch": (cpu_s / 3 - alone) / len(dataset) * 1e6}


def awake(loader_class: type) -> dict[str, float]:
    return hand_over(loader_class, 0)


def asleep(loader_class: type) -> dict[str, float]:
    return hand_over(loader_class, DOZE_S)


SCENES: dict[str, tuple[Callable[[type], dict[str, float]], str]] = {
    "fork": (by_fork, "ms"),
    "fork, 1 GB in the parent": (by_fork_of_a_large_process, "ms"),
    "spawn": (by_spawn, "ms"),
    "forkserver, torch preloaded": (by_forkserver, "ms"),
    "small batches": (awake, "us"),
    "small batches, consumer asleep": (asleep, "us"),
}


def measure(name: str, loader: str) -> dict[str, float]:
    """In a process of its own."""
    command = [sys.executable, __file__, "--scene", name, "--loader", loader]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode != 0:
        raise SystemExit(f"start_up.py: {loader}, {name}:\n{done.stderr[-2000:]}")
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return result


def contest(names: list[str], rounds: int) -> list[dict[str, Any]]:
    rows = []
    for name in names:
        runs = [{loader: measure(name, loader) for loader in CLASSES} for _ in range(rounds)]
        for what in runs[0]["infeed"]:
            row: dict[str, Any] = {"scene": name, "what": what, "unit": SCENES[name][1]}
            for loader in CLASSES:
                row[loader] = statistics.median(run[loader][what] for run in runs)
                row[f"{loader} rounds"] = [run[loader][what] for run in runs]
            rows.append(row)
    return rows


def table(rows: list[dict[str, Any]]) -> str:
    lines = ["| workers | what | infeed | range | torch | range |", "|---|---|---|---|---|---|"]
    for row in rows:
        cells = [row["scene"], row["what"]]
        for loader in CLASSES:
            values = row[f"{loader} rounds"]
            cells += [f"{row[loader]:,.1f} {row['unit']}", f"{min(values):,.1f} to {max(values):,.1f}"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help=f"scenes, with semicolons between: {'; '.join(SCENES)}")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, help="writes the rows to this file")
    parser.add_argument("--scene", choices=SCENES, help=argparse.SUPPRESS)
    parser.add_argument("--loader", choices=CLASSES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.scene:
        module = __import__(CLASSES[options.loader], fromlist=["DataLoader"])
        print(json.dumps(SCENES[options.scene][0](module.DataLoader)), flush=True)
        return
    names = [name for name in SCENES if not options.only or name in options.only.split(";")]
    rows = contest(names, options.rounds)
    print(table(rows))
    if options.json:
        options.json.write_text(json.dumps({"rows": rows}, indent=2) + "\n")


if __name__ == "__main__":
    main()
