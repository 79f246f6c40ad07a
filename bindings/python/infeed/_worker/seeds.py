"""Random seeds of a worker: `random`, torch and numpy start where PyTorch's workers start."""

from __future__ import annotations

import random
import sys
from types import ModuleType

from infeed._worker.imports import when_imported

_MASK = 0xFFFFFFFF
_FIRST_BATCH = 256  # offset to the base seed: those below are the workers'


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


class Seeds:
    """Seeds `random` now; torch and numpy now if they are imported, else when they are."""

    def __init__(self, base_seed: int, worker: int) -> None:
        self._base_seed = base_seed
        self._offset = worker
        random.seed(base_seed + worker)
        when_imported("torch", self._seed_torch)
        when_imported("numpy.random", self._seed_numpy)

    def begin_batch(self, number: int) -> None:
        """The same again, for whatever is drawn for this batch."""
        self._offset = _FIRST_BATCH + number
        random.seed(self._base_seed + self._offset)
        if "torch" in sys.modules:
            self._seed_torch(sys.modules["torch"])
        if "numpy.random" in sys.modules:
            self._seed_numpy(sys.modules["numpy.random"])

    def _seed_torch(self, torch: ModuleType) -> None:
        _seed_torch(torch, self._base_seed + self._offset)

    def _seed_numpy(self, numpy_random: ModuleType) -> None:
        numpy_random.seed(numpy_seed(self._base_seed, self._offset))
