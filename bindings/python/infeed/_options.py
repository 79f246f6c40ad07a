"""What users give as options."""

from __future__ import annotations

from numbers import Integral
from typing import Any


def is_integer(value: Any) -> bool:
    """NumPy's integers are; True and False are not."""
    return isinstance(value, Integral) and not isinstance(value, bool)
