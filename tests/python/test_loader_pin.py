"""Page-locked extents are written again only after an event of a later next(); with stand-ins for events and CUDA."""

import pytest
import torch
from cuda_stand_ins import Runtime, Stream, accelerate
from infeed._native import DeviceEvent, open_device
from infeed.errors import DeviceError
from infeed.torch import DataLoader, _pin
from loader_datasets import Squares


class Lease:
    """Notes in `home` that its extent may be written again."""

    def __init__(self, home):
        self.home = home

    def __del__(self):
        self.home.append(True)


class Held:
    """A retention with one lease, which `batch` holds too, as a user's tensors do."""

    def __init__(self):
        self.home = []
        self.stream = Stream()
        self.retention = _pin.Retention(self.stream.record)
        self.batch = Lease(self.home)
        self.retention.keep(self.batch)


@pytest.fixture
def held():
    return Held()


def test_no_event_is_recorded_while_the_batch_is_held(held):
    held.retention.next_batch()
    assert (held.stream.events, held.home) == ([], [])


def test_a_dropped_batch_keeps_its_extent_until_a_later_event_has_passed(held):
    held.batch = None
    assert held.home == []
    held.retention.next_batch()
    held.retention.next_batch()
    assert (len(held.stream.events), held.home) == (1, [])


def test_the_extent_goes_home_once_the_event_has_passed(held):
    held.batch = None
    held.retention.next_batch()
    held.stream.events[0].passed = True
    held.retention.next_batch()
    assert held.home == [True] and held.retention.is_empty


def test_where_no_event_can_be_recorded_the_extent_is_kept(held, monkeypatch):
    def refuse():
        raise DeviceError("a graph is being captured")

    monkeypatch.setattr(held.retention, "_record", refuse)
    held.batch = None
    held.retention.next_batch()
    monkeypatch.setattr(held.retention, "_record", held.stream.record)
    held.retention.next_batch()
    assert (len(held.stream.events), held.home) == (1, [])


@pytest.fixture
def page_lock(monkeypatch):
    monkeypatch.setattr(torch.cuda, "cudart", Runtime)
    monkeypatch.setattr(torch.cuda, "check_error", lambda code: None)
    return _pin.PageLock()


def test_an_extent_is_locked_once_and_again_only_to_grow(page_lock):
    for nbytes in (1, 4096, 4097):
        page_lock.lock(1 << 20, nbytes)
    page_lock.unlock()
    base = 1 << 20
    calls = [("lock", base, 4096), ("unlock", base), ("lock", base, 8192), ("unlock", base)]
    assert page_lock._runtime.calls == calls


def test_batches_of_a_pinning_iterator_lie_in_locked_memory_until_events_pass(monkeypatch):
    stream, runtime = Stream(), Runtime()
    accelerate(monkeypatch, stream, runtime)
    iterator = iter(DataLoader(Squares(4), num_workers=1, pin_memory=True))
    address = next(iterator).data_ptr()
    next(iterator)
    assert len(stream.events) == 1  # of the batch that was dropped at once
    assert any(kind == "lock" and start <= address < start + size[0] for kind, start, *size in runtime.calls if size)
    list(iterator)


def test_events_are_behind_all_streams_where_the_plugin_is_there(monkeypatch):
    asked = []
    accelerate(monkeypatch, Stream(), Runtime())
    monkeypatch.setattr(_pin, "open_device", lambda name: asked.append(name) or open_device("simulated:0"))
    recorder = _pin.Recorder()
    assert [type(recorder.record()) for _ in range(2)] == [DeviceEvent] * 2 and asked == ["cuda:0"]


def test_without_the_plugin_events_are_of_the_current_stream(monkeypatch):
    stream = Stream()
    accelerate(monkeypatch, stream, Runtime())
    monkeypatch.setenv("INFEED_PLUGIN_PATH", "")
    monkeypatch.setattr(_pin, "open_device", lambda name: open_device("nowhere:0"))
    assert _pin.Recorder().record() is stream.events[0]


def test_an_error_while_pinning_reads_as_stocks(monkeypatch):
    def fail(data, device):
        raise ValueError("cannot pin")

    accelerate(monkeypatch, Stream(), Runtime())
    monkeypatch.setattr(_pin, "pin_memory", fail)
    with pytest.raises(ValueError, match="Caught ValueError in pin memory thread for device 0"):
        next(iter(DataLoader(Squares(4), num_workers=1, pin_memory=True)))


@pytest.mark.skipif(torch.accelerator.is_available(), reason="an accelerator is there")
def test_without_an_accelerator_pin_memory_warns_once_an_iterator():
    with pytest.warns(UserWarning, match="no accelerator is found") as caught:
        batches = list(DataLoader(Squares(4), num_workers=1, pin_memory=True))
    assert len(caught) == 1 and not batches[0].is_pinned()
