"""Messages: every kind of object survives, views are writable and keep the memory, damaged bytes are refused."""

import ctypes
import functools
import gc
import mmap
import pickle
import subprocess
import sys
import threading
import weakref
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from infeed import _codec
from messages import Point, assert_same, sent, written


class Subclass(torch.Tensor):
    pass


class SubArray(np.ndarray):
    pass


class Users:
    def __init__(self, value: Any) -> None:
        self.value = value


class Unpicklable:
    def __reduce__(self) -> Any:
        raise TypeError("this cannot be pickled")


# --- what survives ---

base = torch.arange(24.0).reshape(2, 3, 4)

DENSE = [
    base, base[1], base[:, ::2], base.permute(2, 0, 1), base[0, 0].expand(3, 4), base[:0], torch.tensor(5), torch.empty(0, 3),
    torch.ones(2, 3, 4, 5).contiguous(memory_format=torch.channels_last), torch.ones(2, dtype=torch.bfloat16),
    torch.ones(2, dtype=torch.uint64), torch.ones(2, dtype=torch.complex32), torch.ones(2, dtype=torch.float8_e4m3fn),
]  # fmt: skip


@pytest.mark.parametrize("tensor", DENSE, ids=str)
def test_dense_tensors_keep_values_dtype_and_strides(tensor: torch.Tensor) -> None:
    received = sent(tensor)
    assert_same(received, tensor)
    assert received.stride() == tensor.stride()


@pytest.mark.parametrize("array", [
    np.arange(6).reshape(2, 3), np.arange(6).reshape(2, 3).T, np.arange(6)[::-1], np.arange(12).reshape(3, 4)[:, ::2], np.array(5),
    np.zeros((0, 2)), np.array([None, "a"], object), np.array(["2020-01-01"], "M8[D]"), np.zeros(2, "i4,f8"), np.array(["ab"]),
    np.arange(3, dtype=">i4"), np.broadcast_to(np.arange(3), (2, 3)), np.arange(3).astype(np.longdouble),
], ids=str)  # fmt: skip
def test_arrays_keep_values_and_dtype_and_can_be_written(array: np.ndarray) -> None:
    received = sent(array)
    assert_same(received, array)
    received[...] = received.copy()


def test_read_only_arrays_arrive_writable() -> None:
    for array in [np.arange(3), np.zeros(2, "i4,f8")]:
        array.flags.writeable = False
        assert sent(array).flags.writeable


def test_fortran_order_is_kept() -> None:
    assert sent(np.asfortranarray(np.ones((2, 3)))).flags.f_contiguous


@pytest.mark.parametrize("value", [
    None, 1, 2**70, 1.5, "é😀\x00", b"\x00\xff", [1, (2, {"a": [3]})], {1, 2}, Point(1, [2]), range(3), slice(1, 2), 1j, bytearray(b"a"),
    [], (), {}, np.float32(1.5), np.str_("a"),
])  # fmt: skip
def test_other_values_survive(value: Any) -> None:
    received = sent(value)
    assert received == value and type(received) is type(value)


def test_tensors_within_users_objects_survive() -> None:
    received = sent(Users({"x": [torch.ones(2), np.ones(3)]}))
    assert_same(received.value, {"x": [torch.ones(2), np.ones(3)]})


def test_requires_grad_of_leaves_is_kept() -> None:
    received = sent(torch.ones(2, requires_grad=True))
    received.sum().backward()
    assert received.is_leaf and received.grad.tolist() == [1, 1]


def test_what_has_a_history_cannot_be_sent() -> None:
    with pytest.raises(RuntimeError, match="non-leaf"):
        sent(torch.ones(2, requires_grad=True) * 2)


@pytest.mark.parametrize("requires_grad", [True, False])
def test_parameters_stay_parameters(requires_grad: bool) -> None:
    received = sent(torch.nn.Parameter(torch.ones(2), requires_grad))
    assert type(received) is torch.nn.Parameter and received.requires_grad is requires_grad


