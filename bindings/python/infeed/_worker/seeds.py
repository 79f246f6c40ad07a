"""Random seeds of a worker: `random`, torch and numpy start where PyTorch's workers start."""

from __future__ import annotations

import random
from types import ModuleType

from infeed._worker.imports import when_imported

_MASK = 0xFFFFFFFF


class _Hash:
    """The hash of numpy's SeedSequence; its key moves on with every call."""

    def __init__(self, key: int, factor: int) -> None:
        self.key = key
        self.factor = factor

    def __call__(self, word: int) -> int:
        word ^= self.key
        self.key = self.key * self.factor & _MASK
        word = word * self.key & _MASK
        return word ^ word >> 16


def _mix(left: int, right: int) -> int:
    word = 0xCA01F9DD * left - 0x4973F715 * right & _MASK
    return word ^ word >> 16


def numpy_seed(base_seed: int, worker: int) -> list[int]:
    """`SeedSequence([worker, low, high]).generate_state(4)` of the two halves of `base_seed`, without numpy."""
    absorb = _Hash(0x43B0D7E5, 0x931E8875)
    pool = [absorb(word) for word in (worker, base_seed & _MASK, base_seed >> 32, 0)]
    for source in range(4):
        for target in range(4):
            if source != target:
                pool[target] = _mix(pool[target], absorb(pool[source]))
    return list(map(_Hash(0x8B51F9DD, 0x58F38DED), pool))


def _seed_torch(torch: ModuleType, seed: int) -> None:
    """torch.manual_seed, without the 1.5 ms of stack traces it keeps for accelerators where this torch has none."""
    if torch.accelerator.current_accelerator() is None:
        torch.default_generator.manual_seed(seed)
    else:
        torch.manual_seed(seed)


def seed_everything(base_seed: int, worker: int) -> None:
    """Seeds `random` now; torch and numpy now if they are imported, else when they are."""
    random.seed(base_seed + worker)
    when_imported("torch", lambda torch: _seed_torch(torch, base_seed + worker))
    when_imported("numpy.random", lambda numpy_random: numpy_random.seed(numpy_seed(base_seed, worker)))
