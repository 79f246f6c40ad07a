"""infeed's engine. Use it through the package infeed."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any


class WorkerStats:
    @property
    def id(self) -> int: ...

    @property
    def pid(self) -> int: ...

    @property
    def samples(self) -> int: ...

    @property
    def busy_s(self) -> float: ...

    @property
    def wait_s(self) -> float: ...

    @property
    def in_hand_s(self) -> float: ...

    @property
    def stopped(self) -> bool: ...

    @property
    def restarts(self) -> int: ...

class Verdict:
    """
    What bounds a pipeline, and the knob to turn. str() gives both sentences.
    """

    @property
    def bound(self) -> str: ...

    @property
    def cause(self) -> str: ...

    @property
    def share(self) -> float: ...

    @property
    def finding(self) -> str: ...

    @property
    def advice(self) -> str: ...

    @property
    def knobs(self) -> dict[str, str]: ...

    def __str__(self) -> str: ...

class FaultySample:
    @property
    def index(self) -> int: ...

    @property
    def replaced_by(self) -> int: ...

    @property
    def reason(self) -> str: ...

class StagerStats:
    """Of batches on their way to a device. str() is for people."""

    def __init__(self) -> None: ...

    @property
    def batches(self) -> int: ...

    @batches.setter
    def batches(self, arg: int, /) -> None: ...

    @property
    def bytes(self) -> int: ...

    @bytes.setter
    def bytes(self, arg: int, /) -> None: ...

    @property
    def elapsed_s(self) -> float: ...

    @elapsed_s.setter
    def elapsed_s(self, arg: float, /) -> None: ...

    @property
    def copy_s(self) -> float: ...

    @copy_s.setter
    def copy_s(self, arg: float, /) -> None: ...

    @property
    def copy_bytes_per_s(self) -> float: ...

    @copy_bytes_per_s.setter
    def copy_bytes_per_s(self, arg: float, /) -> None: ...

    @property
    def copy_share(self) -> float: ...

    @copy_share.setter
    def copy_share(self, arg: float, /) -> None: ...

    @property
    def starved_share(self) -> float: ...

    @starved_share.setter
    def starved_share(self, arg: float, /) -> None: ...

    @property
    def batches_held(self) -> int: ...

    @batches_held.setter
    def batches_held(self, arg: int, /) -> None: ...

    @property
    def registrations(self) -> int: ...

    @registrations.setter
    def registrations(self, arg: int, /) -> None: ...

    @property
    def registered_bytes(self) -> int: ...

    @registered_bytes.setter
    def registered_bytes(self, arg: int, /) -> None: ...

    @property
    def device_bytes(self) -> int: ...

    @device_bytes.setter
    def device_bytes(self, arg: int, /) -> None: ...

    def __str__(self) -> str: ...

class LoaderStats:
    """Where the time and the memory of a Loader go. str() gives a table."""

    @property
    def batches(self) -> int: ...

    @property
    def samples(self) -> int: ...

    @property
    def elapsed_s(self) -> float: ...

    @property
    def samples_per_s(self) -> float: ...

    @property
    def first_batch_ms(self) -> float: ...

    @property
    def wait_s(self) -> float: ...

    @property
    def sampler_s(self) -> float: ...

    @property
    def hand_over_s(self) -> float: ...

    @property
    def trainer_s(self) -> float: ...

    @property
    def starved_share(self) -> float: ...

    @property
    def waits(self) -> int: ...

    @property
    def longest_wait_ms(self) -> float: ...

    @property
    def worst_tenth_share(self) -> float: ...

    @property
    def blocked_share(self) -> float: ...

    @property
    def read_us(self) -> float: ...

    @property
    def decode_us(self) -> float: ...

    @property
    def transform_us(self) -> float: ...

    @property
    def collate_us(self) -> float: ...

    @property
    def other_us(self) -> float: ...

    @property
    def bytes_read(self) -> int: ...

    @property
    def on_cpu_share(self) -> float: ...

    @property
    def cpu_queue_share(self) -> float: ...

    @property
    def trainer_cpu_queue_share(self) -> float: ...

    @property
    def num_workers(self) -> int: ...

    @property
    def threads_per_worker(self) -> int: ...

    @property
    def prefetch(self) -> int: ...

    @property
    def prefetch_factor(self) -> int: ...

    @property
    def usable_cpus(self) -> float: ...

    @property
    def memory_limit(self) -> int: ...

    @property
    def short_of_memory_share(self) -> float: ...

    @property
    def pss_bytes(self) -> int: ...

    @property
    def arena_bytes(self) -> int: ...

    @property
    def batches_held(self) -> int: ...

    @property
    def private_copies(self) -> int: ...

    @property
    def restarts(self) -> int: ...

    @property
    def skipped(self) -> int: ...

    @property
    def replaced(self) -> int: ...

    @property
    def faulty(self) -> list[FaultySample]: ...

    @property
    def workers(self) -> list[WorkerStats]: ...

    @property
    def staging(self) -> StagerStats | None: ...

    @staging.setter
    def staging(self, staging: StagerStats | None) -> None: ...

    @property
    def verdict(self) -> Verdict:
        """What bounds the pipeline, and the knob to turn."""

    def to_json(self) -> str:
        """All but `faulty`, with the verdict."""

    @staticmethod
    def from_json(json: str) -> LoaderStats: ...

    def __getstate__(self) -> str: ...

    def __setstate__(self, arg: str, /) -> None: ...

    def __str__(self) -> str: ...

class Trace:
    """Records every loader of this process. See infeed.trace."""

    def __init__(self, path: str = '') -> None: ...

    def end(self) -> None:
        """Ends it, and writes the file. Idempotent."""

    def json(self) -> str: ...

    def write(self, path: str) -> None: ...

def trace_running() -> bool: ...

def trace_span(name: str, begin_ns: int, end_ns: int) -> None:
    """Of time.perf_counter_ns(). Nothing where no trace runs."""

def examine(root: str = '', stats: LoaderStats | None = None) -> tuple[str, str]:
    """What infeed.doctor is made of: JSON, and text."""

class RunFigures:
    """Of one run of a setting."""

    def __init__(self) -> None: ...

    @property
    def samples_per_s(self) -> float: ...

    @samples_per_s.setter
    def samples_per_s(self, arg: float, /) -> None: ...

    @property
    def memory_bytes(self) -> float: ...

    @memory_bytes.setter
    def memory_bytes(self, arg: float, /) -> None: ...

    @property
    def utilisation(self) -> float: ...

    @utilisation.setter
    def utilisation(self, arg: float, /) -> None: ...

    @property
    def transfer_share(self) -> float: ...

    @transfer_share.setter
    def transfer_share(self, arg: float, /) -> None: ...

    @property
    def first_batch_ms(self) -> float: ...

    @first_batch_ms.setter
    def first_batch_ms(self, arg: float, /) -> None: ...

    @property
    def others_share(self) -> float: ...

    @others_share.setter
    def others_share(self, arg: float, /) -> None: ...

    @property
    def sample_s(self) -> float: ...

    @sample_s.setter
    def sample_s(self, arg: float, /) -> None: ...

    @property
    def cpu_share(self) -> float: ...

    @cpu_share.setter
    def cpu_share(self, arg: float, /) -> None: ...

    @property
    def stopped(self) -> bool: ...

    @stopped.setter
    def stopped(self, arg: bool, /) -> None: ...

    @property
    def verdict(self) -> str: ...

    @verdict.setter
    def verdict(self, arg: str, /) -> None: ...

class Meter:
    """What the processes `pids` take from now on."""

    def __init__(self, pids: Sequence[int]) -> None: ...

    def others_share(self) -> float: ...

    def memory_bytes(self) -> float: ...

def sweep(run: Callable, kinds: Sequence[str], workers: Sequence[int], prefetch: Sequence[int], repetitions: int, samples: int) -> tuple:
    """
    run(kind, workers, prefetch) gives RunFigures. Returns JSON, text, CSV and SVG.
    """

def tune(run: Callable, kinds: Sequence[str], max_workers: int, memory_budget: int, batch_bytes: int, tolerance: float, max_trials: int, repetitions: int) -> tuple:
    """
    run(kind, workers, prefetch) gives RunFigures. Returns JSON, text, CSV and SVG.
    """

class Lease:
    """
    A message's bytes, writable through the buffer protocol.

    The memory goes home when the Lease and every view of it are gone, on any thread, also after
    its exchange.
    """

    @property
    def nbytes(self) -> int: ...

    def __len__(self) -> int: ...

    def __buffer__(self, flags: int, /) -> memoryview: ...

class ExchangeHandle:
    """
    What a worker needs to attach. Forked workers get it as it is; it is picklable only
    while multiprocessing spawns a process.
    """

    def __init__(self, arg0: object, arg1: object, arg2: int, arg3: int, arg4: int, arg5: int, arg6: int, /) -> None:
        """For unpickling: two multiprocessing.reduction.DupFd, and the geometry."""

    def __reduce__(self) -> tuple[Any, ...]: ...

class Exchange:
    """
    The consumer's end: tasks to workers, one message back for each. See docs/exchange.md.
    """

    def __init__(self, num_workers: int, num_slots: int, memory_limit: int = 0, extent_bytes: int = 0, keep_memory: bool = False) -> None: ...

    def handle(self) -> ExchangeHandle: ...

    def post(self, number: int, worker: int, task: object) -> None:
        """
        Gives `worker` a task: a list of int, or bytes; -1: whoever is free.

        Raises TypeError or OverflowError for anything but ints of 64 bits, RuntimeError where no slot is free.
        """

    def wait(self, numbers: Sequence[int], death_fds: Sequence[int], timeout: float | None) -> int:
        """
        Waits, at most `timeout` seconds (None: for ever), until one of `numbers` is ready: its place in the list.

        -1: nothing within the time. -2 - i: death_fds[i] is readable, and no number is ready.
        """

    def ready(self, number: int) -> bool: ...

    def take(self, number: int) -> Lease:
        """
        The message of a ready task. MemoryError where it would exceed memory_limit.
        """

    def cancel(self, number: int) -> None:
        """Drops a task; its memory comes home by itself."""

    def close(self) -> None:
        """Stops, and lets go of the memory. Idempotent; leases stay valid."""

    @property
    def held(self) -> int: ...

    @property
    def max_task_words(self) -> int: ...

    def bury(self, worker: int) -> list[int]:
        """
        After `worker` is surely dead: its tasks wait for its replacement, what it had in hand of anyone's for any
        other. The numbers of the unfinished ones.
        """

    def retire(self, worker: int) -> None:
        """
        `worker` finishes the task in hand, sees port.stopping and leaves. Then call bury().
        """

    def recruit(self, worker: int) -> None:
        """
        A worker of this id may work, as all may at first. Not before a retired one of that id has ended.
        """

    def sample_in_hand(self, worker: int) -> tuple[int, int]: ...

    def stop(self) -> None:
        """The workers see port.stopping and leave."""

    def stats(self) -> dict: ...

    def turn_began(self) -> None: ...

    def turn_drew(self, ns: int) -> None: ...

    def turn_ended(self, samples: int) -> None: ...

    def loader_stats(self, prefetch_factor: int) -> LoaderStats: ...

class AutoCount:
    """
    How many workers there should be, found while the trainer runs. See docs/tuning.md.
    """

    def __init__(self, memory_budget: int = 0, usable_cpus: float = 0, deepest: int = 1) -> None: ...

    @property
    def workers(self) -> int: ...

    @property
    def most(self) -> int: ...

    @property
    def times_deeper(self) -> int:
        """As many tasks ahead as is usual for so many workers."""

    def turn_began(self) -> None: ...

    def turn_ended(self, with_batch: bool, exchange: Exchange) -> str | None:
        """
        Why `workers` or `times_deeper` changed by this turn; None: they did not.
        """

    def refuse(self, workers: int, why: str) -> None:
        """No more than so many could be had."""

    def closes(self, exchange: Exchange) -> None:
        """The exchange goes, another will follow."""

class WorkerPort:
    """
    A worker's end. In another process than the consumer's it ends the process once the
    consumer is dead.
    """

    def __init__(self, handle: ExchangeHandle, worker: int) -> None: ...

    def claim(self, timeout: float) -> tuple[int, list[int] | bytes] | None:
        """
        The oldest task for this worker; None: none within `timeout` seconds, or stopping.
        """

    def memory(self) -> memoryview:
        """The claimed task's whole extent. Void after publish()."""

    def note(self, index: int) -> None: ...

    def publish(self, nbytes: int, collate_ns: int = 0) -> None: ...

    @property
    def stopping(self) -> bool:
        """The exchange stops, or this worker is retired: leave."""

    @property
    def worker(self) -> int: ...

