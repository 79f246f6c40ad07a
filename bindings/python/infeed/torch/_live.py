"""Iterators of this process that have workers: what becomes of them in a forked child, and at the interpreter's exit."""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from typing import Protocol


class Iterator(Protocol):
    def _abandon(self) -> None:
        """In a forked child: workers and exchange are the parent's; this copy touches neither again."""

    def _kill(self) -> None:
        """Ends the workers at once."""


live_iterators: weakref.WeakSet[Iterator] = weakref.WeakSet()
exiting = threading.Event()  # destructors do nothing from here on


def _abandon_all() -> None:
    for iterator in list(live_iterators):
        iterator._abandon()
    live_iterators.clear()


def _end_all() -> None:
    exiting.set()
    for iterator in list(live_iterators):
        iterator._kill()


os.register_at_fork(after_in_child=_abandon_all)
atexit.register(_end_all)
