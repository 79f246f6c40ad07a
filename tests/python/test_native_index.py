"""ImageFolder's index_cache, and the command that makes it."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from pathlib import Path

import infeed
import numpy as np
import pytest
from infeed.datasets import ImageFolder
from infeed.transforms import Compose, Normalize, RandomHorizontalFlip, RandomResizedCrop

TRAIN = Compose([RandomResizedCrop(16), RandomHorizontalFlip(), Normalize()])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    image = pytest.importorskip("PIL.Image")
    random = np.random.default_rng(1)
    for number in range(7):
        place = tmp_path / "data" / "abc"[number % 3]
        place.mkdir(parents=True, exist_ok=True)
        pixels = random.integers(0, 256, (200 + number, 150, 3), np.uint8)
        image.fromarray(pixels).save(place / f"{number}.jpg")
    return tmp_path / "data"


@pytest.mark.parametrize("kind", ["thread", "fork", "spawn"])
@pytest.mark.parametrize("decode", ["exact", "planes"])
def test_an_index_changes_no_batch_and_stays_for_the_next_run(folder, tmp_path, kind, decode):
    def epochs(index_cache):
        dataset = ImageFolder(folder, TRAIN, decode=decode, index_cache=index_cache)
        with infeed.Loader(dataset, 3, num_workers=2, worker_kind=kind, seed=5) as loader:
            return [batch["image"].tobytes() for _ in range(2) for batch in loader]

    want = epochs(None)
    assert epochs(tmp_path / "x.index") == want
    assert epochs(str(tmp_path / "x.index")) == want
    assert [path.name for path in tmp_path.iterdir() if path != folder] == ["x.index"]


def test_the_command_prepares_an_index(folder, tmp_path):
    index = str(tmp_path / "x.index")
    command = [sys.executable, "-m", "infeed", "prepare", str(folder), "--index", index, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)[0]["done"] == 7
    dataset = ImageFolder(folder, TRAIN, index_cache=index)
    assert pickle.loads(pickle.dumps(dataset)).label(0) == 0
