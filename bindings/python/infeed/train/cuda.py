"""What programs ask of torch.cuda, on a library that has no CUDA device."""

from __future__ import annotations

import warnings
from types import SimpleNamespace
from typing import Any

from infeed.train import amp as _amp
from infeed.train._train import float16


def is_available() -> bool:
    return False


def device_count() -> int:
    return 0


def current_device() -> int:
    raise AssertionError("infeed.train not compiled with CUDA enabled")


def synchronize(device: Any = None) -> None:
    raise AssertionError("infeed.train not compiled with CUDA enabled")


def empty_cache() -> None:
    """Nothing is cached."""


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
