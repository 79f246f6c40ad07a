"""What state_dict and load_state_dict promise beside the order: copies, live loaders, mismatches, errors, warnings."""

import copy
import json
import logging
import os
import pickle
import subprocess
import sys
import warnings

import pytest
import torch
from infeed.torch import DataLoader, StatefulDataLoader
from infeed.torch.samplers import RandomSampler, StatefulDistributedSampler
from stateful_datasets import Careless, Items, RefusesStates, StatefulSampler, StatefulStream, Stream, plain, take

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create")
LOADERS = (DataLoader, StatefulDataLoader)
both = pytest.mark.parametrize("loader_class", LOADERS)
workers = pytest.mark.parametrize("num_workers", [0, 2])


@both
@workers
@pytest.mark.parametrize("dataset", [Careless, lambda: StatefulStream(4, 3)])
def test_a_state_never_changes_later(loader_class, num_workers, dataset):
    loader = loader_class(dataset(), num_workers=num_workers)
    iterator = iter(loader)
    next(iterator)
    state = loader.state_dict()
    kept = copy.deepcopy(state)
    next(iterator)
    loader.state_dict()
    loader.load_state_dict(state)
    take(loader, 2)
    assert plain(state) == plain(kept)


@both
@workers
@pytest.mark.parametrize("count", [0, 3, 100])
def test_a_loaded_state_is_given_back_at_once(loader_class, num_workers, count):
    for dataset in (Careless(), StatefulStream(4, 3), Stream(4, 3)):
        loader = loader_class(dataset, num_workers=num_workers)
        take(loader, count)
        state = loader.state_dict()
        again = loader_class(dataset, num_workers=num_workers)
        again.load_state_dict(state)
        assert plain(again.state_dict()) == plain(state)


@both
@workers
def test_one_state_can_be_loaded_twice_and_into_a_live_loader(loader_class, num_workers):
    loader = loader_class(Careless(), num_workers=num_workers)
    take(loader, 4)
    state = loader.state_dict()
    rest = [batch[0][0] for batch in take(loader_class(Careless(), num_workers=num_workers))][4:]
    for _ in range(2):
        loader.load_state_dict(state)
        iterator = iter(loader)
        next(iterator), next(iterator)
        loader.load_state_dict(state)
        assert [batch[0][0] for batch in take(loader)] == rest


@both
@workers
@pytest.mark.parametrize("nothing", [{}, None])
def test_nothing_loaded_is_a_fresh_start(loader_class, num_workers, nothing):
    loader = loader_class(Items(), num_workers=num_workers)
    take(loader, 4)
    loader.load_state_dict(loader.state_dict())
    loader.load_state_dict(nothing)
    assert len(take(loader)) == 11


@both
@workers
def test_a_state_asked_for_first_is_of_the_epoch_that_follows(loader_class, num_workers):
    loader = loader_class(Items(), shuffle=True, num_workers=num_workers)
    state = loader.state_dict()
    assert loader._iterator is not None
    order = take(loader)
    loader.load_state_dict(state)
    assert take(loader) == order


@workers
def test_a_dataloader_left_by_break_still_knows_its_position(num_workers):
    loader = DataLoader(StatefulStream(9, 9), num_workers=num_workers)
    take(loader, 5)
    assert loader._iterator is None
    state = loader.state_dict()
    rest = take(loader)[5:] if num_workers else None
    loader.load_state_dict(state)
    got = take(loader)
    assert len(got) == (13 if num_workers else 4)
    assert rest is None or got == rest


def test_loading_replaces_persistent_workers():
    loader = StatefulDataLoader(Items(), num_workers=2, persistent_workers=True)
    take(loader, 2)
    state, old = loader.state_dict(), [worker.pid for worker in loader._iterator._workers]
    loader.load_state_dict(state)
    assert loader._iterator is None
    take(loader)
    assert not {worker.pid for worker in loader._iterator._workers} & set(old)
    for pid in old:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


@workers
def test_a_state_without_generators_is_json(num_workers):
    for loader_class in LOADERS:
        loader = loader_class(Items(), num_workers=num_workers)
        take(loader, 4)
        state = json.loads(json.dumps(loader.state_dict()))
        loader.load_state_dict(state)
        assert len(take(loader)) == 7


def test_dataloader_states_have_equal_pickles():
    loader = DataLoader(Items(), shuffle=True)
    take(loader, 4)
    assert pickle.dumps(loader.state_dict()) == pickle.dumps(copy.deepcopy(loader.state_dict()))


@both
@workers
def test_a_loader_without_live_workers_can_be_pickled(loader_class, num_workers):
    loader = loader_class(Items(), num_workers=num_workers)
    take(loader)
    assert len(take(pickle.loads(pickle.dumps(loader)))) == 11


