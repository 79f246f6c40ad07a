"""Checkpoints: a directory with the model, the optimizer, the loader and whatever else a run needs to go on.

    <directory>/model.safetensors, optimizer.safetensors, loader.safetensors, ...

It appears whole or not at all: the files are written beside it, made durable, and the directory is renamed into place.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from infeed.train.serialization import MapLocation, load, save

_SUFFIX = ".safetensors"


def save_checkpoint(directory: str | os.PathLike[str], **parts: Any) -> None:
    """save_checkpoint("run/last", model=model.state_dict(), optimizer=..., loader=..., epoch=3)

    Replaces a checkpoint of that name. A crash leaves the old one or the new one, never a part.
    """
    if not parts:
        raise ValueError("save_checkpoint(): nothing to save; pass model=model.state_dict() and the like")
    target = Path(directory)
    target.parent.mkdir(parents=True, exist_ok=True)
    new = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    try:
        new.chmod(0o755)
        for name, value in parts.items():
            with open(new / (name + _SUFFIX), "wb") as file:
                save(value, file)
                file.flush()
                os.fsync(file.fileno())
        _sync(new)
        _replace(new, target)
        _sync(target.parent)
    finally:
        shutil.rmtree(new, ignore_errors=True)


def load_checkpoint(
    directory: str | os.PathLike[str], map_location: MapLocation = None, *, weights_only: bool = True
) -> dict[str, Any]:
    """The parts by name. After a crash between two renames it is the new checkpoint, which takes its place here."""
    target = Path(directory)
    _recover(target)
    if not target.is_dir():
        raise FileNotFoundError(f"there is no checkpoint {os.fspath(directory)!r}")
    return {
        path.name[: -len(_SUFFIX)]: load(path, map_location, weights_only=weights_only)
        for path in sorted(target.glob("*" + _SUFFIX))
    }


# A directory cannot replace another in one step: the new one waits, complete, under a name that _recover knows.
def _replace(new: Path, target: Path) -> None:
    if not target.exists():
        new.rename(target)
        return
    complete, old = _neighbours(target)
    shutil.rmtree(complete, ignore_errors=True)
    shutil.rmtree(old, ignore_errors=True)
    new.rename(complete)
    _sync(target.parent)
    target.rename(old)
    complete.rename(target)
    shutil.rmtree(old, ignore_errors=True)


def _recover(target: Path) -> None:
    complete, old = _neighbours(target)
    if complete.is_dir() and not target.exists():
        complete.rename(target)
    if old.is_dir() and target.is_dir():
        shutil.rmtree(old, ignore_errors=True)


def _neighbours(target: Path) -> tuple[Path, Path]:
    return target.with_name(target.name + ".complete"), target.with_name(target.name + ".old")


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
