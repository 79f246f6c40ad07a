"""The native loader: batches of a dataset that C++ reads, filled by workers, in sampler order.

dataset = infeed.datasets.ImageFolder("train", transform=[RandomResizedCrop(224), RandomHorizontalFlip(), Normalize()])
with infeed.Loader(dataset, batch_size=64, shuffle=True, num_workers=4) as loader:
    for batch in loader:
        step(batch["image"], batch["label"])
"""

from __future__ import annotations

import atexit
import json
import weakref
from collections.abc import Iterable, Iterator, Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal

from infeed import _native
from infeed._options import is_integer
from infeed.batch import Batch, BatchTuple
from infeed.collates import Pad, Ragged, Stack, collate_spec
from infeed.datasets import Dataset, Stream
from infeed.errors import ConfigError
from infeed.samplers import BatchSampler, Sampler, native_batch_sampler, native_sampler

if TYPE_CHECKING:
    import torch
    from typing_extensions import Self

__all__ = ["Loader"]


class Loader:
    """Batches of `dataset`, which is one of infeed.datasets: no Python runs in the workers.

    dataset, sampler, seed and epoch fix every byte of every batch; kind and number of workers do not matter.

    Iteration: iter() begins the next epoch; in mid-epoch it drops the rest of the running one, except after
    load_state_dict, set_epoch and reset. A newer iterator makes the older ones of the same loader invalid.
    An error of next() leaves the iterator usable: the call after goes on.

    Args:
        batch_size: samples per batch.
        shuffle: a RandomSampler with `seed`. Excludes sampler and batch_sampler.
        sampler: one of infeed.samplers, or any iterable of indices (its set_epoch(epoch), if any, is called).
        batch_sampler: the same of lists of indices. Excludes batch_size, shuffle, sampler and drop_last.
        num_workers: at most 64; 0: the caller does the work; "auto": begins with half of the usable CPUs and follows
            what the trainer needs, without changing a batch; each change is a line in the log at level info.
        worker_kind: "inline", "thread", "fork", "spawn"; "auto" is inline for num_workers=0, else threads.
        drop_last: leaves out a last batch that is not full.
        seed: of the shuffle and of all transforms.
        threads_per_worker: threads of each worker.
        prefetch: batches in flight, in all; 0: 2, up to 8 where they are small; max(2, workers + 1) for whole filling.
        filling: "cooperative" (all workers fill the oldest batch), "whole" (one worker a batch) or "auto".
        in_order: batches come in the sampler's order, or as they are ready.
        collate: for fields of variable size: one of infeed.collates, or "stack", "pad", "ragged".
        stream_shards: shards of a stream; 0: one per worker. They, not the workers, fix the order.
        on_error: "raise" (DataError), "skip" or "replace" a sample that cannot be read; see stats().
        timeout: seconds that next() waits for its batch before TimeoutError; 0: for ever.
        start_timeout: seconds that a spawned worker may take to attach.
        max_restarts: workers that may be replaced after dying; -1: as many as num_workers.
        worker_init_name: for "spawn": a worker_init that the dataset's plugin registered.
        cpu_affinity: worker i is bound to cpu_affinity[i % len].
        worker_executable: path of infeed-worker; "": $INFEED_WORKER, then the package's own.
        memory_limit: bytes that batches in flight and held may take together; 0: what the machine allows.
        memory_budget: with num_workers="auto", bytes that this process and the workers may have (PSS); 0: the machine's.
        extent_bytes: address space of one batch; 0: twice the batch where its size is known, else 1 GiB.
        device: where batches arrive. "cuda:0" (0, or a torch.device), with output="torch": tensors there, in memory of torch's
            allocator, for work in compute_stream. "simulated:0": copied by infeed's model of an accelerator. None: the host.
        prefetch_to_device: batches copied ahead of next(), one batch of device memory each. 0: batches stay on the
            host, page-locked for `device`, and are written again only when all that was queued there, in any stream,
            by the next() after they were dropped, is done.
        compute_stream: a torch.cuda.Stream: it waits for the copies to "cuda:0", and the batches are used in it. None: the
            one that is current at next().
        pin_memory: prefetch_to_device=0, on "cuda:0" if no device is named.
        output: "numpy", "torch" (tensors) or "dlpack" (objects with __dlpack__ and the buffer protocol).
        as_tuple: batches are tuples in the order of dataset.fields, not dicts.
    """

    def __init__(
        self,
        dataset: Dataset | Stream,
        batch_size: int = 1,
        shuffle: bool = False,
        sampler: Sampler | Iterable[int] | None = None,
        batch_sampler: BatchSampler | Iterable[Sequence[int]] | None = None,
        num_workers: int | Literal["auto"] = 0,
        worker_kind: str = "auto",
        *,
        drop_last: bool = False,
        seed: int = 0,
        threads_per_worker: int = 1,
        prefetch: int = 0,
        filling: str = "auto",
        in_order: bool = True,
        collate: str | Stack | Pad | Ragged | None = None,
        stream_shards: int = 0,
        on_error: str = "raise",
        timeout: float = 0,
        start_timeout: float = 60,
        max_restarts: int = -1,
        worker_init_name: str = "",
        cpu_affinity: Sequence[int] = (),
        worker_executable: str = "",
        memory_limit: int = 0,
        memory_budget: int = 0,
        extent_bytes: int = 0,
        device: torch.device | str | int | None = None,
        prefetch_to_device: int = 2,
        compute_stream: torch.cuda.Stream | None = None,
        pin_memory: bool = False,
        output: str = "numpy",
        as_tuple: bool = False,
    ) -> None:
        if not isinstance(dataset, (Dataset, Stream)):
            raise TypeError(
                f"dataset is a {type(dataset).__name__}; infeed.Loader reads those of infeed.datasets. "
                "For datasets written in Python there is infeed.torch.DataLoader."
            )
        _check_names(worker_kind=worker_kind, filling=filling, on_error=on_error, output=output)
        self.dataset = dataset
        self.batch_size = batch_size
        self.output = output
        options = _options(
            batch_size=batch_size,
            shuffle=shuffle,
            num_workers=0 if num_workers == "auto" else num_workers,
            drop_last=drop_last,
            seed=seed,
            threads_per_worker=threads_per_worker,
            prefetch=prefetch,
            in_order=in_order,
            stream_shards=stream_shards,
            timeout_ms=_milliseconds("timeout", timeout),
            start_timeout_ms=_milliseconds("start_timeout", start_timeout),
            max_restarts=max_restarts,
            worker_init_name=worker_init_name,
            cpu_affinity=list(cpu_affinity),
            worker_executable=worker_executable,
            memory_limit=memory_limit,
            memory_budget=memory_budget,
            extent_bytes=extent_bytes,
            device=_device_name(device),
            prefetch_to_device=prefetch_to_device,
            pin_memory=pin_memory,
        )
        self._stages = options.prefetch_to_device > 0 and not pin_memory and _is_cuda(options.device)
        if self._stages:
            self._target = _target(options.device, options.prefetch_to_device, compute_stream, output)
            options.prefetch_to_device = 0
        elif compute_stream is not None:
            raise ConfigError(
                "compute_stream is given, and no batches are copied to a GPU: give device='cuda:0' as well."
            )
        if num_workers == "auto":
            options.set_auto_workers()
        options.set_worker_kind(worker_kind)
        options.set_filling(filling)
        options.set_on_error(on_error)
        if sampler is not None:
            options.set_sampler(native_sampler(sampler))
        if batch_sampler is not None:
            options.set_batch_sampler(native_batch_sampler(batch_sampler))
        if collate is not None:
            options.set_collate(*collate_spec(collate))
        batch_type = BatchTuple if as_tuple else Batch
        self._native = _native.Loader(dataset._native, options, output, batch_type)
        self._staged: Any = None  # the newest iterator of a loader that stages
        self._text = f"{dataset!r}, batch_size={batch_size}, worker_kind={worker_kind!r}"
        _live.add(self)

    def __iter__(self) -> Iterator[Any]:
        """One epoch of batches: Batch (a dict), or BatchTuple."""
        if not self._stages:
            return iter(self._native)
        from infeed.torch._native_staging import StagedIterator

        self._drop_staged()
        self._staged = StagedIterator(self._native, self._target.staging())
        return self._staged

    def __len__(self) -> int:
        """Batches per epoch; TypeError where the sampler or the stream does not know."""
        size = self._native.size()
        if size is None:
            raise TypeError("this loader does not know how many batches an epoch has")
        return size

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Stops the workers. Batches that are held stay valid. A next() on another thread leaves with WorkerError."""
        self._native.close()
        if self._staged is not None:
            self._staged.close()

    @property
    def epoch(self) -> int:
        """Epoch of the batches that come now (or that the next iter() begins)."""
        staged = self._staged_position
        return self._native.epoch() if staged is None else staged[1]

    def set_epoch(self, epoch: int) -> None:
        """The next epoch to begin is `epoch`; drops the rest of the running one."""
        self._drop_staged()
        self._native.set_epoch(epoch)

    def reset(self) -> None:
        """Drops the rest of the running epoch."""
        self._drop_staged()
        self._native.reset()

    def state_dict(self) -> dict[str, Any]:
        """Position as of the last batch that was given: small, JSON-able, for any kind and number of workers. Equal to
        the C++ loader's state."""
        staged = self._staged_position
        return json.loads(self._native.state_dict() if staged is None else staged[0])

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """The next batch, of the next iter(), is the one after the saved position. StateError where it is not ours."""
        self._native.load_state_dict(json.dumps(state))
        self._drop_staged()

    @property
    def num_workers(self) -> int:
        return self._native.num_workers()

    def set_num_workers(self, num_workers: int) -> None:
        """Adds or removes workers, also while an epoch runs; the batches stay the same."""
        self._native.set_num_workers(num_workers)

    def keep_memory_warm(self) -> None:
        """Memory that batches have used is never given back to the system: needed where a device page-locks it."""
        self._native.keep_memory_warm()

    @property
    def _staged_position(self) -> Any:
        return None if self._staged is None else self._staged.position

    def _drop_staged(self) -> None:
        if self._staged is not None:
            self._staged.drop()

    def stats(self) -> Any:
        """Where time and memory go: attributes by the names of LoaderStats; str() gives a table. `staging`: of the way to a
        device, and of page locks; else None."""
        stats = self._native.stats()
        if self._stages:
            self._target.transfers.show(stats)
        return stats

    def reset_stats(self) -> None:
        self._native.reset_stats()
        if self._stages:
            self._target.transfers.reset()

    def __repr__(self) -> str:
        return f"Loader({self._text}, output={self.output!r})"


