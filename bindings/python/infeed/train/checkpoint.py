"""Checkpoints: a folder with the model, the optimizer, the loader and whatever else a run needs to go on.

    <folder>/checkpoint.json, model.safetensors, optimizer.safetensors, loader.safetensors, ...

It appears whole or not at all: the files are written beside it, made durable, and exchanged with the old one in one step.
C++ programs read and write the same folders (infeed/train/saving/checkpoint.h).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from infeed.train import _train
from infeed.train.serialization import MapLocation, pack, unpack


def save_checkpoint(directory: str | os.PathLike[str], **parts: Any) -> None:
    """save_checkpoint("run/last", model=model.state_dict(), optimizer=..., loader=..., epoch=3)

    Replaces a checkpoint of that name. A crash leaves the old one or the new one, never a part.
    """
    if not parts:
        raise ValueError("save_checkpoint(): nothing to save; pass model=model.state_dict() and the like")
    _train._save_checkpoint(os.fsencode(directory), {name: pack(value) for name, value in parts.items()})


def load_checkpoint(
    directory: str | os.PathLike[str], map_location: MapLocation = None, *, weights_only: bool = True
) -> dict[str, Any]:
    """The parts by name."""
    parts = _train._load_checkpoint(os.fsencode(directory))
    return {name: unpack(part, map_location, weights_only) for name, part in parts.items()}


def latest_checkpoint(directory: str | os.PathLike[str]) -> Path | None:
    """The checkpoint in `directory` that was saved last and is whole; None if there is none."""
    found = _train._latest_checkpoint(os.fsencode(directory))
    return None if found is None else Path(os.fsdecode(found))
