"""num_workers="auto": workers come and go while an epoch runs, and the queue of tasks becomes deeper.

A task is for whoever is free, and random numbers are seeded for each batch by its number: which worker makes a batch,
and how many there are, changes nothing in it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch.utils.data import IterableDataset, IterDataPipe, MapDataPipe

from infeed._native import AutoCount, Exchange
from infeed._worker.start import Start
from infeed._worker.stateful import is_stateful
from infeed._worker.team import Team

AUTO = "auto"  # as num_workers, of a loader and of a state


TIMES_DEEPER = 8  # than usual, at most,
DEEPEST_QUEUE = 32  # tasks


class Auto:
    """How many workers a loader should have, and how deep a queue: what its iterators learn, one after another."""

    def __init__(self, memory_budget: int | None = None, deepens: bool = True) -> None:
        self._memory_budget = memory_budget
        self._deepens = deepens
        self.count = AutoCount(memory_budget or 0, deepest=TIMES_DEEPER if deepens else 1)

    def __reduce__(self) -> tuple[Any, ...]:
        return Auto, (self._memory_budget, self._deepens)


class AutoNumber(int):
    """A loader's num_workers where that was given as "auto". Whoever makes a loader anew of another's attributes, as
    Lightning does, gives it back, and the new loader is "auto" as well."""

    deepens: bool  # whether the depth of the queue was left to the loader, too

    def __new__(cls, number: int, deepens: bool) -> AutoNumber:
        self = super().__new__(cls, number)
        self.deepens = deepens
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return AutoNumber, (int(self), self.deepens)


def is_auto(num_workers: int | str) -> bool:
    return num_workers == AUTO or isinstance(num_workers, AutoNumber)


def why_fixed(dataset: Any) -> str | None:
    """Why the number of workers cannot change while they work; None: it can."""
    if isinstance(dataset, (IterableDataset, IterDataPipe, MapDataPipe)):
        return "the number of workers divides an iterable-style dataset among them"
    if is_stateful(dataset):
        return "every worker keeps a state of the dataset for checkpoints"
    return None


class Shift:
    """The workers of one iterator, of ids below `most`. A new one gets the lowest id that is free."""

    def __init__(self, exchange: Exchange, team: Team, most: int) -> None:
        self._exchange = exchange
        self._team = team
        self._most = most
        self.working: list[int] = []
        self.leaving: list[int] = []
        for worker in range(most):
            exchange.retire(worker)

    def resize(self, num_workers: int, make_start: Callable[[int], Start]) -> None:
        """Starts or retires workers; waits for none. While some still leave there may be fewer than asked for."""
        while len(self.working) > num_workers:
            worker = self.working.pop()
            self._exchange.retire(worker)
            self.leaving.append(worker)
        while len(self.working) < num_workers and (free := self._free_id()) is not None:
            self._exchange.recruit(free)
            try:
                self._team.start(make_start(free))
            except BaseException:
                self._exchange.retire(free)
                raise
            self.working.append(free)

    def _free_id(self) -> int | None:
        taken = {*self.working, *self.leaving}
        return next((worker for worker in range(self._most) if worker not in taken), None)

    def left_well(self, worker: int) -> bool:
        """After the end of one that was leaving: whether its last task is done. What is not, others do."""
        unfinished = self._exchange.bury(worker)
        return self._team.exit_code(worker) == 0 and not unfinished

    def sign_off(self, worker: int) -> None:
        self.leaving.remove(worker)
        self._team.dismiss(worker)

    def holder(self, number: int) -> int | None:
        """Who has task `number` in hand."""
        workers = (*self.working, *self.leaving)
        return next((worker for worker in workers if self._exchange.sample_in_hand(worker)[0] == number), None)
