"""num_workers="auto": workers come and go, and every batch stays what it is."""

import logging
import os
import pickle
import signal
import subprocess
import sys

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from infeed.errors import ConfigError, WorkerError
from infeed.torch import DataLoader, StatefulDataLoader, get_worker_info
from loader_datasets import FailsAt, Noisy, Squares, Stream, as_lists, kill_self, kill_self_once
from test_loader_shutdown import possessions

CLASSES = [DataLoader, StatefulDataLoader]
PLANS = st.lists(st.integers(1, 5), min_size=1, max_size=12)


class Plan:
    """In the place of AutoCount: after batch i there are to be counts[i % len] workers, and so many times the tasks."""

    most = 6

    def __init__(self, *counts, depths=(1,)):
        self.counts = counts
        self.depths = depths
        self.turns = 0

    @property
    def times_deeper(self):
        return self.depths[self.turns % len(self.depths)]

    @property
    def workers(self):
        return self.counts[self.turns % len(self.counts)]

    def turn_began(self):
        pass

    def turn_ended(self, with_batch, exchange):
        self.turns += with_batch

    def closes(self, exchange):
        pass


def planned(counts, kind=DataLoader, dataset=None, depths=(1,), **options):
    torch.manual_seed(5)
    loader = kind(dataset or Noisy(24), batch_size=2, num_workers="auto", **options)
    loader._auto.count = Plan(*counts, depths=depths)
    return loader


def epochs(loader, count=2):
    return [as_lists(loader) for _ in range(count)]


@settings(max_examples=6)
@given(counts=PLANS, depths=PLANS, prefetch=st.integers(1, 3), persistent=st.booleans())
def test_no_batch_changes_while_workers_come_and_go(counts, depths, prefetch, persistent):
    options = {"shuffle": True, "persistent_workers": persistent, "prefetch_factor": prefetch}
    assert epochs(planned(counts, depths=depths, **options)) == epochs(planned([2], **options))


@pytest.mark.parametrize(("method", "kind"), [("spawn", DataLoader), ("forkserver", StatefulDataLoader)])
def test_started_workers_of_every_kind_make_the_batches_of_forked_ones(method, kind):
    loader = planned([1, 1, 1, 2, 2, 1, 1], kind, shuffle=True, multiprocessing_context=method)
    assert epochs(loader, 1) == epochs(planned([1], kind, shuffle=True), 1)


def tasks_ahead(iterator, turns):
    """How many tasks are ahead behind each of so many next()."""
    return [len(iterator._tasks) for _ in range(turns) if next(iterator) is not None]


def test_the_queue_becomes_deeper_and_shallower():
    iterator = iter(planned([2], dataset=Squares(80), depths=[1, 1, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1]))
    assert tasks_ahead(iterator, 12) == [4, 4, 12, 12, 11, 10, 9, 8, 7, 6, 5, 4]


def test_the_queue_is_no_deeper_than_all_slots():
    iterator = iter(planned([2], dataset=Squares(400), depths=[100]))
    assert tasks_ahead(iterator, 4)[-1] == 32


@pytest.mark.parametrize(("options", "deepens"), [({}, True), ({"prefetch_factor": 2}, False)])
def test_a_depth_that_is_given_stays(options, deepens):
    assert DataLoader(Squares(), num_workers="auto", **options).num_workers.deepens == deepens


@pytest.mark.parametrize("kind", CLASSES)
def test_a_loader_that_is_made_of_ones_attributes_is_auto_too(kind):
    first = kind(Squares(8), num_workers="auto", memory_budget=1 << 40)
    names = ("num_workers", "prefetch_factor", "memory_budget", "persistent_workers")
    second = kind(first.dataset, **{name: getattr(pickle.loads(pickle.dumps(first)), name) for name in names})
    assert second.auto_workers and second.num_workers == 1 and second.num_workers.deepens
    assert as_lists(second) == as_lists(first)


@pytest.mark.parametrize("fixed", [0, 2])
def test_the_order_is_that_of_any_number_of_workers(fixed):
    torch.manual_seed(5)
    expected = epochs(DataLoader(Squares(24), batch_size=2, shuffle=True, num_workers=fixed))
    assert epochs(planned([3, 1, 4, 2], dataset=Squares(24), shuffle=True)) == expected


def test_without_order_every_batch_comes_once():
    batches = as_lists(planned([3, 1, 4, 2], in_order=False))
    assert sorted(batches) == sorted(as_lists(planned([1])))


@pytest.mark.parametrize("persistent", [False, True])
def test_an_epoch_that_is_broken_off_leaves_no_trace_in_the_next(persistent):
    def after_a_break(counts):
        loader = planned(counts, persistent_workers=persistent)
        for number, _ in enumerate(loader):
            if number == 3:
                break
        return as_lists(loader)

    assert after_a_break([4, 2, 5]) == after_a_break([1])