@both
def test_a_state_of_the_other_mode_names_the_missing_key(loader_class):
    for saved, loaded, key in ((0, 2, "_snapshot"), (2, 0, "_num_yielded")):
        state = loader_class(Items(), num_workers=saved).state_dict()
        loader = loader_class(Items(), num_workers=loaded)
        loader.load_state_dict(state)
        for _ in range(2):  # it is not forgotten
            with pytest.raises(AssertionError, match=f"State doesn't contain key '{key}'"):
                iter(loader)


@both
def test_a_state_of_other_workers_is_refused(loader_class):
    loader = loader_class(Items(), num_workers=3)
    loader.load_state_dict(loader_class(Items(), num_workers=2).state_dict())
    with pytest.raises(AssertionError, match="the state is of 2 workers, num_workers is 3"):
        iter(loader)


def test_a_state_of_the_other_class_is_refused():
    for saved, loaded in (LOADERS, LOADERS[::-1]):
        loader = loaded(Items(), shuffle=True)
        loader.load_state_dict(saved(Items(), shuffle=True).state_dict())
        with pytest.raises(ValueError):
            iter(loader)


def test_another_batch_size_resumes_at_the_next_sample():
    loader = StatefulDataLoader(Items(), batch_size=2)
    take(loader, 2)
    again = StatefulDataLoader(Items(), batch_size=3)
    again.load_state_dict(loader.state_dict())
    assert take(again)[0] == [4, 5, 6]


@both
@workers
def test_a_stateless_stream_is_fast_forwarded_with_a_log_message(loader_class, num_workers, caplog):
    loader = loader_class(Stream(5, 3), num_workers=num_workers)
    take(loader, 4)
    again = loader_class(Stream(5, 3), num_workers=num_workers)
    again.load_state_dict(loader.state_dict())
    with caplog.at_level(logging.WARNING), warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "This DataLoader will create")
        iter(again)
    assert "naively fast-forwarding your dataset by 4 steps" in caplog.text


@workers
def test_a_stateless_stream_that_changed_is_refused(num_workers):
    loader = StatefulDataLoader(Stream(5, 3), num_workers=num_workers)
    take(loader, 4)
    again = StatefulDataLoader(Stream(1, 1), num_workers=num_workers)
    again.load_state_dict(loader.state_dict())
    with pytest.raises(ValueError, match="the dataset ends"):
        iter(again)


@both
@workers
def test_an_error_of_the_datasets_load_state_dict_keeps_its_type(loader_class, num_workers):
    loader = loader_class(RefusesStates(), num_workers=num_workers)
    take(loader, 1)
    loader.load_state_dict(loader.state_dict())
    with pytest.raises(LookupError, match="another data set"):
        take(loader)


def refuse(worker):
    raise LookupError(f"worker {worker} is not ready")


def test_stateful_loaders_report_a_failed_start_from_iter():
    loader = StatefulDataLoader(Items(), num_workers=2, worker_init_fn=refuse)
    with pytest.raises(LookupError, match="Caught LookupError in DataLoader worker process"):
        iter(loader)


@both
def test_any_order_is_said_to_be_without_guarantee(loader_class, caplog):
    loader = loader_class(Items(), num_workers=2, in_order=False)
    got = [batch[0] for batch in take(loader, 5)]
    with caplog.at_level(logging.WARNING):
        state = loader.state_dict()
    assert "does not give any guarantees for state management" in caplog.text
    loader.load_state_dict(state)
    assert len(set(got) | {batch[0] for batch in take(loader)}) >= 9


def test_a_construction_warns_of_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        StatefulDataLoader(Items(), shuffle=True)


def test_it_works_without_torchdata():
    code = "import sys; sys.modules['torchdata'] = None; import infeed.torch as t; t.StatefulDataLoader('abc').state_dict()"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("state", [{}, {"yielded": -1}])
def test_bad_states_of_a_distributed_sampler_are_refused(state):
    with pytest.raises(ValueError):
        StatefulDistributedSampler(range(4), 2, 0).load_state_dict(state)


def test_a_random_sampler_checks_its_arguments():
    with pytest.raises(TypeError, match="replacement should be a boolean value, but got replacement=0"):
        RandomSampler(range(4), replacement=0)
    with pytest.raises(ValueError, match="num_samples should be a positive integer value"):
        RandomSampler([])


@both
def test_a_stateful_loader_is_torchs(loader_class):
    loader = loader_class[int](Items(), sampler=StatefulSampler(), order="strict")
    assert isinstance(loader, torch.utils.data.DataLoader)
    with pytest.raises(ValueError, match="attribute should not be set after"):
        loader.batch_sampler = None
