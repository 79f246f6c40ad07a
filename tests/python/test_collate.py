"""Collating in place against torch's default_collate: what it returns, what it refuses, what is left of odd samples."""

import mmap
import string
import weakref
from collections import Counter, OrderedDict, defaultdict
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from infeed import _codec
from infeed._worker import standard
from messages import Dataset, Point, assert_same, fetched, tensors_of
from torch.utils.data import default_collate
from torch.utils.data._utils import collate as torch_collate

DTYPES = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint16, torch.uint32, torch.uint64, torch.bool,
          torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128, torch.float8_e5m2]  # fmt: skip
NUMPY_DTYPES = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"]
SCALARS = [np.bool_, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.float16, np.float32,
           np.float64, np.complex64, np.complex128]  # fmt: skip

# --- makers of samples: functions of the sample's number ---


def tensor_maker(dtype: torch.dtype, shape: list[int], order: str) -> Any:
    def make(i: int) -> torch.Tensor:
        flat = torch.arange(i, i + int(np.prod(shape, dtype=int)), dtype=torch.int32) % 2
        tensor = flat.to(dtype).reshape(shape)
        if order == "transposed" and len(shape) > 1:
            return tensor.transpose(0, -1).contiguous().transpose(0, -1)
        return torch.stack([tensor, tensor], -1)[..., 0] if order == "stepped" else tensor

    return make


def array_maker(dtype: str, shape: list[int], order: str) -> Any:
    def make(i: int) -> np.ndarray:
        array = (np.arange(i, i + int(np.prod(shape, dtype=int))) % 2).astype(dtype).reshape(shape)
        if order == "transposed":
            return np.asfortranarray(array)
        return np.stack([array, array], -1)[..., 0] if order == "stepped" else array

    return make


shapes = st.lists(st.integers(0, 3), max_size=3)
orders = st.sampled_from(["plain", "transposed", "stepped"])
numbers = st.sampled_from([lambda i: i, lambda i: i + 0.5, lambda i: i % 2 == 0, lambda i: -(2**63) + i])
texts = st.sampled_from([lambda i: string.ascii_letters[i] * i, lambda i: bytes([i]), lambda i: "\x00é😀"])
leaves = st.one_of(
    st.builds(tensor_maker, st.sampled_from(DTYPES), shapes, orders),
    st.builds(array_maker, st.sampled_from(NUMPY_DTYPES), shapes, orders),
    st.sampled_from(SCALARS).map(lambda kind: lambda i: kind(i % 2)),
    numbers,
    texts,
)


def sequence_of(kind: type) -> Any:
    return lambda children: lambda i: kind([child(i) for child in children])


def mapping_of(kind: Any) -> Any:
    return lambda children: lambda i: kind((f"key {n}", child(i)) for n, child in enumerate(children))


def containers(inner: Any) -> Any:
    children = st.lists(inner, max_size=3)
    return st.one_of(
        children.map(sequence_of(tuple)),
        children.map(sequence_of(list)),
        children.map(mapping_of(dict)),
        children.map(mapping_of(OrderedDict)),
        children.map(mapping_of(lambda items: defaultdict(list, items))),
        st.tuples(inner, inner).map(lambda pair: lambda i: Point(pair[0](i), pair[1](i))),
    )


makers = st.recursive(leaves, containers, max_leaves=6)


def outcome(collate: Any, samples: Any) -> Any:
    try:
        return collate(samples)
    except Exception as error:
        return type(error), str(error)


# --- tests ---


@settings(max_examples=400, deadline=None)
@given(makers, st.integers(1, 5))
def test_a_batch_in_place_equals_torchs(make: Any, count: int) -> None:
    how, batch = fetched(make, count)
    assert how == "in place"
    assert_same(batch, default_collate([make(i) for i in range(count)]))


@settings(max_examples=100, deadline=None)
@given(makers, st.integers(1, 5))
def test_tensors_in_place_are_contiguous_as_in_torchs_workers(make: Any, count: int) -> None:
    for tensor in tensors_of(fetched(make, count)[1]):
        assert tensor.stride() == torch.empty(tensor.shape).stride()


@settings(max_examples=400, deadline=None)
@given(makers, makers, st.integers(1, 4), st.integers(1, 5))
def test_after_an_odd_sample_torch_collates_what_it_would_have(make: Any, odd: Any, at: int, count: int) -> None:
    def mixed(i: int) -> Any:
        return odd(i) if i == at else make(i)

    how, got = fetched(mixed, count)
    expected = outcome(default_collate, [mixed(i) for i in range(count)])
    assert_same(outcome(default_collate, got) if how == "samples" else got, expected)


