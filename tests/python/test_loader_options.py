"""What the constructor takes and what the loader is: torch's class with three options of its own."""

import pickle

import pytest
import torch.utils.data
from infeed.torch import DataLoader
from loader_datasets import Squares, as_lists


def test_is_torch_data_loader():
    assert isinstance(DataLoader(Squares()), torch.utils.data.DataLoader)


def test_takes_a_subscript():
    assert DataLoader[int] is not None


def test_refuses_unknown_arguments_and_a_fourteenth_positional():
    with pytest.raises(TypeError):
        DataLoader(Squares(), colour="red")
    with pytest.raises(TypeError):
        DataLoader(Squares(), *[None] * 13)


def test_torch_checks_come_first():
    with pytest.raises(ValueError, match="num_workers option should be non-negative"):
        DataLoader(Squares(), num_workers=-1, memory_limit=-1)


@pytest.mark.parametrize("option", [{"memory_limit": 0}, {"memory_limit": 1.5}, {"max_restarts": -1}, {"order": "any"}])
def test_refuses_options_out_of_range(option):
    with pytest.raises(ValueError, match=next(iter(option))):
        DataLoader(Squares(), **option)


def test_order_is_another_name_for_in_order():
    loader = DataLoader(Squares(), num_workers=1, order="ready")
    assert (loader.in_order, loader.order) == (False, "ready")
    loader.in_order = True
    assert loader.order == "strict"


def test_order_must_not_contradict_in_order():
    with pytest.raises(ValueError, match="contradicts"):
        DataLoader(Squares(), num_workers=1, order="strict", in_order=False)


def test_options_are_attributes_of_the_same_name():
    loader = DataLoader(Squares(), num_workers=1, memory_limit=1 << 20, max_restarts=2)
    assert (loader.memory_limit, loader.max_restarts) == (1 << 20, 2)


def test_frozen_attributes_stay_frozen():
    loader = DataLoader(Squares())
    with pytest.raises(ValueError, match="attribute should not be set after DataLoader"):
        loader.batch_size = 2


def test_is_picklable_while_no_iterator_lives():
    loader = DataLoader(Squares(4), num_workers=1, batch_size=2)
    assert as_lists(loader) == as_lists(pickle.loads(pickle.dumps(loader)))


def test_iterators_are_not_picklable():
    with pytest.raises(NotImplementedError, match="cannot be pickled"):
        pickle.dumps(iter(DataLoader(Squares(), num_workers=1)))


@pytest.mark.parametrize("options", [{"prefetch_factor": 0, "num_workers": 1}, {"timeout": 1}])
def test_assertions_of_iter_stay_assertions(options):
    loader = DataLoader(Squares(), **options)
    with pytest.raises(AssertionError):
        iter(loader)


def test_stats_are_empty_at_first_and_kept_at_the_end():
    loader = DataLoader(Squares(), num_workers=2)
    assert loader.stats() == {}
    list(loader)
    assert sum(worker["tasks"] for worker in loader.stats()["workers"]) == 20


def test_memory_limit_is_an_error_until_batches_are_dropped():
    loader = DataLoader(Squares(8), num_workers=1, memory_limit=1, batch_size=2)
    iterator = iter(loader)
    with pytest.raises(MemoryError):
        next(iterator)
    with pytest.raises(MemoryError):
        next(iterator)
