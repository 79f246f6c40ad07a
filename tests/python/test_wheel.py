"""The wheel, in a fresh environment that has nothing else: built by the build backend, with all that it needs inside."""

import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = [
    "__init__.py",
    "_native.pyi",
    "py.typed",
    "libinfeed.so.0",
    "bin/infeed-worker",
    "bin/infeed",
    "torch/__init__.py",
]

PROGRAM = """
import infeed, sys
assert infeed.__file__.startswith(sys.prefix), infeed.__file__
dataset = infeed.datasets.Synthetic(8, {"index": "int64"})
for kind in ("thread", "fork", "spawn"):
    loader = infeed.Loader(dataset, 4, num_workers=2, worker_kind=kind, output="dlpack")
    assert [memoryview(batch["index"]).tolist() for batch in loader] == [[0, 1, 2, 3], [4, 5, 6, 7]]
from infeed import train
assert train.nn.Linear(2, 3)(train.ones(4, 2)).shape == (4, 3)
assert not {"torch", "numpy"} & set(sys.modules)
print(infeed.__version__)
"""


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def pip(*arguments):
    return run(sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    build = os.environ.get("INFEED_SCRATCH", str(folder)) + "/wheel"  # kept, so that the next run is quick
    pip(
        "wheel",
        str(ROOT),
        "--no-build-isolation",
        "--no-deps",
        "-w",
        str(folder),
        "--config-settings",
        f"build-dir={build}",
    )
    (path,) = folder.glob("infeed-*.whl")
    return path


@pytest.fixture(scope="module")
def site(wheel, tmp_path_factory):
    """A fresh environment with the wheel installed: its interpreter and its packages."""
    folder = tmp_path_factory.mktemp("venv")
    venv.create(folder, with_pip=False, symlinks=True)
    python = folder / "bin" / "python"
    pip("--python", str(python), "install", "--no-deps", "--no-index", str(wheel))
    (packages,) = folder.glob("lib/python*/site-packages")
    return python, packages


def test_all_files_are_in_the_wheel(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert [name for name in FILES if f"infeed/{name}" not in names] == []
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert not any("__pycache__" in name for name in names)


def test_a_fresh_environment_runs_it(site):
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "INFEED"))}
    output = run(str(site[0]), "-I", "-c", PROGRAM, env=environment, cwd="/")
    assert output.strip() in (ROOT / "CMakeLists.txt").read_text()


def test_libraries_are_found_beside_the_module(site):
    package = site[1] / "infeed"
    (module,) = package.glob("_native*.so")
    for program in (module, package / "bin" / "infeed-worker"):
        path = run("ldd", str(program)).partition("libinfeed.so.0 => ")[2].split()[0]
        assert Path(path).resolve() == (package / "libinfeed.so.0").resolve()
