"""torch.utils.data.DataLoader; `make_with` runs any class with its arguments on the same datasets."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import DataLoader, default_collate

from peers.datasets import make_dataset


def collate(samples: list) -> Any:
    """A user's own collate_fn."""
    return default_collate(samples)


def make(work: str, workers: int, batch_size: int, data: Path, variant: str = "") -> Iterator[tuple]:
    return make_with(DataLoader, work, workers, batch_size, data, variant)


def make_with(
    loader_class: type, work: str, workers: int, batch_size: int, data: Path, variant: str = ""
) -> Iterator[tuple]:
    options: dict[str, Any] = {"persistent_workers": True, "multiprocessing_context": "fork"} if workers else {}
    if "custom collate" in variant:
        options["collate_fn"] = collate
    dataset = make_dataset(work, data, variant)
    loader = loader_class(dataset, batch_size, shuffle=True, num_workers=workers, drop_last=True, **options)
    while True:
        for batch in loader:
            yield (batch,) if isinstance(batch, torch.Tensor) else tuple(batch)