def _device_name(device: Any) -> str:
    """C++'s name of a device; a number is that of a GPU, as in PyTorch."""
    if device is None:
        return ""
    return f"cuda:{device}" if is_integer(device) else str(device)


def _is_cuda(device: str) -> bool:
    return device.partition(":")[0] == "cuda"


def _target(device: str, prefetch_to_device: int, compute_stream: Any, output: str) -> Any:
    if output != "torch":
        raise ConfigError(
            f"device is '{device}' and output '{output}'; batches arrive on a GPU as torch's tensors: use output=\"torch\", or "
            "prefetch_to_device=0 for page-locked batches on the host."
        )
    from infeed.torch._native_staging import Target

    return Target(device, prefetch_to_device, compute_stream)


def _check_names(**values: Any) -> None:
    for option, value in values.items():
        if not isinstance(value, str):
            raise TypeError(f"{option} cannot be {value!r}")


def _milliseconds(option: str, seconds: float) -> int:
    if not isinstance(seconds, Real):
        raise TypeError(f"{option} cannot be {seconds!r}")
    if seconds < 0:
        raise ConfigError(f"{option} is {seconds}; use 0 for none")
    return -int(-seconds * 1000 // 1)


def _options(**values: Any) -> Any:
    options = _native.LoaderOptions()
    for name, value in values.items():
        try:
            setattr(options, name, value)
        except TypeError:
            raise TypeError(f"{name} cannot be {value!r}") from None
    return options


# Workers end before the interpreter takes modules apart.
_live: weakref.WeakSet[Loader] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for loader in list(_live):
        loader.close()
