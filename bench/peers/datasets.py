"""Map-style datasets: the user's code that a drop-in loader is given, without a word of any loader.

Packages that only some works need are imported where they are used.
"""

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from peers import works

Window = Callable[[int, int], tuple[int, int, int, int]]


def read_with_pillow(file: str, window: Window) -> np.ndarray:
    """Antialiased, as torchvision does it."""
    from PIL import Image

    with Image.open(file) as image:
        x, y, w, h = window(*image.size)
        small = image.convert("RGB").resize((224, 224), Image.Resampling.BILINEAR, box=(x, y, x + w, y + h))
    return np.array(small)


def read_with_simplejpeg(file: str, window: Window) -> np.ndarray:
    """Bilinear without antialiasing: faster."""
    import cv2
    import simplejpeg

    cv2.setNumThreads(0)
    pixels = simplejpeg.decode_jpeg(Path(file).read_bytes(), "RGB")
    x, y, w, h = window(pixels.shape[1], pixels.shape[0])
    return cv2.resize(pixels[y : y + h, x : x + w], (224, 224), interpolation=cv2.INTER_LINEAR)


class Jpegs:
    """W1a and W1b. Rows are torch tensors if `tensors`, else arrays."""

    def __init__(self, work: str, data: Path, decoder: str, tensors: bool) -> None:
        self.files, self.labels = works.image_files(data)
        self.train = work == "W1a"
        self.tensors = tensors
        self.read = read_with_pillow if decoder == "Pillow" else read_with_simplejpeg
        self.window = works.random_crop if self.train else works.eval_crop

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        pixels = self.read(self.files[index], self.window)
        if self.train:
            pixels = works.normalized_chw(pixels[:, ::-1] if random.random() < 0.5 else pixels)
        return as_row(pixels, self.tensors), self.labels[index]


class TinyRows:
    """W2."""

    def __init__(self, tensors: bool) -> None:
        pixels, labels = works.tiny_rows()
        self.pixels: Sequence = as_row(pixels, tensors)
        self.labels = labels.tolist()

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        return self.pixels[index], self.labels[index]


class TokenWindows:
    """W3."""

    def __init__(self, data: Path, tensors: bool) -> None:
        self.tokens = works.tokens(data)
        self.tensors = tensors
        self.offsets = np.random.default_rng(3).integers(0, len(self.tokens) - works.SEQUENCE, works.TOKEN_WINDOWS)

    def __len__(self) -> int:
        return len(self.offsets)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        begin = self.offsets[index]
        window = as_row(self.tokens[begin : begin + works.SEQUENCE + 1].astype(np.int64), self.tensors)
        return window[:-1], window[1:]


class BigRows:
    """W4: few rows in memory, handed out in turn."""

    def __init__(self, tensors: bool) -> None:
        self.rows = [as_row(row, tensors) for row in works.big_rows()]

    def __len__(self) -> int:
        return works.BIG_EPOCH

    def __getitem__(self, index: int) -> Any:
        return self.rows[index % len(self.rows)]


def as_row(array: np.ndarray, tensors: bool) -> Any:
    if not tensors:
        return array
    import torch

    return torch.from_numpy(array)


def make_dataset(work: str, data: Path, variant: str, tensors: bool = True) -> Any:
    """The dataset of a work; `variant` names the decoder of W1, the rows of W2."""
    if work in ("W1a", "W1b"):
        return Jpegs(work, data, variant, tensors)
    if work == "W2":
        return TinyRows(tensors and "numpy rows" not in variant)
    return TokenWindows(data, tensors) if work == "W3" else BigRows(tensors)
