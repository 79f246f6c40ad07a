"""infeed.tune, infeed.sweep and infeed.bench over data and steps of a user's. What is measured is not judged here."""

import csv
import io
import json
import xml.etree.ElementTree

import infeed
import pytest
from infeed._run import samples_of
from infeed.datasets import Synthetic
from infeed.errors import ConfigError
from infeed.torch import DataLoader
from loader_datasets import FailsAt, Squares, kill_self, raise_key_error
from test_loader_shutdown import possessions

BRIEF = {"seconds": 0.05, "progress": False}


def numbers():
    return Synthetic(400, {"x": ("int64", (2,))})


def test_tune_finds_a_setting_of_its_trials():
    tuned = infeed.tune(Squares(400), batch_size=4, max_trials=4, max_workers=2, **BRIEF)
    tried = [trial["setting"]["num_workers"] for trial in tuned.trials]
    assert tuned.setting.num_workers in tried and len(tried) <= 4
    assert tuned.reason in str(tuned) or str(tuned.setting.num_workers) in str(tuned)
    assert not tuned.interrupted


def test_the_setting_makes_a_loader():
    tuned = infeed.tune(Squares(60), batch_size=4, max_trials=3, max_workers=1, **BRIEF)
    assert len(list(infeed.torch.DataLoader(Squares(8), batch_size=4, **tuned.setting.torch_options()))) == 2


def test_a_native_dataset_is_read_by_the_native_loader():
    tuned = infeed.tune(numbers(), batch_size=4, max_trials=3, max_workers=2, **BRIEF)
    with infeed.Loader(numbers(), batch_size=4, **tuned.setting.native_options()) as loader:
        assert sum(batch.size for batch in loader) == 400
    assert {trial["setting"]["worker_kind"] for trial in tuned.trials} <= {"inline", "thread"}


def test_every_batch_comes_to_the_step():
    seen = []
    infeed.bench(Squares(40), lambda b: seen.append(len(b)), num_workers=0, repetitions=1, batch_size=8, **BRIEF)
    assert set(seen) == {8} and len(seen) >= 16


def test_a_function_makes_the_loaders():
    made = []

    def make(setting):
        made.append((setting.num_workers, setting.prefetch_factor))
        return [[1.0, 2.0]] * 5

    report = infeed.sweep(make, workers=(0, 2), prefetch=(0, 8), repetitions=2, **BRIEF)
    assert sorted(made, key=str) == sorted(2 * [(0, None), (2, 2), (2, 4)], key=str)
    assert [row["runs"] for row in report.rows] == [2, 2, 2]


def test_a_sweep_is_a_table_and_csv_and_json_and_a_picture(tmp_path):
    report = infeed.sweep(numbers(), workers=(0, 1), kinds=("thread",), repetitions=1, batch_size=4, **BRIEF)
    rows = list(csv.DictReader(io.StringIO(report.csv())))
    assert [row["num_workers"] for row in rows] == ["0", "1"]
    assert json.loads(report.json())["why"] == report.reason
    assert "Recommended" in str(report)
    report.save(str(tmp_path / "sweep.svg"))
    assert xml.etree.ElementTree.parse(tmp_path / "sweep.svg").getroot().tag.endswith("svg")


def test_bench_is_one_row_with_its_verdict():
    report = infeed.bench(numbers(), num_workers=1, repetitions=1, batch_size=4, **BRIEF)
    assert len(report.rows) == 1 and report.rows[0]["verdict"]
    assert report.setting.num_workers == 1 and report.rows[0]["memory_bytes"] > 0


def test_a_budget_that_nothing_fits_is_an_error():
    with pytest.raises(ConfigError, match="Raise the memory budget"):
        infeed.tune(Squares(400), batch_size=4, memory_budget=1, max_trials=6, max_workers=4, **BRIEF)


def test_a_setting_that_a_loader_refuses_is_no_candidate():
    def make(setting):
        if setting.num_workers > 0:
            raise ConfigError("no workers here")
        return [[1.0]] * 5

    report = infeed.sweep(make, workers=(0, 1), repetitions=1, **BRIEF)
    assert [row["refused"] for row in report.rows] == ["", "no workers here"]
    assert report.setting.num_workers == 0


def test_what_a_step_raises_ends_it():
    def fail(batch):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        infeed.tune(Squares(40), fail, batch_size=4, **BRIEF)


def test_a_bad_sample_is_the_datasets_error_with_what_was_measured_before():
    def make(setting):
        return [[1.0]] * 5 if setting.num_workers < 2 else DataLoader(FailsAt(17, raise_key_error))

    before = possessions()
    with pytest.raises(KeyError, match="no such key") as caught:
        infeed.sweep(make, workers=(0, 1, 2), repetitions=1, **BRIEF)
    notes = "".join(getattr(caught.value, "__notes__", ["inline ", "fork x 1 "]))  # from Python 3.11 on
    assert "inline " in notes and "fork x 1 " in notes
    assert possessions() == before


@pytest.mark.parametrize("search", [infeed.sweep, infeed.tune])
def test_a_setting_whose_worker_dies_is_refused_and_the_others_go_on(search):
    def make(setting):
        dataset = Squares(40) if setting.num_workers == 0 else FailsAt(17, kill_self)
        return DataLoader(dataset, **setting.torch_options())

    infeed.bench(Squares(40), repetitions=1, batch_size=4, **BRIEF)
    before = possessions()
    found = search(make, **BRIEF)
    refused = [row["refused"] for row in (found.rows if search is infeed.sweep else found.trials)]
    assert found.setting.num_workers == 0
    assert refused[0] == "" and "exited unexpectedly" in refused[1] and "is at dataset index 17" in refused[1]
    assert possessions() == before


def test_ctrl_c_keeps_the_runs_that_are_done():
    runs = []

    def make(setting):
        runs.append(setting)
        return [[1.0]] * 5

    def step(batch):
        if len(runs) == 2:
            raise KeyboardInterrupt

    report = infeed.sweep(make, step, workers=(0, 1, 2), repetitions=1, **BRIEF)
    assert report.interrupted and [row["runs"] for row in report.rows] == [1]


def test_an_empty_dataset_is_an_error():
    with pytest.raises(ConfigError, match="gives no batch"):
        infeed.bench(lambda setting: [], **BRIEF)


def test_options_of_a_function_are_its_own():
    with pytest.raises(TypeError, match="batch_size"):
        infeed.bench(lambda setting: [[1]], batch_size=4, **BRIEF)


def test_kinds_are_named():
    with pytest.raises(ConfigError, match="thread, fork and spawn"):
        infeed.sweep(Squares(), kinds=("greenlet",), **BRIEF)


def test_runs_leave_nothing():
    infeed.bench(Squares(40), repetitions=1, batch_size=4, **BRIEF)
    before = possessions()
    infeed.tune(Squares(40), batch_size=4, max_trials=3, max_workers=2, **BRIEF)
    assert possessions() == before


@pytest.mark.parametrize(
    ("batch", "samples"),
    [([1, 2, 3], 3), (({"a": ["x", "y"]}, 0), 2), ({}, 1), (b"one", 1)],
)
def test_samples_of_a_batch_are_counted_where_its_first_array_is(batch, samples):
    assert samples_of(batch) == samples


def test_samples_of_arrays_are_their_rows():
    torch = pytest.importorskip("torch")
    assert samples_of((torch.zeros(5, 2), torch.zeros(5))) == 5
    assert samples_of({"x": torch.zeros(())}) == 1
