"""How rows of different sizes become arrays; in C++, in the workers. Rows of one shape need none of these.

loader = infeed.Loader(dataset, batch_size=32, collate=Pad(fill={"tokens": -1}, pad_to_multiple=8))
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from infeed.errors import ConfigError

__all__ = ["Pad", "Ragged", "Stack"]


@dataclass(frozen=True)
class Stack:
    """Each field one array [B, ...]; DataError where rows of a batch differ in shape."""

    def _spec(self) -> tuple[str, dict[str, Any]]:
        return "stack", {}


@dataclass(frozen=True)
class Ragged:
    """A variable field becomes its rows' values end to end, and `<field>.offsets`, int64 [B + 1]."""

    def _spec(self) -> tuple[str, dict[str, Any]]:
        return "ragged", {}


@dataclass(frozen=True)
class Pad:
    """A variable field becomes [B, ...] as long as the batch's longest row, and `<field>.lengths`.

    fill: value of the padding, by field. pad_to_multiple: padded sizes are rounded up to it. max_size: largest size of
    a row, by field; a longer one is a DataError.
    """

    fill: Mapping[str, float] = field(default_factory=dict)
    pad_to_multiple: int = 1
    max_size: Mapping[str, int] = field(default_factory=dict)

    def _spec(self) -> tuple[str, dict[str, Any]]:
        return "pad", {
            "fill": dict(self.fill),
            "pad_to_multiple": self.pad_to_multiple,
            "max_size": dict(self.max_size),
        }


_BY_NAME = {"stack": Stack, "ragged": Ragged, "pad": Pad}


def collate_spec(collate: Any) -> tuple[str, str]:
    """Name and parameters (JSON) of what users give as `collate`."""
    if isinstance(collate, str):
        if collate not in _BY_NAME:
            raise ConfigError(f"collate is {collate!r}; it can be {', '.join(map(repr, _BY_NAME))}")
        collate = _BY_NAME[collate]()
    if not isinstance(collate, (Stack, Ragged, Pad)):
        raise TypeError(f"collate {collate!r} is none of infeed.collates: Python functions do not run in the workers")
    name, params = collate._spec()
    return name, json.dumps(params)