class WorkerFork:
    """
    with WorkerFork(): processes that this thread forks are workers; messages held meanwhile are
    reused later as if there had been no fork.
    """

    def __init__(self) -> None: ...

    def __enter__(self) -> None: ...

    def __exit__(self, *exception: object) -> None: ...

class Message:
    """A reply that is being written into `memory`, a writable buffer."""

    def __init__(self, memory: object) -> None: ...

    def fetch(self, dataset: object, indices: object, note: object | None = None) -> object:
        """
        Collates dataset[i] for each index in place: None. A list of the samples where torch must collate them.
        """

    def gather(self, samples: list) -> object:
        """The same for a list of samples."""

    def stack(self, batch: object) -> object:
        """torch.stack(batch) in this memory, or None."""

    @property
    def stacking(self) -> bool:
        """Whether a collate function is running: else stack() returns None."""

    @stacking.setter
    def stacking(self, arg: bool, /) -> None: ...

    def collated_pickle(self) -> bytes | None: ...

    def collated_value(self) -> object: ...

    def add_tensor(self, tensor: object) -> bool: ...

    def add_array(self, array: object) -> bool: ...

    def add_buffer(self, buffer: object) -> None: ...

    def drop_leaves(self) -> None: ...

    def write(self, tag: int, data: bytes, extra: object | None) -> int: ...

