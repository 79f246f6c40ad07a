"""The file format: 8 bytes length, a JSON header, then the tensors' bytes. As the package safetensors reads and writes it.

    | length, u64 | {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...} | bytes |

A file that lies (lengths, offsets, gaps, overlaps, dtypes, sizes) is refused before any of its bytes are used.
"""

from __future__ import annotations

import json
import mmap
import os
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO, NamedTuple

from infeed.train import _train
from infeed.train._train import Tensor, dtype

MAX_HEADER = 100_000_000  # bytes, as the package safetensors
METADATA = "__metadata__"

_NAMES: dict[dtype, str] = {
    _train.float64: "F64",
    _train.float32: "F32",
    _train.float16: "F16",
    _train.bfloat16: "BF16",
    _train.int64: "I64",
    _train.int32: "I32",
    _train.int16: "I16",
    _train.int8: "I8",
    _train.uint64: "U64",
    _train.uint32: "U32",
    _train.uint16: "U16",
    _train.uint8: "U8",
    _train.bool_: "BOOL",
}
_DTYPES = {name: kind for kind, name in _NAMES.items()}


class SafetensorError(ValueError):
    """A file that is no safetensors file, or lies about what it holds."""


class Entry(NamedTuple):
    """One tensor of the header; the offset counts from the end of the header."""

    kind: dtype
    shape: tuple[int, ...]
    offset: int
    nbytes: int


def _bytes_of(tensor: Tensor) -> memoryview:
    if tensor.numel() == 0:
        return memoryview(b"")
    return memoryview(_train._as_bytes(tensor.detach().cpu().contiguous()))


def write(file: BinaryIO, tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None) -> None:
    """Wide dtypes come first, so that every tensor is aligned; the header names them in the given order."""
    header: dict[str, Any] = {METADATA: dict(metadata)} if metadata else {}
    offsets, end = {}, 0
    for name in sorted(tensors, key=lambda name: -tensors[name].element_size()):
        offsets[name] = end
        end += tensors[name].nbytes
    for name, tensor in tensors.items():
        header[name] = {
            "dtype": _NAMES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [offsets[name], offsets[name] + tensor.nbytes],
        }
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    file.write(len(text).to_bytes(8, "little"))
    file.write(text)
    for name in offsets:
        file.write(_bytes_of(tensors[name]))


def _refuse_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise SafetensorError("safetensors: a name stands in the header twice")
    return made


def _parse(name: str, entry: Any) -> Entry:
    def integers(values: Any) -> bool:
        return isinstance(values, list) and all(type(v) is int and 0 <= v < 2**63 for v in values)

    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise SafetensorError(f"safetensors: {name!r} lacks dtype, shape or data_offsets")
    kind, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(kind, str) or kind not in _DTYPES:
        raise SafetensorError(f"safetensors: {name!r} has the dtype {kind!r}, which is not known here")
    if not integers(shape) or not integers(offsets) or len(offsets) != 2 or offsets[0] > offsets[1]:
        raise SafetensorError(f"safetensors: {name!r} has the shape {shape} and the offsets {offsets}")
    nbytes = _DTYPES[kind].itemsize
    for size in shape:
        nbytes *= size
    if nbytes != offsets[1] - offsets[0]:
        raise SafetensorError(f"safetensors: {name!r} of shape {shape} needs {nbytes} bytes and has {offsets}")
    return Entry(_DTYPES[kind], tuple(shape), offsets[0], nbytes)


def read_header(data: memoryview) -> tuple[dict[str, Entry], dict[str, str], int]:
    """Tensors, metadata and where the bytes begin. Throws SafetensorError."""
    size = int.from_bytes(data[:8], "little")
    if len(data) < 8 or size > MAX_HEADER or 8 + size > len(data):
        raise SafetensorError(f"safetensors: a header of {size} bytes does not fit into a file of {len(data)} bytes")
    try:
        header = json.loads(bytes(data[8 : 8 + size]).decode(), object_pairs_hook=_refuse_duplicates)
    except SafetensorError:
        raise
    except (ValueError, RecursionError) as error:
        raise SafetensorError(f"safetensors: the header is no JSON: {error}") from None
    if not isinstance(header, dict):
        raise SafetensorError("safetensors: the header is no JSON object")
    metadata = header.pop(METADATA, {})
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise SafetensorError("safetensors: __metadata__ holds something else than strings")
    entries = {name: _parse(name, entry) for name, entry in header.items()}
    end = 0
    for name, entry in sorted(entries.items(), key=lambda item: (item[1].offset, item[1].nbytes)):
        if entry.offset != end:
            raise SafetensorError(f"safetensors: {name!r} begins at {entry.offset}, after a gap or in another tensor")
        end += entry.nbytes
    if 8 + size + end != len(data):
        raise SafetensorError(f"safetensors: the tensors end at byte {8 + size + end} of {len(data)}")
    return entries, metadata, 8 + size


def _tensors(data: memoryview, entries: Mapping[str, Entry], begin: int) -> Iterator[tuple[str, Tensor]]:
    for name, entry in entries.items():
        if entry.nbytes == 0:
            yield name, _train.empty(*entry.shape, dtype=entry.kind, device="cpu")
            continue
        at = begin + entry.offset
        if at % entry.kind.itemsize == 0:
            flat = _train.frombuffer(data[at : at + entry.nbytes], dtype=entry.kind)
        else:  # not aligned: a file of another writer
            flat = _train.frombuffer(bytearray(data[at : at + entry.nbytes]), dtype=entry.kind)
        yield name, flat.reshape(entry.shape)


def load_bytes(data: Any) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Tensors that view `data`, and the metadata."""
    view = memoryview(data)
    entries, metadata, begin = read_header(view)
    return dict(_tensors(view, entries, begin)), metadata


def load_path(path: str | os.PathLike[str]) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Tensors that view the mapped file: pages are read when they are touched, writes stay private."""
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size < 8:
            raise SafetensorError(f"safetensors: {os.fspath(path)!r} has {size} bytes, which is no header")
        return load_bytes(mmap.mmap(file.fileno(), size, access=mmap.ACCESS_COPY))


def save_file(tensors: Mapping[str, Tensor], path: str | os.PathLike[str], metadata: Any = None) -> None:
    """A plain dict of tensors, for any reader of the format."""
    with open(path, "wb") as file:
        write(file, tensors, metadata)


def load_file(path: str | os.PathLike[str], device: Any = "cpu") -> dict[str, Tensor]:
    return {name: tensor.to(device) for name, tensor in load_path(path)[0].items()}
