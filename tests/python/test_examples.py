"""The examples run as they stand, and are short."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = sorted((Path(__file__).resolve().parents[2] / "examples" / "python").glob("*.py"))
NEEDS = {"04_image_folder_training": "PIL", "05_lightning_and_accelerate": "accelerate"}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_example_runs(script, tmp_path):
    if script.stem in NEEDS:
        pytest.importorskip(NEEDS[script.stem])
    environment = {**os.environ, "ACCELERATE_USE_CPU": "true"}
    command = [sys.executable, str(script)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Error" not in done.stderr and "Warning" not in done.stderr


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_example_is_short(script):
    assert len(script.read_text().splitlines()) < 60
