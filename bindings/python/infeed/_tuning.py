"""How many workers? infeed.tune searches, infeed.sweep measures all, infeed.bench one: on your own data and step."""

from __future__ import annotations

import dataclasses
import json
import math
import sys
from collections.abc import Callable, Sequence
from typing import Any

from infeed import _native
from infeed._run import run
from infeed.errors import ConfigError, MemoryError, WorkerError

__all__ = ["Setting", "Sweep", "Tuned", "bench", "sweep", "tune"]

_FORMS = ("json", "csv", "svg")


@dataclasses.dataclass(frozen=True)
class Setting:
    """What one can turn. `kind` is "thread", "fork" or "spawn"; without workers "inline"."""

    num_workers: int
    kind: str = "fork"
    prefetch: int = 0  # batches in flight, in all; 0: the loader's default

    @property
    def prefetch_factor(self) -> int | None:
        """The same for each worker, as PyTorch counts."""
        if self.num_workers == 0:
            return None
        return math.ceil(self.prefetch / self.num_workers) if self.prefetch > 0 else 2

    def torch_options(self) -> dict[str, Any]:
        """For infeed.torch.DataLoader, or torch's."""
        if self.num_workers == 0:
            return {"num_workers": 0}
        context = self.kind if self.kind in ("fork", "spawn") else None
        return {
            "num_workers": self.num_workers,
            "prefetch_factor": self.prefetch_factor,
            "multiprocessing_context": context,
            "persistent_workers": True,
        }

    def native_options(self) -> dict[str, Any]:
        """For infeed.Loader."""
        return {"num_workers": self.num_workers, "worker_kind": self.kind, "prefetch": self.prefetch}


class _Found:
    """str() is for people; csv(), json() and svg() give texts, save() writes one by the name's end."""

    def __init__(self, texts: tuple[str, str, str, str]) -> None:
        self._json, self._text, self._csv, self._svg = texts
        self._data: dict[str, Any] = json.loads(self._json)
        self.reason: str = self._data["why"]
        self.rules: list[dict[str, Any]] = self._data["rules"]
        self.interrupted: bool = self._data["interrupted"]

    def __str__(self) -> str:
        return self._text

    def json(self) -> str:
        return self._json

    def csv(self) -> str:
        return self._csv

    def svg(self) -> str:
        return self._svg

    def save(self, path: str) -> None:
        """`path` ends in .json, .csv or .svg; any other gets what str() gives."""
        form = path.rpartition(".")[2]
        with open(path, "w") as file:
            file.write(getattr(self, form)() if form in _FORMS else str(self))


class Tuned(_Found):
    """What infeed.tune found: `setting`, the `reason`, and the `trials` in their order, a dict each."""

    def __init__(self, texts: tuple[str, str, str, str]) -> None:
        super().__init__(texts)
        self.setting = _setting_of(self._data["chosen"])
        self.trials: list[dict[str, Any]] = self._data["trials"]


class Sweep(_Found):
    """What infeed.sweep measured: `rows`, a dict each, and the `setting` it recommends, with the `reason`."""

    def __init__(self, texts: tuple[str, str, str, str]) -> None:
        super().__init__(texts)
        self.setting = _setting_of(self._data["chosen"])
        self.rows: list[dict[str, Any]] = self._data["rows"]
        self.model: dict[str, Any] = self._data["model"]


def tune(
    data: Any,
    step: Callable[[Any], Any] | None = None,
    *,
    memory_budget: int | None = None,
    max_trials: int = 12,
    max_workers: int = 64,
    kinds: Sequence[str] | None = None,
    tolerance: float = 0.02,
    seconds: float = 1.5,
    repetitions: int = 1,
    progress: bool | None = None,
    **options: Any,
) -> Tuned:
    """Finds the smallest setting within `tolerance` of the best throughput, in at most `max_trials` short trials.

        tuned = infeed.tune(dataset, train_step, batch_size=64, memory_budget=8 << 30)
        print(tuned)
        loader = infeed.torch.DataLoader(dataset, batch_size=64, **tuned.setting.torch_options())

    Args:
        data: A dataset of PyTorch's kind or of infeed.datasets; or a function that makes a loader of a Setting, any
            iterable of batches (infeed's are known better: their stats() enter the report).
        step: Called with every batch, in this thread. Wait for the device in it. Default: nothing is done with them.
        memory_budget: Bytes that all processes may have, shared pages once. What is foreseen to exceed it is not run.
        kinds: "thread" (infeed.datasets only), "fork", "spawn": the first is searched, the others tried at the end. Default:
            threads alone for infeed.datasets, else fork alone.
        seconds: Of each trial, after a warm-up.
        repetitions: Runs of each trial; their median counts.
        progress: A line on standard error. Default: where that is a terminal.
        options: Of the loader that is made of a dataset: batch_size, shuffle, collate_fn ...

    Raises ConfigError where no setting could run. Ctrl-C ends the search with what was tried. A setting whose workers die
    is refused; what else the dataset or the step raises ends it, with what was measured until then as a note (from
    Python 3.11 on).
    """
    job = _Job(data, step, seconds, options, progress)
    return Tuned(
        job.texts(
            _native.tune,
            kinds=list(kinds or job.kinds[:1]),
            max_workers=max_workers,
            memory_budget=memory_budget or 0,
            batch_bytes=0,
            tolerance=tolerance,
            max_trials=max_trials,
            repetitions=repetitions,
        )
    )


