"""Trains on a folder of JPEGs: decoding, crops, flips and normalising run in C++."""

import tempfile
from pathlib import Path

import infeed
import numpy as np
import torch
from infeed.transforms import Normalize, RandomHorizontalFlip, RandomResizedCrop
from PIL import Image


def make_folder(root: Path) -> None:
    """Two classes: reddish and bluish noise."""
    generator = np.random.default_rng(0)
    for label, channel in (("blue", 2), ("red", 0)):
        (root / label).mkdir()
        for number in range(64):
            pixels = generator.integers(0, 128, (80, 96, 3), np.uint8)
            pixels[:, :, channel] += 100
            Image.fromarray(pixels).save(root / label / f"{number}.jpg")


def train(root: Path) -> float:
    transform = [RandomResizedCrop(64, scale=(0.5, 1.0)), RandomHorizontalFlip(), Normalize()]
    dataset = infeed.datasets.ImageFolder(root, transform)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 5, 4), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.LazyLinear(2)
    )
    model(torch.zeros(1, 3, 64, 64))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    right = 0
    with infeed.Loader(dataset, 16, shuffle=True, num_workers=2, output="torch") as loader:
        for epoch in range(3):
            right = 0
            for batch in loader:
                logits = model(batch["image"])
                optimizer.zero_grad()
                torch.nn.functional.cross_entropy(logits, batch["label"]).backward()
                optimizer.step()
                right += int((logits.argmax(1) == batch["label"]).sum())
            print(f"epoch {epoch}: {right} of {len(dataset)} right")
        print(loader.stats())
    return right / len(dataset)


if __name__ == "__main__":
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        make_folder(Path(folder))
        assert train(Path(folder)) > 0.9
