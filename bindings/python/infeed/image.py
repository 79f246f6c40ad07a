"""JPEG and PNG from bytes, files and arrays of bytes.

pixels = infeed.image.decode("cat.jpg")  # uint8 [H, W, 3], RGB
batch = infeed.image.decode_batch(paths, resize=256, crop=224, threads=4)  # uint8 [N, 224, 224, 3]
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

from infeed import _native
from infeed.datasets import MAX_PIXELS
from infeed.errors import DataError
from infeed.transforms import CenterCrop, Resize, Size, ToLayout, Transform, compose

__all__ = ["decode", "decode_batch"]

_PLAIN = compose([ToLayout("HWC")])


def decode(
    data: Any,
    apply_exif_orientation: bool = False,
    *,
    allow_truncated: bool = False,
    max_pixels: int = MAX_PIXELS,
    output: str = "numpy",
) -> Any:
    """The picture as uint8 [H, W, 3], RGB; gray is spread, alpha dropped.

    data: a file's bytes (bytes, or a uint8 array or buffer), or its path (str or os.PathLike).
    allow_truncated: what can be decoded of a damaged file (the rest is gray), instead of an error.
    max_pixels: larger pictures are refused before memory is taken.
    output: "numpy", "torch" or "dlpack", as Loader's.

    Raises DecodeError (a ValueError), which names the file; OSError for a path that cannot be read.
    """
    options = {"orient": apply_exif_orientation, "allow_truncated": allow_truncated, "max_pixels": max_pixels}
    return _decode([data], _PLAIN, threads=1, seed=0, exact=True, output=output, **options)[0]


def decode_batch(
    data: Iterable[Any],
    *,
    resize: Size | None = None,
    crop: Size | None = None,
    transform: Transform | Iterable[Transform] | None = None,
    threads: int = 0,
    apply_exif_orientation: bool = False,
    exact: bool = True,
    allow_truncated: bool = False,
    max_pixels: int = MAX_PIXELS,
    seed: int = 0,
    output: str = "numpy",
) -> Any:
    """Many pictures side by side: one array [N, H, W, 3] where the size is fixed (by `crop`, or resize=(h, w)), else a
    list of arrays.

    resize: int: the shorter side; (height, width): exactly. Antialiased, as Pillow's bilinear.
    crop: the middle int or (height, width), after the resize.
    transform: one of infeed.transforms (or a list) instead of both; its dtype and layout hold. Picture i draws what a
        loader of `seed` draws for sample i of epoch 0.
    threads: pictures decoded at a time; 0: as many as there are CPUs for this process.
    """
    if transform is not None and (resize is not None or crop is not None):
        raise TypeError("give either transform, or resize and crop")
    chain: list[Transform] = []
    if resize is not None:
        chain.append(Resize(resize))
    if crop is not None:
        chain.append(CenterCrop(crop))
    options = {"orient": apply_exif_orientation, "allow_truncated": allow_truncated, "max_pixels": max_pixels}
    transforms = compose([*chain, ToLayout("HWC")] if transform is None else transform)
    return _decode(data, transforms, threads=threads, seed=seed, exact=exact, output=output, **options)


def _decode(data: Iterable[Any], transforms: Any, **options: Any) -> Any:
    sources: Sequence[Any] = [os.fsdecode(item) if isinstance(item, os.PathLike) else item for item in data]
    stacked = all(size >= 0 for size in transforms.output_shape)
    try:
        return _native.decode_images(sources, transforms._native, stacked=stacked, **options)
    except DataError:
        for path in sources:
            if isinstance(path, str):
                os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC))  # the system's own error, if any
        raise
