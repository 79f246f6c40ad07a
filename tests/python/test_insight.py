"""What the loaders say of themselves: verdict, trace, doctor. Costs are sleeps; a busy machine gets some tries."""

import json
import os
import pickle
import signal
import subprocess
import sys
import time

import infeed
import pytest

torch = pytest.importorskip("torch")
from infeed._native import LoaderStats
from infeed.torch import DataLoader, get_worker_info

TRIES = 8


class Slow(torch.utils.data.Dataset):
    def __init__(self, seconds, size=64):
        self.seconds = seconds
        self.size = size

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        time.sleep(self.seconds)
        return torch.tensor(index)


def heavy_collate(samples):
    time.sleep(0.03)
    return torch.stack(samples)


def found(run, bound, cause):
    for _ in range(TRIES):
        verdict = run()
        if (verdict.bound, verdict.cause) == (bound, cause):
            return verdict
    raise AssertionError(f"wanted {bound}, {cause}; found {verdict.bound}, {verdict.cause}: {verdict}")


def trained(loader, step=0.0):
    for _ in loader:
        time.sleep(step)
    return loader.stats().verdict


def trained_at_ease(loader):
    """Each step lasts until the next batch waits for it."""
    batches = len(loader)
    for number, _ in enumerate(loader, 1):
        while sum(worker["tasks"] for worker in loader.stats()["workers"]) < min(number + 1, batches):
            time.sleep(0.01)
        time.sleep(0.02)
    return loader.stats().verdict


def native_loader(**options):
    return infeed.Loader(infeed.datasets.Synthetic(64, {"x": ("uint8", (64,))}), batch_size=4, **options)


def events(text, phase, name=None):
    return [e for e in json.loads(text)["traceEvents"] if e["ph"] == phase and name in (None, e["name"])]


# --- verdict ---


def test_a_slow_dataset_is_input_bound():
    verdict = found(lambda: trained(DataLoader(Slow(0.004), batch_size=4, num_workers=2)), "input-bound", "dataset")
    assert "2 workers" in verdict.finding
    assert int(verdict.knobs["num_workers"]) > 2


def test_a_heavy_collate_fn_is_named():
    loader = DataLoader(Slow(0.001), batch_size=4, num_workers=2, collate_fn=heavy_collate)
    found(lambda: trained(loader), "input-bound", "collate")


def test_a_slow_step_is_compute_bound():
    found(lambda: trained_at_ease(DataLoader(Slow(0), batch_size=4, num_workers=2)), "compute-bound", "trainer")


def test_the_native_loader_says_the_same():
    with native_loader(num_workers=1) as loader:
        found(lambda: trained(loader, 0.01), "compute-bound", "trainer")
        assert str(loader.stats().verdict) in str(loader.stats())
        assert json.loads(loader.stats().to_json())["verdict"]["bound"] == loader.stats().verdict.bound


def test_stats_are_a_dict_and_can_be_pickled():
    loader = DataLoader(Slow(0), batch_size=4, num_workers=1)
    assert loader.stats() == {}
    assert loader.stats().verdict is None
    trained(loader)
    stats = pickle.loads(pickle.dumps(loader.stats()))
    assert stats["workers"][0]["tasks"] == 16
    assert stats.times.batches == 16
    assert stats.times.samples == 64


BUSY = {"id": 0, "pid": 100, "samples": 500, "busy_s": 7.5, "in_hand_s": 0.0, "stopped": False}
FIGURES = {
    "batches": 100,
    "samples": 1000,
    "elapsed_s": 10.0,
    "wait_s": 6.3,
    "trainer_s": 3.6,
    "worst_tenth_share": 0.12,
    "other_us": 15000.0,
    "on_cpu_share": 0.98,
    "cpu_queue_share": 0.01,
    "trainer_cpu_queue_share": 0.01,
    "num_workers": 2,
    "prefetch": 4,
    "prefetch_factor": 2,
    "usable_cpus": 8.0,
    "workers": [BUSY, {**BUSY, "id": 1}],
}
FED = {"wait_s": 0.1, "trainer_s": 9.8, "other_us": 1000.0, "blocked_share": 0.8}
COPIES = {"batches": 100, "bytes": 10**9, "elapsed_s": 10.0, "copy_share": 0.97, "starved_share": 0.5}


@pytest.mark.parametrize(
    ("planted", "bound", "cause"),
    [
        ({}, "input-bound", "dataset"),  # a slow decode, in Python
        ({"other_us": 500.0, "decode_us": 14500.0}, "input-bound", "decode"),
        ({"other_us": 500.0, "read_us": 14500.0, "on_cpu_share": 0.1}, "input-bound", "read"),
        (FED, "compute-bound", "trainer"),
        ({"staging": {**COPIES, "registrations": 4}}, "transfer-bound", "link"),
        ({"worst_tenth_share": 0.9, "blocked_share": 0.5, "longest_wait_ms": 600.0}, "bursty", "uneven_samples"),
        ({"workers": [BUSY, BUSY, {**BUSY, "id": 2, "samples": 100, "busy_s": 9.0}]}, "input-bound", "slow_worker"),
        ({"short_of_memory_share": 0.9, "memory_limit": 1000}, "input-bound", "memory_budget"),
        ({"staging": {**COPIES, "registrations": 0}}, "transfer-bound", "unregistered_memory"),
        ({**FED, "trainer_cpu_queue_share": 0.4}, "compute-bound", "trainer_starved"),
        ({"num_workers": 8, "usable_cpus": 2.0, "cpu_queue_share": 0.7}, "input-bound", "oversubscribed"),
        ({"collate_us": 30000.0}, "input-bound", "collate"),
        ({"sampler_s": 6.0, "wait_s": 0.3, "worst_tenth_share": 0.9}, "bursty", "sampler"),
        ({"workers": [BUSY, {**BUSY, "stopped": True}]}, "input-bound", "stopped_worker"),
    ],
)
def test_figures_of_five_pipelines_and_ten_faults_get_their_verdict(planted, bound, cause):
    verdict = LoaderStats.from_json(json.dumps({**FIGURES, **planted})).verdict
    assert (verdict.bound, verdict.cause) == (bound, cause), verdict


