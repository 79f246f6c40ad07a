"""FFCV: numba-compiled pipelines over a file of its own, made once from the same images (decoded and written again)."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from ffcv.fields import IntField, RGBImageField
from ffcv.fields.basics import IntDecoder
from ffcv.fields.rgb_image import (
    CenterCropRGBImageDecoder,
    RandomResizedCropRGBImageDecoder,
)
from ffcv.loader import Loader, OrderOption
from ffcv.transforms import NormalizeImage, RandomHorizontalFlip, ToTensor, ToTorchImage
from ffcv.writer import DatasetWriter
from PIL import Image

from peers import works


class Pictures:
    def __init__(self, data: Path) -> None:
        self.files, self.labels = works.image_files(data)

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> tuple[Image.Image, int]:
        return Image.open(self.files[index]).convert("RGB"), self.labels[index]


def make(work: str, workers: int, batch_size: int, data: Path, variant: str = "") -> Iterator[tuple]:
    path = data / "train.beton"
    if not path.exists():
        write(path, data)
    loader = Loader(
        str(path),
        batch_size=batch_size,
        num_workers=workers,
        order=OrderOption.RANDOM,
        drop_last=True,
        os_cache=True,
        pipelines={"image": steps(work), "label": [IntDecoder(), ToTensor()]},
    )
    while True:
        yield from loader


def write(path: Path, data: Path) -> None:
    """Takes a minute; half a file would be taken for a whole one."""
    fields = {"image": RGBImageField(write_mode="jpg", jpeg_quality=90), "label": IntField()}
    unfinished = path.with_suffix(".part")
    DatasetWriter(str(unfinished), fields, num_workers=2).from_indexed_dataset(Pictures(data))
    unfinished.rename(path)


def steps(work: str) -> list[Any]:
    if work == "W1b":
        return [CenterCropRGBImageDecoder((224, 224), 224 / 256), ToTensor()]
    normalize = NormalizeImage(255 * works.MEAN, 255 * works.STD, np.float32)
    return [RandomResizedCropRGBImageDecoder((224, 224)), RandomHorizontalFlip(), normalize, ToTensor(), ToTorchImage()]
