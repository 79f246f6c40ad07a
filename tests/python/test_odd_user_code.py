"""User code at the edges of what PyTorch accepts: whatever the stock loader gives or raises, ours does."""

import json
import pickle
import subprocess

import numpy as np
import pytest
import torch
import torch.utils.data
from infeed.torch import DataLoader
from torch.utils.data import Dataset

WORKERS = pytest.mark.parametrize("workers", [0, 1])


class Asked(Dataset):
    """Item: type and value of the index."""

    def __len__(self):
        return 6

    def __getitem__(self, index):
        return f"{type(index).__name__} {index!r}"


class Made(Dataset):
    """Batches are what `make` gives for a list of indices."""

    def __init__(self, make):
        self.make = make

    def __len__(self):
        return 4

    def __getitems__(self, indices):
        return self.make(indices)


def epoch(loader_class, *arguments, **options):
    """Each batch as it prints; each error by type and last line."""
    iterator, seen = iter(loader_class(*arguments, **options)), []
    while True:
        try:
            seen.append(repr(next(iterator)))
        except StopIteration:
            return seen
        except Exception as error:
            seen.append((type(error), str(error).splitlines()[-1:]))


def same_as_torchs(*arguments, **options):
    assert epoch(DataLoader, *arguments, **options) == epoch(torch.utils.data.DataLoader, *arguments, **options)


SAMPLERS = {
    "arrays": np.array([1, 2]),
    "tensors": torch.tensor([1, 2]),
    "texts": ["a", "b"],
    "pairs": [(1, 2), (3,)],
    "floats": [1.5, 2],
    "none": [None, 1],
    "negative": [-1, 0],
    "beyond 64 bits": [2**70, 1],
    "bools": [True, False],
    "numpy and int": [np.int64(3), 1],
    "slices": [slice(0, 2)],
    "limits of 64 bits": [2**63 - 1, -(2**63)],
    "dicts": [{"a": 1}],
    "nothing": [],
}


@WORKERS
@pytest.mark.parametrize("batch_size", [2, None])
@pytest.mark.parametrize("sampler", SAMPLERS.values(), ids=SAMPLERS)
def test_any_index_reaches_the_dataset_as_it_is(sampler, batch_size, workers):
    same_as_torchs(Asked(), batch_size=batch_size, sampler=sampler, num_workers=workers)


BATCH_SAMPLERS = {
    "tuples": [(1, 2), (3,)],
    "arrays": np.array([[1, 2]]),
    "empty": [[1], [], [2]],
    "ranges": [range(3)],
    "dicts": [{"a": 1}],
    "texts": ["abc"],
    "numbers": [5],
    "none": [None],
    "nested": [[[1, 2]]],
    "mixed": [[1, "a"], [True, 1], [2**64]],
}


@WORKERS
@pytest.mark.parametrize("batches", BATCH_SAMPLERS.values(), ids=BATCH_SAMPLERS)
def test_any_batch_of_indices_is_taken_or_refused_alike(batches, workers):
    same_as_torchs(Asked(), batch_sampler=batches, num_workers=workers)


BATCHES = {
    "list": lambda indices: [{"x": index} for index in indices],
    "tuple": tuple,
    "array": np.array,
    "tensor": torch.tensor,
    "dict": lambda indices: {"a": indices},
    "none": lambda indices: None,
    "empty": lambda indices: [],
    "number": lambda indices: 5,
    "text": lambda indices: "ab",
    "unequal": lambda indices: [torch.zeros(index + 1) for index in indices],
}


def as_it_is(samples):
    return samples


@WORKERS
@pytest.mark.parametrize("collate_fn", [None, as_it_is])
@pytest.mark.parametrize("make", BATCHES.values(), ids=BATCHES)
def test_getitems_may_return_anything(make, collate_fn, workers):
    same_as_torchs(Made(make), batch_size=2, collate_fn=collate_fn, num_workers=workers)


class OwnKeyError(KeyError):
    pass


class KeywordOnly(Exception):
    def __init__(self, *, code):
        super().__init__(code)


class Named(Exception):
    message = "of the class"

    def __init__(self, text):
        super().__init__(text)


class Another(Exception):
    def __new__(cls, text):
        return RuntimeError(text)


ERRORS = [
    OSError(2, "no file", "path"),
    UnicodeDecodeError("utf8", b"\xff", 0, 1, "bad"),
    json.JSONDecodeError("bad", "text", 0),
    subprocess.CalledProcessError(1, "command"),
    KeywordOnly(code=1),
    Another("text"),
    AssertionError(),
    NotImplementedError,
    MemoryError("none left"),
    ValueError("surrogate \udcff, \u00fcn\u00efcode, \x00"),
    ValueError(b"bytes", 3),
    ValueError("x" * 200_000),
    SyntaxError("bad", ("file", 1, 2, "text")),
    pickle.PicklingError("not this"),
]


class Fails(Dataset):
    def __init__(self, error):
        self.error = error

    def __len__(self):
        return 3

    def __getitem__(self, index):
        if index == 1:
            raise self.error
        return index


@WORKERS
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: getattr(type(error), "__name__", "class"))
def test_any_exception_arrives_as_torchs_workers_send_it(error, workers):
    same_as_torchs(Fails(error), num_workers=workers)


@pytest.mark.parametrize("error", [Named("text"), ExceptionGroup("two", [ValueError("1"), TypeError("2")])])
def test_exceptions_that_torch_loses_are_runtime_errors_with_their_traceback(error):
    with pytest.raises(RuntimeError, match=f"Caught {type(error).__name__} in DataLoader worker process 0") as caught:
        list(DataLoader(Fails(error), num_workers=1))
    assert "__getitem__" in str(caught.value)


def test_errors_derived_from_key_error_print_their_text_unescaped():
    with pytest.raises(OwnKeyError) as caught:
        list(DataLoader(Fails(OwnKeyError("no such key")), num_workers=1))
    assert "\nOriginal Traceback" in str(caught.value)


@pytest.mark.parametrize("options", [{"num_workers": 1.5}, {"num_workers": 1, "prefetch_factor": 1.5}])
def test_counts_that_are_no_integers_are_named(options):
    with pytest.raises(TypeError, match="'float' object cannot be interpreted as an integer"):
        iter(DataLoader(Asked(), **options))


@pytest.mark.parametrize("number", [np.int64(1 << 30), np.int32(1 << 30)])
def test_counts_may_be_numpys(number):
    loader = DataLoader(
        range(4), num_workers=np.int64(1), memory_limit=number, max_restarts=number, prefetch_to_device=number
    )
    assert len(list(loader)) == 4


@WORKERS
def test_arrays_of_ulonglong_are_arrays_of_uint64(workers):
    (batch,) = DataLoader([np.array([2**63], np.ulonglong)] * 2, batch_size=2, num_workers=workers)
    assert batch.dtype == torch.uint64 and batch.tolist() == [[2**63], [2**63]]
