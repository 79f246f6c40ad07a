"""DataLoader(device=...): batches are copied ahead, in order, from memory that waits for their copies; with stand-ins for CUDA."""

import collections

import numpy as np
import pytest
import torch
from cuda_stand_ins import COPY_MS, Copies, accelerate_copies
from infeed.errors import ConfigError, DeviceError
from infeed.torch import DataLoader, StatefulDataLoader, _device
from infeed.torch._containers import map_batch
from infeed.torch._staging import Staging
from loader_datasets import FailsAt, Squares
from torch.nn.utils.rnn import PackedSequence, pack_sequence

Pair = collections.namedtuple("Pair", "x y")
no_gpu = pytest.mark.skipif(torch.cuda.is_available(), reason="torch has a GPU")


@pytest.fixture
def copies(monkeypatch):
    return accelerate_copies(monkeypatch)


def rows(batches):
    return [batch[:, 0].tolist() for batch in batches]


@pytest.mark.parametrize("num_workers", [0, 2])
@pytest.mark.parametrize("kind", [DataLoader, StatefulDataLoader])
def test_batches_arrive_in_order_although_copies_are_made_at_the_very_end(copies, kind, num_workers):
    loader = kind(Squares(40), 4, num_workers=num_workers, device="cuda:0")
    batches = [batch for _ in range(2) for batch in loader]
    for side in copies:
        side.finish()
    assert rows(batches) == 2 * [list(range(start, start + 4)) for start in range(0, 40, 4)]


def test_a_held_epoch_of_copies_keeps_every_extent_it_still_reads(copies):
    iterator = iter(DataLoader(Squares(40), 4, num_workers=1, device="cuda"))
    list(iterator)
    assert len(copies[0].events) == 10 and all(event.passed for event in copies[0].events)  # at the end it waits


class Forgetful(collections.deque):
    def append(self, entry):
        pass


def test_without_the_hold_on_host_memory_batches_would_be_overwritten(copies):
    iterator = iter(DataLoader(Squares(40), 4, num_workers=1, persistent_workers=True, device="cuda:0"))
    iterator._staging.transfers._under_way = Forgetful()
    batches = [next(iterator) for _ in range(10)]
    copies[0].finish()
    assert rows(batches) != [list(range(start, start + 4)) for start in range(0, 40, 4)]


def test_the_compute_stream_waits_for_each_batch_and_its_tensors_are_given_to_it(copies):
    loader = DataLoader(Squares(6), 2, num_workers=1, device="cuda:0")
    batches = list(loader)
    side = copies[0]
    assert len(side.waits) == 3 and all(a is b for a, b in zip(side.given, batches, strict=True))


@pytest.mark.parametrize("num_workers", [0, 1])
def test_a_compute_stream_of_the_users_is_the_one_that_waits(copies, monkeypatch, num_workers):
    monkeypatch.setattr(torch.cuda, "Stream", UserStream)
    stream = UserStream()
    list(DataLoader(Squares(6), 2, num_workers=num_workers, device="cuda:0", compute_stream=stream))
    assert copies[0].compute is stream


class UserStream:
    device = torch.device("cuda:0")


class FakeStreams:
    """torch's streams, as far as Streams asks: each knows what was done in it."""

    def __init__(self, monkeypatch):
        self.current = UserStream()
        monkeypatch.setattr(torch.cuda, "Stream", lambda device: UserStream())
        monkeypatch.setattr(torch.cuda, "current_stream", lambda device: self.current)
        monkeypatch.setattr(torch.cuda, "stream", lambda stream: stream)


@pytest.mark.parametrize("given", [None, UserStream()])
def test_the_current_stream_computes_where_no_other_is_named(monkeypatch, given):
    fake = FakeStreams(monkeypatch)
    streams = _device.Streams(torch.device("cuda:0"), given)
    assert streams.computing() is (fake.current if given is None else given)
    assert streams.copying() not in (fake.current, given)


def test_what_moves_itself_moves_in_the_compute_stream():
    side = Copies()
    within = []

    class Moving:
        def to(self, device, non_blocking=False):
            within.append(side.inside)
            return self

    side.inside = None
    side.computing = lambda: Inside(side)
    staging = Staging(side, ahead=0)
    staging.put(Moving())
    staging.take()
    assert within == ["compute"]


