"""Faults that users of other loaders reported: checkpoints that repeat, lose or change batches. Both loaders."""

import copy
import json
import pickle

import pytest
import torch
from infeed.torch import DataLoader, StatefulDataLoader
from torch.utils.data import IterableDataset, get_worker_info

LOADERS = pytest.mark.parametrize("loader_class", [DataLoader, StatefulDataLoader])
pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create")


def epochs(loader, count):
    return [[batch.tolist() for batch in loader] for _ in range(count)]


def saved(loader):
    return pickle.loads(pickle.dumps(loader.state_dict()))


def with_stops(make, stops, count):
    """`count` epochs as one run sees them that stops after so many batches, is saved and goes on in a new loader."""
    loader, head = make(), []
    for stop in stops:
        iterator = iter(loader)
        head += [next(iterator).tolist() for _ in range(stop)]
        state = saved(loader)
        del iterator
        loader = make()
        loader.load_state_dict(state)
    rest = epochs(loader, count)
    return [head + rest[0], *rest[1:]]


def maker(loader_class, size=40, seed=3, **options):
    def make():
        generator = torch.Generator().manual_seed(seed)
        return loader_class(list(range(size)), generator=generator, **options)

    return make


@LOADERS
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("stop", [1, 4, 9])
def test_a_stop_in_mid_epoch_changes_nothing(loader_class, workers, shuffle, stop):
    make = maker(loader_class, batch_size=4, num_workers=workers, shuffle=shuffle)
    assert with_stops(make, [stop], 2) == epochs(make(), 2)


@LOADERS
@pytest.mark.parametrize("workers", [0, 3])
@pytest.mark.parametrize("stops", [[7, 1], [5, 2], [3, 1, 1, 1]])
def test_a_stop_soon_after_a_resume_changes_nothing(loader_class, workers, stops):
    make = maker(loader_class, size=60, batch_size=2, num_workers=workers, shuffle=True)
    assert with_stops(make, stops, 2) == epochs(make(), 2)


@LOADERS
@pytest.mark.parametrize("workers", [0, 1, 2])
def test_a_state_of_an_epochs_end_begins_the_next(loader_class, workers):
    make = maker(loader_class, size=24, batch_size=4, num_workers=workers, shuffle=True)
    whole = epochs(make(), 4)
    loader, resumed = make(), make()
    epochs(loader, 2)
    resumed.load_state_dict(saved(loader))
    assert epochs(resumed, 2) == whole[2:]


@LOADERS
@pytest.mark.parametrize("workers", [0, 2])
def test_a_state_after_the_last_batch_leaves_nothing_of_the_epoch(loader_class, workers):
    make = maker(loader_class, size=24, batch_size=4, num_workers=workers, shuffle=True)
    loader, resumed = make(), make()
    iterator = iter(loader)
    for _ in range(6):
        next(iterator)
    resumed.load_state_dict(saved(loader))
    assert epochs(resumed, 2) == [[], epochs(make(), 2)[1]]


@LOADERS
@pytest.mark.parametrize("persistent", [False, True])
def test_only_the_resumed_epoch_is_short(loader_class, persistent):
    make = maker(loader_class, size=32, batch_size=2, num_workers=2, persistent_workers=persistent)
    loader, resumed = make(), make()
    iterator = iter(loader)
    for _ in range(13):
        next(iterator)
    resumed.load_state_dict(saved(loader))
    assert [len(epoch) for epoch in epochs(resumed, 3)] == [3, 16, 16]


def as_text(state):
    """Generators have tensors and bytes."""
    return json.dumps(state, default=lambda value: value.tolist() if torch.is_tensor(value) else list(value))


@LOADERS
def test_a_state_is_small_and_does_not_change(loader_class):
    make = maker(loader_class, size=20_000, batch_size=10, num_workers=2, shuffle=True)
    loader = make()
    iterator = iter(loader)
    for _ in range(4):
        next(iterator)
    state = loader.state_dict()
    kept = copy.deepcopy(state)
    rest = [next(iterator).tolist() for _ in range(3)]
    assert as_text(state) == as_text(kept)
    assert len(pickle.dumps(state)) < 100_000
    resumed = maker(loader_class, 20_000, 99, batch_size=10, num_workers=2, shuffle=True)()
    resumed.load_state_dict(kept)
    assert [batch.tolist() for _, batch in zip(range(3), resumed)] == rest


@LOADERS
def test_a_state_without_a_generator_is_json(loader_class):
    loader = loader_class(list(range(12)), batch_size=2, num_workers=2)
    next(iter(loader))
    resumed = loader_class(list(range(12)), batch_size=2, num_workers=2)
    resumed.load_state_dict(json.loads(json.dumps(loader.state_dict())))
    assert len(list(resumed)) == 5


class FromTheTop(IterableDataset):
    """0 .. 8, dealt out to the workers; at its end it is back at the beginning."""

    def __init__(self):
        self.next = 0

    def __iter__(self):
        info = get_worker_info()
        while self.next < 9:
            self.next += 1
            if (self.next - 1) % info.num_workers == info.id:
                yield self.next - 1
        self.next = 0

    def state_dict(self):
        return {"next": self.next}

    def load_state_dict(self, state):
        self.next = state["next"]


@LOADERS
@pytest.mark.parametrize("stop", [0, 3, 4, 5])
def test_a_part_that_had_ended_is_not_begun_again(loader_class, stop):
    loader = loader_class(FromTheTop(), batch_size=2, num_workers=2)
    iterator = iter(loader)
    assert [len(next(iterator)) for _ in range(stop)] == [2, 2, 2, 2, 1][:stop]
    resumed = loader_class(FromTheTop(), batch_size=2, num_workers=2)
    resumed.load_state_dict(saved(loader))
    assert epochs(resumed, 1)[0] == [batch.tolist() for batch in iterator]
