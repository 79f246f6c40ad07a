"""The engine itself, without Python: the program infeed-works (bench/native_works.cpp)."""

import os
from pathlib import Path

PROGRAMS = ("build/release/bench/infeed-works", "build/main/bench/infeed-works")


def program() -> Path:
    """Raises FileNotFoundError where it is not built."""
    root = Path(__file__).resolve().parents[2]
    for path in filter(None, (os.environ.get("INFEED_WORKS"), *PROGRAMS)):
        if (root / path).is_file():
            return root / path
    raise FileNotFoundError("infeed-works is not built: `make build`, or name it in INFEED_WORKS")


def command(work: str, workers: int, seconds: float, data: Path, variant: str) -> list[str]:
    arguments = {"--work": work, "--workers": workers, "--kind": variant, "--seconds": seconds, "--data": data}
    return [str(program()), *(str(word) for pair in arguments.items() for word in pair)]
