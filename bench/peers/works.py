"""The works: what every loader is given, and what its batches must look like.

| work | sample | batch | what the loader does |
|---|---|---|---|
| W1a | JPEG file, 500 x 375, 96 kB, in the page cache | 64 | decode, random resized crop 224, flip, float32 CHW |
| W1b | the same | 64 | decode, shorter side 256, center crop 224, uint8 HWC |
| W2 | uint8 [3, 32, 32] and an int64 label, 50,000 in memory | 256 | random rows, stacked |
| W3 | 1,025 uint16 tokens at a random offset of a mapped file | 32 | widened to int64, split in inputs and targets |
| W4 | float32 [1, 1024, 1024], 32 in memory, an epoch of 256 | 8 | stacked |
"""

import math
import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

BATCH_SIZE = {"W1a": 64, "W1b": 64, "W2": 256, "W3": 32, "W4": 8}
SEQUENCE = 1024
TINY_ROWS, TOKEN_WINDOWS, BIG_ROWS, BIG_EPOCH = 50_000, 40_000, 32, 256
MEAN = np.array((0.485, 0.456, 0.406), np.float32)
STD = np.array((0.229, 0.224, 0.225), np.float32)
SCALE = 1 / (255 * STD)
OFFSET = -MEAN / STD

_BATCH: dict[
    str, list[tuple[str, set[tuple[int, ...]]]]
] = {  # dtype and shape of a row, an array each; a loader may leave the channels last in W1a
    "W1a": [("float32", {(3, 224, 224), (224, 224, 3)})],
    "W1b": [("uint8", {(224, 224, 3)})],
    "W2": [("uint8", {(3, 32, 32)})],
    "W3": [("int64", {(SEQUENCE,)}), ("int64", {(SEQUENCE,)})],
    "W4": [("float32", {(1, 1024, 1024)})],
}


def check_batch(work: str, batch_size: int, arrays: tuple) -> None:
    """Raises ValueError where a batch is not what the work asks for."""
    for array, (dtype, shapes) in zip(arrays, _BATCH[work], strict=False):
        got = str(array.dtype).removeprefix("torch.")
        shape = tuple(array.shape)
        if got != dtype or shape[0] != batch_size or shape[1:] not in shapes:
            raise ValueError(f"{work} came as {got} {list(shape)}, expected {dtype} {batch_size} x one of {shapes}")
    if len(arrays) < len(_BATCH[work]):
        raise ValueError(f"{work} came with {len(arrays)} arrays, expected {len(_BATCH[work])}")


def image_files(data: Path) -> tuple[list[str], list[int]]:
    """Paths and labels of data/train/CLASS/*.jpg; a label is the class's place by name."""
    files: list[str] = []
    labels: list[int] = []
    for label, folder in enumerate(sorted(path for path in (data / "train").iterdir() if path.is_dir())):
        names = sorted(str(path) for path in folder.glob("*.jpg"))
        files += names
        labels += [label] * len(names)
    return files, labels


def tiny_rows() -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """W2: pixels [50000, 3, 32, 32] and labels."""
    generator = np.random.default_rng(2)
    pixels = generator.integers(0, 256, (TINY_ROWS, 3, 32, 32), np.uint8)
    return pixels, np.arange(TINY_ROWS, dtype=np.int64)


def tokens(data: Path) -> npt.NDArray[np.uint16]:
    """W3: the mapped file of tokens."""
    return np.memmap(data / "tokens.u16", dtype=np.uint16, mode="r")


def big_rows() -> list[npt.NDArray[np.float32]]:
    """W4: 32 rows of 4 MB."""
    return [np.full((1, 1024, 1024), row, np.float32) for row in range(BIG_ROWS)]


def shuffled_forever(size: int) -> Iterator[int]:
    """Epoch after epoch of [0, size), each in an order of its own."""
    order = list(range(size))
    while True:
        random.shuffle(order)
        yield from order


def random_crop(width: int, height: int) -> tuple[int, int, int, int]:
    """x, y, width and height of a random resized crop: 8 to 100 % of the area, sides 3:4 to 4:3."""
    for _ in range(10):
        area = width * height * random.uniform(0.08, 1.0)
        aspect = math.exp(random.uniform(math.log(3 / 4), math.log(4 / 3)))
        w, h = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
        if 0 < w <= width and 0 < h <= height:
            return random.randint(0, width - w), random.randint(0, height - h), w, h
    return center_crop(width, height, min(width, height))


def center_crop(width: int, height: int, side: int) -> tuple[int, int, int, int]:
    """x, y, width and height of the middle square."""
    return (width - side) // 2, (height - side) // 2, side, side


def eval_crop(width: int, height: int) -> tuple[int, int, int, int]:
    """The part of a picture that shorter side 256, center crop 224 shows."""
    return center_crop(width, height, round(min(width, height) * 224 / 256))


def normalized_chw(pixels: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
    """[..., H, W, 3] of bytes to normalised [..., 3, H, W], a channel at a time: numpy's fastest way."""
    out = np.empty((*pixels.shape[:-3], 3, *pixels.shape[-3:-1]), np.float32)
    for channel in range(3):
        plane = out[..., channel, :, :]
        np.multiply(pixels[..., channel], SCALE[channel], out=plane, dtype=np.float32, casting="unsafe")
        plane += OFFSET[channel]
    return out