def sweep(
    data: Any,
    step: Callable[[Any], Any] | None = None,
    *,
    workers: Sequence[int] = (0, 1, 2, 4, 8),
    kinds: Sequence[str] | None = None,
    prefetch: Sequence[int] = (0,),
    repetitions: int = 3,
    seconds: float = 2,
    progress: bool | None = None,
    **options: Any,
) -> Sweep:
    """Measures every number of workers with every kind: samples/s, memory, spread, and fits the model of docs/tuning.md.

    Repetitions go in turns over all settings. `prefetch` counts batches in flight; the rest is as in tune(). Ctrl-C
    keeps what was measured.
    """
    job = _Job(data, step, seconds, options, progress)
    return job.sweep(kinds or job.kinds, workers, prefetch, repetitions)


def bench(
    data: Any,
    step: Callable[[Any], Any] | None = None,
    *,
    num_workers: int = 2,
    kind: str | None = None,
    prefetch: int = 0,
    repetitions: int = 3,
    seconds: float = 2,
    progress: bool | None = None,
    **options: Any,
) -> Sweep:
    """Measures one setting, and says what bounds it: a sweep of one row."""
    job = _Job(data, step, seconds, options, progress)
    return job.sweep([kind] if kind is not None else job.kinds[:1], [num_workers], [prefetch], repetitions)


def _setting_of(row: dict[str, Any]) -> Setting:
    setting = row["setting"]
    return Setting(setting["num_workers"], setting["worker_kind"], setting["prefetch"])


class _Job:
    """What is done with every setting."""

    def __init__(
        self,
        data: Any,
        step: Callable[[Any], Any] | None,
        seconds: float,
        options: dict[str, Any],
        progress: bool | None,
    ) -> None:
        self._epoch = len(data) if hasattr(data, "__len__") else 0
        self._step = step
        self._seconds = seconds
        self._shows_progress = sys.stderr.isatty() if progress is None else progress
        self._runs = 0
        self._error: Exception | None = None  # that ended it
        self._make, self.kinds = _maker(data, options)

    def _run(self, kind: str, num_workers: int, prefetch: int) -> Any:
        setting = Setting(num_workers, kind, prefetch)
        self._runs += 1
        self._show(f"run {self._runs}: {num_workers} workers ({kind}) ...")
        try:
            return run(lambda: self._make(setting), self._step, num_workers, self._seconds)
        except (ConfigError, MemoryError, WorkerError):
            raise  # this setting is refused
        except Exception as error:
            self._error = error
            figures = _native.RunFigures()
            figures.stopped = True
            return figures

    def sweep(self, kinds: Sequence[str], workers: Sequence[int], prefetch: Sequence[int], repetitions: int) -> Sweep:
        return Sweep(
            self.texts(
                _native.sweep,
                kinds=list(kinds),
                workers=list(workers),
                prefetch=list(prefetch),
                repetitions=repetitions,
                samples=self._epoch,
            )
        )

    def texts(self, measure: Callable[..., tuple[str, str, str, str]], **options: Any) -> tuple[str, str, str, str]:
        """JSON, text, CSV and SVG of all runs. An error of one of them is raised, with a note of those before."""
        try:
            texts = measure(self._run, **options)
        except Exception as error:
            raise (self._error or error) from None
        finally:
            self._show("")
        if self._error is None:
            return texts
        if hasattr(self._error, "add_note"):
            self._error.add_note(f"Measured until then:\n{texts[1]}")
        raise self._error

    def _show(self, text: str) -> None:
        if self._shows_progress:
            print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def _maker(data: Any, options: dict[str, Any]) -> tuple[Callable[[Setting], Any], tuple[str, ...]]:
    """What makes a loader of a setting, and the kinds of workers it may have, the usual one first."""
    if callable(data) and not hasattr(data, "__getitem__"):
        if options:
            raise TypeError(f"options of a loader that your function makes are its own: {', '.join(options)}")
        return data, ("fork",)
    from infeed.datasets import Dataset

    if isinstance(data, Dataset):
        from infeed.loader import Loader

        return lambda setting: Loader(data, **setting.native_options(), **options), ("thread", "fork")
    from infeed.torch import DataLoader

    return lambda setting: DataLoader(data, **{**setting.torch_options(), **options}), ("fork",)
