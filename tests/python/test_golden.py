"""infeed.torch.DataLoader against torch's, over many configurations: same batches, types, errors, seeds, and draws."""

import pytest
import torch
import torch.utils.data
from golden import MAKERS, Rows, Served, Stream, after, draws, epoch, is_error, labelled, mapping, mixed, seed
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from infeed.torch import DataLoader
from torch.utils.data import BatchSampler, RandomSampler, SubsetRandomSampler, WeightedRandomSampler

Stock = torch.utils.data.DataLoader
pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create", "ignore:.*set_vital")
SIZE = 17


def samplers(generator):
    """By name: options that choose the samples."""
    weights = [1.0 + index % 3 for index in range(SIZE)]
    return {
        "in order": {},
        "shuffled": {"shuffle": True},
        "own generator": {"shuffle": True, "generator": generator},
        "replacement": {"sampler": RandomSampler(range(SIZE), True, 40)},
        "replacement, own generator": {"sampler": RandomSampler(range(SIZE), True, 40, generator)},
        "more than all": {"sampler": RandomSampler(range(SIZE), num_samples=40)},
        "weighted": {"sampler": WeightedRandomSampler(weights, 20)},
        "subset": {"sampler": SubsetRandomSampler([3, 5, 7, 11], generator)},
        "batches": {"batch_sampler": BatchSampler(RandomSampler(range(SIZE)), 3, False)},
        "odd batches": {"batch_sampler": [[1], (2, 3), [], [4, 4, 4]]},
    }


def plain(samples):
    return samples


@st.composite
def configurations(draw, methods=("fork",), workers=(0, 1, 2, 3), makers=MAKERS, datasets=(Rows, Served)):
    """(dataset class, maker, name of the sampler, other options, seed)"""
    options = {"num_workers": draw(st.sampled_from(workers))}
    sampler = draw(st.sampled_from(sorted(samplers(None))))
    if "batches" not in sampler:
        options["batch_size"] = draw(st.sampled_from([1, 2, 3, 5, 30, None]))
        options["drop_last"] = options["batch_size"] is not None and draw(st.booleans())
    if options["num_workers"] > 0:
        options["prefetch_factor"] = draw(st.integers(1, 3))
        options["persistent_workers"] = draw(st.booleans())
        options["multiprocessing_context"] = draw(st.sampled_from(methods))
    if draw(st.booleans()):
        options["collate_fn"] = draw(st.sampled_from([plain, torch.utils.data.default_collate]))
    maker = draw(st.sampled_from(makers if options["num_workers"] > 0 else (*makers, mixed)))
    return draw(st.sampled_from(datasets)), maker, sampler, options, draw(st.integers(0, 2**31))


def made(loader_class, dataset, maker, sampler, options, number):
    """A loader, from a known state of all generators."""
    seed(number)
    chosen = samplers(torch.Generator().manual_seed(number))[sampler]
    return loader_class(dataset(maker, SIZE), **options, **chosen)


def seen(loader_class, configuration, stops=(None, None)):
    """What a user sees of some epochs, each left after so many batches, and of the generators after them."""
    loader = made(loader_class, *configuration)
    return [epoch(iter(loader), most) for most in stops], after()


@settings(max_examples=90)
@given(configurations())
def test_two_epochs_are_stocks(configuration):
    assert seen(DataLoader, configuration) == seen(Stock, configuration)


@settings(max_examples=4)
@given(configurations(methods=("spawn",), workers=(1, 2), makers=(draws, mapping, labelled)))
def test_two_epochs_of_spawned_workers_are_stocks(configuration):
    assert seen(DataLoader, configuration) == seen(Stock, configuration)


@settings(max_examples=25)
@given(configurations(), st.lists(st.integers(1, 4), min_size=1, max_size=2))
def test_epochs_that_are_left_early_draw_as_stocks(configuration, stops):
    stops = (*stops, None)
    assert seen(DataLoader, configuration, stops) == seen(Stock, configuration, stops)


@settings(max_examples=30)
@given(
    st.sampled_from(MAKERS),
    st.lists(st.integers(0, 7), min_size=1, max_size=3),
    st.sampled_from([None, 1, 3]),
    st.booleans(),
    st.integers(0, 3),
    st.booleans(),
)
def test_iterable_datasets_are_stocks(maker, sizes, batch_size, drop_last, workers, persistent):
    options = {"batch_size": batch_size, "drop_last": drop_last and batch_size is not None, "num_workers": workers}
    options["persistent_workers"] = persistent and workers > 0
    results = []
    for loader_class in (Stock, DataLoader):
        seed(sum(sizes))
        loader = loader_class(Stream(maker, *sizes), **options)
        results.append(([epoch(iter(loader)) for _ in range(2)], after()))
    assert results[1] == results[0]


RESUMABLE = tuple(maker for maker in MAKERS if maker.__name__ not in ("draws", "failing", "growing"))


@settings(max_examples=30)
@given(configurations(makers=RESUMABLE), st.integers(0, 6))
def test_an_epoch_that_is_resumed_goes_on_as_stocks(configuration, stop):
    (whole,), _ = seen(Stock, configuration, (None,))
    assume(not any(is_error(item) for item in whole))  # a batch that failed was not delivered: it comes again
    loader = made(DataLoader, *configuration)
    head = epoch(iter(loader), min(stop, len(whole)))
    state = loader.state_dict()
    del loader
    resumed = made(DataLoader, *configuration)
    seed(1)  # the state alone fixes the order
    resumed.load_state_dict(state)
    assert head + epoch(iter(resumed)) == whole
