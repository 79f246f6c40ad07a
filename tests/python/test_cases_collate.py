"""Faults that users of other loaders reported: types that change, layouts that are refused, samples that are touched."""

import collections
import copy
import warnings

import numpy as np
import pytest
import torch
from infeed.torch import DataLoader

WORKERS = pytest.mark.parametrize("workers", [0, 1])
Point = collections.namedtuple("Point", "x y")


class Totals(dict):
    """A mapping type of the user's."""

    def total(self):
        return sum(value.sum().item() for value in self.values())


def batch_of(samples, workers=0, **options):
    """The only batch of a loader over all of `samples`."""
    (batch,) = DataLoader(samples, batch_size=len(samples), num_workers=workers, **options)
    return batch


@WORKERS
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"])
def test_integers_keep_their_type_and_their_largest_values(dtype, workers):
    limits = np.iinfo(dtype)
    samples = [np.array([limits.min, limits.max], dtype), np.array([limits.max, limits.min], dtype)]
    batch = batch_of(samples, workers)
    assert batch.dtype == getattr(torch, dtype)
    assert batch.tolist() == [sample.tolist() for sample in samples]


@WORKERS
@pytest.mark.parametrize("dtype", ["bool", "float16", "float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("shape", [(), (3,), (1, 2)])
def test_other_numbers_keep_their_type_too(dtype, shape, workers):
    samples = [np.full(shape, value, dtype) for value in (0, 1, 1)]
    batch = batch_of(samples, workers)
    assert (batch.dtype, batch.shape) == (getattr(torch, dtype), (3, *shape))
    assert batch.tolist() == np.stack(samples).tolist()


VIEWS = {
    "reversed rows": lambda a: a[::-1],
    "mirrored": lambda a: a[:, ::-1],
    "rotated": np.rot90,
    "transposed": lambda a: a.T,
    "column window": lambda a: a[:, 1:3],
    "every other": lambda a: a[::2, ::3],
    "broadcast": lambda a: np.broadcast_to(a[0], (5, 6)),
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_workers_collate_any_layout_of_an_array_by_its_values(view):
    samples = [view(np.arange(24.0).reshape(4, 6) + shift) for shift in (0, 100)]
    batch = batch_of(samples, 1)
    assert batch.tolist() == np.stack(samples).tolist()
    assert batch.is_contiguous()


TENSOR_VIEWS = {
    "permuted": lambda x: x.permute(2, 0, 1),
    "sliced": lambda x: x[:, ::2],
    "expanded": lambda x: x[0, 0].expand(3, 4),
    "offset": lambda x: x[1],
    "channels last": lambda x: x[None].contiguous(memory_format=torch.channels_last)[0],
    "gapped": lambda x: x.as_strided((2, 2), (9, 4)),
}


@WORKERS
@pytest.mark.parametrize("view", TENSOR_VIEWS.values(), ids=TENSOR_VIEWS)
def test_any_layout_of_a_tensor_is_collated_by_its_values(view, workers):
    samples = [view(torch.arange(24.0).reshape(2, 3, 4) + shift) for shift in (0, 100)]
    assert torch.equal(batch_of(samples, workers), torch.stack(samples))


@pytest.mark.parametrize("batch_size", [2, None])
def test_read_only_arrays_give_no_warning_and_stay_as_they_are(batch_size):
    frozen = np.arange(6, dtype=np.float32)
    frozen.flags.writeable = False
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        batch = next(iter(DataLoader([frozen, frozen], batch_size=batch_size, num_workers=1)))
    batch += 1
    assert frozen.tolist() == [0, 1, 2, 3, 4, 5]


@WORKERS
@pytest.mark.parametrize("wrap", [lambda x: x, lambda x: {"k": x}, lambda x: (0, x), lambda x: [[x]]])
@pytest.mark.parametrize("lengths", [(2, 1), (1, 2), (0, 1)])
def test_lists_of_unequal_length_are_never_cut(wrap, lengths, workers):
    samples = [wrap(list(range(length))) for length in lengths]
    with pytest.raises(RuntimeError, match="each element in list of batch should be of equal size"):
        batch_of(samples, workers)


@WORKERS
def test_equal_lists_are_transposed(workers):
    numbers, floats, texts = batch_of([[1, 2.5, "u"], [3, 4.5, "v"]], workers)
    assert (numbers.tolist(), floats.tolist(), texts) == ([1, 3], [2.5, 4.5], ("u", "v"))


CONTAINERS = {
    Point: lambda i: Point(i, str(i)),
    collections.OrderedDict: lambda i: collections.OrderedDict([("z", i), ("a", i)]),
    Totals: lambda i: Totals(z=i, a=1),
    collections.defaultdict: lambda i: collections.defaultdict(list, z=i),
    list: lambda i: (i, i),
}


@WORKERS
@pytest.mark.parametrize("pin_memory", [False, True])
@pytest.mark.parametrize("kind", CONTAINERS, ids=lambda kind: kind.__name__)
@pytest.mark.filterwarnings("ignore:.*pin_memory.*")
def test_containers_keep_their_type(kind, pin_memory, workers):
    samples = [CONTAINERS[kind](i) for i in range(4)]
    batch = batch_of(samples, workers, pin_memory=pin_memory)
    assert type(batch) is kind
    if isinstance(batch, dict):
        assert list(batch) == list(samples[0])
        assert batch["z"].tolist() == [0, 1, 2, 3]
    if kind is Totals:
        assert batch.total() == 10
    if kind is collections.defaultdict:
        assert batch.default_factory is list


@WORKERS
def test_texts_and_bytes_arrive_whole(workers):
    samples = [("h\u00e9llo \U0001f600", b"\x00\xff\x00", ""), ("x" * 100_000, b"", "\x00")]
    assert batch_of(samples, workers) == [tuple(column) for column in zip(*samples)]


SCALARS = [
    (1.5, "float64"),
    (3, "int64"),
    (True, "bool"),
    (np.float32(1.5), "float32"),
    (np.float16(1.5), "float16"),
    (np.float64(1.5), "float64"),
    (np.int8(3), "int8"),
    (np.uint8(200), "uint8"),
    (np.bool_(True), "bool"),
    (np.complex64(1 + 2j), "complex64"),
    (np.array(2.5, np.float32), "float32"),
    (torch.tensor(2, dtype=torch.int16), "int16"),
]


@WORKERS
@pytest.mark.parametrize(("value", "dtype"), SCALARS)
def test_scalars_keep_their_type(value, dtype, workers):
    batch = batch_of([value] * 3, workers)
    assert (batch.dtype, batch.shape, batch[1].item()) == (getattr(torch, dtype), (3,), value)


@WORKERS
@pytest.mark.parametrize("sample", [None, (1, None), {"a": None}, [[None]]])
def test_none_in_a_sample_is_named(sample, workers):
    with pytest.raises(TypeError, match="NoneType"):
        batch_of([sample, sample], workers)


@WORKERS
@pytest.mark.parametrize("make", [np.zeros, torch.zeros])
def test_unequal_shapes_are_both_named(make, workers):
    with pytest.raises(RuntimeError) as caught:
        batch_of([make((3, 20)), make((3, 20)), make((3, 21))], workers)
    assert "20" in str(caught.value) and "21" in str(caught.value) and "resizable" not in str(caught.value)


@WORKERS
def test_samples_are_not_touched(workers):
    samples = [{"x": np.arange(4), "m": {"k": [1, 2]}, "l": [torch.ones(2), 3]} for _ in range(4)]
    before = copy.deepcopy(samples)
    for batch in DataLoader(samples, batch_size=2, num_workers=workers):
        batch["new"] = 1
        batch["x"] += 7
        batch["l"][0].zero_()
    assert str(samples) == str(before)


@WORKERS
def test_without_batching_there_is_no_new_axis(workers):
    sample = {"x": np.arange(3), "s": "t", "y": b"u", "n": 5, "f": 2.5}
    got = list(DataLoader([sample] * 2, batch_size=None, num_workers=workers))[1]
    assert torch.equal(got.pop("x"), torch.arange(3))
    assert got == {"s": "t", "y": b"u", "n": 5, "f": 2.5}
    assert type(got["n"]) is int


@WORKERS
@pytest.mark.parametrize("make", [torch.tensor, np.array])
def test_rows_of_different_types_become_the_type_that_holds_both(make, workers):
    (batch,) = DataLoader([make([1, 2]), make([0.5, 1.5])], batch_size=2, num_workers=workers)
    assert batch.tolist() == [[1, 2], [0.5, 1.5]]


@WORKERS
def test_rows_of_a_read_only_map_of_a_file_give_no_warning(workers, tmp_path):
    np.arange(8.0).tofile(tmp_path / "rows")
    rows = np.memmap(tmp_path / "rows", mode="r", shape=(4, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (batch,) = DataLoader(rows, batch_size=4, num_workers=workers)
    assert batch.tolist() == rows.tolist()
