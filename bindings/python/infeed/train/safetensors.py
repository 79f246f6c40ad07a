"""The file format of the package safetensors, without that package: dicts of tensors."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, BinaryIO

from infeed.train import _train
from infeed.train._train import SafetensorError, Tensor

__all__ = ["METADATA", "SafetensorError", "load_bytes", "load_file", "load_path", "save_file", "save_path", "write"]

METADATA = "__metadata__"
Contents = tuple[dict[str, Tensor], dict[str, str]]
Path = str | os.PathLike[str]


def write(file: BinaryIO, tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None) -> None:
    """To an open file, piece by piece."""
    _train._write_tensors(file.write, dict(tensors), dict(metadata or {}))


def save_path(path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None) -> None:
    """Replaces the file in one step: whoever reads, or a crash, meets the old one or the new one."""
    _train._save_tensors(os.fsencode(path), dict(tensors), dict(metadata or {}))


def load_bytes(data: bytearray | memoryview) -> Contents:
    """Tensors that view `data`, and the metadata."""
    return _train._read_tensors(data)


def load_path(path: Path, mmap: bool = True) -> Contents:
    """Tensors that view the mapped file: pages are read when they are touched, writes stay private."""
    return _train._load_tensors(os.fsencode(path), mmap)


def save_file(tensors: Mapping[str, Tensor], path: Path, metadata: Mapping[str, str] | None = None) -> None:
    """As the package's function of this name."""
    save_path(path, tensors, metadata)


def load_file(path: Path, device: Any = "cpu") -> dict[str, Tensor]:
    """As the package's function of this name."""
    return {name: tensor.to(device) for name, tensor in load_path(path)[0].items()}
