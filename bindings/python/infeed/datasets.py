"""Datasets that C++ reads: no Python runs in the workers. Each is also a sequence of samples (dicts of arrays), for
looking at one, or for torch's loaders.

    dataset = ImageFolder("train", transform=[RandomResizedCrop(224), Normalize()])
    dataset[0]["image"]
"""

from __future__ import annotations

import json
import operator
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from infeed import _native
from infeed.errors import ConfigError
from infeed.transforms import Compose, Transform, compose, dtype_name

__all__ = [
    "ArrayDataset",
    "CacheStats",
    "Dataset",
    "DatasetStream",
    "Field",
    "ImageFolder",
    "Plugin",
    "PluginDataset",
    "Stream",
]
__all__ += ["Synthetic", "SyntheticStream", "load_plugin"]

MAX_PIXELS = 178_956_970


class Field(NamedTuple):
    """One array of a sample. A size of -1 differs from sample to sample."""

    name: str
    dtype: str
    shape: tuple[int, ...]


class CacheStats(NamedTuple):
    """What a dataset keeps in memory, and how many samples came from there."""

    pictures: int
    bytes: int
    hits: int


class Dataset:
    """Samples by index. Base of the datasets of this module."""

    output: str = "numpy"  # what __getitem__ gives: "numpy", "torch" or "dlpack"
    _native: Any

    def __len__(self) -> int:
        return len(self._native)

    def __getitem__(self, index: int) -> dict[str, Any]:
        """Sample `index`, as a loader of seed 0 reads it in epoch 0."""
        size = len(self)
        return self.read(index + size if -size <= index < 0 else index)

    def read(self, index: int, *, seed: int = 0, epoch: int = 0, output: str | None = None) -> dict[str, Any]:
        """Sample `index`, as a loader of `seed` reads it in `epoch`."""
        return self._native.read(index, seed, epoch, output or self.output)

    def describe(self, index: int) -> str:
        """What errors call the sample: a file's path, say."""
        return self._native.describe(index)

    @property
    def fields(self) -> list[Field]:
        return [Field(*entry) for entry in self._native.fields()]


