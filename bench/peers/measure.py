"""One measurement of one loader in a process of its own, a line of JSON. compare.py runs it; it runs by hand too:

    PYTHONPATH=bench build/peers-venv/bin/python -m peers.measure --loader tf.data --work W1a

The rate counts from the first batch on, so start-up is out of it and epoch changes are in it. The consumer reads one
element of each 4 KiB of each array: a batch in lazily mapped memory pays for its page faults. CPU and memory are of the
whole tree of processes; memory is looked at after the last batch, while the loader's queues are full.
"""

import argparse
import importlib
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from peers import LOADERS, WORKS, processes, works

PAGE = 4096


def touch(array: Any) -> float:
    """Reads an element a page; arrays that are not contiguous (views of a column) as they lie."""
    if hasattr(array, "numpy"):
        array = array.numpy()
    flat = array.reshape(-1) if array.flags.c_contiguous else array[..., :1].reshape(-1)
    return float(flat[:: max(1, PAGE // array.itemsize)].sum())


def run(work: str, batches: Iterator[tuple], seconds: float) -> dict[str, float]:
    """Takes batches for `seconds` after the first one."""
    me = os.getpid()
    begin = time.perf_counter()
    batch = next(batches)
    batch_size = works.BATCH_SIZE[work]
    works.check_batch(work, batch_size, batch)
    checksum = sum(map(touch, batch))
    first_ms = (time.perf_counter() - begin) * 1e3
    cpu_s, busy_s = processes.tree_cpu_s(me), processes.machine_busy_s()
    start = end = time.perf_counter()
    samples = 0
    while end - start < seconds:
        batch = next(batches)
        checksum += sum(map(touch, batch))
        samples += batch_size
        end = time.perf_counter()
    cpu_s, busy_s = processes.tree_cpu_s(me) - cpu_s, processes.machine_busy_s() - busy_s
    return {
        "rate": samples / (end - start),
        "cpu_us": cpu_s / samples * 1e6,
        "pss_mb": processes.tree_pss_mb(me),
        "first_ms": first_ms,
        "foreign": min(1.0, max(0.0, busy_s - cpu_s) / ((end - start) * (os.cpu_count() or 1))),
        "samples": samples,
        "checksum": checksum,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="One measurement of one loader, a line of JSON.")
    parser.add_argument("--loader", required=True, choices=[name for name in LOADERS if not LOADERS[name].is_program])
    parser.add_argument("--work", default="W1a", choices=WORKS)
    parser.add_argument("--variant", help="default: the loader's first")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--data", type=Path, default=Path("build/bench-data"))
    options = parser.parse_args()
    loader = LOADERS[options.loader]
    module = importlib.import_module(f"peers.{loader.module}")
    variant = loader.works[options.work][0] if options.variant is None else options.variant
    batch_size = works.BATCH_SIZE[options.work]
    batches = iter(module.make(options.work, options.workers, batch_size, options.data, variant))
    print(json.dumps(run(options.work, batches, options.seconds)), flush=True)
    os._exit(0)  # intentional: some loaders take seconds to stop; compare.py ends what is left of the group


if __name__ == "__main__":
    main()
