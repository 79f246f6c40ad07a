"""infeed.Loader: batches, epochs, states, faults."""

from __future__ import annotations

import io
import json
import os
import signal

import infeed
import numpy as np
import pytest
from infeed.collates import Pad
from infeed.datasets import ArrayDataset, DatasetStream, Synthetic, SyntheticStream
from native_data import GOLDEN_CHECKSUM, GOLDEN_STATE, KINDS, checksum, golden, indices, numbers
from tqdm import tqdm


@pytest.mark.parametrize(("kind", "workers"), KINDS)
def test_batches_and_states_are_the_engines_for_every_kind_and_number_of_workers(kind, workers):
    with infeed.Loader(golden(), 64, True, seed=3, worker_kind=kind, num_workers=workers) as loader:
        assert checksum(loader, epochs=2) == GOLDEN_CHECKSUM
        next(iter(loader))
        assert loader.state_dict() == GOLDEN_STATE


@pytest.mark.parametrize(("kind", "workers"), KINDS)
def test_a_resumed_epoch_goes_on_with_any_kind_of_workers(kind, workers):
    loader = infeed.Loader(golden(), 64, True, seed=3)
    iterator = iter(loader)
    for _ in range(5):
        next(iterator)
    state = json.loads(json.dumps(loader.state_dict()))
    rest = indices(iterator)
    with infeed.Loader(golden(), 64, True, seed=3, worker_kind=kind, num_workers=workers) as other:
        other.load_state_dict(state)
        assert indices(other) == rest
        assert other.epoch == 1


def test_a_batch_holds_what_the_dataset_reads():
    dataset = golden()
    loader = infeed.Loader(dataset, 10, True, seed=3)
    batch = next(iter(loader))
    for row, index in enumerate(batch.indices):
        sample = dataset.read(index, seed=3, epoch=0)
        assert np.array_equal(batch["image"][row], sample["image"])
        assert batch["label"][row] == index


def test_a_batch_tells_its_indices_epoch_number_and_size():
    loader = infeed.Loader(numbers(10), 4)
    batches = [*loader, *loader]
    assert [batch.number for batch in batches] == [0, 1, 2] * 2
    assert [batch.epoch for batch in batches] == [0] * 3 + [1] * 3
    assert [batch.size for batch in batches] == [4, 4, 2] * 2
    assert list(batches[2]) == ["index"]
    assert batches[2]["index"].tolist() == batches[2].indices == [8, 9]


def test_breaking_off_and_starting_again_begins_the_next_epoch():
    loader = infeed.Loader(numbers(), 10, True, num_workers=2)
    for _ in loader:
        break
    second = indices(loader)
    assert loader.epoch == 2
    loader.set_epoch(1)
    assert indices(loader) == second


def test_an_iterator_stays_at_its_end():
    iterator = iter(infeed.Loader(numbers(4), 2))
    assert len(list(iterator)) == 2
    assert next(iterator, "end") == "end"
    assert next(iterator, "end") == "end"


def test_a_newer_iterator_makes_the_older_invalid():
    loader = infeed.Loader(numbers(4), 2)
    older = iter(loader)
    next(older)
    assert indices(loader) == [[0, 1], [2, 3]]
    with pytest.raises(infeed.ConfigError, match="newer iterator"):
        next(older)


def test_length_and_progress():
    loader = infeed.Loader(numbers(10), 4, drop_last=True)
    assert len(loader) == 2
    bar = tqdm(loader, file=io.StringIO())
    assert bar.total == 2
    assert len(list(bar)) == 2


def test_a_stream_without_length_has_none():
    loader = infeed.Loader(SyntheticStream(10, {"index": "int64"}, size_known=False), 4)
    with pytest.raises(TypeError, match="how many batches"):
        len(loader)
    assert sum(batch.size for batch in loader) == 10


def test_a_stream_gives_each_sample_once():
    loader = infeed.Loader(DatasetStream(numbers(20)), 4, num_workers=2, worker_kind="fork", stream_shards=2)
    assert sorted(index for batch in loader for index in batch["index"].tolist()) == list(range(20))


def test_workers_come_and_go_while_batches_stay_the_same():
    expected = indices(infeed.Loader(numbers(), 5, True))
    with infeed.Loader(numbers(), 5, True, num_workers=1, worker_kind="fork") as loader:
        iterator = iter(loader)
        got = [next(iterator).indices]
        loader.set_num_workers(3)
        got += [next(iterator).indices, next(iterator).indices]
        loader.set_num_workers(2)
        assert loader.num_workers == 2
        assert got + indices(iterator) == expected


def test_auto_workers_change_no_batch():
    expected = indices(infeed.Loader(numbers(), 5, True))
    with infeed.Loader(numbers(), 5, True, num_workers="auto") as loader:
        assert indices(loader) == expected
        assert loader.num_workers >= 1


def test_a_memory_budget_bounds_auto_workers_only():
    with pytest.raises(infeed.ConfigError, match="this process has"):
        infeed.Loader(numbers(), num_workers="auto", memory_budget=1)
    with pytest.raises(infeed.ConfigError, match="memory_limit bounds"):
        infeed.Loader(numbers(), memory_budget=1 << 40)
    with infeed.Loader(numbers(), num_workers="auto", memory_budget=1 << 40) as loader:
        assert loader.num_workers == 1


def test_stats_count_and_print():
    loader = infeed.Loader(numbers(10), 5, num_workers=2, worker_kind="fork")
    list(loader)
    stats = loader.stats()
    assert (stats.batches, stats.samples, len(stats.workers)) == (2, 10, 2)
    assert sum(worker.samples for worker in stats.workers) >= 10
    assert "samples" in str(stats)
    loader.reset_stats()
    assert loader.stats().batches == 0


