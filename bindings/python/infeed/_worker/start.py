"""What a worker is given when it starts, and how it gets there: the dataset crosses once, whatever the start method."""

from __future__ import annotations

import contextlib
import io
import mmap
import os
import pickle
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing import context, reduction, spawn
from typing import Any, ClassVar

from infeed._worker.fetchers import Fetcher, make_fetcher

_ALIGNMENT = 64  # of out-of-band buffers in the memfd


class UserCode:
    """Dataset, collate_fn and worker_init_fn, as the consumer holds them: for workers that are forked."""

    lean = False  # whether a process that is started for it can do without the program's main module

    def __init__(self, *objects: Any) -> None:
        self.objects = objects

    def load(self) -> tuple[Any, ...]:
        return self.objects

    def close(self) -> None:
        pass


class PickledUserCode:
    """The same for workers that are spawned: pickled once into a memfd that every worker maps privately.

    Arrays lie out of band (pickle protocol 5), so a worker reads them where they are and copies only what it writes,
    as after a fork. Tensors go as torch.multiprocessing sends them: their storage is shared by consumer and workers.
    """

    def __init__(self, *objects: Any) -> None:
        buffers: list[pickle.PickleBuffer] = []
        stream = io.BytesIO()
        carrier = _DescriptorCarrier()
        context.set_spawning_popen(carrier)
        try:
            reduction.ForkingPickler(stream, pickle.HIGHEST_PROTOCOL, True, buffers.append).dump(objects)
        except BaseException:
            carrier.close()
            raise
        finally:
            context.set_spawning_popen(None)
        self._descriptors = carrier.descriptors
        code = stream.getvalue()
        self.lean = b"_main__" not in code  # also __mp_main__, its name in a spawned process
        self._spans: list[tuple[int, int]] = []
        self._descriptors.append(os.memfd_create("infeed-dataset", os.MFD_CLOEXEC))
        self._write([memoryview(code), *(buffer.raw() for buffer in buffers)])

    def _write(self, parts: list[memoryview]) -> None:
        memfd = self._descriptors[-1]
        offset = 0
        for part in parts:
            self._spans.append((offset, offset + part.nbytes))
            written = 0
            while written < part.nbytes:
                written += os.pwrite(memfd, part[written:], offset + written)
            offset += -(-part.nbytes // _ALIGNMENT) * _ALIGNMENT
        os.ftruncate(memfd, max(offset, 1))

    def __getstate__(self) -> dict[str, Any]:
        return {"spans": self._spans, "descriptors": [reduction.DupFd(fd) for fd in self._descriptors]}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._spans = state["spans"]
        self._descriptors = [duplicate.detach() for duplicate in state["descriptors"]]

    def load(self) -> tuple[Any, ...]:
        """In the worker, once: the objects. Their buffers keep the mapping alive."""
        memfd = self._descriptors.pop()
        mapping = memoryview(mmap.mmap(memfd, 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE))
        os.close(memfd)
        code, *buffers = (mapping[begin:end] for begin, end in self._spans)
        _CarriedDescriptor.received, self._descriptors = self._descriptors, []
        return pickle.loads(code, buffers=buffers)

    def close(self) -> None:
        while self._descriptors:
            os.close(self._descriptors.pop())


class _CarriedDescriptor:
    """A descriptor inside the pickled objects: its place among those that travel beside the memfd."""

    received: ClassVar[list[int]] = []

    def __init__(self, place: int) -> None:
        self.place = place

    def detach(self) -> int:
        return self.received[self.place]


class _DescriptorCarrier:
    """Stands in for the process being spawned while the objects are pickled: reducers ask it to pass descriptors."""

    DupFd = _CarriedDescriptor

    def __init__(self) -> None:
        self.descriptors: list[int] = []

    def duplicate_for_child(self, fd: int) -> int:
        self.descriptors.append(os.dup(fd))
        return len(self.descriptors) - 1

    def close(self) -> None:
        for fd in self.descriptors:
            os.close(fd)


@dataclass
class Start:
    """Everything one worker needs to begin."""

    worker: int
    num_workers: int
    consumer: int  # its pid
    handle: Any  # ExchangeHandle
    base_seed: int
    iterable: bool
    auto_collation: bool
    drop_last: bool
    persistent: bool
    user_code: UserCode | PickledUserCode
    shared_seed: int | None = None  # of IterDataPipes; the dataset is one if this is set
    fetcher: Callable[..., Fetcher] = make_fetcher  # (start, dataset, collate_fn, note); named by pickle
    state: Any = None  # for the fetcher to restore
    reports_state: bool = False  # send fetcher.state() with every batch, asked or not
    seeds_batches: bool = False  # random numbers begin anew with every batch, by its number


_preparing = threading.Lock()


@contextlib.contextmanager
def without_main_module() -> Iterator[None]:
    """Processes spawned within, by this thread, do not run the program's main module again."""
    with _preparing:
        complete = spawn.get_preparation_data
        spawner = threading.get_ident()

        def lean(name: str) -> dict[str, Any]:
            data = complete(name)
            if threading.get_ident() == spawner:
                data.pop("init_main_from_path", None)
                data.pop("init_main_from_name", None)
            return data

        spawn.get_preparation_data = lean
        try:
            yield
        finally:
            spawn.get_preparation_data = complete
