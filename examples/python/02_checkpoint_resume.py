"""Stops in the middle of an epoch and goes on in another loader: no sample is lost and none comes twice."""

import os
import tempfile

import torch
from infeed.torch import DataLoader  # or StatefulDataLoader, which reads and writes torchdata's checkpoints


def make_loader() -> "DataLoader[int]":
    generator = torch.Generator().manual_seed(7)  # part of the state: later epochs go on as well
    return DataLoader(list(range(100)), batch_size=8, shuffle=True, num_workers=2, generator=generator)  # type: ignore[arg-type]


def main() -> None:
    whole = [batch.tolist() for batch in make_loader()]

    loader = make_loader()
    seen = []
    for batch in loader:
        seen.append(batch.tolist())
        if len(seen) == 5:  # the job is stopped here
            break

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "loader.pt")
        torch.save(loader.state_dict(), path)

        resumed = make_loader()
        resumed.load_state_dict(torch.load(path))
    seen += [batch.tolist() for batch in resumed]

    assert seen == whole
    print(f"{len(seen)} batches, resumed after the fifth")


if __name__ == "__main__":
    main()
