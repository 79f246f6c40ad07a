"""Data sets and measures of the tests of the native loader."""

from __future__ import annotations

import os
import sys
import threading
import zlib
from pathlib import Path
from typing import Any

import infeed

KINDS = [("inline", 0), ("thread", 1), ("thread", 3), ("fork", 1), ("fork", 3), ("spawn", 2)]

# The engine's own batches of `golden()`, made by a C++ program: two epochs, batch_size 64, shuffle, seed 3.
GOLDEN_CHECKSUM = 2633019739114666670
GOLDEN_STATE = {  # after one batch of the third
    "version": 1,
    "epoch": 2,
    "seed": 3,
    "batch_size": 64,
    "dataset_size": 1000,
    "in_epoch": True,
    "batches": 1,
    "position": {
        "kind": "sampler",
        "sampler": {
            "type": "RandomSampler",
            "epoch": 2,
            "seed": 3,
            "size": 1000,
            "num_samples": 1000,
            "position": 0,
            "replacement": False,
        },
        "origin": 0,
        "cursor": 64,
        "delivered_early": [],
    },
}


def golden() -> infeed.datasets.Synthetic:
    fields = {"image": ("float32", (3, 8, 8)), "label": "int64"}
    return infeed.datasets.Synthetic(1000, fields, seed=5, augment=True)


def numbers(size: int = 100) -> infeed.datasets.Synthetic:
    """A field alone, which holds the sample's index."""
    return infeed.datasets.Synthetic(size, {"index": "int64"})


def checksum(loader: infeed.Loader, epochs: int = 1) -> int:
    """FNV-1a over the CRC-32 of each array."""
    total = 1469598103934665603
    for _ in range(epochs):
        for batch in loader:
            for array in batch.values():
                total = (total ^ zlib.crc32(array)) * 1099511628211 % 2**64
    return total


def indices(batches: Any) -> list[list[int]]:
    return [batch.indices for batch in batches]


def resources() -> tuple[int, int, int]:
    """Descriptors, threads and children of this process."""
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return len(os.listdir("/proc/self/fd")), threading.active_count(), len(children)


def plugin_path() -> Path:
    """The plugin that the C++ tests build."""
    build = Path(infeed._native.__file__).resolve().parents[2]
    return build / "tests" / "dataset" / "libsquares_plugin.so"


def python(*arguments: str) -> list[str]:
    return [sys.executable, *arguments]