class ImageFolder(Dataset):
    """root/CLASS/any/depth/FILE.jpg, as torchvision's ImageFolder, in its order. JPEG and PNG.

    Fields: `image` (dtype and shape of the transforms' result; uint8 [3, H, W] without), `label`.

    exact: pixels equal a full decode's; False is up to 15 % faster for large pictures.
    orient: turn pictures as their EXIF orientation says.
    allow_truncated: what can be decoded of a damaged file, instead of an error.
    decode: "planes" resizes an ordinary JPEG's Y, Cb and Cr and makes colours of the results: a little faster, on average 0.3
        levels (of 255) from the exact pixels; other files stay exact.
    cache: "planes" keeps such decoded pictures in memory, cache_bytes over all workers of a loader, from the first epoch
        on: a kept sample costs a resize. The first pictures stay; files must not change. A picture takes 1.5 bytes a pixel.
    index_cache: a file that keeps where the rows of ordinary JPEG files begin, so that less is decoded for a crop, with the
        same pixels; "auto": in the user's cache folder. The first epoch makes it, or `infeed prepare`; see docs/decode.md.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        transform: Transform | Iterable[Transform] | None = None,
        *,
        exact: bool = True,
        orient: bool = True,
        allow_truncated: bool = False,
        max_pixels: int = MAX_PIXELS,
        extensions: Sequence[str] = (".jpg", ".jpeg", ".png"),
        label_dtype: Any = "int64",
        decode: str = "exact",
        cache: str | None = None,
        cache_bytes: int = 0,
        index_cache: str | os.PathLike[str] | None = None,
    ) -> None:
        self.root = os.fsdecode(root)
        self.transform = compose(transform)
        decoding = (exact, orient, allow_truncated, max_pixels, list(extensions), dtype_name(label_dtype))
        index = "" if index_cache is None else os.fsdecode(index_cache)
        for option, value in (("decode", decode), ("cache", cache or "none")):
            if not isinstance(value, str):
                raise TypeError(f"{option} is {value!r}; it is a str, such as 'planes'.")
        if not 0 <= operator.index(cache_bytes) < 1 << 63:
            raise ConfigError(f"cache_bytes is {cache_bytes}; it can be 0 to 2**63 - 1.")
        self._options = (*decoding, decode, cache or "none", operator.index(cache_bytes), index)
        paths = os.fsencode(self.root), os.fsencode(index)
        self._native = _native.Dataset.image_folder(paths[0], self.transform._native, *self._options[:-1], paths[1])

    @property
    def classes(self) -> list[str]:
        return self._native.classes()

    @property
    def class_to_idx(self) -> dict[str, int]:
        return {name: index for index, name in enumerate(self.classes)}

    def path(self, index: int) -> str:
        return self._native.path(index)

    def label(self, index: int) -> int:
        return self._native.label(index)

    def paths(self) -> list[str]:
        """All paths: a copy, for small folders."""
        return self._native.paths()

    def cache_stats(self) -> CacheStats:
        """Of all workers together; zeros without a cache."""
        return CacheStats(*self._native.cache_stats())

    def __reduce__(self) -> tuple[Any, ...]:
        return _image_folder, (self.root, self.transform, self._options)

    def __repr__(self) -> str:
        return f"ImageFolder({self.root!r}, transform={list(self.transform.transforms)!r})"


def _image_folder(root: str, transform: Compose, options: tuple[Any, ...]) -> ImageFolder:
    names = ["exact", "orient", "allow_truncated", "max_pixels", "extensions", "label_dtype", "decode", "cache"]
    return ImageFolder(root, transform, **dict(zip([*names, "cache_bytes", "index_cache"], options, strict=True)))


class ArrayDataset(Dataset):
    """Sample i is row i of each array: NumPy's, torch's, or anything in CPU memory with DLPack or the buffer protocol.
    Borrowed, not copied, strided ones too; they must not change while loaders run.

        ArrayDataset(image=images, label=labels)
        ArrayDataset({"token": windows}, widen={"token": "int64"})  # stored as uint16

    widen: field to a dtype that holds every value of its own; costs a conversion per element read.
    """

    def __init__(
        self, arrays: Mapping[str, Any] | None = None, *, widen: Mapping[str, Any] | None = None, **more: Any
    ) -> None:
        self.arrays: dict[str, Any] = {**(arrays or {}), **more}
        self.widen = {name: dtype_name(dtype) for name, dtype in (widen or {}).items()}
        self._native = _native.Dataset.arrays(list(self.arrays.items()), self.widen)

    def __reduce__(self) -> tuple[Any, ...]:
        return _array_dataset, (self.arrays, self.widen)

    def __repr__(self) -> str:
        fields = ", ".join(f"{field.name}={field.dtype}{list(field.shape)}" for field in self.fields)
        return f"ArrayDataset({len(self)} rows: {fields})"


def _array_dataset(arrays: dict[str, Any], widen: dict[str, str]) -> ArrayDataset:
    return ArrayDataset(arrays, widen=widen)


class PluginDataset(Dataset):
    """A dataset by the name that a plugin, or the built-in registry, gave it."""

    def __init__(
        self, name: str, params: Mapping[str, Any] | None = None, *, plugin: str | os.PathLike[str] = ""
    ) -> None:
        self.name = name
        self.params = dict(params or {})
        self.plugin = os.fspath(plugin)
        self._native = _native.Dataset.make(name, json.dumps(self.params), self.plugin)

    def __reduce__(self) -> tuple[Any, ...]:
        return _plugin_dataset, (self.name, self.params, self.plugin)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {self.params!r}, plugin={self.plugin!r})"


def _plugin_dataset(name: str, params: dict[str, Any], plugin: str) -> PluginDataset:
    return PluginDataset(name, params, plugin=plugin)


class Plugin:
    """A shared library with datasets: see infeed/plugin/abi.h. Loaded with its first dataset."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.path.abspath(path)
        if not os.path.isfile(self.path):
            raise FileNotFoundError(f"no plugin at {self.path}")

    def dataset(self, name: str, **params: Any) -> PluginDataset:
        """The plugin's dataset of that name."""
        return PluginDataset(name, params, plugin=self.path)

    def __repr__(self) -> str:
        return f"Plugin({self.path!r})"


