"""A small residual network on pictures: trains, stops in mid-epoch, resumes, ends bit-identical, is validated."""

import tempfile
from typing import Any

import infeed
from infeed import train
from infeed.train import Tensor, nn, optim


class Block(nn.Module):
    def __init__(self, channels: int, out: int, stride: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(channels, out, 3, stride, padding=1, bias=False), nn.BatchNorm2d(out)
        self.conv2, self.bn2 = nn.Conv2d(out, out, 3, padding=1, bias=False), nn.BatchNorm2d(out)
        self.skip = nn.Conv2d(channels, out, 1, stride, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return (self.bn2(self.conv2(self.bn1(self.conv1(x)).relu())) + self.skip(x)).relu()


def pictures(count: int) -> infeed.datasets.ArrayDataset:
    """Noise with stripes: across, upright, or slanting."""
    label, across = train.randint(3, (count,)), train.arange(16.0).view(16, 1).expand(16, 16)
    stripes = train.stack([across, across.t(), across + across.t()])[label].mul(1.5).sin()
    image = (stripes.unsqueeze(1) + train.randn(count, 3, 16, 16)).mul(40).add(128).clamp(0, 255).byte()
    return infeed.datasets.ArrayDataset(image=image, label=label)


def run(data: infeed.datasets.ArrayDataset, folder: str, steps: int = -1, resume: bool = False) -> nn.Module:
    train.manual_seed(1)
    model = nn.Sequential(Block(3, 8, 1), Block(8, 16, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 3))
    optimizer = optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
    with infeed.Loader(data, 32, shuffle=True, num_workers=2, output="dlpack") as loader:
        parts: dict[str, Any] = {"model": model, "optimizer": optimizer, "loader": loader}
        for name, state in train.load_checkpoint(folder).items() if resume else ():
            parts[name].load_state_dict(state)
        for _ in range(loader.epoch, 2):
            for batch in loader:
                image, label = train.as_tensor(batch["image"]).float() / 255, train.as_tensor(batch["label"])
                optimizer.zero_grad()
                nn.functional.cross_entropy(model(image), label).backward()
                optimizer.step()
                if (steps := steps - 1) == 0:
                    train.save_checkpoint(folder, **{name: part.state_dict() for name, part in parts.items()})
                    return model
    return model.eval()


if __name__ == "__main__":
    train.manual_seed(0)
    data, unseen = pictures(512), pictures(128)
    with tempfile.TemporaryDirectory() as root:
        whole = run(data, root + "/last")
        run(data, root + "/last", steps=23)
        resumed = run(data, root + "/last", resume=True)
    assert all(train.equal(a, b) for a, b in zip(whole.state_dict().values(), resumed.state_dict().values()))
    right = whole(unseen.arrays["image"].float() / 255).argmax(1) == unseen.arrays["label"]
    print(f"{right.float().mean():.0%} of unseen pictures right; resumed bit-identically")
