"""infeed feeds accelerators: batches for training, made by C++ in memory that no step copies again.

    from infeed.torch import DataLoader  # in place of torch.utils.data's
    infeed.Loader(infeed.datasets.ImageFolder("train"), ...)  # the native engine; needs no torch

Attributes are imported when they are first used: `import infeed` needs neither NumPy nor torch.
"""

from __future__ import annotations

TYPE_CHECKING = False  # typing's, without the cost of importing that
if TYPE_CHECKING:
    from typing import Any

    from infeed import collates, datasets, image, samplers, transforms
    from infeed._doctor import doctor
    from infeed._native import Array, __version__
    from infeed._trace import trace
    from infeed._tuning import bench, sweep, tune
    from infeed.batch import Batch, BatchTuple
    from infeed.errors import (
        ConfigError,
        DataError,
        DecodeError,
        DeviceError,
        Error,
        IndexError,
        MemoryError,
        StateError,
        TimeoutError,
        WorkerError,
    )
    from infeed.loader import Loader

_MODULES = ("collates", "datasets", "errors", "image", "loader", "samplers", "torch", "transforms")
_HOMES = {
    "Array": "_native",
    "Batch": "batch",
    "BatchTuple": "batch",
    "ConfigError": "errors",
    "DataError": "errors",
    "DecodeError": "errors",
    "DeviceError": "errors",
    "Error": "errors",
    "IndexError": "errors",
    "Loader": "loader",
    "MemoryError": "errors",
    "StateError": "errors",
    "TimeoutError": "errors",
    "WorkerError": "errors",
    "__version__": "_native",
    "bench": "_tuning",
    "doctor": "_doctor",
    "sweep": "_tuning",
    "trace": "_trace",
    "tune": "_tuning",
}

__all__ = [
    "Array",
    "Batch",
    "BatchTuple",
    "ConfigError",
    "DataError",
    "DecodeError",
    "DeviceError",
    "Error",
    "IndexError",
    "Loader",
    "MemoryError",
    "StateError",
    "TimeoutError",
    "WorkerError",
    "__version__",
    "bench",
    "collates",
    "datasets",
    "doctor",
    "image",
    "samplers",
    "sweep",
    "trace",
    "transforms",
    "tune",
]


def __getattr__(name: str) -> Any:
    import importlib

    if name in _MODULES:
        return importlib.import_module(f"infeed.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'infeed' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"infeed.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES, *_HOMES})