@pytest.mark.parametrize("make", [
    lambda i: None, lambda i: 1j, lambda i: {1}, lambda i: object(), lambda i: 2**63, lambda i: np.uint64(1), lambda i: np.str_("a"),
    lambda i: np.array(["a"]), lambda i: np.array([None]), lambda i: np.arange(3, dtype=">i4"),
    lambda i: np.array(["2020"], "M8[D]"), lambda i: range(2), lambda i: bytearray(2), lambda i: torch.nn.Parameter(torch.ones(2)),
    lambda i: torch.ones(2, requires_grad=True), lambda i: torch.eye(2).to_sparse(), lambda i: torch.eye(2).to_sparse_csr(),
    lambda i: torch.tensor([1j]).conj(), lambda i: torch.tensor([1j]).conj().imag, lambda i: torch.empty(2, device="meta"),
    lambda i: torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.quint8), lambda i: np.ma.masked_array([1], [0]),
])  # fmt: skip
def test_what_is_not_known_goes_to_torch_as_it_is(make: Any) -> None:
    how, samples = fetched(make, 2)
    assert how == "samples" and [type(sample) for sample in samples] == [type(make(0))] * 2


def test_subclasses_of_dict_are_copied_as_torch_does() -> None:
    class Named(dict):
        name = None

    def make(i: int) -> Named:
        sample = Named(v=torch.tensor(i), s="a")
        sample.name = f"sample {i}"
        return sample

    Named.__qualname__ = "Named"
    globals()["Named"] = Named
    how, batch = fetched(make)
    assert how == "in place" and batch.name == "sample 0"
    assert_same(batch, default_collate([make(i) for i in range(4)]))


def test_a_counter_adds() -> None:
    _, batch = fetched(lambda i: Counter(a=i + 1))
    assert_same(batch, default_collate([Counter(a=i + 1) for i in range(4)]))


def test_a_memory_map_is_an_array(tmp_path: Any) -> None:
    mapped = np.memmap(tmp_path / "file", dtype="i4", mode="w+", shape=(4, 3))
    mapped[:] = np.arange(12).reshape(4, 3)
    how, batch = fetched(lambda i: mapped[i])
    assert how == "in place" and batch.tolist() == mapped.tolist()


def test_a_reused_buffer_gives_what_it_held_each_time() -> None:
    buffer = np.zeros(3)

    def make(i: int) -> np.ndarray:
        buffer[:] = i
        return buffer

    assert fetched(make)[1][:, 0].tolist() == [0, 1, 2, 3]


