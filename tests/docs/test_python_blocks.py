"""The Python blocks of README.md and docs/ run, those of a page one after the other in one namespace."""

from __future__ import annotations

import functools
from typing import Any

import pytest
from pages import PAGES, blocks

torch = pytest.importorskip("torch")
image_files = pytest.importorskip("PIL.Image")

accelerate = pytest.importorskip("accelerate")

import infeed

WITH_PYTHON = [page for page in PAGES if any(blocks(page, "python"))]


def step(*_batch: Any) -> None:
    """Stands for the reader's training step."""


def train(loader: Any) -> None:
    for batch in loader:
        step(batch)


def given() -> dict[str, Any]:
    """The names that the blocks take as given."""
    rows = torch.utils.data.TensorDataset(torch.rand(640, 3), torch.arange(640))
    return {
        "infeed": infeed,
        "torch": torch,
        "dataset": rows,
        "loader": infeed.torch.DataLoader(rows, batch_size=64),
        "accelerator": accelerate.Accelerator(cpu=True),
        "model": torch.nn.Linear(3, 1),
        "step": step,
        "train_step": step,
        "train": train,
        "path": "checkpoint.pt",
    }


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A folder with pictures in train/; searches and sweeps that take next to no time."""
    monkeypatch.chdir(tmp_path)
    for name in ("cat", "dog"):
        (tmp_path / "train" / name).mkdir(parents=True)
        for number in range(8):
            image_files.new("RGB", (64, 48), (16 * number, 128, 0)).save(tmp_path / "train" / name / f"{number}.jpg")
    for name, fewer in (("tune", {"max_trials": 3}), ("sweep", {}), ("bench", {})):
        brief = functools.partial(getattr(infeed, name), seconds=0.02, repetitions=1, **fewer)
        monkeypatch.setattr(infeed, name, brief)


@pytest.mark.parametrize("page", WITH_PYTHON, ids=lambda page: page.stem)
def test_blocks_of(page):
    names = given()
    for block in blocks(page, "python"):
        text = "\n" * (block.line - 1) + block.text  # so that a traceback names the line of the page
        code = compile(text, str(page), "exec")
        if block.runs:
            exec(code, names)