def decode(lease: object) -> tuple:
    """
    (tag, data, extra) of a message; its tensors and arrays are writable views of the lease's memory.
    """

def leaf(value: Any) -> Any:
    """What pickles put around an out-of-band leaf: itself."""

def handle_worker_signals(consumer_pid: int) -> None:
    """
    In a worker: SIGBUS, SIGSEGV and SIGFPE say so on stderr before they end it; SIGTERM ends it with exit
    code 0 if it comes from the consumer or the parent.
    """

class Array:
    """
    An array in the loader's memory, for whatever takes DLPack or buffers. Writable; a view.
    """

    @property
    def shape(self) -> tuple: ...

    @property
    def strides(self) -> tuple:
        """In elements, as DLPack's."""

    @property
    def dtype(self) -> str: ...

    @property
    def nbytes(self) -> int: ...

    def __dlpack__(self, *, stream: object | None = None, max_version: object | None = None, dl_device: object | None = None, copy: object | None = None) -> object: ...

    def __dlpack_device__(self) -> tuple: ...

    def __len__(self) -> int: ...

    def __repr__(self) -> str: ...

class Compose:
    def __init__(self, arg: str, /) -> None: ...

    @property
    def dtype(self) -> str: ...

    @property
    def output_shape(self) -> tuple: ...

    def to_json(self) -> str: ...