def load_plugin(path: str | os.PathLike[str]) -> Plugin:
    """The plugin in that shared library: `load_plugin("libsquares.so").dataset("squares", size=100)`."""
    return Plugin(path)


def _synthetic_params(size: int, schema: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    fields = []
    for name, spec in schema.items():
        dtype, shape = (spec, ()) if isinstance(spec, str) else spec
        fields.append({"name": name, "dtype": dtype_name(dtype), "shape": list(shape)})
    return {"size": size, "schema": {"fields": fields}, **options}


class Synthetic(Dataset):
    """Made-up samples, for tests and benches: a scalar int64 field holds the index, all else is random.

        Synthetic(1000, {"image": ("float32", (3, 224, 224)), "label": "int64"}, cost_us=500)

    Options are SyntheticOptions' (infeed/dataset/synthetic.h): seed, augment, min_length, max_length, cost_us, wait_us,
    slow_every, slow_factor, fail_every.
    """

    def __init__(self, size: int, schema: Mapping[str, Any], **options: Any) -> None:
        self.size = size
        self.schema = dict(schema)
        self.options = _known(options)
        self._native = _native.Dataset.make("synthetic", json.dumps(_synthetic_params(size, schema, options)), "")

    def __reduce__(self) -> tuple[Any, ...]:
        return _synthetic, (self.size, self.schema, self.options)

    def __repr__(self) -> str:
        options = "".join(f", {name}={value!r}" for name, value in self.options.items())
        return f"Synthetic({self.size}, {self.schema!r}{options})"


_OPTIONS = (
    "seed",
    "augment",
    "min_length",
    "max_length",
    "cost_us",
    "wait_us",
    "slow_every",
    "slow_factor",
    "fail_every",
)


def _known(options: dict[str, Any]) -> dict[str, Any]:
    for name in options:
        if name not in _OPTIONS:
            raise TypeError(f"unexpected keyword argument {name!r}; options are {', '.join(_OPTIONS)}")
    return options


def _synthetic(size: int, schema: dict[str, Any], options: dict[str, Any]) -> Synthetic:
    return Synthetic(size, schema, **options)


class Stream:
    """Samples one after another, in shards that workers read side by side. Base of the streams of this module."""

    _native: Any

    def __len__(self) -> int:
        size = self._native.size()
        if size is None:
            raise TypeError(f"{type(self).__name__} does not know its length")
        return size

    @property
    def fields(self) -> list[Field]:
        return [Field(*entry) for entry in self._native.fields()]


class DatasetStream(Stream):
    """A dataset read front to back: shard s of n holds the indices s, s + n, ..."""

    def __init__(self, dataset: Dataset) -> None:
        self.dataset = dataset
        self._native = _native.Stream.of_dataset(dataset._native)

    def __repr__(self) -> str:
        return f"DatasetStream({self.dataset!r})"


class SyntheticStream(Stream):
    """The samples of Synthetic as a stream. `size_known`: whether len() tells."""

    def __init__(self, size: int, schema: Mapping[str, Any], *, size_known: bool = True, **options: Any) -> None:
        params = _synthetic_params(size, schema, _known(options)) | {"size_known": size_known}
        self._native = _native.Stream.make("synthetic_stream", json.dumps(params))
        self._text = f"SyntheticStream({size}, {dict(schema)!r})"

    def __repr__(self) -> str:
        return self._text