def test_random_numbers_differ_by_batch_and_epoch():
    loader = planned([3, 1], persistent_workers=True)
    drawn = [row[1] for epoch in epochs(loader) for batch in epoch for row in batch]
    assert len(set(drawn)) == 48


def resumed(kind, before, after, steps, persistent):
    """What is left after `steps` batches of the second epoch, and all of the third."""
    first = planned(before, kind, shuffle=True, persistent_workers=persistent)
    list(first)
    iterator = iter(first)
    for _ in range(steps):
        next(iterator)
    state = pickle.loads(pickle.dumps(first.state_dict()))
    second = planned(after, kind, shuffle=True, persistent_workers=persistent)
    second.load_state_dict(state)
    return as_lists(second), as_lists(iterator)


@settings(max_examples=4)
@given(before=PLANS, after=PLANS, steps=st.integers(0, 11), persistent=st.booleans())
@pytest.mark.parametrize("kind", CLASSES)
def test_a_state_is_continued_by_any_number_of_workers(kind, before, after, steps, persistent):
    rest, expected = resumed(kind, before, after, steps, persistent)
    assert rest == expected and len(rest) == 12 - steps


@pytest.mark.parametrize(("saved", "loaded"), [(2, "auto"), ("auto", 3)])
@pytest.mark.parametrize("kind", CLASSES)
def test_a_state_passes_between_auto_and_a_fixed_number(kind, saved, loaded):
    first = kind(Squares(24), batch_size=2, num_workers=saved)
    iterator = iter(first)
    next(iterator)
    second = kind(Squares(24), batch_size=2, num_workers=loaded)
    second.load_state_dict(first.state_dict())
    assert as_lists(second) == as_lists(iterator)


def leave_nothing(**options):
    plan = [1, 1, 4, 4, 4, 2, 2, 2, 5, 5, 1, 1]
    epochs(planned(plan, **options), 1)
    before = possessions()
    for _ in range(4):
        epochs(planned(plan, **options), 1)
    return possessions() == before


@pytest.mark.parametrize("persistent", [False, True])
def test_nothing_is_left_behind(persistent):
    assert leave_nothing(persistent_workers=persistent)


def see_all_off(iterator):
    while iterator._shift.leaving:
        iterator._see_off()
        os.sched_yield()


def test_removed_workers_are_gone_while_the_rest_works_on():
    iterator = iter(planned([1]))
    next(iterator)
    before = possessions()
    iterator._resize(5)
    next(iterator)  # Plan says 1: four leave
    see_all_off(iterator)
    assert possessions() == before
    assert len(list(iterator)) == 10


def test_a_death_amid_changes_is_the_ordinary_error():
    with pytest.raises(WorkerError, match=r"exited unexpectedly: worker \d \(pid \d+\) is at dataset index 17"):
        list(planned([1, 4, 2, 5], dataset=FailsAt(17, kill_self)))


def test_a_dead_worker_is_replaced_amid_changes(tmp_path):
    dataset = FailsAt(9, kill_self_once(str(tmp_path / "died")))
    batches = as_lists(planned([2, 4, 1, 3], dataset=dataset, max_restarts=1))
    assert batches == as_lists(DataLoader(Squares(20), batch_size=2))


def die_when_told(path):
    """An action that waits, and dies the first time: until `path` is there."""

    def action(index):
        if not os.path.exists(path + ".taken"):
            open(path + ".taken", "w").close()
            while not os.path.exists(path):
                os.sched_yield()
            os.kill(os.getpid(), signal.SIGKILL)
        return torch.tensor([index, index * index])

    return action


def retire_in_task(tmp_path, **options):
    """An iterator whose worker 1 is retired while it has index 2 in hand, and then dies of it."""
    path = str(tmp_path / "die")
    iterator = iter(planned([2], dataset=FailsAt(2, die_when_told(path)), **options))
    while (holder := iterator._shift.holder(1)) is None or iterator._exchange.sample_in_hand(holder)[1] != 2:
        os.sched_yield()
    iterator._shift.working.sort(key=lambda worker: worker == holder)
    iterator._auto.counts = [1]
    iterator._resize(1)
    open(path, "w").close()
    return iterator


def test_a_worker_that_dies_while_it_leaves_is_an_error(tmp_path):
    with pytest.raises(WorkerError, match="exited unexpectedly"):
        list(retire_in_task(tmp_path))


def test_what_a_leaving_worker_left_undone_another_does(tmp_path):
    assert as_lists(retire_in_task(tmp_path, max_restarts=1)) == as_lists(DataLoader(Squares(20), batch_size=2))


