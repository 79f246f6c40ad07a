"""Grain: a MapDataset over worker processes; W2 over threads, which is faster for rows so small."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grain
from absl import flags

from peers.datasets import make_dataset


def make(work: str, workers: int, batch_size: int, data: Path, variant: str = "") -> Iterator[tuple]:
    flags.FLAGS(["grain"])
    processes = 0 if work == "W2" else workers
    source: Any = make_dataset(work, data, "simplejpeg + cv2", tensors=False)
    dataset = grain.MapDataset.source(source).shuffle(seed=1).repeat().batch(batch_size, drop_remainder=True)
    threads = 1 if processes else workers
    batches = dataset.to_iter_dataset(grain.ReadOptions(num_threads=threads, prefetch_buffer_size=4))
    if processes:
        options = grain.MultiprocessingOptions(num_workers=processes, per_worker_buffer_size=2)
        batches = batches.mp_prefetch(options)
    for batch in batches:
        yield batch if isinstance(batch, tuple) else (batch,)
