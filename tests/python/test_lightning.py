"""PyTorch Lightning trains with infeed's loader as with torch's, unchanged."""

import pytest
import torch
import torch.utils.data
from infeed.torch import DataLoader, StatefulDataLoader
from infeed.torch._iterator import _Iterator
from loader_datasets import Squares

lightning = pytest.importorskip("lightning.pytorch", reason="Lightning is not installed")
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning", "ignore::DeprecationWarning")

BATCHES = 5  # of an epoch


class Model(lightning.LightningModule):
    """A linear layer that remembers its batches, and what iterated."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 1)
        self.seen = []
        self.iterators = set()

    def training_step(self, batch, _):
        self.seen.append(batch.tolist())
        self.iterators.add(type(self.trainer.fit_loop._combined_loader._iterator.iterators[0]))
        return self.layer(batch.float() / 100).pow(2).mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01)


class SaveAt(lightning.Callback):
    """Saves a checkpoint after `step` steps, and then stops."""

    def __init__(self, step, path):
        self.step = step
        self.path = path

    def on_train_batch_end(self, trainer, *_):
        if trainer.global_step == self.step:
            trainer.save_checkpoint(self.path)
            trainer.should_stop = True


def fit(loader_class, folder, callbacks=(), checkpoint=None, **options):
    """The model after two epochs."""
    torch.manual_seed(3)
    model = Model()
    options |= {"shuffle": True, "generator": torch.Generator().manual_seed(5)}
    loader = loader_class(Squares(4 * BATCHES), batch_size=4, num_workers=2, **options)
    quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
    trainer = lightning.Trainer(
        accelerator="cpu",
        max_epochs=2,
        callbacks=list(callbacks),
        enable_checkpointing=False,
        default_root_dir=folder,
        **quiet,
    )
    trainer.fit(model, loader, ckpt_path=checkpoint)
    return model


@pytest.mark.parametrize("persistent", [False, True])
def test_two_epochs_are_stocks(tmp_path, persistent):
    stock = fit(torch.utils.data.DataLoader, tmp_path, persistent_workers=persistent)
    ours = fit(DataLoader, tmp_path, persistent_workers=persistent)
    assert len(ours.seen) == 2 * BATCHES
    assert ours.seen == stock.seen
    assert torch.equal(ours.layer.weight, stock.layer.weight)
    assert all(issubclass(kind, _Iterator) for kind in ours.iterators)
    assert not any(issubclass(kind, _Iterator) for kind in stock.iterators)


@pytest.mark.parametrize("loader_class", [DataLoader, StatefulDataLoader])
@pytest.mark.parametrize("step", [2, BATCHES + 3])
def test_a_checkpoint_in_mid_epoch_is_resumed(tmp_path, loader_class, step):
    whole = fit(loader_class, tmp_path)
    path = tmp_path / "mid.ckpt"
    first = fit(loader_class, tmp_path, [SaveAt(step, path)])
    rest = fit(loader_class, tmp_path, checkpoint=path)
    assert first.seen[:step] + rest.seen == whole.seen
    assert torch.equal(rest.layer.weight, whole.layer.weight)
    assert all(issubclass(kind, _Iterator) for kind in rest.iterators)


def test_a_loader_that_lightning_rebuilds_keeps_class_and_options():
    from lightning.fabric.utilities.data import _update_dataloader

    options = {"num_workers": 2, "memory_limit": 1 << 30, "max_restarts": 1, "multiprocessing_context": "fork"}
    loader = DataLoader(Squares(8), batch_size=2, **options)
    sampler = torch.utils.data.DistributedSampler(loader.dataset, num_replicas=2, rank=1, shuffle=False)
    rebuilt = _update_dataloader(loader, sampler)
    assert type(rebuilt) is DataLoader
    assert (rebuilt.memory_limit, rebuilt.max_restarts, rebuilt.num_workers) == (1 << 30, 1, 2)
    assert [batch[:, 0].tolist() for batch in rebuilt] == [[1, 3], [5, 7]]
