"""A resumed loader goes on as if it had not stopped: both loaders, every kind of dataset and sampler."""

import contextlib
import pickle
import random

import numpy as np
import pytest
import torch
from infeed.torch import DataLoader, StatefulDataLoader
from infeed.torch.samplers import StatefulDistributedSampler
from stateful_datasets import (
    DrawingSampler,
    Items,
    OwnIterator,
    Served,
    StatefulSampler,
    StatefulStream,
    Stream,
    failing_at,
    plain,
    take,
)
from torch.utils.data import BatchSampler, DistributedSampler, RandomSampler, SubsetRandomSampler, WeightedRandomSampler

pytestmark = pytest.mark.filterwarnings("ignore")
LOADERS = (DataLoader, StatefulDataLoader)


def generator(seed=5):
    return torch.Generator().manual_seed(seed)


def seed_everything(seed):
    torch.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed)


def save(loader):
    return pickle.loads(pickle.dumps(loader.state_dict()))


def stop_and_resume(make, count, seed=8, keep=lambda: None):
    """`count` batches of one loader, then the epoch's rest of another, which is returned too. keep() is called when the
    first stops; it returns what is called when the second has been made."""
    loader = make()
    head = take(loader, count)
    state = save(loader)
    back = keep()
    seed_everything(seed)
    again = make()
    again.load_state_dict(state)
    if back is not None:
        back()
    return head + take(again), again


def keep_random_states():
    states = torch.get_rng_state(), random.getstate(), np.random.get_state()
    return lambda: (torch.set_rng_state(states[0]), random.setstate(states[1]), np.random.set_state(states[2]))


OWN_ORDER = {  # makes dataset and options; what is random comes from generators of their own
    "sequence": lambda: (Items(), {}),
    "generator": lambda: (Items(), {"shuffle": True, "generator": generator()}),
    "served": lambda: (Served(), {"shuffle": True, "generator": generator(), "drop_last": True}),
    "distributed": lambda: (Items(), {"sampler": DistributedSampler(range(21), 2, 1)}),
    "stateful distributed": lambda: (Items(), {"sampler": StatefulDistributedSampler(range(21), 2, 1)}),
    "stateful": lambda: (Items(), {"sampler": StatefulSampler()}),
    "stateful batches": lambda: (
        Items(),
        {"batch_size": 1, "batch_sampler": BatchSampler(StatefulSampler(), 3, False)},
    ),
    "no batches": lambda: (Items(5), {"batch_size": None, "sampler": StatefulSampler(5)}),
    "stream": lambda: (Stream(5, 2), {}),
    "stateful stream": lambda: (StatefulStream(5, 0, 3), {}),
    "own iterator": lambda: (OwnIterator(2, 4), {}),
}


@pytest.mark.parametrize("num_workers", [0, 2])
@pytest.mark.parametrize("kind", OWN_ORDER)
@pytest.mark.parametrize("loader_class", LOADERS)
def test_every_point_of_an_epoch_resumes_exactly(loader_class, kind, num_workers):
    def make():
        dataset, options = OWN_ORDER[kind]()
        return loader_class(dataset, **{"batch_size": 3, "num_workers": num_workers, **options})

    whole = [take(loader := make()), take(loader)]
    if kind == "stateful stream" and num_workers:
        whole[1] = whole[0]  # workers of the next epoch have the dataset as it was at first
    for count in range(len(whole[0]) + 1):
        got, loader = stop_and_resume(make, count)
        assert got == whole[0], count
        if count in (1, len(whole[0])):
            assert take(loader) == whole[1], count


GLOBAL_ORDER = {  # draws from the generators of the process
    "shuffle": lambda: {"shuffle": True},
    "replacement": lambda: {"sampler": RandomSampler(range(11), replacement=True, num_samples=13)},
    "weighted": lambda: {"sampler": WeightedRandomSampler(range(11), 17)},
    "subset": lambda: {"sampler": SubsetRandomSampler(range(3, 9))},
}


@pytest.mark.parametrize("num_workers", [0, 2])
@pytest.mark.parametrize("kind", GLOBAL_ORDER)
def test_dataloader_finds_an_order_again_that_came_from_global_generators(kind, num_workers):
    def make():
        return DataLoader(Items(), batch_size=2, num_workers=num_workers, **GLOBAL_ORDER[kind]())

    seed_everything(1)
    whole = take(make())
    for count in range(len(whole) + 1):
        seed_everything(1)
        assert stop_and_resume(make, count)[0] == whole, count


