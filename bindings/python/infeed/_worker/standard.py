"""torch's default_collate and default_convert, also for arrays that torch refuses or warns of."""

from __future__ import annotations

import sys
from typing import Any


def collate(samples: Any) -> Any:
    """default_collate. Arrays may be flipped (negative strides), read-only or of NumPy's ulonglong: the batch has their
    values.

    Looks at the first sample alone, so that ordinary batches cost nothing more; flips that come later are met by
    torch's refusal.
    """
    from torch.utils.data import default_collate

    if type(samples) is list and samples and _acceptable(samples[0]) is not samples[0]:
        return default_collate(_acceptable(samples))
    try:
        return default_collate(samples)
    except ValueError:
        accepted = _acceptable(samples)
        if accepted is samples:
            raise
        return default_collate(accepted)


def convert(sample: Any) -> Any:
    """default_convert. A read-only array is copied: a tensor over it could be written to."""
    if type(sample) in (int, float, bool, str, bytes, type(None)):
        return sample
    from torch.utils.data import default_convert

    return default_convert(_acceptable(sample))


def _acceptable(value: Any) -> Any:
    """`value`, with copies of the arrays that torch would not take as they are; itself if there are none."""
    kind = type(value)
    if kind is list or kind is tuple:
        items = [_acceptable(item) for item in value]
        return value if all(map(_is, items, value)) else kind(items)
    if kind is dict:
        fields = {key: _acceptable(item) for key, item in value.items()}
        return value if all(map(_is, fields.values(), value.values())) else fields
    numpy = sys.modules.get("numpy")
    if numpy is None or not isinstance(value, numpy.ndarray) or value.dtype.hasobject:
        return value
    if value.dtype.char == "Q":
        return value.astype(numpy.uint64)
    if value.flags.writeable and all(step >= 0 for step in value.strides):
        return value
    return value.copy()


def _is(a: Any, b: Any) -> bool:
    return a is b