def test_a_stopped_worker_is_named():
    iterator = iter(loader := DataLoader(Slow(0), batch_size=4, num_workers=2))
    next(iterator)
    while not (pid := loader.stats().times.workers[1].pid):  # the first batch may come before this worker
        os.sched_yield()
    os.kill(pid, signal.SIGSTOP)
    try:
        while not loader.stats().times.workers[1].stopped:
            os.sched_yield()
        verdict = loader.stats().verdict
    finally:
        os.kill(pid, signal.SIGCONT)
    assert verdict.cause == "stopped_worker" and f"kill -CONT {pid}" in str(verdict)


def slow_down(worker):
    get_worker_info().dataset.seconds *= 1 if worker != 1 else 10


def test_one_slow_worker_is_named():
    def run():
        return trained(DataLoader(Slow(0.002, 96), batch_size=2, num_workers=3, worker_init_fn=slow_down))

    assert "worker 1 takes" in found(run, "input-bound", "slow_worker").finding


class Pausing(torch.utils.data.Sampler):
    """In order, with a pause before each 12th batch of four."""

    def __iter__(self):
        for index in range(256):
            if index % 48 == 44:
                time.sleep(0.06)
            yield index

    def __len__(self):
        return 256


def test_a_bursty_sampler_is_named():
    loader = DataLoader(Slow(0.0002, 256), batch_size=4, num_workers=2, sampler=Pausing())
    found(lambda: trained(loader, 0.002), "bursty", "sampler")


# --- trace ---


def test_a_trace_shows_both_loaders(tmp_path):
    with infeed.trace(tmp_path / "t.json") as trace:
        with native_loader(num_workers=1, worker_kind="fork") as loader:  # of two, one may do all
            assert len(list(loader)) == 16
        for _ in DataLoader(Slow(0), batch_size=4, num_workers=2):
            pass
        assert events(trace.json(), "X", "run")
    text = (tmp_path / "t.json").read_text()
    assert len(events(text, "X", "next")) == 2 * 17
    assert len({(e["pid"], e["tid"]) for e in events(text, "X", "run")}) == 3
    assert len(events(text, "s")) == len(events(text, "f")) >= 32
    assert all({"ts", "dur", "pid", "tid", "name", "cat"} <= e.keys() for e in events(text, "X"))


def test_a_span_of_the_user_is_drawn(tmp_path):
    with infeed.trace.span("nothing runs"):
        pass
    with infeed.trace(tmp_path / "t.json") as trace:
        with infeed.trace.span("forward"):
            pass
        assert len(events(trace.json(), "X", "forward")) == 1
    with pytest.raises(ValueError, match="does not run"):
        trace.json()


def test_only_one_trace_runs(tmp_path):
    second = infeed.trace(tmp_path / "2.json")
    with infeed.trace(tmp_path / "1.json"), pytest.raises(infeed.ConfigError, match="runs in this process already"):
        second.__enter__()


def test_a_trace_that_cannot_be_written_does_not_begin(tmp_path):
    with (
        pytest.raises(infeed.DataError, match="the trace cannot be written"),
        infeed.trace(tmp_path / "nowhere" / "t.json"),
    ):
        pytest.fail("it began")
    with infeed.trace(tmp_path / "t.json"):
        pass


def test_the_environment_asks_for_a_trace(tmp_path):
    program = (
        "import infeed; loader = infeed.Loader(infeed.datasets.Synthetic(8, {'x': ('uint8', (4,))}), num_workers=1);"
        "print(len(list(loader)))"
    )
    environment = {**os.environ, "INFEED_TRACE": str(tmp_path / "t-%p.json")}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)
    (written,) = tmp_path.glob("t-*.json")
    assert events(written.read_text(), "X", "next")


# --- doctor ---


def test_the_doctor_looks_at_a_planted_machine(tmp_path):
    (tmp_path / "proc/sys/vm").mkdir(parents=True)
    (tmp_path / "proc/sys/vm/overcommit_memory").write_text("2\n")
    report = infeed.doctor(root=str(tmp_path))
    assert report.exit_code == 2
    assert any(d.severity == "error" and "overcommit" in d.what for d in report.diagnoses)
    assert report.facts["python"]


def test_the_doctor_looks_at_loaders():
    loader = DataLoader(Slow(0.002), batch_size=4, num_workers=1)
    trained(loader)
    assert any(d.topic == "loader" for d in infeed.doctor(loader).diagnoses)
    with native_loader() as native:
        trained(native)
        assert "loader" in str(infeed.doctor(native))


def test_the_command_runs():
    done = subprocess.run(
        [sys.executable, "-m", "infeed", "doctor", "--json"], capture_output=True, check=False, text=True
    )
    assert done.returncode == json.loads(done.stdout)["exit_code"]
