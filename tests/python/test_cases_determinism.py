"""Faults that users of other loaders reported: random numbers that repeat, orders that depend on the workers."""

import itertools
import random

import numpy as np
import pytest
import torch
from infeed.torch import DataLoader
from torch.utils.data import DistributedSampler, get_worker_info


class Augmented:
    """Item i: i and a number of each generator."""

    def __init__(self, size):
        self.size = size

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        return index, random.random(), float(np.random.rand()), torch.rand(()).item()


def rows(loader):
    return [row for batch in loader for row in zip(*(column.tolist() for column in batch))]


@pytest.mark.parametrize(("method", "persistent"), [("fork", False), ("fork", True), ("spawn", True)])
def test_no_generator_repeats_itself_over_workers_and_epochs(method, persistent):
    options = {"persistent_workers": persistent, "multiprocessing_context": method}
    loader = DataLoader(Augmented(40), batch_size=5, num_workers=2, **options)
    drawn = rows(loader) + rows(loader)
    for source in range(1, 4):
        assert len({row[source] for row in drawn}) == 80


@pytest.mark.parametrize("workers", [1, 3])
def test_a_seed_repeats_every_draw(workers):
    def two_epochs():
        torch.manual_seed(11)
        loader = DataLoader(Augmented(12), batch_size=2, num_workers=workers, shuffle=True)
        return rows(loader), rows(loader)

    first, second = two_epochs(), two_epochs()
    assert first == second
    assert first[0] != first[1]


def shuffled(workers, generator, persistent=False):
    torch.manual_seed(7)
    source = torch.Generator().manual_seed(7) if generator else None
    options = {"generator": source, "persistent_workers": persistent and workers > 0}
    loader = DataLoader(list(range(30)), batch_size=4, shuffle=True, num_workers=workers, **options)
    return [torch.cat(list(loader)).tolist() for _ in range(2)]


@pytest.mark.parametrize("generator", [False, True])
def test_the_order_does_not_depend_on_the_number_of_workers(generator):
    expected = shuffled(0, generator)
    assert sorted(expected[0]) == list(range(30)) and expected[0] != expected[1]
    assert [shuffled(workers, generator) for workers in (1, 2, 3)] == [expected] * 3


@pytest.mark.parametrize("workers", [0, 2])
def test_a_generator_that_is_seeded_again_replays_its_epochs(workers):
    generator = torch.Generator()
    loader = DataLoader(list(range(50)), batch_size=7, shuffle=True, generator=generator, num_workers=workers)
    runs = []
    for _ in range(2):
        generator.manual_seed(123)
        runs.append([torch.cat(list(loader)).tolist() for _ in range(3)])
    assert runs[0] == runs[1]
    assert len({tuple(epoch) for epoch in runs[0]}) == 3


def test_set_epoch_reaches_persistent_loaders_of_all_ranks():
    samplers = [DistributedSampler(range(24), num_replicas=3, rank=rank, seed=4) for rank in range(3)]
    options = {"batch_size": 4, "num_workers": 1, "persistent_workers": True}
    loaders = [DataLoader(list(range(24)), sampler=sampler, **options) for sampler in samplers]
    orders = []
    for epoch in (0, 1, 2, 1):
        for sampler in samplers:
            sampler.set_epoch(epoch)
        orders.append([torch.cat(list(loader)).tolist() for loader in loaders])
        assert sorted(itertools.chain(*orders[-1])) == list(range(24))
    assert orders[1] == orders[3]
    assert len({str(order) for order in orders}) == 3


def seed_numpy(worker):
    np.random.seed(get_worker_info().seed % 2**32)


class Seeds(Augmented):
    def __getitem__(self, index):
        info = get_worker_info()
        return info.id, info.seed, int(np.random.get_state()[1][0])


def test_the_usual_recipe_for_seeding_numpy_works():
    generator = torch.Generator().manual_seed(2)
    options = {"worker_init_fn": seed_numpy, "collate_fn": list, "generator": generator}
    loader = DataLoader(Seeds(8), batch_size=2, num_workers=2, **options)
    bases = []
    for _ in range(3):
        seen = [row for batch in loader for row in batch]
        assert all(word == seed % 2**32 for _, seed, word in seen)
        (base,) = {seed - worker for worker, seed, _ in seen}
        bases.append(base)
    assert len(set(bases)) == 3
