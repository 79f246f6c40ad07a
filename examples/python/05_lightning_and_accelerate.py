"""The same loader under Accelerate, whose `prepare` would rebuild it as PyTorch's: take this Accelerator. Lightning needs
no change at all: `lightning.Trainer().fit(model, loader)`."""

import torch
from infeed.integrations.accelerate import Accelerator  # before: from accelerate import Accelerator
from infeed.torch import DataLoader
from torch.utils.data import TensorDataset


def main() -> None:
    torch.manual_seed(0)
    accelerator = Accelerator()
    x = torch.rand(1024, 4)
    loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=32, shuffle=True, num_workers=2)
    model: torch.nn.Module = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    model, optimizer, prepared = accelerator.prepare(model, optimizer, loader)
    assert type(prepared.base_dataloader) is DataLoader

    loss = torch.zeros(())
    for _ in range(3):
        for rows, target in prepared:  # this process's share, on its device
            loss = torch.nn.functional.mse_loss(model(rows), target)
            optimizer.zero_grad()
            accelerator.backward(loss)
            optimizer.step()
    print(f"loss {loss.item():.5f}")
    assert loss.item() < 0.01


if __name__ == "__main__":
    main()
