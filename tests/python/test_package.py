"""The package as it is imported: what that costs, and that its types are right."""

import os
import pickle
import subprocess
import sys
from pathlib import Path

import infeed
import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "bindings" / "python"
SCRATCH = Path(os.environ.get("INFEED_SCRATCH", "/tmp"))  # mypy's cache: the second run takes a tenth


def run(*arguments, **options):
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False, **options)


def printed(program):
    done = run("-c", program)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_import_infeed_imports_nothing_else():
    before = "import __future__, sys; before = set(sys.modules); import infeed; "
    assert printed(before + "print(*sorted(set(sys.modules) - before))") == ["infeed"]


@pytest.mark.parametrize("name", ["Loader", "datasets", "image", "samplers", "transforms", "collates", "errors"])
def test_the_native_side_needs_neither_numpy_nor_torch(name):
    program = "import sys; sys.modules.update(numpy=None, torch=None); import infeed; infeed.{name}; print('fine')"
    assert printed(program.format(name=name)) == ["fine"]


def test_a_native_loader_runs_without_numpy_and_torch():
    loader = "infeed.Loader(infeed.datasets.Synthetic(4, {'i': 'int64'}), 4, num_workers=1, output='dlpack')"
    program = f"import sys; sys.modules.update(numpy=None, torch=None); import infeed; print(len(list({loader})))"
    assert printed(program) == ["1"]


def test_infeed_torch_says_that_it_needs_torch():
    done = run("-c", "import sys; sys.modules['torch'] = None; import infeed.torch")
    assert done.returncode == 1 and "torch" in done.stderr.splitlines()[-1]


def test_every_public_name_is_there_and_listed():
    assert set(infeed.__all__) <= set(dir(infeed))
    assert all(getattr(infeed, name) is not None for name in infeed.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        infeed.nothing  # noqa: B018


@pytest.mark.parametrize(
    ("name", "builtin"),
    [
        ("ConfigError", ValueError),
        ("DecodeError", ValueError),
        ("IndexError", IndexError),
        ("MemoryError", MemoryError),
        ("StateError", ValueError),
        ("TimeoutError", TimeoutError),
        ("WorkerError", RuntimeError),
    ],
)
def test_errors_are_what_users_of_python_and_torch_catch(name, builtin):
    error = pickle.loads(pickle.dumps(getattr(infeed, name)("what happened")))
    assert isinstance(error, builtin) and isinstance(error, RuntimeError) and isinstance(error, infeed.Error)
    assert str(error) == "what happened"


def test_the_version_is_the_projects():
    assert f"project(infeed VERSION {infeed.__version__} " in (ROOT / "CMakeLists.txt").read_text()


def test_the_native_stub_is_current(tmp_path):
    """If not: run the command below with -o bindings/python/infeed/_native.pyi."""
    made = tmp_path / "_native.pyi"
    patterns = str(PACKAGE / "native_stub.patterns")
    done = run("-m", "nanobind.stubgen", "-q", "-m", "infeed._native", "-p", patterns, "-o", str(made))
    assert done.returncode == 0, done.stderr
    assert made.read_text() == (PACKAGE / "infeed" / "_native.pyi").read_text()


def test_the_companion_needs_neither_numpy_nor_torch():
    program = "import sys; sys.modules.update(numpy=None, torch=None); from infeed import train; print(train.ones(2).sum().item())"
    assert printed(program) == ["2.0"]


def test_the_stub_of_the_companion_is_current(tmp_path):
    """If not: python bindings/python/train_stub.py bindings/python/infeed/train/_train.pyi"""
    made = tmp_path / "_train.pyi"
    done = run(str(PACKAGE / "train_stub.py"), str(made))
    assert done.returncode == 0, done.stderr
    assert made.read_text() == (PACKAGE / "infeed" / "train" / "_train.pyi").read_text()


def mypy(*arguments):
    pytest.importorskip("mypy")
    done = run("-m", "mypy", "--cache-dir", str(SCRATCH / "mypy"), *arguments, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


def test_types_of_the_package_are_strict():
    mypy("--package", "infeed")


@pytest.mark.parametrize("script", sorted((ROOT / "examples" / "python").glob("*.py")), ids=lambda path: path.name)
def test_types_of_examples_are_right(script):
    mypy(str(script))
