"""Same batches, same draws, same seeds as torch's loader, for the same seeds."""

import pytest
import torch
import torch.utils.data
from infeed.torch import DataLoader
from loader_datasets import Draws, Squares, Stream, as_lists
from torch.utils.data import get_worker_info

LOADERS = (torch.utils.data.DataLoader, DataLoader)


def epochs(loader_class, count, seed, dataset, **options):
    torch.manual_seed(seed)
    loader = loader_class(dataset, **options)
    return [as_lists(loader) for _ in range(count)], torch.rand(1).item()


def assert_like_stock(count=2, seed=7, dataset=None, **options):
    stock, ours = (epochs(loader, count, seed, dataset or Squares(23), **options) for loader in LOADERS)
    assert ours == stock


@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("options", [{}, {"batch_size": 4}, {"batch_size": 4, "drop_last": True}, {"batch_size": None}])
def test_shuffled_epochs_and_the_draws_after_them_are_stocks(options, persistent):
    assert_like_stock(shuffle=True, num_workers=2, persistent_workers=persistent, **options)


def test_own_generator_gives_stocks_order():
    results = []
    for loader_class in LOADERS:
        generator = torch.Generator().manual_seed(5)
        loader = loader_class(Squares(10), shuffle=True, num_workers=2, generator=generator)
        results.append(([as_lists(loader) for _ in range(2)], generator.get_state().tolist()))
    assert results[0] == results[1]


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers_draw_what_stocks_workers_draw(method):
    assert_like_stock(1, dataset=Draws(8), batch_size=2, num_workers=2, multiprocessing_context=method)


@pytest.mark.parametrize("batch_size", [None, 1, 2, 3])
@pytest.mark.parametrize("drop_last", [False, True])
def test_iterable_parts_interleave_as_stocks(batch_size, drop_last):
    if batch_size is None and drop_last:
        pytest.skip("not a loader")
    for persistent in (False, True):
        options = {"batch_size": batch_size, "drop_last": drop_last, "persistent_workers": persistent}
        stock, ours = ([epoch(loader, Stream(3, 0, 7), options) for _ in range(2)] for loader in LOADERS)
        assert ours == stock


def epoch(loader_class, dataset, options):
    loader = loader_class(dataset, num_workers=3, **options)
    return [[item.tolist() if torch.is_tensor(item) else item for item in loader] for _ in range(2)]


class CountedSampler:
    def __init__(self, size):
        self.size = size
        self.pulled = 0

    def __iter__(self):
        for index in range(self.size):
            self.pulled += 1
            yield index


@pytest.mark.parametrize("factor", [1, 2, 3])
def test_pulls_the_sampler_exactly_as_far_ahead_as_stock(factor):
    pulls = []
    for loader_class in LOADERS:
        sampler = CountedSampler(15)
        iterator = iter(loader_class(Squares(), sampler=sampler, num_workers=2, prefetch_factor=factor))
        pulls.append([sampler.pulled, *(sampler.pulled for _ in iterator)])
    assert pulls[0] == pulls[1]


class Whose(Squares):
    def __getitem__(self, index):
        return torch.tensor([index, get_worker_info().id])


def test_batch_i_comes_from_worker_i_modulo_num_workers():
    loader = DataLoader(Whose(10), num_workers=3, persistent_workers=True)
    for _ in range(2):
        assert as_lists(loader) == [[[index, index % 3]] for index in range(10)]


def test_any_order_loses_and_repeats_nothing():
    loader = DataLoader(Squares(50), batch_size=3, num_workers=3, in_order=False)
    assert sorted(row[0] for batch in loader for row in batch.tolist()) == list(range(50))


class Waits(Squares):
    """Index 0 returns once the gate is open."""

    def __init__(self, gate):
        super().__init__(8)
        self.gate = gate

    def __getitem__(self, index):
        if index == 0:
            self.gate.wait()
        return torch.tensor(index)


def test_any_order_returns_what_is_ready_before_what_is_first():
    gate = torch.multiprocessing.Event()
    iterator = iter(DataLoader(Waits(gate), num_workers=2, order="ready"))
    first = next(iterator)
    gate.set()
    assert first.item() != 0


def test_worker_info_is_stocks():
    class Info(Squares):
        def __getitem__(self, index):
            info = get_worker_info()
            return [info.id, info.num_workers, info.dataset is self, type(info).__module__]

    torch.manual_seed(1)
    loader = DataLoader(Info(2), batch_size=None, num_workers=2)
    assert list(loader) == [[worker, 2, True, "torch.utils.data._utils.worker"] for worker in range(2)]
    assert get_worker_info() is None


def test_indices_that_are_no_plain_ints_reach_the_dataset_as_they_are():
    class Echo(Squares):
        def __getitem__(self, index):
            return repr(index)

    keys = ["a", (1, 2), 2**70, True, slice(1, 2)]
    assert list(DataLoader(Echo(), sampler=keys, num_workers=2, batch_size=None)) == [repr(key) for key in keys]
    assert list(DataLoader(Echo(), sampler=keys, num_workers=1, batch_size=5)) == [[repr(key) for key in keys]]


def test_a_persistent_iterator_restarts_in_mid_epoch():
    loader = DataLoader(Squares(9), num_workers=2, persistent_workers=True)
    old = iter(loader)
    next(old)
    assert iter(loader) is old
    assert [batch[0, 0].item() for batch in old] == list(range(9))


def test_the_length_warning_is_stocks():
    class Sized(Stream):
        def __len__(self):
            return 1

    loader = DataLoader(Sized(2, 2), num_workers=2)
    len(loader)
    with pytest.warns(UserWarning, match=r"but 2 samples have been fetched.*For multiprocessing data-loading, this"):
        list(loader)


def test_a_data_pipe_is_shuffled_and_sharded_as_by_stock():
    from torch.utils.data.datapipes.iter import IterableWrapper

    orders = []
    for loader_class in LOADERS:
        torch.manual_seed(3)
        pipe = IterableWrapper(range(12)).shuffle().sharding_filter()
        loader = loader_class(pipe, num_workers=2, shuffle=True, persistent_workers=True)
        orders.append([as_lists(loader) for _ in range(2)])
    assert orders[0] == orders[1]
    assert sorted(orders[1][0]) == [[index] for index in range(12)]
