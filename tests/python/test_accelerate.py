"""Hugging Face Accelerate trains with infeed's loader as with torch's; infeed.integrations.accelerate keeps its class."""

import pytest
import torch
import torch.utils.data
from infeed.torch import DataLoader, StatefulDataLoader
from infeed.torch._iterator import _Iterator
from loader_datasets import Squares, Stream

accelerate = pytest.importorskip("accelerate", reason="Accelerate is not installed")
integration = pytest.importorskip("infeed.integrations.accelerate")
from accelerate.data_loader import BatchSamplerShard, prepare_data_loader
from accelerate.state import AcceleratorState, GradientState, PartialState
from accelerate.utils import DataLoaderConfiguration

BATCHES = 5  # of an epoch


@pytest.fixture(autouse=True)
def fresh_state():
    """Accelerate keeps its state in singletons."""
    yield
    for state in (AcceleratorState, GradientState, PartialState):
        state._reset_state()


@pytest.fixture
def iterators(monkeypatch):
    """infeed's iterators that are made."""
    made = []
    start = _Iterator.__init__

    def counted(self, *arguments, **options):
        made.append(type(self))
        start(self, *arguments, **options)

    monkeypatch.setattr(_Iterator, "__init__", counted)
    return made


class Run:
    """A model, its optimizer and a loader, prepared."""

    def __init__(self, accelerator_class, loader_class, stateful=False, **options):
        torch.manual_seed(3)
        configuration = DataLoaderConfiguration(use_stateful_dataloader=stateful)
        self.accelerator = accelerator_class(cpu=True, dataloader_config=configuration)
        model = torch.nn.Linear(2, 1)
        loader = loader_class(Squares(4 * BATCHES), batch_size=4, shuffle=True, num_workers=2, **options)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        self.model, self.optimizer, self.loader = self.accelerator.prepare(model, optimizer, loader)
        self.seen = []

    def steps(self, loader, most=None):
        for number, batch in enumerate(loader, 1):
            self.seen.append(batch.tolist())
            self.accelerator.backward(self.model(batch.float() / 100).pow(2).mean())
            self.optimizer.step()
            self.optimizer.zero_grad()
            if number == most:
                break

    def two_epochs(self):
        self.steps(self.loader)
        self.steps(self.loader)
        return self


def test_two_epochs_are_stocks(iterators):
    stock = Run(accelerate.Accelerator, torch.utils.data.DataLoader).two_epochs()
    assert iterators == []
    ours = Run(integration.Accelerator, DataLoader).two_epochs()
    assert len(iterators) == 2
    assert ours.seen == stock.seen
    assert torch.equal(ours.model.weight, stock.model.weight)


def test_an_epoch_is_resumed_by_skipping_as_with_stock(iterators):
    seen = []
    for accelerator, loader in (
        (accelerate.Accelerator, torch.utils.data.DataLoader),
        (integration.Accelerator, DataLoader),
    ):
        run = Run(accelerator, loader)
        run.steps(run.accelerator.skip_first_batches(run.loader, 2))
        run.steps(run.loader)
        seen.append(run.seen)
    assert len(seen[0]) == 2 * BATCHES - 2
    assert seen[0] == seen[1]
    assert len(iterators) == 2


@pytest.mark.parametrize("loader_class", [DataLoader, StatefulDataLoader])
def test_save_state_and_load_state_resume_in_mid_epoch(tmp_path, iterators, loader_class):
    whole = Run(integration.Accelerator, loader_class, stateful=True).two_epochs()
    first = Run(integration.Accelerator, loader_class, stateful=True)
    first.steps(first.loader, 2)
    first.accelerator.save_state(tmp_path)
    rest = Run(integration.Accelerator, loader_class, stateful=True)
    rest.accelerator.load_state(tmp_path)
    rest.two_epochs()
    assert first.seen + rest.seen == whole.seen
    assert torch.equal(rest.model.weight, whole.model.weight)
    assert len(iterators) >= 5


@pytest.mark.parametrize("rank", [0, 1])
def test_shares_of_processes_are_kept(rank):
    loader = DataLoader(Squares(16), batch_size=2, num_workers=1, memory_limit=1 << 30)
    PartialState(cpu=True)
    prepared = prepare_data_loader(loader, num_processes=2, process_index=rank, put_on_device=False)
    adopted = integration.adopt(prepared, loader)
    assert isinstance(adopted.batch_sampler, BatchSamplerShard)
    assert adopted.base_dataloader.memory_limit == 1 << 30
    assert [batch[0, 0].item() for batch in adopted] == [2 * rank + 4 * i for i in range(4)]


def test_iterable_datasets_are_kept(iterators):
    run = integration.Accelerator(cpu=True)
    loader = run.prepare(DataLoader(Stream(3, 2), batch_size=2, num_workers=2))
    assert [batch.tolist() for batch in loader] == [[0, 1], [10, 11], [2]]
    assert len(iterators) == 1


def test_loaders_of_other_classes_are_prepared_as_ever(iterators):
    run = Run(integration.Accelerator, torch.utils.data.DataLoader).two_epochs()
    assert len(run.seen) == 2 * BATCHES and iterators == []
    assert type(run.loader.base_dataloader) is torch.utils.data.DataLoader
