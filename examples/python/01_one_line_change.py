"""A training loop of PyTorch's; what is new is where DataLoader comes from."""

import torch
from infeed.torch import DataLoader  # before: from torch.utils.data import DataLoader
from torch.utils.data import Dataset


class Curve(Dataset[tuple[torch.Tensor, torch.Tensor]]):
    """Points of a sine, computed in the workers."""

    def __len__(self) -> int:
        return 4096

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        x = torch.tensor([index / 2048 - 1])
        return x, torch.sin(3 * x)


def main() -> None:
    torch.manual_seed(0)
    loader = DataLoader(Curve(), batch_size=64, shuffle=True, num_workers=2, persistent_workers=True)
    model = torch.nn.Sequential(torch.nn.Linear(1, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    loss = torch.zeros(())
    for epoch in range(5):
        for x, y in loader:
            loss = torch.nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: loss {loss.item():.4f}")
    assert loss.item() < 0.1
    for worker in loader.stats()["workers"]:  # new: where time and memory go
        print(worker)


if __name__ == "__main__":
    main()