def test_subclasses_are_kept() -> None:
    tensor = torch.arange(6.0).reshape(2, 3).t().as_subclass(Subclass)
    received = sent(tensor)
    assert type(received) is Subclass and received.tolist() == tensor.tolist() and received.stride() == tensor.stride()
    assert type(sent(np.arange(3).view(SubArray))) is SubArray


@pytest.mark.parametrize("tensor", [
    torch.tensor([1 + 2j]).conj(), torch.tensor([1 + 2j]).conj().imag, torch.tensor([1 + 2j]).conj().imag.conj(),
])  # fmt: skip
def test_conjugate_and_negative_views_arrive_resolved(tensor: torch.Tensor) -> None:
    received = sent(tensor)
    assert received.tolist() == tensor.tolist() and not received.is_neg() and not received.is_conj()


@pytest.mark.parametrize("make", [
    lambda: torch.eye(3).to_sparse(), lambda: torch.eye(3).to_sparse_csr(), lambda: torch.eye(4).to_sparse_csc(),
    lambda: torch.eye(4).to_sparse_bsr((2, 2)), lambda: torch.eye(4).to_sparse_bsc((2, 2)),
])  # fmt: skip
def test_sparse_tensors_survive(make: Any) -> None:
    received = sent(make())
    assert received.layout == make().layout and torch.equal(received.to_dense(), make().to_dense())


@pytest.mark.parametrize("layout", [torch.strided, torch.jagged])
def test_nested_tensors_survive(layout: Any) -> None:
    parts = [torch.ones(2), torch.zeros(3)]
    received = sent(torch.nested.nested_tensor(parts, layout=layout))
    assert received.layout == layout and [part.tolist() for part in received.unbind()] == [[1, 1], [0, 0, 0]]


def test_quantised_tensors_survive() -> None:
    tensor = torch.quantize_per_tensor(torch.tensor([1.0, 2.0]), 0.5, 3, torch.quint8)
    received = sent(tensor)
    assert received.q_scale() == 0.5 and received.int_repr().tolist() == tensor.int_repr().tolist()


def test_dtypes_without_dlpack_travel_by_their_bytes() -> None:
    received = sent(torch.arange(4, dtype=torch.uint8).view(torch.bits8))
    assert received.dtype == torch.bits8 and received.view(torch.uint8).tolist() == [0, 1, 2, 3]


def test_meta_tensors_and_storages_survive() -> None:
    assert sent(torch.empty(3, device="meta")).device.type == "meta"
    assert list(sent(torch.arange(3, dtype=torch.uint8).untyped_storage())) == [0, 1, 2]


def test_buffers_of_users_travel_out_of_band() -> None:
    received = sent(pickle.PickleBuffer(bytearray(b"abc")))
    received[0:1] = b"x"
    assert bytes(received) == b"xbc"


def test_tag_and_extra_come_along() -> None:
    tag, data, extra = _codec.decode(written([torch.zeros(1)], {"state": torch.ones(2)}, tag=-7))
    assert tag == -7 and data[0].tolist() == [0] and extra["state"].tolist() == [1, 1]


# --- sharing ---


def test_views_of_one_tensor_stay_views_of_one_memory() -> None:
    whole, row, column = sent((base, base[1], base[:, :, 2]))
    whole[1, 0, 2] = -1
    assert row[0, 2] == -1 and column[1, 0] == -1


def test_an_array_and_the_tensor_over_it_stay_together() -> None:
    array = np.zeros(3)
    sent_array, tensor = sent((array, torch.from_numpy(array)))
    sent_array[1] = 5
    assert tensor.tolist() == [0, 5, 0]


def test_one_tensor_twice_stays_one() -> None:
    first, second = sent([base, base])
    assert first is second


def test_what_shares_no_memory_does_not_overlap() -> None:
    tensors = sent([torch.full((3,), i) for i in range(20)])
    for i, tensor in enumerate(tensors):
        tensor.fill_(-i)
    assert [tensor.tolist() for tensor in tensors] == [[-i] * 3 for i in range(20)]


