"""What programs ask of torch.cuda."""

from __future__ import annotations

import functools
import itertools
import warnings
from types import SimpleNamespace
from typing import Any

from infeed.train import _train
from infeed.train import amp as _amp
from infeed.train._train import float16


def is_available() -> bool:
    """Whether infeed's plugin for CUDA, CUDA's runtime, a driver and a GPU are there."""
    return device_count() > 0


@functools.cache
def device_count() -> int:
    return next(index for index in itertools.count() if not _train._opens(f"cuda:{index}"))


def current_device() -> int:
    return _index(None)


def synchronize(device: Any = None) -> None:
    _train.synchronize(f"cuda:{_index(device)}")


def empty_cache() -> None:
    """Gives memory that no tensor uses back to the devices."""
    for index in range(device_count()):
        _train.empty_device_cache(f"cuda:{index}")


def memory_allocated(device: Any = None) -> int:
    return int(_train.device_memory_stats(f"cuda:{_index(device)}")["in_use_bytes"])


def _index(device: Any) -> int:
    if not is_available():
        raise AssertionError("infeed.train not compiled with CUDA enabled")
    return device if isinstance(device, int) else _train.device("cuda" if device is None else device).index or 0


def manual_seed(seed: int) -> None:
    """There is no generator to seed."""


def manual_seed_all(seed: int) -> None:
    """There is no generator to seed."""


class _OldGradScaler(_amp.GradScaler):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warnings.warn(
            "`torch.cuda.amp.GradScaler(args...)` is deprecated. Please use `torch.amp.GradScaler('cuda', args...)` "
            "instead.",
            FutureWarning,
            stacklevel=2,
        )
        super().__init__("cuda", *args, **kwargs)


class _OldAutocast(_amp.autocast):
    def __init__(self, enabled: bool = True, dtype: Any = float16, cache_enabled: bool = True) -> None:
        warnings.warn(
            "`torch.cuda.amp.autocast(args...)` is deprecated. Please use `torch.amp.autocast('cuda', args...)` instead.",
            FutureWarning,
            stacklevel=2,
        )
        super().__init__("cuda", dtype, enabled, cache_enabled)


amp = SimpleNamespace(GradScaler=_OldGradScaler, autocast=_OldAutocast)
