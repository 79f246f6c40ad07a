"""Faults that users of other loaders reported: samplers that are drained, shares that overlap, options that are ignored."""

import itertools
import warnings

import numpy as np
import pytest
import torch
from infeed.torch import DataLoader, StatefulDataLoader, WeightedRandomSampler
from torch.utils.data import (
    ConcatDataset,
    DistributedSampler,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    get_worker_info,
)
from torch.utils.data import WeightedRandomSampler as TorchWeightedRandomSampler

WORKERS = pytest.mark.parametrize("workers", [0, 2])
pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create")


class Shared(IterableDataset):
    """0 .. 9, dealt out to the workers; `length` is what len() says."""

    def __init__(self, length=10):
        self.length = length

    def __len__(self):
        return self.length

    def __iter__(self):
        info = get_worker_info()
        first, step = (0, 1) if info is None else (info.id, info.num_workers)
        return iter(range(first, 10, step))


def values(loader):
    return [batch.tolist() for batch in loader]


@pytest.mark.parametrize(("size", "ranks"), [(1, 8), (2, 5), (3, 7), (5, 5), (7, 3)])
def test_every_rank_of_a_tiny_dataset_gets_equally_many(size, ranks):
    seen = set()
    for rank in range(ranks):
        sampler = DistributedSampler(range(size), num_replicas=ranks, rank=rank, shuffle=False)
        share = torch.cat(list(DataLoader(range(size), sampler=sampler, num_workers=1))).tolist()
        assert len(share) == -(-size // ranks)
        seen.update(share)
    assert seen == set(range(size))


@WORKERS
def test_a_billion_draws_with_replacement_are_not_made_beforehand(workers):
    sampler = RandomSampler(range(1000), replacement=True, num_samples=10**9)
    loader = DataLoader(range(1000), sampler=sampler, batch_size=100, num_workers=workers)
    assert len(loader) == 10**7
    drawn = torch.cat(list(itertools.islice(loader, 20)))
    assert len(drawn.unique()) > 500


@WORKERS
@pytest.mark.parametrize("batch_size", [4, None])
@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("kind", [DataLoader, StatefulDataLoader])
def test_an_empty_dataset_has_empty_epochs(kind, shuffle, workers, batch_size):
    loader = kind([], batch_size=batch_size, shuffle=shuffle, num_workers=workers)
    assert len(loader) == 0
    assert [list(loader) for _ in range(2)] == [[], []]


LENGTHS = [({"batch_size": 3}, 4), ({"batch_size": 3, "drop_last": True}, 3), ({"batch_size": None}, 10)]


@pytest.mark.parametrize(("options", "expected"), [*LENGTHS, ({"batch_size": 20}, 1)])
def test_the_length_of_an_iterable_dataset_counts_batches(options, expected):
    loader = DataLoader(Shared(), **options)
    assert len(loader) == len(list(loader)) == expected


@pytest.mark.parametrize("workers", [0, 1, 3, 4])
def test_a_dataset_that_deals_itself_out_comes_once(workers):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "This DataLoader will create")
        loader = DataLoader(Shared(), batch_size=4, num_workers=workers)
        assert sorted(torch.cat(list(loader)).tolist()) == list(range(10))


BATCHES = [[0, 1], [2, 3]]
CONFLICTS = [
    {"batch_sampler": BATCHES, "batch_size": 2},
    {"batch_sampler": BATCHES, "shuffle": True},
    {"batch_sampler": BATCHES, "sampler": range(8)},
    {"batch_sampler": BATCHES, "drop_last": True},
    {"batch_size": None, "drop_last": True},
    {"sampler": range(8), "shuffle": True},
    {"num_workers": -1},
    {"timeout": -1},
    {"prefetch_factor": 2},
    {"prefetch_factor": -1, "num_workers": 1},
    {"persistent_workers": True},
    {"multiprocessing_context": "fork"},
    {"batch_size": 0},
    {"batch_size": True},
    {"drop_last": 1},
]


@pytest.mark.parametrize("options", CONFLICTS, ids=str)
def test_options_that_contradict_are_refused_at_once(options):
    with pytest.raises(ValueError):
        DataLoader(range(8), **options)


@pytest.mark.parametrize("options", [{"shuffle": True}, {"sampler": range(4)}, {"batch_sampler": BATCHES}])
def test_an_iterable_dataset_takes_no_sampler(options):
    with pytest.raises(ValueError, match="DataLoader with IterableDataset: expected unspecified"):
        DataLoader(Shared(), **options)


