"""Sizes of windows: one number for all dimensions, or one for each."""

from __future__ import annotations

from collections.abc import Sequence

Sizes = int | Sequence[int]


def numbers(value: Sizes, count: int, name: str) -> tuple[int, ...]:
    if isinstance(value, int):
        return (value,) * count
    if len(value) == 1:
        return (value[0],) * count
    if len(value) != count:
        raise RuntimeError(f"expected {name} to be a single integer value or a list of {count} values, but got {value}")
    return tuple(value)