@pytest.mark.parametrize("num_workers", [0, 2])
def test_dataloader_resumes_a_sampler_that_draws_as_it_goes(num_workers):
    def make():
        return DataLoader(Items(), batch_size=2, num_workers=num_workers, sampler=DrawingSampler())

    seed_everything(1)
    whole = take(make())
    for count in range(len(whole) + 1):
        seed_everything(1)
        assert stop_and_resume(make, count, keep=keep_random_states)[0] == whole, count


@pytest.mark.parametrize("num_workers", [0, 2])
def test_a_resume_leaves_the_global_generator_as_the_user_set_it(num_workers):
    def make():
        return DataLoader(Items(), shuffle=True, num_workers=num_workers)

    seed_everything(1)
    loader = make()
    take(loader, 4)
    state, random_state = loader.state_dict(), torch.get_rng_state()
    followed = take(loader), torch.rand(()).item()
    seed_everything(2)
    again = make()
    again.load_state_dict(state)
    torch.set_rng_state(random_state)
    take(again)
    assert (take(again), torch.rand(()).item()) == followed


@pytest.mark.parametrize("num_workers", [0, 2])
@pytest.mark.parametrize("loader_class", LOADERS)
@pytest.mark.parametrize("persistent", [False, True])
def test_a_state_of_an_epochs_end_resumes_with_the_next(loader_class, num_workers, persistent):
    def make():
        options = {"persistent_workers": persistent and num_workers > 0, "generator": generator()}
        return loader_class(Served(), batch_size=2, shuffle=True, num_workers=num_workers, **options)

    loader = make()
    take(loader), take(loader)
    state = save(loader)
    again = make()
    again.load_state_dict(state)
    assert [take(again), take(again)] == [take(loader), take(loader)]


@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("loader_class", LOADERS)
def test_only_the_resumed_epoch_is_short(loader_class, persistent):
    for dataset in (Items(), StatefulStream(4, 7)):
        loader = loader_class(dataset, num_workers=2, persistent_workers=persistent)
        take(loader, 8)
        state = save(loader)
        again = loader_class(dataset, num_workers=2, persistent_workers=persistent)
        again.load_state_dict(state)
        assert [len(take(again)) for _ in range(3)] == [3, 11, 11]


@pytest.mark.parametrize("num_workers", [0, 3])
@pytest.mark.parametrize("loader_class", LOADERS)
@pytest.mark.parametrize("dataset", [Served, lambda: StatefulStream(4, 0, 6), lambda: Stream(4, 0, 6)])
def test_a_resumed_run_can_be_stopped_again_soon(loader_class, num_workers, dataset):
    def make():
        return loader_class(dataset(), batch_size=1, num_workers=num_workers)

    whole = take(make())
    loader, got = make(), []
    while batch := take(loader, 1):
        got += batch
        state = save(loader)
        loader = make()
        loader.load_state_dict(state)
    assert got == whole


@pytest.mark.parametrize("every", [None, 1, 2, 5])
@pytest.mark.parametrize("dataset", [Served, lambda: StatefulStream(6, 1)])
def test_any_interval_of_snapshots_resumes_exactly(dataset, every):
    def make():
        return StatefulDataLoader(dataset(), num_workers=2, snapshot_every_n_steps=every)

    whole = take(make())
    for count in range(0, len(whole) + 1, 2):
        assert stop_and_resume(make, count)[0] == whole, count


def test_batches_since_the_snapshot_are_counted():
    loader = StatefulDataLoader(Served(), num_workers=2, snapshot_every_n_steps=3)
    iterator, steps = iter(loader), []
    for _ in iterator:
        state = loader.state_dict()
        steps.append((state["_snapshot"]["_snapshot_step"], state["_steps_since_snapshot"]))
    assert steps == [(step - step % 3, step % 3) for step in range(1, 12)]


@pytest.mark.parametrize("every", [1, 3])
@pytest.mark.parametrize("num_workers", [0, 2])
@pytest.mark.parametrize("loader_class", LOADERS)
def test_batches_after_a_failed_one_resume_exactly(loader_class, num_workers, every):
    def make():
        loader = loader_class(failing_at(4), num_workers=num_workers)
        loader.snapshot_every_n_steps = every
        return loader

    loader = make()
    iterator, batches, states = iter(loader), [], []
    for _ in range(11):
        with contextlib.suppress(ValueError):
            batches.append(plain(next(iterator)))
        states.append((len(batches), loader.state_dict()))
    for count, state in states[6 if every == 1 else 8 :]:  # a resume that replays the failed batch fails again
        again = make()
        again.load_state_dict(state)
        assert take(again) == batches[count:], count


def test_spawned_workers_resume():
    def make(method="spawn"):
        return StatefulDataLoader(StatefulStream(4), batch_size=2, num_workers=1, multiprocessing_context=method)

    assert stop_and_resume(make, 1)[0] == take(make("fork"))
