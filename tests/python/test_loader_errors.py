"""Exceptions of user code reach next() at their batch's place, and unusual ones do no harm."""

import contextlib

import pytest
import torch
from infeed.torch import DataLoader
from loader_datasets import (
    FailsAt,
    Squares,
    Stream,
    raise_key_error,
    raise_odd_error,
    raise_stop_iteration,
    raise_value_error,
    unpicklable,
)


def test_an_error_takes_its_batchs_place_and_the_epoch_goes_on():
    iterator = iter(DataLoader(FailsAt(1, raise_value_error, 4), num_workers=2))
    assert next(iterator)[0, 0] == 0
    with pytest.raises(ValueError, match=r"Caught ValueError in DataLoader worker process 1\.\nOriginal Traceback"):
        next(iterator)
    assert [batch[0, 0].item() for batch in iterator] == [2, 3]


def test_a_key_error_prints_its_text_unescaped():
    with pytest.raises(KeyError) as caught:
        list(DataLoader(FailsAt(0, raise_key_error), num_workers=1))
    assert "\nOriginal Traceback" in str(caught.value)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_an_error_that_cannot_be_rebuilt_is_a_runtime_error_with_its_text(method):
    loader = DataLoader(FailsAt(0, raise_odd_error), num_workers=1, multiprocessing_context=method)
    with pytest.raises(RuntimeError, match="Caught Odd in DataLoader worker process 0"):
        next(iter(loader))


@pytest.mark.parametrize("workers", [0, 2])
def test_stop_iteration_of_a_map_dataset_is_an_error_not_the_end(workers):
    iterator = iter(DataLoader(FailsAt(1, raise_stop_iteration, 4), num_workers=workers))
    next(iterator)
    with pytest.raises(RuntimeError, match="FailsAt raised StopIteration for"):
        next(iterator)
    assert [batch[0, 0].item() for batch in iterator] == [2, 3]


def test_stop_iteration_of_a_collate_fn_is_an_error_too():
    with pytest.raises(RuntimeError, match="Caught StopIteration"):
        list(DataLoader(Squares(), num_workers=1, collate_fn=raise_stop_iteration))


def test_a_sample_that_cannot_be_pickled_is_an_error_at_its_batch():
    iterator = iter(DataLoader(FailsAt(1, unpicklable, 3), num_workers=1, batch_size=None))
    next(iterator)
    with pytest.raises(Exception, match=r"(?i)pickle|local object"):
        next(iterator)
    assert next(iterator)[0] == 2


def test_an_error_of_worker_init_fn_is_raised_by_every_next():
    iterator = iter(DataLoader(Squares(), num_workers=2, worker_init_fn=raise_value_error))
    for _ in range(3):
        with pytest.raises(ValueError, match="cannot start"):
            next(iterator)


def test_an_error_in_iter_of_the_dataset_has_its_type():
    class Unstartable(Stream):
        def __iter__(self):
            raise ValueError("Error in __iter__")

    with pytest.raises(ValueError, match="Error in __iter__"):
        next(iter(DataLoader(Unstartable(), num_workers=2)))


@pytest.mark.parametrize("workers", [0, 1])
def test_a_samplers_error_surfaces_where_it_was_pulled(workers):
    def sampler():
        yield from range(6)
        raise ValueError("sampler")

    iterator = iter(DataLoader(Squares(), sampler=sampler(), num_workers=workers))
    with pytest.raises(ValueError, match=r"^sampler$"):
        list(iterator)


def test_arguments_that_cannot_be_pickled_fail_in_iter_with_a_warning():
    loader = DataLoader(Squares(), num_workers=1, collate_fn=lambda x: x, multiprocessing_context="spawn")
    with pytest.warns(UserWarning, match=r"^Got pickle error"), pytest.raises(Exception, match=r"(?i)pickle|lambda"):
        iter(loader)


def test_a_worker_error_leaves_no_cycle_that_keeps_the_iterator(gc_off):
    iterator = iter(DataLoader(FailsAt(0, raise_value_error), num_workers=1, persistent_workers=True))
    workers = list(iterator._workers)
    with contextlib.suppress(ValueError):
        next(iterator)
    del iterator
    assert [worker.exitcode for worker in workers] == [0]


@pytest.fixture
def gc_off():
    import gc

    gc.disable()
    yield
    gc.enable()


def test_conj_and_neg_bits_keep_their_values():
    def conjugate(samples):
        return torch.tensor([1 + 2j]).conj(), torch.tensor([1 + 2j]).conj().imag

    conj, imag = next(iter(DataLoader(Squares(), num_workers=1, collate_fn=conjugate)))
    assert (conj.tolist(), imag.tolist()) == ([1 - 2j], [-2.0])