def test_workers_that_cannot_be_started_are_done_without(monkeypatch):
    loader = planned([1, 3])
    refused = []
    loader._auto.count.refuse = lambda workers, why: refused.append((workers, why))
    iterator = iter(loader)
    monkeypatch.setattr(iterator._team, "start", lambda start: (_ for _ in ()).throw(OSError("no more processes")))
    assert len(list(iterator)) == 12
    assert (1, "no more processes") in refused


class Info(Squares):
    def __getitem__(self, index):
        info = get_worker_info()
        return torch.tensor([info.id, info.num_workers])


def test_ids_are_below_the_number_that_workers_are_told():
    for batch in planned([1, 5, 2, 4], dataset=Info(24)):
        assert (batch[:, 0] < 6).all() and (batch[:, 1] == 6).all()


@pytest.mark.parametrize("kind", CLASSES)
def test_the_parts_of_an_iterable_dataset_stay_as_many(kind, caplog):
    with caplog.at_level(logging.INFO):
        loader = kind(Stream(*[4] * 8), batch_size=2, num_workers="auto")
    assert "stays: the number of workers divides" in caplog.text
    count = loader.num_workers
    assert as_lists(loader) == as_lists(kind(Stream(*[4] * 8), batch_size=2, num_workers=count))


class Counter(Squares):
    seen = 0

    def __getitem__(self, index):
        self.seen += 1
        return super().__getitem__(index)

    def state_dict(self):
        return {"seen": self.seen}

    def load_state_dict(self, state):
        self.seen = state["seen"]


def test_a_state_with_a_part_for_each_worker_brings_their_number():
    first = StatefulDataLoader(Counter(24), batch_size=2, num_workers=3)
    iterator = iter(first)
    next(iterator)
    second = StatefulDataLoader(Counter(24), batch_size=2, num_workers="auto")
    second.load_state_dict(first.state_dict())
    assert as_lists(second) == as_lists(iterator)
    assert second.num_workers == 3


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"num_workers": "many"}, ValueError, "a number or 'auto'"),
        ({"num_workers": 2, "memory_budget": 1 << 40}, ValueError, "memory_budget is for num_workers='auto'"),
        ({"num_workers": "auto", "memory_budget": -1}, ValueError, "positive number of bytes"),
        ({"num_workers": "auto", "memory_budget": 1000}, ConfigError, "this process has"),
    ],
)
def test_says_what_cannot_be(options, error, text):
    with pytest.raises(error, match=text):
        DataLoader(Squares(), **options)


def test_a_loader_can_be_sent_elsewhere():
    loader = pickle.loads(pickle.dumps(DataLoader(Squares(6), num_workers="auto", memory_budget=1 << 40)))
    assert as_lists(loader) == as_lists(DataLoader(Squares(6)))
    assert loader.auto_workers and loader.num_workers == 1


ON_ONE_CPU = """
import os
from infeed.torch import DataLoader
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
loader = DataLoader(list(range(6)), num_workers="auto")
print(loader.num_workers, [batch.item() for batch in loader])
"""


def test_one_cpu_is_one_worker_to_begin_with():
    done = subprocess.run([sys.executable, "-c", ON_ONE_CPU], capture_output=True, text=True, check=True)
    assert done.stdout == "1 [0, 1, 2, 3, 4, 5]\n"


WITHIN_A_BUDGET = """
import os, time
from infeed import _native
from infeed.torch import DataLoader

class Hog:
    taken = None
    def __len__(self): return 400
    def __getitem__(self, index):
        self.taken = self.taken or bytearray(b"x" * (200 << 20))
        time.sleep(0.002)
        return index

budget = int(_native.Meter([os.getpid()]).memory_bytes()) + (300 << 20)
loader = DataLoader(Hog(), batch_size=8, num_workers="auto", memory_budget=budget, persistent_workers=True)
counts = set()
for epoch in range(3):  # 2.4 s of sleep: some windows in which the trainer waits for nothing but data
    for batch in loader:
        counts.add(loader.stats().times.num_workers)
print(counts)
"""


def test_no_worker_comes_that_the_budget_has_no_room_for():
    done = subprocess.run([sys.executable, "-c", WITHIN_A_BUDGET], capture_output=True, text=True, check=True)
    assert done.stdout == "{1}\n"


STARVED = """
import time
from infeed.torch import DataLoader

class Slow:
    def __len__(self): return 40
    def __getitem__(self, index): time.sleep(0.02); return index

loader = DataLoader(Slow(), num_workers="auto", persistent_workers=True)
first = loader.num_workers
while loader.stats().times is None or loader.stats().times.num_workers == first:
    assert [batch.item() for batch in loader] == list(range(40))
"""


def test_a_trainer_that_waits_gets_workers_and_a_line_in_the_log():
    environment = {**os.environ, "INFEED_LOG": "info"}
    done = subprocess.run([sys.executable, "-c", STARVED], capture_output=True, text=True, check=True, env=environment)
    assert "num_workers=auto: 1 -> 2: the trainer waited" in done.stderr
