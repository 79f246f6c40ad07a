"""Which worker gets the next task, and how many tasks are ahead of the batch that next() returns."""

from __future__ import annotations

ANYONE = -1  # the worker of a task that whoever is free does


class Turns:
    """Workers in turn, as torch's: batch i is of worker i mod num_workers."""

    def __init__(self, num_workers: int, prefetch_factor: int, in_order: bool) -> None:
        self.num_workers = num_workers
        self._in_order = in_order
        self.depth = prefetch_factor * num_workers
        self.begin()

    def begin(self, worker: int = 0) -> None:
        """An epoch, whose next batch is of `worker`."""
        self._next = worker
        self._active = [True] * self.num_workers  # not at the end of its part of an iterable-style dataset
        self._in_flight = [0] * self.num_workers

    def due(self, tasks: int) -> int:
        """How many tasks to post after a reply, where `tasks` have none yet."""
        return 1

    def choose(self) -> int | None:
        """The worker whose turn it is, if any may have a task."""
        for _ in range(self.num_workers):
            worker = self._next
            self._next = (worker + 1) % self.num_workers
            if self._active[worker] and (self._in_order or self._in_flight[worker] < self.depth // sum(self._active)):
                return worker
        return None

    def posted(self, worker: int) -> None:
        self._in_flight[worker] += 1

    def replied(self, worker: int) -> None:
        self._in_flight[worker] -= 1

    def ended(self, worker: int) -> None:
        self._active[worker] = False
        self._in_flight[worker] = 0


class Pool:
    """Whoever is free, of workers whose number may change."""

    def __init__(self, num_workers: int, prefetch_factor: int, deepest: int) -> None:
        self.num_workers = num_workers
        self.times_deeper = 1  # than usual, where that stays within `deepest` tasks
        self._prefetch_factor = prefetch_factor
        self._deepest = deepest

    @property
    def depth(self) -> int:
        usual = self._prefetch_factor * self.num_workers
        return max(usual, min(self.times_deeper * usual, self._deepest))

    def begin(self, worker: int = 0) -> None:
        pass

    def due(self, tasks: int) -> int:
        return max(0, self.depth - tasks)

    def choose(self) -> int:
        return ANYONE

    def posted(self, worker: int) -> None:
        pass

    def replied(self, worker: int) -> None:
        pass

    def ended(self, worker: int) -> None:
        pass