class Inside:
    def __init__(self, side):
        self._side = side

    def __enter__(self):
        self._side.inside = "compute"

    def __exit__(self, *exception):
        self._side.inside = None


@pytest.mark.parametrize("kind", [DataLoader, StatefulDataLoader])
def test_copies_are_counted_when_they_are_done(copies, kind):
    loader = kind(Squares(40), 4, num_workers=1, device="cuda:0")
    batches = list(loader)
    staging = loader.stats().times.staging
    assert (staging.batches, staging.bytes) == (10, sum(batch.nbytes for batch in batches))
    assert staging.copy_s == pytest.approx(10 * COPY_MS / 1000) and staging.registrations > 0


def test_before_a_copy_is_done_it_does_not_count(copies):
    iterator = iter(DataLoader(Squares(40), 4, num_workers=1, device="cuda:0"))
    next(iterator)
    staging = iterator.stats().times.staging
    assert (staging.batches, staging.bytes, staging.copy_s) == (1, 0, 0)


def test_page_locks_alone_are_figures_of_pin_memory(copies):
    loader = DataLoader(Squares(40), 4, num_workers=1, pin_memory=True)
    list(loader)
    staging = loader.stats().times.staging
    assert staging.registrations > 0 and staging.registered_bytes >= 4096 and staging.batches == 0


@pytest.mark.parametrize("ahead", [0, 1, 3])
def test_no_more_batches_are_ahead_than_was_asked(copies, ahead):
    iterator = iter(DataLoader(Squares(40), 1, num_workers=2, device="cuda:0", prefetch_to_device=ahead))
    for given in range(1, 20):
        next(iterator)
        assert given <= len(copies[0].events) <= given + ahead


@pytest.mark.parametrize("num_workers", [0, 2])
def test_an_error_comes_in_its_place_and_the_batches_after_it_too(copies, num_workers):
    def fail(index):
        raise ValueError(f"bad {index}")

    iterator = iter(DataLoader(FailsAt(5, fail, 10), 2, num_workers=num_workers, device="cuda:0"))
    batches = [next(iterator), next(iterator)]
    with pytest.raises(ValueError, match="bad 5"):
        next(iterator)
    batches += list(iterator)
    copies[0].finish()
    assert rows(batches) == [[0, 1], [2, 3], [6, 7], [8, 9]]


@pytest.mark.parametrize("num_workers", [0, 2])
@pytest.mark.parametrize("taken", [0, 1, 3, 5])
def test_a_state_counts_what_was_given_not_what_is_ahead(copies, num_workers, taken):
    loader = StatefulDataLoader(Squares(10), 2, num_workers=num_workers, device="cuda:0")
    iterator = iter(loader)
    for _ in range(taken):
        next(iterator)
    other = StatefulDataLoader(Squares(10), 2, num_workers=num_workers, device="cuda:0")
    other.load_state_dict(loader.state_dict())
    rest = list(other) if taken < 5 else []
    for side in copies:
        side.finish()
    assert rows(rest) == [[start, start + 1] for start in range(2 * taken, 10, 2)]


def test_persistent_workers_begin_an_epoch_with_nothing_of_the_last_one_ahead(copies):
    loader = DataLoader(Squares(20), 2, num_workers=2, persistent_workers=True, device="cuda:0")
    next(iter(loader))
    batches = list(loader)
    copies[0].finish()
    assert rows(batches) == [[start, start + 1] for start in range(0, 20, 2)]


def test_a_batch_for_which_the_device_has_no_room_is_given_by_a_later_next():
    side = Copies()
    staging = Staging(side, ahead=1)
    side.room = 1
    staging.put([torch.ones(2), torch.zeros(2)], "first")
    with pytest.raises(torch.OutOfMemoryError):
        staging.take()
    side.room = None
    batch, position = staging.take()
    side.finish()
    assert (batch[0].tolist(), batch[1].tolist(), position) == ([1, 1], [0, 0], "first")


