"""mlx-data: streams over C++ threads; pictures are decoded whole."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mlx.data

from peers import works


def make(work: str, workers: int, batch_size: int, data: Path, variant: str = "") -> Iterator[tuple]:
    buffer, steps = tiny_rows() if work == "W2" else images(work, data)
    stream = steps(buffer.shuffle().to_stream()).batch(batch_size)
    if work == "W1a":
        stream = stream.key_transform("image", works.normalized_chw)
    stream = stream.prefetch(workers + 1, workers)
    while True:
        for batch in stream:
            if len(batch["label"]) == batch_size:
                yield batch["image"], batch["label"]
        stream.reset()


def images(work: str, data: Path) -> tuple[Any, Any]:
    files = [{"file": file.encode(), "label": label} for file, label in zip(*works.image_files(data), strict=True)]

    def train(stream: Any) -> Any:
        stream = stream.load_image("file", output_key="image")
        stream = stream.image_random_area_crop("image", (0.08, 1.0), (3 / 4, 4 / 3))
        return stream.image_resize("image", 224, 224).image_random_h_flip("image", 0.5)

    def evaluate(stream: Any) -> Any:
        stream = stream.load_image("file", output_key="image").image_resize_smallest_side("image", 256)
        return stream.image_center_crop("image", 224, 224)

    return mlx.data.buffer_from_vector(files), train if work == "W1a" else evaluate


def tiny_rows() -> tuple[Any, Any]:
    pixels, labels = works.tiny_rows()
    rows = [{"image": row, "label": label} for row, label in zip(pixels, labels, strict=True)]
    return mlx.data.buffer_from_vector(rows), lambda stream: stream