class Dataset:
    @staticmethod
    def image_folder(arg0: bytes, arg1: Compose, arg2: bool, arg3: bool, arg4: bool, arg5: int, arg6: Sequence[str], arg7: str, arg8: str, arg9: str, arg10: int, arg11: bytes, /) -> Dataset: ...

    @staticmethod
    def arrays(arg0: Sequence[tuple[str, object]], arg1: Mapping[str, str], /) -> Dataset: ...

    @staticmethod
    def make(arg0: str, arg1: str, arg2: str, /) -> Dataset:
        """A dataset that the registry, or a plugin's, knows by name."""

    def __len__(self) -> int: ...

    def fields(self) -> list: ...

    def read(self, index: int, seed: int, epoch: int, output: str) -> dict: ...

    def describe(self, arg: int, /) -> str: ...

    def classes(self) -> list[str]: ...

    def path(self, arg: int, /) -> str: ...

    def label(self, arg: int, /) -> int: ...

    def cache_stats(self) -> tuple: ...

    def paths(self) -> list[str]: ...

class Stream:
    @staticmethod
    def of_dataset(arg: Dataset, /) -> Stream: ...

    @staticmethod
    def make(arg0: str, arg1: str, /) -> Stream: ...

    def size(self) -> object: ...

    def fields(self) -> list: ...

