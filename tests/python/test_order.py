"""The order drawn in C++ is torch's, and leaves torch's random state where torch leaves it."""

import pytest

torch = pytest.importorskip("torch")

from hypothesis import given, settings
from hypothesis import strategies as st
from infeed.torch import _order
from infeed.torch._order import _is_plain_shuffle
from torch.utils.data import BatchSampler, RandomSampler, SequentialSampler


def index_batches(sampler):
    return _order.index_batches(sampler, iter(sampler))


def drawn(iterate, sampler, seed):
    torch.manual_seed(seed)
    return list(iterate(sampler)), torch.get_rng_state()


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    size=st.integers(1, 400),
    batch_size=st.integers(1, 70),
    drop_last=st.booleans(),
    seed=st.integers(0, 2**63 - 1),
)
def test_shuffles_as_torch_does(size, batch_size, drop_last, seed):
    sampler = BatchSampler(RandomSampler(range(size)), batch_size, drop_last)
    assert _is_plain_shuffle(sampler)
    ours, state = drawn(index_batches, sampler, seed)
    theirs, their_state = drawn(iter, sampler, seed)
    assert ours == theirs
    assert torch.equal(state, their_state)


def test_shuffles_a_large_dataset_as_torch_does():
    sampler = BatchSampler(RandomSampler(range(100_000)), 1000, False)
    assert drawn(index_batches, sampler, 1)[0] == drawn(iter, sampler, 1)[0]


def test_draws_nothing_before_the_first_pull():
    before = torch.get_rng_state()
    index_batches(BatchSampler(RandomSampler(range(9)), 2, False))
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(
    "sampler",
    [
        RandomSampler(range(9), generator=torch.Generator()),
        RandomSampler(range(9), replacement=True),
        RandomSampler(range(9), num_samples=4),
        SequentialSampler(range(9)),
    ],
)
def test_leaves_every_other_sampler_to_itself(sampler):
    assert not _is_plain_shuffle(BatchSampler(sampler, 2, False))


def test_gives_indices_that_are_plain_ints():
    batches = list(index_batches(BatchSampler(RandomSampler(range(5)), 2, False)))
    assert all(type(index) is int for batch in batches for index in batch)
