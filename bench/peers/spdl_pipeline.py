"""SPDL: Python threads around FFmpeg (W1), batches from a subprocess through its pool of shared segments (W4)."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import spdl.io
from spdl.pipeline import (
    PipelineBuilder,
    SharedMemorySegmentPool,
    run_pipeline_in_subprocess,
)

from peers import works


def make(work: str, workers: int, batch_size: int, data: Path, variant: str = "") -> Iterator[tuple]:
    return big_rows(batch_size) if work == "W4" else images(work, workers, batch_size, data)


def images(work: str, workers: int, batch_size: int, data: Path) -> Iterator[tuple]:
    files, labels = works.image_files(data)

    def read(index: int) -> tuple:
        packets = spdl.io.demux_image(files[index])
        return spdl.io.decode_packets(packets, filter_desc=steps(work, packets.codec)), labels[index]

    def stack(samples: list[tuple]) -> tuple:
        pixels = spdl.io.to_numpy(spdl.io.convert_frames([frame for frame, _ in samples]))
        label = np.array([label for _, label in samples])
        return (works.normalized_chw(pixels) if work == "W1a" else pixels), label

    builder: Any = PipelineBuilder().add_source(works.shuffled_forever(len(files)))
    builder = builder.pipe(read, concurrency=workers, output_order="completion").aggregate(batch_size)
    pipeline = builder.pipe(stack).add_sink(2).build(num_threads=workers)
    with pipeline.auto_stop():
        yield from pipeline.get_iterator()


def steps(work: str, codec: Any) -> str:
    """FFmpeg's filters for one picture."""
    if work == "W1a":
        x, y, w, h = works.random_crop(codec.width, codec.height)
        flip = ",hflip" if random.random() < 0.5 else ""
    else:
        x, y, w, h = works.eval_crop(codec.width, codec.height)
        flip = ""
    return f"crop={w}:{h}:{x}:{y}:exact=1,scale=224:224:flags=bilinear{flip},format=pix_fmts=rgb24"


class StackedRows:
    """An epoch of batches, made in the subprocess."""

    def __init__(self, batch_size: int) -> None:
        self.batch_size = batch_size

    def __iter__(self) -> Iterator[dict[str, np.ndarray]]:
        rows = works.big_rows()
        order = random.sample(range(works.BIG_EPOCH), works.BIG_EPOCH)
        for begin in range(0, works.BIG_EPOCH, self.batch_size):
            yield {"x": np.stack([rows[index % works.BIG_ROWS] for index in order[begin : begin + self.batch_size]])}


def big_rows(batch_size: int) -> Iterator[tuple]:
    builder: Any = PipelineBuilder()
    config = builder.add_source(StackedRows(batch_size)).add_sink(2).get_config()
    arena = SharedMemorySegmentPool(segment_size=40 << 20, count=12)
    epochs = run_pipeline_in_subprocess(config, num_threads=1, arena=arena, buffer_size=2)
    while True:
        for batch in epochs:
            yield (batch["x"],)
