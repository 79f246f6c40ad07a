"""Small values with PyTorch's names: Size, finfo, iinfo."""

from __future__ import annotations

from infeed.train import _train
from infeed.train._train import dtype


def dtype_named(name: str) -> dtype:
    """Of "float32" and the like; what pickles of dtypes call."""
    found: dtype = _train._dtype_named(name)
    return found


class Size(tuple[int, ...]):
    """The sizes of a tensor: a tuple that counts."""

    __slots__ = ()

    def numel(self) -> int:
        count = 1
        for size in self:
            count *= size
        return count

    def __getitem__(self, index):  # type: ignore[no-untyped-def]
        part = tuple.__getitem__(self, index)
        return Size(part) if isinstance(index, slice) else part

    def __add__(self, other):  # type: ignore[no-untyped-def]
        return Size(tuple.__add__(self, tuple(other)))

    def __repr__(self) -> str:
        return f"train.Size({list(self)})"

    def __reduce__(self):  # type: ignore[no-untyped-def]
        return Size, (tuple(self),)


_train._set_size_type(Size)

# Bits of the fraction and largest exponent.
_FLOATS = {_train.float16: (10, 15), _train.bfloat16: (7, 127), _train.float32: (23, 127), _train.float64: (52, 1023)}


class finfo:
    """Limits of a floating-point dtype."""

    def __init__(self, type: dtype | None = None) -> None:
        self.dtype = type or _train.get_default_dtype()
        if self.dtype not in _FLOATS:
            raise TypeError(f"finfo(): {self.dtype} is not a floating-point dtype; use iinfo")
        fraction, exponent = _FLOATS[self.dtype]
        self.bits = 8 * self.dtype.itemsize
        self.eps = 2.0**-fraction
        self.max = (2.0 - self.eps) * 2.0**exponent
        self.min = -self.max
        self.tiny = self.smallest_normal = 2.0 ** (1 - exponent)
        self.resolution = 10.0 ** -int(fraction * 0.30103)

    def __repr__(self) -> str:
        return f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, eps={self.eps:g})"


class iinfo:
    """Limits of an integer dtype."""

    def __init__(self, type: dtype) -> None:
        if type in _FLOATS or type is _train.bool_:
            raise TypeError(f"iinfo(): {type} is not an integer dtype; use finfo")
        self.dtype, self.bits = type, 8 * type.itemsize
        self.max = 2 ** (self.bits - type.is_signed) - 1
        self.min = -self.max - 1 if type.is_signed else 0


contiguous_format, channels_last, preserve_format = "contiguous_format", "channels_last", "preserve_format"


def set_printoptions(
    precision: int = 4,
    threshold: float = 1000,
    edgeitems: int = 3,
    linewidth: int = 80,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """How tensors are printed. `profile`: "default", "short" or "full"."""
    if profile is not None:
        precision, edgeitems = (2, 2) if profile == "short" else (4, 3)
        threshold = float("inf") if profile == "full" else 1000
    _train._print_options(precision, int(min(threshold, 2**62)), edgeitems, linewidth, sci_mode)