class Sampler:
    @staticmethod
    def sequential(arg: int, /) -> Sampler: ...

    @staticmethod
    def random(size: int, replacement: bool, num_samples: int | None, seed: int) -> Sampler: ...

    @staticmethod
    def subset_random(arg0: Sequence[int], arg1: int, /) -> Sampler: ...

    @staticmethod
    def weighted(arg0: Sequence[float], arg1: int, arg2: bool, arg3: int, /) -> Sampler: ...

    @staticmethod
    def distributed(arg0: int, arg1: int, arg2: int, arg3: bool, arg4: int, arg5: bool, /) -> Sampler: ...

    @staticmethod
    def feistel(arg0: int, arg1: int, arg2: int, arg3: int, arg4: bool, /) -> Sampler: ...

    @staticmethod
    def of_iterable(arg: object, /) -> Sampler: ...

    def start_epoch(self, arg: int, /) -> None: ...

    def next(self, arg: int, /) -> list: ...

    def size(self) -> int | None: ...

class BatchSampler:
    @staticmethod
    def fixed(arg0: Sampler, arg1: int, arg2: bool, /) -> BatchSampler: ...

    @staticmethod
    def of_iterable(arg0: object, arg1: int, /) -> BatchSampler: ...

    def start_epoch(self, arg: int, /) -> None: ...

    def next(self) -> object: ...

    def size(self) -> int | None: ...

class BatchInfo:
    def __init__(self, arg0: object, arg1: int, arg2: int, /) -> None: ...

    @property
    def indices(self) -> list: ...

    @property
    def size(self) -> int: ...

    @property
    def epoch(self) -> int: ...

    @property
    def number(self) -> int: ...

