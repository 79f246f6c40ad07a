"""Mixed precision: autocast chooses dtypes by operation, GradScaler keeps small gradients above zero."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from enum import Enum
from typing import Any

from infeed.train import _train
from infeed.train._modes import Switch, no_grad
from infeed.train._train import Tensor, bfloat16, dtype, float16

__all__ = ["GradScaler", "autocast", "get_autocast_dtype", "is_autocast_available", "is_autocast_enabled"]

_KNOWN = ("cpu", "cuda")


def is_autocast_available(device_type: str) -> bool:
    return device_type == "cpu"


def is_autocast_enabled(device_type: str = "cpu") -> bool:
    return device_type == "cpu" and _train._autocast()[0]


def get_autocast_dtype(device_type: str) -> dtype:
    return _train._autocast()[1] if device_type == "cpu" else float16


class autocast(Switch):
    """Matrix products and convolutions in `dtype`, losses in float32, everything else as its operands are.

    Nests; `enabled=False` switches off inside; also a decorator. Parameters and their gradients stay float32; a converted
    weight is kept until the outermost one ends.
    """

    def __init__(
        self, device_type: str, dtype: dtype | None = None, enabled: bool = True, cache_enabled: bool | None = None
    ) -> None:
        super().__init__()
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        if device_type not in _KNOWN:
            raise RuntimeError(f"User specified an unsupported autocast device_type '{device_type}'")
        self.device, self.fast_dtype = device_type, dtype or (bfloat16 if device_type == "cpu" else float16)
        if enabled and device_type == "cuda":
            warnings.warn(
                "User provided device_type of 'cuda', but CUDA is not available. Disabling", UserWarning, stacklevel=3
            )
            enabled = False
        if enabled and self.fast_dtype not in (bfloat16, float16):
            warnings.warn(
                f"In CPU autocast, but the target dtype is not supported. Disabling autocast. CPU Autocast only supports "
                f"dtype of {bfloat16}, {float16} currently.",
                UserWarning,
                stacklevel=3,
            )
            enabled = False
        self._enabled, self._cache_enabled = enabled, _train._autocast()[2] if cache_enabled is None else cache_enabled

    def _again(self) -> Switch:
        return autocast(self.device, self.fast_dtype, self._enabled, self._cache_enabled)

    def _enter(self) -> _train._AutocastScope | None:
        if self.device != "cpu":
            return None
        dtype = self.fast_dtype if self._enabled else _train._autocast()[1]
        return _train._AutocastScope(dtype, self._enabled, self._cache_enabled)

    def _exit(self, before: _train._AutocastScope | None) -> None:
        if before is not None:
            before.close()


class _Stage(Enum):
    """How far an optimizer got since the last update()."""

    READY, UNSCALED, STEPPED = range(3)


class _Progress:
    def __init__(self) -> None:
        self.stage = _Stage.READY
        self.found_inf: bool | None = None


class GradScaler:
    """Multiplies the loss, so that gradients in half precision do not vanish, and divides the gradients again.

    scaler.scale(loss).backward(); scaler.step(optimizer); scaler.update()

    A step with an infinite or NaN gradient is left out, and the scale falls by `backoff_factor`; after
    `growth_interval` good steps in a row it grows by `growth_factor`.
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        self._device = device
        if enabled and device == "cuda":
            warnings.warn(
                "torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling.",
                UserWarning,
                stacklevel=3,
            )
            enabled = False
        self._enabled = enabled
        if not enabled:
            return
        if growth_factor <= 1.0:
            raise AssertionError("The growth factor must be > 1.0.")
        if backoff_factor >= 1.0:
            raise AssertionError("The backoff factor must be < 1.0.")
        self._init_scale, self._growth_factor, self._backoff_factor = init_scale, growth_factor, backoff_factor
        self._growth_interval, self._growth_tracker = growth_interval, 0
        self._scale: float | None = None  # made by the first scale()
        self._progress: dict[int, _Progress] = {}

    def scale(self, outputs: Any) -> Any:
        """A loss, or any nesting of lists and tuples of tensors, times the scale."""
        if not self._enabled:
            return outputs
        if self._scale is None:
            self._scale = self._init_scale
        if isinstance(outputs, Tensor):
            return outputs * _train.tensor(self._scale, device=outputs.device)  # float32: a half would overflow
        if isinstance(outputs, Iterable):
            scaled = [self.scale(output) for output in outputs]
            return type(outputs)(scaled) if isinstance(outputs, (list, tuple)) else scaled
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")

    def _of(self, optimizer: Any, call: str) -> _Progress:
        if self._scale is None:
            raise AssertionError(
                f"Attempted {call} but _scale is None.  This may indicate your script did not use scaler.scale(loss or "
                "outputs) earlier in the iteration."
            )
        return self._progress.setdefault(id(optimizer), _Progress())

    def unscale_(self, optimizer: Any) -> None:
        """Divides the gradients of `optimizer` by the scale: before clipping, once between two updates."""
        if not self._enabled:
            return
        progress = self._of(optimizer, "unscale_")
        if progress.stage is _Stage.UNSCALED:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        if progress.stage is _Stage.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        assert self._scale is not None
        gradients = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        if any(gradient.dtype is float16 for gradient in gradients):
            raise ValueError("Attempting to unscale FP16 gradients.")
        if gradients:
            with no_grad():
                progress.found_inf = not _train._unscale(gradients, 1.0 / self._scale)
        progress.stage = _Stage.UNSCALED

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """optimizer.step(), unless a gradient is infinite or NaN: then None."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        progress = self._of(optimizer, "step")
        if progress.stage is _Stage.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if progress.stage is _Stage.READY:
            self.unscale_(optimizer)
        if progress.found_inf is None:
            raise AssertionError("No inf checks were recorded for this optimizer.")
        result = None if progress.found_inf else optimizer.step(*args, **kwargs)
        progress.stage = _Stage.STEPPED
        return result

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Adjusts the scale by what the steps since the last update() met; or sets it."""
        if not self._enabled:
            return
        if self._scale is None:
            raise AssertionError(
                "Attempted update but _scale is None.  This may indicate your script did not use scaler.scale(loss or "
                "outputs) earlier in the iteration."
            )
        if new_scale is not None:
            self._scale = float(new_scale)
        else:
            self._adjust([p.found_inf for p in self._progress.values() if p.found_inf is not None])
        self._progress.clear()

    def _adjust(self, found: list[bool]) -> None:
        if not found:
            raise AssertionError("No inf checks were recorded prior to update.")
        assert self._scale is not None
        if any(found):
            self._scale *= self._backoff_factor
            self._growth_tracker = 0
            return
        self._growth_tracker += 1
        if self._growth_tracker == self._growth_interval:
            grown = self._scale * self._growth_factor
            self._scale = grown if grown < _LARGEST else self._scale
            self._growth_tracker = 0

    def get_scale(self) -> float:
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else self._scale

    def get_growth_factor(self) -> float:
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        self._growth_interval = new_interval

    def is_enabled(self) -> bool:
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._growth_tracker,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler."
            )
        self._init_scale = state_dict["scale"]
        if self._scale is not None:
            self._scale = state_dict["scale"]
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._growth_tracker = state_dict["_growth_tracker"]


_LARGEST = 3.4e38
