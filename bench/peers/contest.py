"""Loaders in turn, A B C A B C ..., each measurement in a fresh process that is ended with all it started."""

import contextlib
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from peers import LOADERS

ROOT = Path(__file__).resolve().parents[2]
_START_LIMIT_S = 120  # importing TensorFlow on a loaded machine; FFCV compiles for 10 s
_TRIES = 2  # a loader that failed so often does not run again


class Unmeasured(Exception):
    """Why there is no figure, in words for the table."""


@dataclass(frozen=True)
class Entry:
    """A loader on a work."""

    work: str
    loader: str
    variant: str
    workers: int

    def __str__(self) -> str:
        return " ".join(filter(None, (self.work, self.loader, self.variant))) + f", workers: {self.workers}"


@dataclass
class Record:
    """What an entry did, a dict of measure.py a round; None for a round that failed."""

    entry: Entry
    rounds: list[dict[str, float] | None] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def series(self, key: str) -> list[float]:
        return [result[key] for result in self.rounds if result is not None]

    def median(self, key: str) -> float:
        """Raises Unmeasured where no round succeeded."""
        if not (values := self.series(key)):
            raise Unmeasured(f"{self.entry}: {self.failures[-1] if self.failures else 'not run'}")
        return statistics.median(values)

    @property
    def is_measured(self) -> bool:
        return any(result is not None for result in self.rounds)


def ratios(ours: Record, theirs: Record, key: str = "rate") -> list[float]:
    """Round by round, so that what slows a whole round cancels."""
    pairs = zip(ours.rounds, theirs.rounds, strict=False)
    return [a[key] / b[key] for a, b in pairs if a is not None and b is not None and b[key] > 0]


def interpreter() -> Path:
    """That of build/peers-venv, which also sees .venv; where it is not made, the one that runs this."""
    peers = ROOT / "build/peers-venv/bin/python"
    return peers if peers.is_file() else Path(sys.executable)


def package() -> Path:
    """Where the build leaves `infeed`; PYTHONPATH goes before it."""
    return ROOT / "build/release/python"


def command(entry: Entry, seconds: float, data: Path) -> list[str]:
    """Raises Unmeasured where the program is not built."""
    loader = LOADERS[entry.loader]
    if loader.is_program:
        try:
            program = import_module(f"peers.{loader.module}")
            return program.command(entry.work, entry.workers, seconds, data, entry.variant)
        except FileNotFoundError as error:
            raise Unmeasured(str(error)) from error
    words = [str(interpreter()), "-m", "peers.measure", "--loader", entry.loader, "--work", entry.work]
    words += ["--variant", entry.variant, "--workers", str(entry.workers)]
    return [*words, "--seconds", str(seconds), "--data", str(data)]


def end_group(process: subprocess.Popen[bytes]) -> None:
    """Kills what `process` leads, itself included, and reaps it."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def measure(entry: Entry, seconds: float, data: Path) -> dict[str, float]:
    """Raises Unmeasured where the loader fails, or does not end in time: then it is killed."""
    limit = _START_LIMIT_S + 3 * seconds
    path = os.pathsep.join(filter(None, (str(ROOT / "bench"), os.environ.get("PYTHONPATH"), str(package()))))
    # Two OpenMP threads for all alike; TensorFlow without its log.
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "2", "TF_CPP_MIN_LOG_LEVEL": "3"}
    words = command(entry, seconds, data)
    # Files, not pipes: what the loader leaves behind would keep a pipe open.
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=output, stderr=errors, env=environment, process_group=0
        )
        try:
            process.wait(timeout=limit)
        except subprocess.TimeoutExpired:
            raise Unmeasured(f"no result within {limit:.0f} s, killed") from None
        finally:
            end_group(process)
        return _result(process.returncode, _text(output), _text(errors))


def _text(file: Any) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")


def _result(status: int, output: str, errors: str) -> dict[str, float]:
    line = next((line for line in output.splitlines() if line.startswith("{")), None)
    if status == 0 and line is not None:
        return json.loads(line)
    last = (errors.strip().splitlines() or output.strip().splitlines() or ["no message"])[-1][:300]
    if last.startswith(("ModuleNotFoundError", "ImportError")):
        last += " (bench/peers/setup.sh installs the peers)"
    raise Unmeasured(f"ended with {status}: {last}")


def run(entries: Iterable[Entry], rounds: int, seconds: float, data: Path) -> list[Record]:
    """`rounds` measurements of each entry, in turn, each told on standard error."""
    records = [Record(entry) for entry in entries]
    for number in range(1, rounds + 1):
        for record in records:
            if len(record.failures) == _TRIES:
                record.rounds.append(None)
                continue
            try:
                result = measure(record.entry, seconds, data)
                record.rounds.append(result)
                text = f"{result['rate']:,.0f}/s, {result['cpu_us']:,.1f} us CPU"
            except Unmeasured as error:
                record.rounds.append(None)
                record.failures.append(str(error))
                text = f"not measured: {error}"
            print(f"round {number}: {record.entry}: {text}", file=sys.stderr, flush=True)
    return records
