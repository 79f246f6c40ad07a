"""Image transforms, by torchvision.transforms.v2's names where it has them. They run in C++, in one fused pass from the
decoder's pixels to the batch; here they are descriptions, which compare and print.

    transform = Compose([RandomResizedCrop(224), RandomHorizontalFlip(), Normalize()])
    dataset = infeed.datasets.ImageFolder("train", transform=transform)
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from infeed import _native

__all__ = [
    "CenterCrop",
    "Compose",
    "Normalize",
    "RandomHorizontalFlip",
    "RandomResizedCrop",
    "Resize",
    "ToDtype",
    "ToLayout",
    "ToTensor",
    "Transform",
]

Size: TypeAlias = int | Sequence[int]


def dtype_name(dtype: Any) -> str:
    """The name of a dtype of NumPy's, torch's or one's own: "float32"."""
    if isinstance(dtype, str):
        return dtype
    name = getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or str(dtype)
    return str(name).removeprefix("torch.")


def _height_width(size: Size) -> dict[str, int]:
    if isinstance(size, int):
        return {"height": size, "width": size}
    if len(size) == 1:
        return {"height": size[0], "width": size[0]}
    height, width = size
    return {"height": height, "width": width}


class Transform:
    """Base of the transforms of this module."""

    def _ops(self) -> list[dict[str, Any]]:
        raise NotImplementedError


@dataclass(frozen=True)
class RandomResizedCrop(Transform):
    """A random crop of `scale` of the area and `ratio` width / height, resized to `size` (int or (height, width))."""

    size: Size
    scale: tuple[float, float] = (0.08, 1.0)
    ratio: tuple[float, float] = (3.0 / 4.0, 4.0 / 3.0)

    def _ops(self) -> list[dict[str, Any]]:
        bounds = {"scale_min": self.scale[0], "scale_max": self.scale[1]}
        bounds |= {"ratio_min": self.ratio[0], "ratio_max": self.ratio[1]}
        return [{"op": "RandomResizedCrop", **_height_width(self.size), **bounds}]


@dataclass(frozen=True)
class Resize(Transform):
    """int: the shorter side to `size`; (height, width): exactly so."""

    size: Size

    def _ops(self) -> list[dict[str, Any]]:
        if isinstance(self.size, int) or len(self.size) == 1:
            shorter = self.size if isinstance(self.size, int) else self.size[0]
            return [{"op": "Resize", "height": shorter, "width": 0}]
        return [{"op": "Resize", **_height_width(self.size)}]


@dataclass(frozen=True)
class CenterCrop(Transform):
    """The middle `size` (int or (height, width)); a smaller picture is padded with zeros."""

    size: Size

    def _ops(self) -> list[dict[str, Any]]:
        return [{"op": "CenterCrop", **_height_width(self.size)}]


@dataclass(frozen=True)
class RandomHorizontalFlip(Transform):
    p: float = 0.5

    def _ops(self) -> list[dict[str, Any]]:
        return [{"op": "RandomHorizontalFlip", "p": self.p}]


@dataclass(frozen=True)
class Normalize(Transform):
    """(value / 255 - mean) / std per channel, R G B; float32 unless ToDtype says otherwise. Default: ImageNet's."""

    mean: Sequence[float] = (0.485, 0.456, 0.406)
    std: Sequence[float] = (0.229, 0.224, 0.225)

    def _ops(self) -> list[dict[str, Any]]:
        op: dict[str, Any] = {"op": "Normalize"}
        for channel, mean, std in zip("rgb", self.mean, self.std, strict=True):
            op |= {f"mean_{channel}": mean, f"std_{channel}": std}
        return [op]


@dataclass(frozen=True)
class ToDtype(Transform):
    """uint8, float16, bfloat16 or float32 (a name, or NumPy's or torch's dtype); floats hold value / 255."""

    dtype: Any = "float32"

    def _ops(self) -> list[dict[str, Any]]:
        return [{"op": "ToDType", "dtype": dtype_name(self.dtype)}]


@dataclass(frozen=True)
class ToLayout(Transform):
    """ "CHW" (the default) or "HWC"."""

    layout: str = "CHW"

    def _ops(self) -> list[dict[str, Any]]:
        return [{"op": "ToLayout", "layout": self.layout}]


@dataclass(frozen=True)
class ToTensor(Transform):
    """float32 [3, H, W] in [0, 1], as torchvision's: ToDtype("float32"), ToLayout("CHW")."""

    def _ops(self) -> list[dict[str, Any]]:
        return [*ToDtype("float32")._ops(), *ToLayout("CHW")._ops()]


@dataclass(frozen=True)
class Compose(Transform):
    """A chain of transforms, checked when it is made. Geometry applies op by op; one resampling pass serves the whole
    chain, so a second Resize or RandomResizedCrop is a ConfigError."""

    transforms: tuple[Transform, ...] = ()
    _native: Any = field(init=False, repr=False, compare=False)

    def __init__(self, transforms: Transform | Iterable[Transform] = ()) -> None:
        chain = (transforms,) if isinstance(transforms, Transform) else tuple(transforms)
        for transform in chain:
            if not isinstance(transform, Transform):
                raise TypeError(f"{transform!r} is no transform of infeed.transforms; only those run in the workers")
        object.__setattr__(self, "transforms", chain)
        object.__setattr__(self, "_native", _native.Compose(json.dumps({"ops": self._ops()})))

    def _ops(self) -> list[dict[str, Any]]:
        return [op for transform in self.transforms for op in transform._ops()]

    def __reduce__(self) -> tuple[Any, ...]:
        return Compose, (self.transforms,)

    @property
    def dtype(self) -> str:
        """Of the result."""
        return self._native.dtype

    @property
    def output_shape(self) -> tuple[int, ...]:
        """[3, H, W] or [H, W, 3]; -1 where it depends on the picture."""
        return self._native.output_shape


def compose(transform: Transform | Iterable[Transform] | None) -> Compose:
    """What users give as `transform`, as a Compose."""
    if isinstance(transform, Compose):
        return transform
    return Compose(() if transform is None else transform)
