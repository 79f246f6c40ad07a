"""torchdata's order for the same seed, and its checkpoints, in both directions, at every point of an epoch."""

import warnings

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from infeed.torch import StatefulDataLoader, samplers
from stateful_datasets import Items, Served, StatefulSampler, StatefulStream, Stream, plain, take

torchdata = pytest.importorskip("torchdata.stateful_dataloader")
Stock = torchdata.StatefulDataLoader

pytestmark = pytest.mark.filterwarnings("ignore")


def make(loader_class, seed, dataset, **options):
    """Seeded as a program that starts. `dataset` and a value of `options` that is a class are made anew."""
    torch.manual_seed(seed)
    if "sampler" in options:
        options["sampler"] = options["sampler"]()
    return loader_class(dataset(), **options)


def saved_after(count, loader_class, *args, **options):
    """`count` batches, and the state after them; one more than the epoch has: after its end was seen."""
    loader = make(loader_class, *args, **options)
    iterator = iter(loader)
    batches = [plain(batch) for _, batch in zip(range(count), iterator)]
    if len(batches) < count:
        assert next(iterator, None) is None
    return batches, loader.state_dict()


def resumed(state, loader_class, *args, **options):
    loader = make(loader_class, *args, **options)
    loader.load_state_dict(state)
    return loader


DATASETS = {
    "map": {"dataset": lambda: Items(11), "shuffle": True},
    "map with state": {"dataset": lambda: Served(11), "shuffle": True},
    "stateful sampler": {"dataset": lambda: Items(11), "sampler": StatefulSampler},
    "iterable": {"dataset": lambda: Stream(5, 2)},
    "iterable with state": {"dataset": lambda: StatefulStream(5, 2)},
}


@pytest.mark.parametrize("num_workers", [0, 2])
@pytest.mark.parametrize("kind", DATASETS)
def test_checkpoints_of_either_resume_in_the_other_at_every_point(kind, num_workers):
    options = {"batch_size": 2, "num_workers": num_workers, **DATASETS[kind]}
    whole = take(make(Stock, 3, **options))
    for count in range(len(whole) + 1):
        for writer, reader in ((Stock, StatefulDataLoader), (StatefulDataLoader, Stock)):
            head, state = saved_after(count, writer, 3, **options)
            rest = take(resumed(state, reader, 99, **options))
            assert head + rest == whole, f"{writer} to {reader} after {count}"


@pytest.mark.parametrize("num_workers", [0, 2])
@pytest.mark.parametrize("kind", DATASETS)
def test_states_are_equal_to_torchdatas(kind, num_workers):
    options = {"batch_size": 2, "num_workers": num_workers, **DATASETS[kind]}
    for count in (0, 1, 3, 100):
        states = [plain(saved_after(count, loader, 3, **options)[1]) for loader in (Stock, StatefulDataLoader)]
        assert states[0] == states[1], count


@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("num_workers", [0, 1, 2])
def test_epochs_and_the_draws_after_them_are_torchdatas(num_workers, persistent):
    if persistent and num_workers == 0:
        pytest.skip("not a loader")
    results = []
    for loader_class in (Stock, StatefulDataLoader):
        options = {"num_workers": num_workers, "persistent_workers": persistent, "batch_size": 3, "shuffle": True}
        loader = make(loader_class, 7, Items, **options)
        results.append(([take(loader) for _ in range(3)], torch.rand(()).item()))
    assert results[0] == results[1]


@pytest.mark.parametrize("num_workers", [0, 2])
def test_a_generator_is_drawn_from_as_by_torchdata(num_workers):
    results = []
    for loader_class in (Stock, StatefulDataLoader):
        generator = torch.Generator().manual_seed(5)
        loader = make(loader_class, 7, Items, num_workers=num_workers, shuffle=True, generator=generator)
        results.append(([take(loader) for _ in range(2)], generator.get_state().tolist()))
    assert results[0] == results[1]


@pytest.mark.parametrize(
    "options", [{}, {"replacement": True}, {"num_samples": 25}, {"replacement": True, "num_samples": 70}]
)
def test_random_sampler_draws_and_resumes_as_torchdatas(options):
    for count in (0, 1, 10, 11, 12, 24):
        results = []
        for module in (torchdata.sampler, samplers):
            sampler = module.RandomSampler(range(11), generator=torch.Generator().manual_seed(2), **options)
            iterator = iter(sampler)
            head = [index for _, index in zip(range(count), iterator)]
            state = plain(iterator.state_dict())
            again = iter(sampler)
            again.load_state_dict(iterator.state_dict())
            results.append((head, state, list(again), sampler.generator.get_state().tolist()))
        assert results[0] == results[1]


configurations = st.fixed_dictionaries(
    {
        "batch_size": st.sampled_from([None, 1, 2, 3]),
        "num_workers": st.sampled_from([0, 1, 2, 3]),
        "snapshot_every_n_steps": st.sampled_from([0, 1, 2, 3, 5]),
        "dataset": st.sampled_from(
            [lambda: Items(13), lambda: Served(12), lambda: StatefulStream(4, 0, 7), lambda: Stream(3, 6)]
        ),
    }
)


@settings(max_examples=15, deadline=None, derandomize=True, database=None)
@given(configurations, st.integers(0, 14), st.integers(0, 2**62))
def test_any_loader_resumes_as_torchdatas(options, count, seed):
    warnings.simplefilter("ignore")
    whole = take(make(Stock, seed, **options))
    head, state = saved_after(count, Stock, seed, **options)
    assert saved_after(count, StatefulDataLoader, seed, **options)[0] == head
    if len(head) == count:
        assert head + take(resumed(state, StatefulDataLoader, 1, **options)) == whole