class LoaderOptions:
    def __init__(self) -> None: ...

    @property
    def batch_size(self) -> int: ...

    @batch_size.setter
    def batch_size(self, arg: int, /) -> None: ...

    @property
    def shuffle(self) -> bool: ...

    @shuffle.setter
    def shuffle(self, arg: bool, /) -> None: ...

    @property
    def drop_last(self) -> bool: ...

    @drop_last.setter
    def drop_last(self, arg: bool, /) -> None: ...

    @property
    def seed(self) -> int: ...

    @seed.setter
    def seed(self, arg: int, /) -> None: ...

    @property
    def num_workers(self) -> int: ...

    @num_workers.setter
    def num_workers(self, arg: int, /) -> None: ...

    @property
    def threads_per_worker(self) -> int: ...

    @threads_per_worker.setter
    def threads_per_worker(self, arg: int, /) -> None: ...

    @property
    def prefetch(self) -> int: ...

    @prefetch.setter
    def prefetch(self, arg: int, /) -> None: ...

    @property
    def in_order(self) -> bool: ...

    @in_order.setter
    def in_order(self, arg: bool, /) -> None: ...

    @property
    def stream_shards(self) -> int: ...

    @stream_shards.setter
    def stream_shards(self, arg: int, /) -> None: ...

    @property
    def timeout_ms(self) -> int: ...

    @timeout_ms.setter
    def timeout_ms(self, arg: int, /) -> None: ...

    @property
    def start_timeout_ms(self) -> int: ...

    @start_timeout_ms.setter
    def start_timeout_ms(self, arg: int, /) -> None: ...

    @property
    def max_restarts(self) -> int: ...

    @max_restarts.setter
    def max_restarts(self, arg: int, /) -> None: ...

    @property
    def worker_init_name(self) -> str: ...

    @worker_init_name.setter
    def worker_init_name(self, arg: str, /) -> None: ...

    @property
    def cpu_affinity(self) -> list[int]: ...

    @cpu_affinity.setter
    def cpu_affinity(self, arg: Sequence[int], /) -> None: ...

    @property
    def worker_executable(self) -> str: ...

    @worker_executable.setter
    def worker_executable(self, arg: str, /) -> None: ...

    @property
    def device(self) -> str: ...

    @device.setter
    def device(self, arg: str, /) -> None: ...

    @property
    def prefetch_to_device(self) -> int: ...

    @prefetch_to_device.setter
    def prefetch_to_device(self, arg: int, /) -> None: ...

    @property
    def pin_memory(self) -> bool: ...

    @pin_memory.setter
    def pin_memory(self, arg: bool, /) -> None: ...

    @property
    def memory_limit(self) -> int: ...

    @memory_limit.setter
    def memory_limit(self, arg: int, /) -> None: ...

    @property
    def memory_budget(self) -> int: ...

    @memory_budget.setter
    def memory_budget(self, arg: int, /) -> None: ...

    @property
    def extent_bytes(self) -> int: ...

    @extent_bytes.setter
    def extent_bytes(self, arg: int, /) -> None: ...

    def set_auto_workers(self) -> None: ...

    def set_worker_kind(self, arg: str, /) -> None: ...

    def set_filling(self, arg: str, /) -> None: ...

    def set_on_error(self, arg: str, /) -> None: ...

    def set_sampler(self, arg: Sampler, /) -> None: ...

    def set_batch_sampler(self, arg: BatchSampler, /) -> None: ...

    def set_collate(self, arg0: str, arg1: str, /) -> None: ...

class DeviceEvent:
    def query(self) -> bool:
        """Whether all work before the mark is done."""

    def synchronize(self, timeout_ms: int = -1) -> bool:
        """
        Waits for the mark; False: not within `timeout_ms` (negative: no limit).
        """

class Device:
    """A device of open_device(). While it is held it stays open."""

    @property
    def name(self) -> str: ...

    def __str__(self) -> str: ...

    def record_all(self) -> DeviceEvent:
        """
        A mark behind all that was queued on the device so far, in all streams, whoever made them.
        """

    def register_host(self, address: int, nbytes: int) -> None:
        """Page-locks memory for the device."""

    def unregister_host(self, address: int) -> None: ...

    def is_registered(self, address: int, nbytes: int) -> bool: ...

def open_device(name: str) -> Device:
    """
    "cpu", "simulated:0", "cuda:0": the last by the plugin. ConfigError, DeviceError.
    """

class BatchIterator:
    def __iter__(self) -> BatchIterator: ...

    def __next__(self) -> Any: ...

class Loader:
    def __init__(self, arg0: object, arg1: LoaderOptions, arg2: str, arg3: object, /) -> None: ...

    def __iter__(self) -> BatchIterator: ...

    def close(self) -> None: ...

    def size(self) -> int | None: ...

    def epoch(self) -> int: ...

    def reset(self) -> None: ...

    def set_epoch(self, arg: int, /) -> None: ...

    def num_workers(self) -> int: ...

    def set_num_workers(self, arg: int, /) -> None: ...

    def keep_memory_warm(self) -> None: ...

    def stats(self) -> LoaderStats: ...

    def reset_stats(self) -> None: ...

    def state_dict(self) -> str: ...

    def load_state_dict(self, arg: str, /) -> None: ...

def decode_images(sources: Sequence, transforms: Compose, exact: bool, orient: bool, allow_truncated: bool, max_pixels: int, threads: int, seed: int, stacked: bool, output: str) -> object: ...

__version__: str