class OddBatches:
    """Batches of several types and sizes, and no length."""

    def __iter__(self):
        yield [0]
        yield (1, 2, 3)
        yield [np.int64(4), np.int64(5)]
        yield torch.tensor([6, 7])
        yield range(8, 10)


@WORKERS
def test_a_batch_sampler_may_yield_any_sequences_of_any_size(workers):
    loader = DataLoader([10 * i for i in range(10)], batch_sampler=OddBatches(), num_workers=workers)
    assert values(loader) == [[0], [10, 20, 30], [40, 50], [60, 70], [80, 90]]
    with pytest.raises(TypeError):
        len(loader)


@pytest.mark.parametrize("sampler", [SequentialSampler(range(-5, 0)), [-1, -5, 2, -3]])
def test_negative_indices_of_joined_datasets_count_from_the_end(sampler):
    joined = ConcatDataset([[1, 2, 3], [4, 5]])
    indices = [-1, -5, 2, -3]
    expected = [[5], [1], [3], [3]]
    assert values(DataLoader(joined, sampler=indices, num_workers=1)) == expected
    with pytest.raises(ValueError):
        list(DataLoader(joined, sampler=[-6], num_workers=1))


@WORKERS
def test_an_endless_sampler_gives_its_first_batches_at_once(workers):
    loader = DataLoader(range(7), sampler=itertools.cycle(range(7)), batch_size=5, num_workers=workers)
    batches = [batch.tolist() for batch in itertools.islice(loader, 6)]
    assert batches == [[(5 * i + k) % 7 for k in range(5)] for i in range(6)]


class Gated:
    """Worker 0's batches wait until worker 1 is at its second."""

    def __init__(self):
        self.gate = torch.multiprocessing.Event()

    def __len__(self):
        return 12

    def __getitem__(self, index):
        if index == 0:
            self.gate.wait()
        if index == 3:
            self.gate.set()
        return index


def test_a_slow_worker_does_not_change_the_order():
    loader = DataLoader(Gated(), num_workers=2)
    assert torch.cat(list(loader)).tolist() == list(range(12))


@pytest.mark.parametrize("kind", [DataLoader, StatefulDataLoader])
def test_a_dataset_that_is_empty_as_yet_is_shuffled_once_it_is_not(kind):
    items = []
    loader = kind(items, shuffle=True, generator=torch.Generator().manual_seed(3))
    assert values(loader) == []
    items += range(20)
    epoch = [value for (value,) in values(loader)]
    assert sorted(epoch) == items != epoch


@pytest.mark.parametrize("kind", [DataLoader, StatefulDataLoader])
@WORKERS
def test_orders_are_drawn_on_the_cpu_whatever_the_default_device_is(kind, workers):
    options = {"num_workers": workers, "persistent_workers": workers > 0, "generator": torch.Generator()}
    loader = kind(list(map(torch.tensor, range(9))), shuffle=True, **options)
    with torch.device("meta"):
        assert [sorted(values(loader)) for _ in range(2)] == [[[value] for value in range(9)]] * 2


@pytest.mark.parametrize("replacement", [False, True])
def test_weighted_draws_are_torchs_up_to_its_limit(replacement):
    samplers = [
        kind(torch.arange(9.0), 8, replacement, torch.Generator().manual_seed(3))
        for kind in (WeightedRandomSampler, TorchWeightedRandomSampler)
    ]
    assert list(samplers[0]) == list(samplers[1])


@pytest.fixture
def no_multinomial(monkeypatch):
    monkeypatch.setattr("infeed.torch.samplers._MOST_OF_MULTINOMIAL", 0)


@pytest.mark.parametrize("replacement", [False, True])
def test_beyond_torchs_limit_draws_follow_the_weights(no_multinomial, replacement):
    weights = [0, 3, 0, 1, 0]
    generator = torch.Generator().manual_seed(3)
    firsts = [next(iter(WeightedRandomSampler(weights, 2, replacement, generator))) for _ in range(1000)]
    assert set(firsts) == {1, 3} and 700 < firsts.count(1) < 800


def test_beyond_torchs_limit_draws_without_replacement_are_distinct(no_multinomial):
    assert sorted(WeightedRandomSampler([1, 2, 0, 3], 3, replacement=False)) == [0, 1, 3]


@pytest.mark.parametrize(
    ("weights", "replacement", "text"),
    [
        ([0, 0], True, "not all of them zero"),
        ([1, -1], True, "not negative"),
        ([1, 0], False, "1 weights are not zero"),
    ],
)
def test_beyond_torchs_limit_weights_that_cannot_be_are_named(no_multinomial, weights, replacement, text):
    with pytest.raises(ValueError, match=text):
        iter(WeightedRandomSampler(weights, 2, replacement))
