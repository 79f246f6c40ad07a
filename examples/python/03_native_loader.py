"""The native loader: C++ reads arrays and makes batches, in any kind of worker; no torch is imported."""

import sys

import infeed
import numpy as np


def main() -> None:
    images = np.random.default_rng(0).integers(0, 256, (1000, 32, 32, 3), np.uint8)
    labels = np.arange(1000) % 10
    dataset = infeed.datasets.ArrayDataset(image=images, label=labels)

    for kind in ("inline", "thread", "fork", "spawn"):
        workers = 0 if kind == "inline" else 2
        with infeed.Loader(dataset, 100, shuffle=True, seed=1, num_workers=workers, worker_kind=kind) as loader:
            for _epoch in range(2):
                counts = np.zeros(10, np.int64)
                # A batch is a dict of NumPy arrays that view the loader's memory; batch.indices names the samples.
                for batch in loader:
                    assert np.array_equal(batch["image"], images[batch.indices])
                    counts += np.bincount(batch["label"], minlength=10)
                assert counts.tolist() == [100] * 10
            print(f"{kind}: {len(loader)} batches an epoch, state {loader.state_dict()['epoch']}")

    loader = infeed.Loader(dataset, 64, output="dlpack", as_tuple=True)
    image, label = next(iter(loader))  # for anything that takes DLPack; output="torch" gives tensors
    print(np.from_dlpack(image).shape, np.from_dlpack(label).dtype)
    assert "torch" not in sys.modules


if __name__ == "__main__":
    main()
