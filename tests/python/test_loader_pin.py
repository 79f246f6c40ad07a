"""Page-locked extents are written again only after an event of a later next(); here with stand-ins for events."""

import pytest
import torch
from infeed.torch import DataLoader
from infeed.torch._pin import Retention
from loader_datasets import Squares


class Stream:
    """Hands out events that pass when the test says so."""

    def __init__(self):
        self.events = []

    def record(self):
        self.events.append(Event())
        return self.events[-1]


class Event:
    done = False

    def query(self):
        return self.done


class Extent:
    """Adds itself to `home` when the last reference is gone."""

    def __init__(self, home):
        self.home = home
        self.dropped = False

    def __del__(self):
        self.home.append(True)


@pytest.fixture
def held():
    """(retention, stream, extent as the user sees it, where extents go home)"""
    home, stream = [], Stream()
    retention = Retention(lambda lease: lease.dropped, stream.record)
    retention.keep(Extent(home))
    return retention, stream, retention._lent[0], home


def test_a_held_batch_is_not_retained_by_events(held):
    retention, stream, _, home = held
    retention.next_batch()
    assert (stream.events, home) == ([], [])


def test_a_dropped_batch_waits_for_an_event_recorded_after_the_drop(held):
    retention, stream, extent, home = held
    extent.dropped = True
    del extent
    held[2].dropped = True
    retention.next_batch()
    retention.next_batch()
    assert len(stream.events) == 1 and retention._leaving


def test_the_extent_goes_home_once_the_event_has_passed(held):
    retention, stream, extent, home = held
    extent.dropped = True
    retention.next_batch()
    stream.events[0].done = True
    retention.next_batch()
    assert not retention._leaving and not retention._lent


@pytest.mark.skipif(torch.accelerator.is_available(), reason="an accelerator is there")
def test_without_an_accelerator_pin_memory_warns_once_an_iterator():
    with pytest.warns(UserWarning, match="no accelerator is found") as caught:
        batches = list(DataLoader(Squares(4), num_workers=1, pin_memory=True))
    assert len(caught) == 1 and not batches[0].is_pinned()