def test_a_batch_that_cannot_be_moved_fails_once_in_its_turn():
    staging = Staging(Copies(), ahead=1)
    staging.put(torch.ones(2))
    staging.put(Immovable())
    staging.put(torch.zeros(2))
    staging.take()
    with pytest.raises(ValueError, match="stays here"):
        staging.take()
    assert staging.take()[0].shape == (2,) and not staging


class Immovable:
    def to(self, device, non_blocking=False):
        raise ValueError("stays here")


def test_host_memory_of_dropped_batches_is_held_until_their_copies_are_done():
    side = Copies()
    staging = Staging(side, ahead=1)
    staging.put(torch.ones(2))
    staging.clear()
    assert not side.events[0].passed
    staging.settle()
    assert side.events[0].passed


def test_containers_keep_their_types():
    data = {
        "pair": Pair(torch.ones(1), "text"),
        "list": [torch.ones(1), None, 3],
        "order": collections.OrderedDict(a=1),
    }
    made = map_batch(data, lambda tensor: tensor + 1)
    assert type(made["pair"]) is Pair and type(made["order"]) is collections.OrderedDict
    assert (made["pair"].x.item(), made["list"][0].item(), made["list"][1:]) == (2, 2, [None, 3])


def test_what_has_a_way_to_move_itself_is_moved_by_that():
    staging = Staging(Copies(), ahead=0)
    staging.put({"packed": pack_sequence([torch.ones(2), torch.ones(1)])})
    packed = staging.take()[0]["packed"]
    assert isinstance(packed, PackedSequence) and packed.batch_sizes.tolist() == [2, 1]


@pytest.mark.parametrize(
    ("device", "text"),
    [
        ("meta", "device is 'meta'; batches can be copied to CUDA's devices only"),
        ("gpu", "device should be one of CUDA, as 'cuda:0', or None; it is 'gpu'"),
        (1.5, "device should be one of CUDA"),
    ],
)
def test_a_device_that_cannot_be_is_refused_at_once(device, text):
    with pytest.raises(ConfigError, match=text):
        DataLoader(Squares(4), device=device)


@pytest.mark.parametrize("device", ["cpu", torch.device("cpu"), torch.device("cpu", 0)])
def test_the_cpu_is_where_batches_stay(device):
    loader = StatefulDataLoader(Squares(4), num_workers=1, device=device)
    assert loader.device is None and len(list(loader)) == 4


@pytest.mark.parametrize("device", [0, np.int64(0), "cuda", torch.device("cuda"), torch.device("cuda", 0)])
def test_a_gpu_may_be_named_in_any_way_that_pytorch_knows(copies, device):
    assert DataLoader(Squares(4), device=device).device.type == "cuda"


@pytest.mark.parametrize("ahead", [-1, 1.0, True, None])
def test_a_number_of_batches_ahead_that_is_none_is_refused(ahead):
    with pytest.raises(ConfigError, match="prefetch_to_device should be a number of batches"):
        DataLoader(Squares(4), prefetch_to_device=ahead)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({}, "compute_stream is given, and no device"),
        ({"device": "cuda:0"}, "compute_stream should be a torch.cuda.Stream"),
    ],
)
def test_a_compute_stream_that_cannot_be_is_refused(copies, options, text):
    with pytest.raises(ConfigError, match=text):
        DataLoader(Squares(4), compute_stream="1", **options)


def test_a_compute_stream_of_another_device_is_refused(copies, monkeypatch):
    monkeypatch.setattr(torch.cuda, "Stream", UserStream)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    with pytest.raises(ConfigError, match="compute_stream is of 'cuda:0', and device is 'cuda:1'"):
        DataLoader(Squares(4), device="cuda:1", compute_stream=UserStream())


def test_a_gpu_that_is_not_there_is_refused_by_the_number_of_those_that_are(copies):
    with pytest.raises(DeviceError, match="there are 1: 'cuda:0' to 'cuda:0'"):
        DataLoader(Squares(4), device="cuda:3")


@no_gpu
def test_without_cuda_in_torch_the_error_says_what_is_missing_and_what_works():
    with pytest.raises(DeviceError, match=r"device is 'cuda:0', but .* Loaders without a device work"):
        StatefulDataLoader(Squares(4), num_workers=1, device="cuda:0")
