"""A transformer that writes the next character of a token file: trains, stops in mid-epoch, resumes bit-identically."""

import tempfile
from pathlib import Path
from typing import Any

import infeed
from infeed import train
from infeed.train import Tensor, nn, optim

WINDOW = 32


class Model(nn.Module):
    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.token, self.place = nn.Embedding(128, width), nn.Embedding(WINDOW, width)
        layer = nn.TransformerEncoderLayer(
            width, 4, 64, dropout=0.1, activation="gelu", batch_first=True, norm_first=True
        )
        self.layers, self.head = nn.TransformerEncoder(layer, 2, nn.LayerNorm(width)), nn.Linear(width, 128)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(self.layers(self.token(tokens) + self.place(train.arange(WINDOW)), is_causal=True))


def run(tokens: Tensor, folder: str, steps: int = -1, resume: bool = False) -> tuple[nn.Module, list[float]]:
    train.manual_seed(0)
    model, losses = Model(), []
    optimizer = optim.AdamW(model.parameters(), lr=3e-3)
    windows = infeed.datasets.ArrayDataset(token=tokens.unfold(0, WINDOW + 1, 4))  # views: nothing is copied
    with infeed.Loader(windows, 32, shuffle=True, num_workers=2, drop_last=True, output="dlpack") as loader:
        parts: dict[str, Any] = {"model": model, "optimizer": optimizer, "loader": loader}
        saved = train.load_checkpoint(folder) if resume else {}
        train.set_rng_state(saved.pop("random", train.get_rng_state()))  # dropout draws from it
        for name, state in saved.items():
            parts[name].load_state_dict(state)
        for batch in (batch for _ in range(loader.epoch, 4) for batch in loader):
            token = train.as_tensor(batch["token"]).long()
            loss = nn.functional.cross_entropy(model(token[:, :-1]).flatten(0, 1), token[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            if len(losses) == steps:
                saved = {name: part.state_dict() for name, part in parts.items()}
                train.save_checkpoint(folder, **saved, random=train.get_rng_state())
                break
    return model, losses


if __name__ == "__main__":
    tokens = train.frombuffer(bytearray(Path(__file__).read_bytes()), dtype=train.uint8)
    with tempfile.TemporaryDirectory() as root:
        whole, losses = run(tokens, root)
        run(tokens, root + "/last", steps=len(losses) // 2 + 3)
        resumed, _ = run(tokens, root + "/last", resume=True)
    assert all(train.equal(a, b) for a, b in zip(whole.state_dict().values(), resumed.state_dict().values()))
    print(f"loss {losses[0]:.2f} -> {losses[-1]:.2f}; resumed bit-identically")
