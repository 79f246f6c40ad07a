"""infeed.Loader: the native engine from Python; datasets and transforms are C++'s."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import infeed
import numpy as np
from infeed import datasets, samplers, transforms

from peers import works


def images(work: str, data: Path) -> Any:
    if work == "W1a":
        steps = [transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(), transforms.Normalize()]
    else:
        steps = [transforms.Resize(256), transforms.CenterCrop(224), transforms.ToLayout("HWC")]
    return datasets.ImageFolder(str(data / "train"), steps)


def arrays(work: str, data: Path) -> Any:
    if work == "W2":
        pixels, labels = works.tiny_rows()
        return datasets.ArrayDataset({"image": pixels, "label": labels})
    windows = np.lib.stride_tricks.sliding_window_view(works.tokens(data), works.SEQUENCE + 1)
    return datasets.ArrayDataset({"token": windows}, widen={"token": "int64"})


def split(work: str, batch: dict[str, Any]) -> tuple:
    if work == "W3":
        return batch["token"][:, :-1], batch["token"][:, 1:]
    return tuple(batch.values())


def make(work: str, workers: int, batch_size: int, data: Path, variant: str = "fork") -> Iterator[tuple]:
    dataset = images(work, data) if work in ("W1a", "W1b") else arrays(work, data)
    num_samples = works.TOKEN_WINDOWS if work == "W3" else len(dataset)
    loader = infeed.Loader(
        dataset,
        batch_size=batch_size,
        sampler=samplers.RandomSampler(len(dataset), replacement=work == "W3", num_samples=num_samples),
        num_workers=workers,
        worker_kind=variant if workers else "inline",
        drop_last=True,
    )
    while True:
        for batch in loader:
            yield split(work, batch)
