"""The data of the works, made once: 2,000 JPEGs (by the demo's image maker) and a file of tokens."""

import random
import subprocess
from collections.abc import Collection
from pathlib import Path

from peers import infeed_engine
from peers.contest import ROOT, Unmeasured

FOLDER = ROOT / "build/bench-data"
_TOKEN_MIB = 128


def has_images(works: Collection[str]) -> bool:
    return bool({"W1a", "W1b"} & set(works))


def provide(works: Collection[str], data: Path) -> None:
    """Makes what `works` read and `data` lacks. Raises Unmeasured where images cannot be made."""
    if has_images(works):
        _provide_images(data)
    if "W3" in works:
        _provide_tokens(data / "tokens.u16")


def _provide_images(data: Path) -> None:
    if not (data / "train").is_dir():
        try:
            subprocess.run([str(infeed_engine.program()), "--make-images", "--data", str(data)], check=True)
        except (FileNotFoundError, subprocess.CalledProcessError) as error:
            raise Unmeasured(f"{data}/train holds no images, and they cannot be made: {error}") from error
    for file in (data / "train").glob("*/*.jpg"):
        file.read_bytes()  # into the page cache


def _provide_tokens(path: Path) -> None:
    if path.is_file() and path.stat().st_size == _TOKEN_MIB << 20:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    generator = random.Random(3)
    with path.open("wb") as file:
        for _ in range(_TOKEN_MIB):
            file.write(generator.randbytes(1 << 20))