def test_rebuilt_samples_do_not_lie_in_the_message() -> None:
    memory = mmap.mmap(-1, 1 << 16)
    samples = _codec.Message(memory).fetch(Dataset(lambda i: torch.full((2 + i // 3,), i)), range(4), None)
    memory[:] = bytes(1 << 16)
    assert [sample.tolist() for sample in samples] == [[0, 0], [1, 1], [2, 2], [3, 3, 3]]


def test_another_structure_in_the_next_batch_is_learnt_anew() -> None:
    for make in [
        lambda i: i,
        lambda i: {"a": i, "b": "x"},
        lambda i: {"b": "x", "a": i},
        lambda i: {1: i},
        lambda i: {True: i},
    ]:
        assert_same(fetched(make)[1], default_collate([make(i) for i in range(4)]))


def test_a_large_sample_is_streamed() -> None:
    rows = torch.arange(3 * 300_001, dtype=torch.int32).reshape(3, -1)
    assert torch.equal(fetched(lambda i: rows[i], 3, 1 << 23)[1], rows)


def test_a_batch_beyond_the_memory_goes_to_torch() -> None:
    assert fetched(lambda i: torch.zeros(1000), 4, 8192)[0] == "samples"


def test_an_empty_batch_goes_to_torch() -> None:
    assert fetched(lambda i: i, 0) == ("samples", [])


def test_errors_of_the_dataset_propagate() -> None:
    with pytest.raises(KeyError, match="sample 2"):
        fetched(lambda i: {}["sample 2"] if i == 2 else i)


def test_each_index_is_noted_before_its_sample() -> None:
    events: list[Any] = []
    message = _codec.Message(mmap.mmap(-1, 4096))
    message.fetch(Dataset(lambda i: events.append(("sample", i)) or i), [5, 7], lambda i: events.append(("note", i)))
    assert events == [("note", 5), ("sample", 5), ("note", 7), ("sample", 7)]


def test_gathered_samples_are_collated_or_given_back() -> None:
    message = _codec.Message(mmap.mmap(-1, 4096))
    odd = [1, None]
    assert message.gather([1, 2]) is None and message.gather(odd) is odd


# --- torch's public map ---


class Special(tuple):
    pass


@pytest.mark.parametrize("kind, sample", [(int, 1), (bool, True), (torch.Tensor, torch.ones(1)), (np.ndarray, np.ones(1)), (tuple, (1, 2)),
                                          (object, ("a",)), (dict, {"a": 1}), (str, {"a": "b"})])  # fmt: skip
def test_a_function_that_the_user_registered_is_called(kind: type, sample: Any, monkeypatch: Any) -> None:
    def mine(batch: Any, *, collate_fn_map: Any = None) -> str:
        return "mine"

    assert fetched(lambda i: sample)[0] == "in place"
    known = {key: function for key, function in torch_collate.default_collate_fn_map.items() if key is not kind}
    monkeypatch.setattr(torch_collate, "default_collate_fn_map", {kind: mine, **known})
    assert fetched(lambda i: sample)[0] == "samples"


def test_a_function_for_a_type_that_does_not_occur_changes_nothing(monkeypatch: Any) -> None:
    monkeypatch.setitem(torch_collate.default_collate_fn_map, Special, lambda batch, **_: "mine")
    assert fetched(lambda i: (i, np.ones(2)))[0] == "in place"


# --- stacking for the users' collate functions ---


@pytest.fixture
def message(monkeypatch: Any) -> Any:
    monkeypatch.setattr(torch_collate, "default_collate_fn_map", dict(torch_collate.default_collate_fn_map))
    memory = mmap.mmap(-1, 1 << 20)
    holder = [_codec.Message(memory)]
    _codec.install_stack(lambda: holder[0])
    return holder


def lies_in(message: Any, tensor: torch.Tensor) -> bool:
    """Writing it copies nothing: the message grows by no data."""
    before = message.finish(0, None, None)
    return message.finish(0, tensor, None) - before < tensor.nbytes


def test_users_collate_functions_stack_in_the_message(message: Any) -> None:
    samples = [(torch.full((100,), i), np.full(100, i), i) for i in range(4)]
    batch = message[0].collate(default_collate, samples)
    assert_same(batch, torch_collate.collate(samples, collate_fn_map=torch_collate.default_collate_fn_map))
    assert lies_in(message[0], batch[0]) and lies_in(message[0], batch[1])


def test_datasets_that_stack_get_memory_of_their_own(message: Any) -> None:
    assert not lies_in(message[0], default_collate([torch.ones(100)] * 4))


def test_what_a_collate_function_keeps_stays_what_it_was(message: Any) -> None:
    kept = message[0].collate(default_collate, [torch.ones(4)] * 2)
    memory_of_message = weakref.ref(kept)
    message[0].finish(0, kept, None)
    message[0] = None
    assert memory_of_message() is kept and not kept.is_shared()
    assert kept.tolist() == [[1] * 4] * 2


@pytest.mark.parametrize("batch", [
    [torch.ones(2), torch.ones(3)], [torch.ones(2, requires_grad=True)], [torch.eye(2).to_sparse()], [torch.ones(2), torch.ones(2, dtype=torch.int64)], [],
])  # fmt: skip
def test_what_only_torch_can_stack_or_refuse_is_left_to_it(message: Any, batch: Any) -> None:
    ours = outcome(lambda samples: message[0].collate(default_collate, samples), batch)
    theirs = outcome(
        lambda samples: torch_collate.collate(samples, collate_fn_map={torch.Tensor: torch_collate.collate_tensor_fn}),
        batch,
    )
    assert ours[:2] == theirs[:2] if isinstance(theirs, tuple) else torch.equal(ours, theirs)


def test_flipped_arrays_have_their_values():
    rows = [np.arange(12).reshape(3, 4)[:, ::-1], np.arange(12).reshape(3, 4)[::-1]]
    how, batch = fetched(lambda i: rows[i], count=2)
    assert how == "in place"
    assert batch.tolist() == [row.tolist() for row in rows]


@pytest.mark.parametrize("first_is_flipped", [True, False])
def test_torchs_function_takes_flipped_arrays_wherever_they_come(first_is_flipped):
    rows = [np.arange(3), np.arange(3)[::-1]]
    samples = rows[::-1] if first_is_flipped else rows
    assert standard.collate(samples).tolist() == [row.tolist() for row in samples]


def test_errors_of_values_are_torchs_own():
    with pytest.raises(ValueError, match="byte order"):
        standard.collate([np.arange(3, dtype=">i4")])
