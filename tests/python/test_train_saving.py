"""save, load and checkpoints: what comes back, what is refused, what a crash leaves."""

import contextlib
import io
import json
import os
import pickle
from collections import OrderedDict
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from infeed import train
from infeed.train import nn, safetensors
from infeed.train.serialization import load, save
from train_twins import both, np, same, torch

DTYPES = ["float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "uint16", "bool"]


def through(obj, **options):
    buffer = io.BytesIO()
    save(obj, buffer)
    buffer.seek(0)
    return load(buffer, **options)


def test_nested_data_comes_back_as_it_was():
    data = {
        "numbers": [1, -(2**70), 0.1, float("inf"), True, None],
        3: ("text", b"bytes", {1, 2}),
        "ordered": OrderedDict(b=1, a=2),
        "kinds": [train.float16, train.device("cpu"), train.Size([2, 3])],
    }
    assert through(data) == {**data, "kinds": [train.float16, train.device("cpu"), (2, 3)]}


@pytest.mark.parametrize("dtype", DTYPES)
def test_tensors_of_every_dtype_come_back(dtype):
    x = train.arange(6).reshape(2, 3).to(getattr(train, dtype))
    for back in (through({"x": x})["x"], through([x])[0]):
        assert back.dtype is x.dtype and train.equal(back, x)


def test_views_of_one_memory_stay_views_of_one_memory():
    x = train.arange(12.0).reshape(3, 4)
    whole, part, turned = through([x, x[1], x.t()])
    whole[1] = 0
    assert part.tolist() == [0.0] * 4 and turned[0].tolist() == [0.0, 0.0, 8.0]


def test_tied_parameters_stay_tied():
    w = nn.Parameter(train.ones(2))
    state = through({"a": w, "b": w})
    assert isinstance(state["a"], nn.Parameter) and state["a"].data_ptr() == state["b"].data_ptr()


def test_empty_and_scalar_tensors_come_back():
    a, b = through([train.empty(0, 3), train.tensor(2.5)])
    assert (tuple(a.shape), b.item(), b.shape) == ((0, 3), 2.5, ())


def test_objects_need_trust():
    module = nn.Linear(2, 2)
    with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
        through(module)
    again = through({"module": module}, weights_only=False)["module"]
    assert train.equal(again.weight, module.weight)


# ---- The format ----


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_safetensors_package_reads_a_state_dict(tmp_path, dtype):
    theirs = pytest.importorskip("safetensors.torch")
    x = train.arange(6).reshape(2, 3).to(getattr(train, dtype))
    save({"odd": x[:, 1:], "x": x.clone()}, tmp_path / "x.safetensors")
    read = theirs.load_file(tmp_path / "x.safetensors")
    same(x, read["x"])
    same(x[:, 1:], read["odd"])


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_file_of_the_safetensors_package_is_read(tmp_path, dtype):
    theirs = pytest.importorskip("safetensors.torch")
    state = {"x": torch.arange(6).reshape(2, 3).to(getattr(torch, dtype)), "b": torch.ones(3, dtype=torch.bool)}
    theirs.save_file(state, tmp_path / "x.safetensors")
    read = load(tmp_path / "x.safetensors")
    for name, value in state.items():
        same(read[name], value)


def test_what_a_cpp_program_keeps_beside_tensors_is_read(tmp_path):
    state = {"infeed.state": '{"batch":7}'}
    safetensors.save_path(tmp_path / "loader", {}, state)
    safetensors.save_path(tmp_path / "optimizer", {"0.step": train.tensor(3.0)}, state)
    assert load(tmp_path / "loader") == {"batch": 7}
    assert load(tmp_path / "optimizer") == {"tensors": {"0.step": train.tensor(3.0)}, "state": {"batch": 7}}


def test_a_loaded_file_is_mapped_and_never_written(tmp_path):
    path = tmp_path / "x.safetensors"
    save({"x": train.zeros(1000)}, path)
    before = path.read_bytes()
    x = load(path)["x"]
    assert str(path) in Path("/proc/self/maps").read_text()
    x.fill_(1.0)
    assert path.read_bytes() == before and load(path)["x"].sum().item() == 0.0


@pytest.mark.parametrize("where", ["cpu", train.device("cpu"), {"cpu": "cpu"}, lambda tensor, location: tensor])
def test_map_location_may_be_anything(where):
    assert through({"x": train.ones(2)}, map_location=where)["x"].tolist() == [1.0, 1.0]


def test_map_location_moves():
    assert through({"x": train.ones(2)}, map_location="meta")["x"].is_meta


def entry(dtype="F32", shape=(2,), offsets=(0, 8)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


LIES = {
    "too short": b"\x01\x00",
    "header beyond the file": (1000).to_bytes(8, "little") + b"{}",
    "huge header": (2**63).to_bytes(8, "little") + b"{}",
    "no JSON": b"{",
    "no object": b"[]",
    "deep JSON": b"[" * 100_000,
    "no UTF-8": b'{"\xff": 1}',
    "unknown dtype": {"x": entry("F7")},
    "dtype of another type": {"x": entry(["F32"])},
    "negative size": {"x": entry(shape=(-2,))},
    "sizes that overflow": {"x": entry(shape=(2**62, 2**62, 4))},
    "wrong number of bytes": {"x": entry(shape=(3,))},
    "offsets beyond the file": {"x": entry(shape=(4,), offsets=(0, 16))},
    "offsets reversed": {"x": entry(offsets=(8, 0))},
    "three offsets": {"x": entry(offsets=(0, 8, 8))},
    "floats as offsets": {"x": entry(offsets=(0.0, 8.0))},
    "overlap": {"x": entry(), "y": entry(shape=(1,), offsets=(4, 8))},
    "gap": {"x": entry(shape=(1,), offsets=(4, 8))},
    "bytes left over": {"x": entry(shape=(1,), offsets=(0, 4))},
    "missing key": {"x": {"dtype": "F32", "shape": [2]}},
    "metadata of numbers": {"__metadata__": {"a": 1}, "x": entry()},
    "a name twice": b'{"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"x":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}',
}


@pytest.mark.parametrize("lie", LIES)
def test_a_file_that_lies_is_refused(lie, tmp_path):
    header = LIES[lie]
    if isinstance(header, dict):
        header = json.dumps(header).encode()
    raw = lie in ("too short", "header beyond the file", "huge header")
    data = header if raw else len(header).to_bytes(8, "little") + header + bytes(8)
    (tmp_path / "x").write_bytes(data)
    for source in (tmp_path / "x", io.BytesIO(data)):
        with pytest.raises(safetensors.SafetensorError):
            load(source)


@given(st.data())
def test_damaged_files_never_do_harm(data):
    buffer = io.BytesIO()
    save({"a": train.ones(3), "b": [train.zeros(2, 2), 5]}, buffer)
    damaged = bytearray(buffer.getvalue())
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(safetensors.SafetensorError, pickle.UnpicklingError, ValueError, RuntimeError):
        load(io.BytesIO(bytes(damaged)))


# ---- Checkpoints ----


def parts(value=1.0):
    return {"model": {"w": train.full((3,), value)}, "epoch": 3, "loader": {"position": 7}}


def test_a_checkpoint_holds_its_parts(tmp_path):
    train.save_checkpoint(tmp_path / "run" / "last", **parts())
    back = train.load_checkpoint(tmp_path / "run" / "last")
    assert back["model"]["w"].tolist() == [1.0] * 3 and (back["epoch"], back["loader"]) == (3, {"position": 7})
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == ["last"]


def test_a_checkpoint_replaces_the_one_before(tmp_path):
    train.save_checkpoint(tmp_path / "last", **parts(1.0), extra=1)
    train.save_checkpoint(tmp_path / "last", **parts(2.0))
    back = train.load_checkpoint(tmp_path / "last")
    assert back["model"]["w"][0].item() == 2.0 and "extra" not in back
    assert os.listdir(tmp_path) == ["last"]


def test_a_failed_save_leaves_the_old_checkpoint(tmp_path):
    train.save_checkpoint(tmp_path / "last", **parts(1.0))
    with pytest.raises(Exception, match="pickle"):
        train.save_checkpoint(tmp_path / "last", model={"w": train.ones(1)}, bad=lambda: 0)
    assert train.load_checkpoint(tmp_path / "last")["model"]["w"].tolist() == [1.0] * 3
    assert os.listdir(tmp_path) == ["last"]


def test_the_latest_whole_checkpoint_is_found(tmp_path):
    assert train.latest_checkpoint(tmp_path / "missing") is None
    for step in (9, 10, 11):
        train.save_checkpoint(tmp_path / f"step-{step}", **parts(step))
    os.truncate(tmp_path / "step-11" / "model.safetensors", 10)
    assert train.latest_checkpoint(tmp_path) == tmp_path / "step-10"


def test_a_folder_of_another_kind_is_left_alone(tmp_path):
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "one.jpg").write_bytes(b"precious")
    with pytest.raises(ValueError, match="is no checkpoint"):
        train.save_checkpoint(tmp_path / "photos", **parts())
    assert os.listdir(tmp_path / "photos") == ["one.jpg"]


@pytest.mark.parametrize("target", ["/dev/full", "missing/x", "."])
def test_a_failed_save_raises_what_open_would(tmp_path, target, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OSError) as caught:
        save({"x": train.zeros(10)}, target)
    assert caught.value.filename == target and not os.listdir(tmp_path)


def test_an_unbuffered_file_is_written_whole(tmp_path):
    with open(tmp_path / "x", "wb", buffering=0) as file:
        save({"x": train.arange(1000)}, file)
    assert train.equal(load(tmp_path / "x")["x"], train.arange(1000))


def test_a_missing_checkpoint_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        train.load_checkpoint(tmp_path / "nowhere")


def test_numpy_arrays_of_a_loader_state_are_kept():
    x, _ = both(np.arange(3.0))
    assert through({"state": {"x": x, "n": 3}})["state"]["x"].tolist() == [0.0, 1.0, 2.0]


@pytest.mark.parametrize("tree", ["[[[", '{"x": 5}'])
def test_a_damaged_tree_is_refused(tree):
    file = io.BytesIO()
    safetensors.write(file, {}, {"infeed.tree": tree})
    file.seek(0)
    with pytest.raises(safetensors.SafetensorError, match="damaged"):
        load(file)