# --- memory ---


def test_views_keep_the_memory_and_the_last_one_lets_it_go() -> None:
    class Lease(mmap.mmap):
        pass

    memory = Lease(-1, 1 << 16)
    _codec.Message(memory).finish(0, (torch.ones(3), np.ones(3)), None)
    length = int.from_bytes(memory[24:32], "little")
    gone = weakref.ref(memory)
    tensor, array = _codec.decode(memoryview(memory)[:length])[1]
    view = tensor[1:].t()
    del memory, tensor, array
    gc.collect()
    assert gone() is not None and view.tolist() == [1, 1]
    del view
    assert gone() is None


def test_the_last_view_may_die_on_another_thread() -> None:
    held = [sent(torch.ones(3))]
    thread = threading.Thread(target=held.clear)
    thread.start()
    thread.join()
    assert held == []


def test_large_tensors_and_tensors_in_the_memory_itself() -> None:
    memory = mmap.mmap(-1, 1 << 25)
    message = _codec.Message(memory)
    large = torch.arange(1_500_001)
    message.stacking = True
    stacked = message.stack([large, large])
    before = message.finish(0, None, None)
    length = message.finish(0, (stacked, stacked[1]), None)
    assert length - before < 1000
    received = _codec.decode(memoryview(memory)[:length])[1]
    assert torch.equal(received[0], stacked) and torch.equal(received[1], large)


def test_too_little_memory_is_a_clear_error() -> None:
    for data in [torch.zeros(10_000), b"x" * 10_000]:
        with pytest.raises(MemoryError, match="Lower batch_size"):
            written(data, nbytes=8192)


def test_an_error_of_pickling_leaves_the_message_usable() -> None:
    message = _codec.Message(mmap.mmap(-1, 1 << 16))
    with pytest.raises(TypeError, match="cannot be pickled"):
        message.finish(0, [torch.ones(2), Unpicklable()], None)
    assert message.finish(1, "error", None) > 0


# --- damaged bytes ---

SAMPLE = (torch.arange(4), np.arange(3), "text", {"a": torch.ones(2, requires_grad=True)})


def parts_of(message: memoryview) -> tuple[bytes, range]:
    """The bytes, and the places of header and all behind the data."""
    table = int.from_bytes(message[40:48], "little")
    return bytes(message), [*range(64), *range(table, len(message))]


def test_each_flipped_byte_of_the_description_is_noticed() -> None:
    whole, places = parts_of(written(SAMPLE, {"state": 1}))
    for place in places:
        damaged = bytearray(whole)
        damaged[place] ^= 0x41
        with pytest.raises(ValueError, match="no message"):
            _codec.decode(damaged)


def test_each_truncated_message_is_noticed() -> None:
    whole, _ = parts_of(written(SAMPLE))
    for length in range(len(whole)):
        with pytest.raises(ValueError):
            _codec.decode(bytearray(whole[:length]))


@functools.cache
def two_leaves() -> bytes:
    """Always the same: where the table lies depends on the addresses of what was written."""
    return parts_of(written((torch.arange(4), np.arange(6).reshape(2, 3))))[0]


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_leaf_tables_that_lie_are_refused(data: Any) -> None:
    """With a checksum that is right: sizes and offsets are checked by themselves."""
    whole = two_leaves()
    damaged = bytearray(whole)
    table, pickled = (int.from_bytes(whole[at : at + 8], "little") for at in (40, 48))
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(table, pickled - 1))] = data.draw(st.integers(0, 255))
    seal(damaged)
    try:
        tensor, array = _codec.decode(damaged)[1]
    except (ValueError, TypeError, RuntimeError, BufferError):
        return
    assert inside(damaged, tensor.data_ptr(), tensor) and inside(damaged, array.ctypes.data, array)


