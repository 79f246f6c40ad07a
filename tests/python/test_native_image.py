"""infeed.image: decode and decode_batch."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import infeed
import numpy as np
import pytest
from infeed.image import decode, decode_batch
from infeed.transforms import Normalize, RandomResizedCrop

Image = pytest.importorskip("PIL.Image")


def picture(width: int = 40, height: int = 30, seed: int = 0) -> Any:
    y, x = np.mgrid[:height, :width]
    pixels = np.stack([x * 255 // width, y * 255 // height, np.full_like(x, 40 * seed % 256)], axis=-1)
    return Image.fromarray(pixels.astype(np.uint8))


def encoded(form: str = "PNG", **options: Any) -> bytes:
    out = io.BytesIO()
    picture().save(out, form, **options)
    return out.getvalue()


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / f"{seed}.jpg" for seed in range(6)]
    for seed, path in enumerate(paths):
        picture(40 + 4 * seed, 30, seed).save(path, quality=95)
    return paths


def test_a_png_is_its_pixels():
    pixels = decode(encoded())
    assert (pixels.dtype, pixels.shape) == (np.uint8, (30, 40, 3))
    assert pixels.flags.writeable
    assert np.array_equal(pixels, np.asarray(picture()))


def test_a_jpeg_is_pillows(files):
    difference = decode(files[3]).astype(int) - np.asarray(Image.open(files[3]))
    assert abs(difference).max() <= 1


def test_bytes_paths_and_arrays_are_the_same_picture(files):
    expected = decode(files[0])
    data = files[0].read_bytes()
    for source in (str(files[0]), data, bytearray(data), memoryview(data), np.frombuffer(data, np.uint8)):
        assert np.array_equal(decode(source), expected)


def test_the_exif_orientation_is_applied_where_asked():
    exif = Image.Exif()
    exif[0x0112] = 6  # turned by 90 degrees
    data = encoded("JPEG", exif=exif)
    assert decode(data).shape == (30, 40, 3)
    assert decode(data, apply_exif_orientation=True).shape == (40, 30, 3)
    assert decode(data, True).shape == (40, 30, 3)


def test_tensors_and_plain_arrays_on_demand(files):
    torch = pytest.importorskip("torch")
    tensor = decode(files[0], output="torch")
    assert torch.equal(tensor, torch.from_numpy(decode(files[0])))
    assert decode(files[0], output="dlpack").shape == (30, 40, 3)


@pytest.mark.parametrize(
    ("data", "fault"), [(b"", "empty"), (b"GIF89a" * 9, "not an image"), (encoded("JPEG")[:200], "truncated")]
)
def test_damaged_pictures_are_decode_errors(data, fault):
    with pytest.raises(ValueError, match=fault) as caught:
        decode(data)
    assert isinstance(caught.value, infeed.DecodeError)
    assert caught.value.fault == fault


def test_errors_name_the_file(tmp_path, files):
    bad = tmp_path / "bad.jpg"
    bad.write_bytes(files[0].read_bytes()[:300])
    with pytest.raises(infeed.DecodeError, match=r"bad\.jpg"):
        decode(bad)
    with pytest.raises(infeed.DecodeError, match=r"bad\.jpg"):
        decode_batch([*files, bad, *files, b""], resize=(20, 20), threads=3)
    with pytest.raises(FileNotFoundError, match=r"none\.jpg"):
        decode(tmp_path / "none.jpg")


def test_large_pictures_are_refused_before_memory_is_taken():
    with pytest.raises(infeed.DecodeError, match="1199"):
        decode(encoded(), max_pixels=1199)


def test_what_can_be_decoded_of_a_truncated_file_is_given():
    out = io.BytesIO()
    picture(320, 240).save(out, "JPEG")
    data = out.getvalue()
    whole, part = decode(data), decode(data[: len(data) * 2 // 3], allow_truncated=True)
    assert part.shape == whole.shape
    assert np.array_equal(part[:32], whole[:32])
    assert not np.array_equal(part, whole)


def test_arrays_that_are_no_files_bytes_are_refused():
    with pytest.raises(infeed.ConfigError, match="one dimension"):
        decode(np.zeros((3, 4), np.uint8))


@pytest.mark.parametrize("threads", [0, 1, 3])
def test_a_batch_of_one_size_is_one_array(files, threads):
    batch = decode_batch(files, resize=24, crop=(16, 20), threads=threads)
    assert (batch.dtype, batch.shape) == (np.uint8, (6, 16, 20, 3))
    for row, path in enumerate(files):
        alone = decode_batch([path], resize=24, crop=(16, 20))
        assert np.array_equal(batch[row], alone[0])


def test_a_batch_of_different_sizes_is_a_list(files):
    batch = decode_batch(files)
    assert all(np.array_equal(pixels, decode(path)) for pixels, path in zip(batch, files, strict=True))
    assert [pixels.shape[0] for pixels in decode_batch(files, resize=15)] == [15] * 6
    assert decode_batch([]) == []


def test_a_batch_takes_the_loaders_transforms(tmp_path):
    (tmp_path / "a").mkdir()
    paths = [tmp_path / "a" / f"{seed}.png" for seed in range(3)]
    for seed, path in enumerate(paths):
        picture(60, 50, seed).save(path)
    chain = [RandomResizedCrop(16), Normalize()]
    loader = infeed.Loader(infeed.datasets.ImageFolder(tmp_path, chain), 3, seed=8)
    assert np.array_equal(decode_batch(paths, transform=chain, seed=8), next(iter(loader))["image"])
    with pytest.raises(TypeError, match="either"):
        decode_batch(paths, transform=chain, crop=8)
