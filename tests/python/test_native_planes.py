"""infeed.datasets.ImageFolder with decode="planes" and its cache."""

from __future__ import annotations

import pickle
from pathlib import Path

import infeed
import numpy as np
import pytest
from infeed.datasets import CacheStats, ImageFolder
from infeed.transforms import Normalize, RandomResizedCrop, ToDtype

MIB = 1 << 20
TRAIN = [RandomResizedCrop(24), Normalize()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    image = pytest.importorskip("PIL.Image")
    root = tmp_path_factory.mktemp("planes")
    (root / "a").mkdir()
    ramp = np.arange(120, dtype=np.uint8)
    for number in range(8):
        pixels = np.stack([np.add.outer(ramp[:90] // 2, ramp) + 20 + 5 * c + number for c in range(3)], axis=-1)
        image.fromarray(pixels.astype(np.uint8)).save(root / "a" / f"{number}.jpg", quality=92, subsampling="4:2:0")
    return root


def test_planes_are_near_the_exact_pixels(folder):
    chain = [RandomResizedCrop(24), ToDtype("float32")]
    exact, planes = ImageFolder(folder, chain), ImageFolder(folder, chain, decode="planes")
    for index in range(8):
        difference = np.abs(exact[index]["image"] - planes[index]["image"]) * 255
        assert 0 < difference.mean() < 0.35


@pytest.mark.parametrize("kind", ["thread", "fork", "spawn"])
def test_cached_epochs_are_the_uncached_ones(folder, kind):
    def epochs(dataset):
        loader = infeed.Loader(dataset, 4, shuffle=True, seed=3, num_workers=2, worker_kind=kind)
        return [np.concatenate([batch["image"].copy() for batch in loader]) for _ in range(3)]

    cached = ImageFolder(folder, TRAIN, decode="planes", cache="planes", cache_bytes=MIB)
    for with_cache, without in zip(epochs(cached), epochs(ImageFolder(folder, TRAIN, decode="planes")), strict=True):
        assert np.array_equal(with_cache, without)
    stats = cached.cache_stats()
    assert (stats.pictures, stats.hits) == (8, 16)
    assert 8 * 120 * 90 * 3 // 2 < stats.bytes <= MIB


def test_a_pickled_folder_keeps_its_options(folder):
    dataset = pickle.loads(pickle.dumps(ImageFolder(folder, TRAIN, decode="planes", cache="planes", cache_bytes=MIB)))
    dataset[0], dataset[0]
    assert dataset.cache_stats().hits == 1
    assert ImageFolder(folder).cache_stats() == CacheStats(0, 0, 0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"decode": "plane"}, "can be 'exact' or 'planes'"),
        ({"cache": "planes", "cache_bytes": MIB}, "needs the decode path planes"),
        ({"decode": "planes", "cache": "planes"}, "Give both or none"),
        ({"decode": "planes", "cache": "planes", "cache_bytes": 1 << 60}, "Lower cache_bytes"),
        ({"decode": "planes", "cache": "planes", "cache_bytes": 1000}, "no picture fits"),
    ],
)
def test_impossible_caches_are_refused(folder, options, message):
    with pytest.raises(infeed.ConfigError, match=message):
        ImageFolder(folder, TRAIN, **options)