def seal(message: bytearray) -> None:
    """Writes the checksum as decode() computes it."""
    table = int.from_bytes(message[40:48], "little")
    total = checksum(message[table:], checksum(message[16:64], 0))
    message[8:16] = total.to_bytes(8, "little")


def checksum(part: bytearray, seed: int) -> int:
    total = seed ^ len(part)
    for at in range(0, len(part), 8):
        word = int.from_bytes(part[at : at + 8].ljust(8, b"\0"), "little")
        total = (total ^ word) * 0x9E3779B97F4A7C15 % 2**64
        total ^= total >> 29
    return total


def inside(memory: bytearray, address: int, leaf: Any) -> bool:
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    steps = leaf.stride() if isinstance(leaf, torch.Tensor) else [step // leaf.itemsize for step in leaf.strides]
    if 0 in leaf.shape:
        return True
    last = sum((dim - 1) * step for dim, step in zip(leaf.shape, steps))
    return start <= address and address + (last + 1) * leaf.itemsize <= start + len(memory)


@pytest.mark.parametrize("lease", [b"", bytearray(), bytearray(64), bytearray(200)], ids=len)
def test_other_bytes_are_refused(lease: Any) -> None:
    with pytest.raises(ValueError, match="no message"):
        _codec.decode(lease)


# --- without torch, without NumPy ---

WITHOUT_TORCH = """
import mmap, sys
sys.modules["torch"] = None
import numpy as np
from infeed import _codec
memory = mmap.mmap(-1, 1 << 16)
class Rows:
    def __getitem__(self, i): return {"x": np.full(3, i, np.int16), "y": i, "s": np.float32(i)}
message = _codec.Message(memory)
assert message.fetch(Rows(), [3, 4], None) is None
batch = _codec.decode(memoryview(memory)[:message.finish(0, _codec.COLLATED, None)])[1]
assert batch["x"].tolist() == [[3] * 3, [4] * 3] and batch["x"].dtype == np.int16, batch
assert batch["y"].tolist() == [3, 4] and batch["s"].dtype == np.float32
array = _codec.decode(memoryview(memory)[:_codec.Message(memory).finish(0, np.arange(3), None)])[1]
array += 1
assert array.tolist() == [1, 2, 3]
"""

WITHOUT_NUMPY = """
import mmap, sys, warnings
warnings.simplefilter("ignore")
sys.modules["numpy"] = None
import torch
from infeed import _codec
memory = mmap.mmap(-1, 1 << 16)
class Rows:
    def __getitem__(self, i): return torch.full((3,), i), i
message = _codec.Message(memory)
assert message.fetch(Rows(), [3, 4], None) is None
batch = _codec.decode(memoryview(memory)[:message.finish(0, _codec.COLLATED, None)])[1]
assert batch[0].tolist() == [[3] * 3, [4] * 3] and batch[1].tolist() == [3, 4]
"""

WITHOUT_BOTH = """
import mmap, sys
from infeed import _codec
memory = mmap.mmap(-1, 1 << 16)
assert _codec.decode(memoryview(memory)[:_codec.Message(memory).finish(3, {"a": "b"}, 1)]) == (3, {"a": "b"}, 1)
assert "torch" not in sys.modules and "numpy" not in sys.modules
"""

AT_EXIT = """
import mmap, sys, threading, torch
from infeed import _codec
memory = mmap.mmap(-1, 1 << 16)
tensors = _codec.decode(memoryview(memory)[:_codec.Message(memory).finish(0, [torch.ones(3)] * 2, None)])[1]
sys.modules["kept"] = tensors
local = threading.local()
local.tensor = tensors[0][1:]
"""


@pytest.mark.parametrize(
    "script", [WITHOUT_TORCH, WITHOUT_NUMPY, WITHOUT_BOTH, AT_EXIT], ids=["torch", "numpy", "both", "exit"]
)
def test_scripts_run_quietly(script: str) -> None:
    done = subprocess.run([sys.executable, "-c", script], check=False, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
