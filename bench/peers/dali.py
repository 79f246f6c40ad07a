"""NVIDIA DALI without a GPU: threads, decoding of the crop only, bilinear without antialiasing."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from nvidia.dali import fn, pipeline_def, types

from peers import works


@pipeline_def
def train(files: list[str], labels: list[int]) -> tuple[Any, Any]:
    content, label = fn.readers.file(files=files, labels=labels, random_shuffle=True, initial_fill=512)
    pixels = fn.decoders.image_random_crop(content, random_area=(0.08, 1.0), random_aspect_ratio=(3 / 4, 4 / 3))
    pixels = fn.resize(pixels, size=(224, 224), interp_type=types.INTERP_LINEAR, antialias=False)
    pixels = fn.crop_mirror_normalize(
        pixels,
        mean=(255 * works.MEAN).tolist(),
        std=(255 * works.STD).tolist(),
        mirror=fn.random.coin_flip(),
        dtype=types.FLOAT,
        output_layout="CHW",
    )
    return pixels, label


@pipeline_def
def evaluate(files: list[str], labels: list[int]) -> tuple[Any, Any]:
    content, label = fn.readers.file(files=files, labels=labels, random_shuffle=True, initial_fill=512)
    size = fn.peek_image_shape(content, dtype=types.FLOAT)[:2]
    side = fn.reductions.min(size) * (224 / 256)
    pixels = fn.decoders.image_slice(
        content, (size - side) / 2, fn.stack(side, side), axes=(0, 1), normalized_anchor=False, normalized_shape=False
    )
    return fn.resize(pixels, size=(224, 224), interp_type=types.INTERP_LINEAR, antialias=False), label


@pipeline_def
def rows(source: Any) -> tuple[Any, Any]:
    pixels, label = fn.external_source(source, num_outputs=2, batch=True)
    return pixels, label


def make(work: str, workers: int, batch_size: int, data: Path, variant: str = "") -> Iterator[tuple]:
    options: dict[str, Any] = {"batch_size": batch_size, "num_threads": workers, "device_id": None, "seed": 1}
    options["prefetch_queue_depth"] = 2
    if work == "W2":
        pipeline = rows(random_rows(batch_size), **options)
    else:
        pipeline = (train if work == "W1a" else evaluate)(*works.image_files(data), **options)
    pipeline.build()
    while True:
        yield tuple(np.asarray(output.as_tensor()) for output in pipeline.run())


def random_rows(batch_size: int) -> Any:
    """numpy's gather, a batch at a time: faster than a Python call a row."""
    pixels, labels = works.tiny_rows()
    generator = np.random.default_rng(0)

    def next_batch() -> tuple[Any, Any]:
        picks = generator.integers(0, len(labels), batch_size)
        return pixels[picks], labels[picks]

    return next_batch
