"""infeed.datasets and infeed.transforms."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import infeed
import numpy as np
import pytest
from infeed import transforms
from infeed.datasets import ArrayDataset, Field, ImageFolder, PluginDataset, Synthetic, load_plugin
from infeed.transforms import CenterCrop, Compose, Normalize, RandomHorizontalFlip, RandomResizedCrop, Resize
from native_data import numbers, plugin_path

TRAIN = Compose([RandomResizedCrop(16), RandomHorizontalFlip(), Normalize()])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    image = pytest.importorskip("PIL.Image")
    random = np.random.default_rng(1)
    for number in range(7):
        place = tmp_path / "abc"[number % 3]
        place.mkdir(exist_ok=True)
        pixels = random.integers(0, 256, (20 + number, 30, 3), np.uint8)
        image.fromarray(pixels).save(place / f"{number}.png")
    return tmp_path


def test_image_folder_is_torchvisions(folder):
    dataset = ImageFolder(folder, TRAIN)
    assert dataset.classes == ["a", "b", "c"]
    assert dataset.class_to_idx == {"a": 0, "b": 1, "c": 2}
    assert [Path(path).name for path in dataset.paths()] == [
        "0.png",
        "3.png",
        "6.png",
        "1.png",
        "4.png",
        "2.png",
        "5.png",
    ]
    assert (dataset.path(3), dataset.label(3)) == (str(folder / "b" / "1.png"), 1)
    assert dataset.fields == [Field("image", "float32", (3, 16, 16)), Field("label", "int64", ())]


@pytest.mark.parametrize("kind", ["inline", "thread", "fork", "spawn"])
def test_image_folder_loads_what_it_reads(folder, kind):
    dataset = ImageFolder(folder, TRAIN)
    loader = infeed.Loader(dataset, 7, seed=4, num_workers=0 if kind == "inline" else 2, worker_kind=kind)
    batch = next(iter(loader))
    assert batch["label"].tolist() == [0, 0, 0, 1, 1, 2, 2]
    for row in range(7):
        assert np.array_equal(batch["image"][row], dataset.read(row, seed=4)["image"])


def test_pictures_without_transforms_are_the_files_pixels(folder):
    image = pytest.importorskip("PIL.Image")
    dataset = ImageFolder(str(folder))
    assert dataset.fields[0] == Field("image", "uint8", (3, -1, -1))
    for index in (0, -1):
        expected = np.asarray(image.open(dataset.path(index % 7))).transpose(2, 0, 1)
        assert np.array_equal(dataset[index]["image"], expected)


def test_image_folder_serves_torchs_loader_and_pickles(folder):
    dataset = pickle.loads(pickle.dumps(ImageFolder(folder, TRAIN, label_dtype="int32")))
    assert repr(dataset) == repr(ImageFolder(folder, TRAIN))
    assert [sample["label"].item() for sample in dataset] == [0, 0, 0, 1, 1, 2, 2]
    data = pytest.importorskip("torch.utils.data")
    batch = next(iter(data.DataLoader(dataset, batch_size=4)))
    assert tuple(batch["image"].shape) == (4, 3, 16, 16)


def test_a_folder_that_cannot_be_is_a_config_error(tmp_path):
    with pytest.raises(infeed.ConfigError, match=str(tmp_path)):
        ImageFolder(tmp_path)
    with pytest.raises(ValueError, match="float64"):
        ImageFolder(tmp_path, label_dtype=np.float64)


def test_names_of_files_are_any_bytes(folder):
    (folder / os.fsdecode(b"c\xff")).mkdir()
    path = folder / os.fsdecode(b"c\xff") / os.fsdecode(b"\xfe\n.jpg")
    path.write_bytes(b"no picture")
    dataset = ImageFolder(os.fsencode(folder))
    assert os.fsdecode(b"c\xff") in dataset.classes
    assert str(path) in dataset.paths()
    bad = dataset.paths().index(str(path))
    assert dataset.path(bad) == dataset.describe(bad) == str(path)
    with pytest.raises(infeed.DataError, match=r"c\\xff/\\xfe\n.*not an image"):
        dataset[bad]


@pytest.mark.parametrize("options", [{"decode": None}, {"decode": 1}, {"cache": True}, {"cache_bytes": "1"}])
def test_options_of_a_wrong_type_are_named(folder, options):
    with pytest.raises(TypeError, match=r"decode is|cache is|as an integer"):
        ImageFolder(folder, **options)
    for cache_bytes in (-1, 1 << 64):
        with pytest.raises(infeed.ConfigError, match="cache_bytes"):
            ImageFolder(folder, decode="planes", cache="planes", cache_bytes=cache_bytes)


def test_arrays_are_borrowed_not_copied():
    array = np.zeros((4, 3), np.float32)
    dataset = ArrayDataset(x=array)
    array[2] = 5
    assert dataset[2]["x"].tolist() == [5, 5, 5]


def test_strided_and_read_only_arrays_are_taken():
    tokens = np.arange(100, dtype=np.uint16)
    tokens.flags.writeable = False
    windows = np.lib.stride_tricks.sliding_window_view(tokens, 5)
    dataset = ArrayDataset({"token": windows, "back": np.arange(96)[::-1]}, widen={"token": np.int64})
    batch = next(iter(infeed.Loader(dataset, 3, sampler=[0, 50, 95], num_workers=2, worker_kind="spawn")))
    assert batch["token"].dtype == np.int64
    assert batch["token"].tolist() == [list(range(start, start + 5)) for start in (0, 50, 95)]
    assert batch["back"].tolist() == [95, 45, 0]


def test_tensors_and_buffers_are_arrays():
    torch = pytest.importorskip("torch")
    dataset = ArrayDataset(half=torch.ones(4, 2, dtype=torch.bfloat16), plain=memoryview(bytearray(b"abcd")))
    assert [field.dtype for field in dataset.fields] == ["bfloat16", "uint8"]
    sample = dataset.read(1, output="torch")
    assert torch.equal(sample["half"], torch.ones(2, dtype=torch.bfloat16))
    assert sample["plain"].item() == ord("b")


@pytest.mark.parametrize("array", [np.zeros(3, ">i4"), np.array([None]), np.zeros(3, complex), 3, [1, 2]], ids=str)
def test_what_is_no_plain_array_is_refused_by_name(array):
    with pytest.raises(infeed.ConfigError, match="array 'x'"):
        ArrayDataset(x=array)


def test_arrays_of_different_lengths_are_refused():
    with pytest.raises(infeed.ConfigError, match="4"):
        ArrayDataset(x=np.zeros(3), y=np.zeros(4))


def test_array_datasets_pickle_and_print():
    dataset = pickle.loads(pickle.dumps(ArrayDataset({"x": np.arange(6).reshape(3, 2)}, widen={"x": "int64"})))
    assert repr(dataset) == "ArrayDataset(3 rows: x=int64[2])"
    assert dataset[1]["x"].tolist() == [2, 3]


def test_datasets_are_sequences():
    dataset = numbers(3)
    assert [sample["index"].item() for sample in dataset] == [0, 1, 2]
    assert dataset[-1]["index"] == 2
    with pytest.raises(IndexError, match="sample 3"):
        dataset[3]
    assert dataset.describe(1) == "synthetic sample 1"
    assert repr(dataset) == "Synthetic(3, {'index': 'int64'})"


def test_synthetic_refuses_options_it_does_not_know():
    with pytest.raises(TypeError, match="speed"):
        Synthetic(3, {"x": "int64"}, speed=1)


@pytest.mark.skipif(not plugin_path().exists(), reason="the C++ tests' plugin is not built")
@pytest.mark.parametrize("kind", ["fork", "spawn"])
def test_plugins_bring_datasets_by_name(kind):
    squares = load_plugin(plugin_path()).dataset("squares", size=8, offset=1)
    loader = infeed.Loader(squares, 8, collate="ragged", num_workers=2, worker_kind=kind)
    batch = next(iter(loader))
    assert batch["square"].tolist() == [index * index + 1 for index in range(8)]
    assert "squares" in repr(squares)


def test_names_that_nobody_registered_are_refused():
    with pytest.raises(infeed.ConfigError, match="image_folder"):
        PluginDataset("cubes")
    with pytest.raises(FileNotFoundError):
        load_plugin("/nonexistent/libplugin.so")


def test_transforms_print_compare_and_pickle():
    assert repr(TRAIN).startswith("Compose(transforms=(RandomResizedCrop(size=16, scale=(0.08, 1.0)")
    assert pickle.loads(pickle.dumps(TRAIN)) == TRAIN
    assert Compose([Resize(256)]) != Compose([Resize((256, 256))])
    assert {Resize(256), Resize(256)} == {Resize(256)}


def test_a_chain_tells_dtype_and_shape():
    assert (TRAIN.dtype, TRAIN.output_shape) == ("float32", (3, 16, 16))
    assert Compose([Resize(20)]).output_shape == (3, -1, -1)
    hwc = Compose([Resize((20, 30)), CenterCrop((10, 12)), transforms.ToDtype(np.float16), transforms.ToLayout("HWC")])
    assert (hwc.dtype, hwc.output_shape) == ("float16", (10, 12, 3))
    assert Compose(transforms.ToTensor()).dtype == "float32"


def test_chains_that_make_no_sense_are_refused():
    with pytest.raises(infeed.ConfigError, match="resampled already"):
        Compose([Resize(20), RandomResizedCrop(10)])
    with pytest.raises(TypeError, match=r"infeed\.transforms"):
        Compose([lambda image: image])  # type: ignore[list-item]