def test_rows_of_different_sizes_are_padded():
    dataset = Synthetic(20, {"tokens": ("int32", (-1,))}, max_length=9)
    batch = next(iter(infeed.Loader(dataset, 20, collate=Pad(fill={"tokens": -1}, pad_to_multiple=4))))
    assert batch["tokens"].shape == (20, 12)
    lengths = batch["tokens.lengths"]
    assert np.array_equal(batch["tokens"] == -1, np.arange(12) >= lengths[:, None])


def test_ragged_rows_lie_end_to_end():
    dataset = Synthetic(20, {"tokens": ("int32", (-1,))}, max_length=9)
    batch = next(iter(infeed.Loader(dataset, 20, collate="ragged", num_workers=2)))
    assert batch["tokens"].shape == (batch["tokens.offsets"][-1],)


def test_a_sample_that_fails_is_an_error_and_the_iterator_goes_on():
    loader = infeed.Loader(Synthetic(8, {"index": "int64"}, fail_every=4), 2, num_workers=2, worker_kind="fork")
    iterator = iter(loader)
    assert next(iterator).indices == [0, 1]
    with pytest.raises(infeed.DataError, match="sample 3"):
        next(iterator)
    assert next(iterator).indices == [4, 5]


def test_samples_that_fail_are_left_out_or_replaced():
    dataset = Synthetic(8, {"index": "int64"}, fail_every=4)
    skipping = infeed.Loader(dataset, 3, on_error="skip")
    assert indices(skipping) == [[0, 1, 2], [4, 5, 6]]
    assert [fault.index for fault in skipping.stats().faulty] == [3, 7]
    replacing = infeed.Loader(dataset, 4, on_error="replace")
    assert next(iter(replacing))["index"].tolist() == [0, 1, 2, 4]


def test_a_batch_that_does_not_come_is_a_timeout():
    dataset = Synthetic(4, {"index": "int64"}, cost_us=60_000_000)
    with infeed.Loader(dataset, 2, num_workers=1, worker_kind="fork", timeout=0.2) as loader:
        with pytest.raises(TimeoutError) as caught:
            next(iter(loader))
        assert isinstance(caught.value, infeed.TimeoutError)


def test_a_killed_worker_is_replaced_until_none_may_be():
    dataset = Synthetic(4, {"index": "int64"}, cost_us=60_000_000)
    with infeed.Loader(dataset, 2, num_workers=1, worker_kind="fork", max_restarts=0) as loader:
        os.kill(loader.stats().workers[0].pid, signal.SIGKILL)
        with pytest.raises(RuntimeError, match="SIGKILL") as caught:
            next(iter(loader))
        assert isinstance(caught.value, infeed.WorkerError)


def test_a_closed_loader_says_so():
    loader = infeed.Loader(numbers(4), 2)
    iterator = iter(loader)
    loader.close()
    loader.close()
    for call in (lambda: next(iterator), lambda: len(loader), loader.state_dict, lambda: iter(loader)):
        with pytest.raises(infeed.ConfigError, match="closed"):
            call()


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"batch_size": 0}, infeed.ConfigError, "batch_size is 0"),
        ({"num_workers": "2"}, TypeError, "num_workers cannot be '2'"),
        ({"timeout": None}, TypeError, "timeout cannot be None"),
        ({"worker_kind": None}, TypeError, "worker_kind cannot be None"),
        ({"worker_kind": "process"}, infeed.ConfigError, "'thread', 'fork', 'spawn'"),
        ({"filling": "half"}, infeed.ConfigError, "'cooperative', 'whole'"),
        ({"on_error": "ignore"}, infeed.ConfigError, "'raise', 'skip', 'replace'"),
        ({"output": "jax"}, infeed.ConfigError, "'numpy', 'torch' or 'dlpack'"),
        ({"timeout": -1}, infeed.ConfigError, "timeout is -1"),
        ({"start_timeout": -1}, infeed.ConfigError, "start_timeout is -1"),
        ({"collate": "join"}, infeed.ConfigError, "'stack', 'ragged', 'pad'"),
        ({"collate": list}, TypeError, "do not run in the workers"),
        ({"shuffle": True, "sampler": [1]}, infeed.ConfigError, "shuffle"),
        ({"batches": 1}, TypeError, "batches"),
    ],
)
def test_options_that_cannot_be_are_refused(options, error, text):
    with pytest.raises(error, match=text):
        infeed.Loader(numbers(4), **options)


def test_a_dataset_in_python_is_sent_elsewhere():
    with pytest.raises(TypeError, match=r"infeed\.torch\.DataLoader"):
        infeed.Loader([1, 2, 3])  # type: ignore[arg-type]


def test_a_state_of_another_loader_is_refused():
    with pytest.raises(infeed.StateError, match="seed"):
        infeed.Loader(numbers(), 4, seed=1).load_state_dict(infeed.Loader(numbers(), 4).state_dict())
    with pytest.raises(ValueError, match="version"):
        infeed.Loader(numbers(), 4).load_state_dict({})


def test_memory_that_does_not_suffice_is_counted():
    dataset = ArrayDataset(x=np.zeros((64, 1 << 20), np.uint8))
    loader = infeed.Loader(dataset, 8, memory_limit=40 << 20, num_workers=1, worker_kind="thread")
    with pytest.raises(MemoryError, match="memory_limit") as caught:
        held = list(loader)
        assert held
    assert isinstance(caught.value, infeed.MemoryError)
