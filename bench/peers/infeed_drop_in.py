"""infeed.torch.DataLoader, given what torch's is given."""

from collections.abc import Iterator
from pathlib import Path

from infeed.torch import DataLoader

from peers.torch_loader import make_with


def make(work: str, workers: int, batch_size: int, data: Path, variant: str = "") -> Iterator[tuple]:
    return make_with(DataLoader, work, workers, batch_size, data, variant)
