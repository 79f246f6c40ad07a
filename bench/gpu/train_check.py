"""A training run of a small CNN on the GPU with infeed.torch.DataLoader, beside torch's own loader; one JSON object on stdout.

Run by bench/gpu_check.sh. Where torch sees no GPU it trains on the CPU (--quick): that shows that it runs, no more.
"""

import argparse
import json
import time

import torch
from infeed.torch import DataLoader
from torch import nn

PIXELS = 64


class Pictures(torch.utils.data.Dataset):
    """Eight kinds of picture, told apart by their mean; a value tells the index, so that mixed-up batches show."""

    def __init__(self, size):
        self.size = size

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        image = torch.rand(3, PIXELS, PIXELS, generator=generator) * 0.2 + (index % 8) / 8
        image[0, 0, 0] = index
        return image, index % 8, index


def net():
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, 2),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, 2),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(32, 8),
    )


def train(loader_type, size, epochs, device, staged=False):
    way = {"device": device} if staged else {"pin_memory": device.type == "cuda"}
    loader = loader_type(Pictures(size), batch_size=64, shuffle=True, num_workers=4, persistent_workers=True, **way)
    model = net().to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    result = {"pinned": True, "wrong_batches": 0, "samples": 0}
    suspects = []
    begin = time.perf_counter()
    for epoch in range(epochs):
        if epoch == 1:  # the first one starts the workers
            begin = time.perf_counter()
            result["samples"] = 0
        for image, label, index in loader:
            result["pinned"] &= staged or image.is_pinned()
            x, y, i = (t.to(device, non_blocking=True) for t in (image, label, index))
            del image, label, index  # their memory must not be written again before the copies are done
            suspects.append((x[:, 0, 0, 0] != i).any())
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            result["samples"] += len(x)
    result["wrong_batches"] = int(torch.stack(suspects).sum())
    result["samples_per_s"] = result["samples"] / (time.perf_counter() - begin)
    result["last_loss"] = float(loss.detach())
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    size, epochs = (256, 2) if quick else (8192, 4)
    result = {
        "torch": torch.__version__,
        "device": str(device),
        "infeed": train(DataLoader, size, epochs, device),
        "torch.utils.data": train(torch.utils.data.DataLoader, size, epochs, device),
    }
    if device.type == "cuda":  # copied by the loader, two batches ahead
        result["infeed, device"] = train(DataLoader, size, epochs, device, staged=True)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
