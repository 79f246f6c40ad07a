"""The exchange from Python: forked and spawned workers, signals, deaths, and what is left behind."""

import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time

import pytest
from infeed._native import Exchange, ExchangeHandle, WorkerFork, WorkerPort

METHODS = ["fork", "spawn", "forkserver"]


def reply(port: WorkerPort, text: bytes) -> None:
    port.memory()[: len(text)] = text
    port.publish(len(text))


def answer(handle: ExchangeHandle, worker: int) -> None:
    """Until stopped: each task with its text; b"die" kills this process."""
    port = WorkerPort(handle, worker)
    while not port.stopping:
        claimed = port.claim(60.0)
        if claimed is None:
            continue
        number, task = claimed
        if task == b"die":
            port.note(77)
            os.kill(os.getpid(), signal.SIGKILL)
        reply(port, repr((number, task)).encode())


class Crew:
    """An exchange and the processes that serve it."""

    def __init__(self, method: str, num_workers: int = 2, num_slots: int = 8, **options: int) -> None:
        self.context = multiprocessing.get_context(method)
        self.exchange = Exchange(num_workers, num_slots, **options)
        self.handle = self.exchange.handle()
        self.processes = [self.start(worker) for worker in range(num_workers)]

    def start(self, worker: int) -> multiprocessing.Process:
        process = self.context.Process(target=answer, args=(self.handle, worker), daemon=True)
        with WorkerFork():
            process.start()
        return process

    def receive(self, number: int) -> bytes:
        assert self.exchange.wait([number], [p.sentinel for p in self.processes], None) == 0
        return bytes(self.exchange.take(number))

    def __enter__(self) -> "Crew":
        return self

    def __exit__(self, *_: object) -> None:
        self.exchange.stop()
        for process in self.processes:
            process.join()
            process.close()
        self.exchange.close()


@pytest.fixture(params=METHODS)
def crew(request):
    with Crew(request.param) as crew:
        yield crew


@pytest.fixture
def alone():
    """An exchange and a port in this process."""
    exchange = Exchange(1, 4)
    yield exchange, WorkerPort(exchange.handle(), 0)
    exchange.close()


def send(exchange: Exchange, port: WorkerPort, number: int, text: bytes):
    exchange.post(number, 0, text)
    _, task = port.claim(60.0)
    reply(port, task)
    assert exchange.wait([number], [], None) == 0
    return exchange.take(number)


def test_answers_tasks_of_all_kinds_of_workers(crew):
    tasks = [[], [1, -2, 2**63 - 1, -(2**63)], b"", b"some bytes", list(range(5000))]
    for number, task in enumerate(tasks):
        crew.exchange.post(number, number % 2, task)
    for number, task in enumerate(tasks):
        assert crew.receive(number) == repr((number, task)).encode()


def test_tells_a_death_and_gives_its_tasks_to_the_replacement(crew):
    crew.exchange.post(1, 0, b"die")
    crew.exchange.post(2, 0, b"after")
    sentinels = [p.sentinel for p in crew.processes]
    assert crew.exchange.wait([1, 2], sentinels, None) == -2
    assert crew.exchange.sample_in_hand(0) == (1, 77)
    crew.processes[0].join()
    assert sorted(crew.exchange.bury(0)) == [1, 2]
    crew.exchange.cancel(1)
    crew.processes[0] = crew.start(0)
    assert crew.receive(2) == b"(2, b'after')"


@pytest.mark.parametrize("task", [[1.5], ["1"], [True], "text", (1, 2), None])
def test_refuses_tasks_of_other_types(alone, task):
    exchange, _ = alone
    with pytest.raises(TypeError):
        exchange.post(1, 0, task)


def test_refuses_indices_beyond_64_bits(alone):
    exchange, _ = alone
    with pytest.raises(OverflowError):
        exchange.post(1, 0, [2**63])


def test_times_out_where_nothing_comes(alone):
    exchange, port = alone
    exchange.post(1, 0, [])
    assert exchange.wait([1], [], 0.01) == -1
    assert exchange.wait([1], [], 0) == -1
    assert port.claim(1) == (1, [])
    port.publish(0)
    assert port.claim(0.01) is None


def test_a_message_is_writable_and_outlives_everything(alone):
    exchange, port = alone
    lease = send(exchange, port, 1, b"message")
    assert lease.nbytes == len(lease) == 7
    view = memoryview(lease)
    del lease, port
    exchange.close()
    exchange.close()
    view[0:1] = b"M"
    assert bytes(view) == b"Message"


def test_each_view_keeps_the_extent(alone):
    exchange, port = alone
    lease = send(exchange, port, 1, b"x")
    views = [memoryview(lease), memoryview(lease)]
    del lease
    views.pop()
    gc.collect()
    assert exchange.held == 1
    dropper = threading.Thread(target=views.clear)
    dropper.start()
    dropper.join()
    assert exchange.held == 0
    assert exchange.stats()["extents_in_use"] == 0


def test_memory_limit_is_a_memory_error_and_the_message_stays_ready():
    exchange = Exchange(1, 4, memory_limit=1000)
    port = WorkerPort(exchange.handle(), 0)
    held = send(exchange, port, 1, b"x" * 700)
    with pytest.raises(MemoryError, match="memory_limit"):
        send(exchange, port, 2, b"y" * 700)
    del held
    assert bytes(exchange.take(2)) == b"y" * 700


def test_the_handle_is_picklable_while_spawning_only(alone):
    import pickle

    with pytest.raises(RuntimeError, match="through inheritance"):
        pickle.dumps(alone[0].handle())


def test_memory_of_a_port_may_outlive_it(alone):
    exchange, port = alone
    exchange.post(1, 0, [])
    port.claim(60.0)
    view = port.memory()
    del port, alone
    view[0] = 1
    assert view[0] == 1


class Alarm(Exception):
    pass


@pytest.fixture
def alarm():
    """50 ms after it is called SIGALRM raises Alarm in the main thread. Call it where Alarm is expected already."""

    def ring(*_: object) -> None:
        raise Alarm

    before = signal.signal(signal.SIGALRM, ring)
    yield lambda: signal.setitimer(signal.ITIMER_REAL, 0.05)
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def test_a_signal_ends_a_wait_without_limit(alone, alarm):
    alone[0].post(1, 0, [])
    with pytest.raises(Alarm):
        alarm()
        alone[0].wait([1], [], None)


def test_a_signal_ends_a_claim(alone, alarm):
    with pytest.raises(Alarm):
        alarm()
        alone[1].claim(1e6)


def test_ctrl_c_raises_keyboard_interrupt(alone):
    alone[0].post(1, 0, [])
    timer = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        timer.start()
        alone[0].wait([1], [], None)
    timer.join()


def test_other_threads_run_while_one_waits(alone):
    exchange, port = alone
    exchange.post(1, 0, [])
    worker = threading.Thread(target=lambda: (port.claim(60.0), port.publish(0)))
    worker.start()
    assert exchange.wait([1], [], None) == 0
    worker.join()


CONSUMER_THAT_DIES = """
import multiprocessing, os, sys
sys.path.insert(0, {here!r})
import test_exchange
if __name__ == "__main__":
    crew = test_exchange.Crew({method!r})
    for number in (0, 1):
        crew.exchange.post(number, number, [])
        crew.receive(number)
    print(*(p.pid for p in crew.processes), flush=True)
    sys.stdin.read()
"""


def has_ended(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] in "ZX"
    except FileNotFoundError:
        return True


@pytest.mark.parametrize("method", METHODS)
def test_workers_end_when_their_consumer_is_killed(method):
    script = CONSUMER_THAT_DIES.format(here=os.path.dirname(__file__), method=method)
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", script], stdin=pipe, stdout=pipe, text=True) as consumer:
        workers = [int(pid) for pid in consumer.stdout.readline().split()]
        consumer.kill()
    assert len(workers) == 2
    while not all(has_ended(pid) for pid in workers):
        time.sleep(0.01)


def test_prints_nothing_where_messages_are_alive_at_exit():
    script = """
import sys
from infeed._native import Exchange, WorkerPort
exchange = Exchange(1, 2)
port = WorkerPort(exchange.handle(), 0)
exchange.post(1, 0, b"x"); port.claim(60); port.publish(8)
sys.modules["held"] = memoryview(exchange.take(1))
sys.modules["exchange"] = exchange, port
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_200_rounds_leave_no_descriptor_and_no_process():
    def left() -> tuple[int, int]:
        gc.collect()
        return len(os.listdir("/proc/self/fd")), len(multiprocessing.active_children())

    before = left()
    for number in range(200):
        with Crew("fork") as crew:
            crew.exchange.post(number, 1, [number])
            crew.receive(number)
    del crew
    assert left() == before


def test_a_forked_copy_is_inert(alone):
    exchange, port = alone
    pid = os.fork()
    if pid == 0:
        exchange.close()
        os._exit(0 if "belongs to the process" in refusal(exchange) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert bytes(send(exchange, port, 1, b"here")) == b"here"


def refusal(exchange: Exchange) -> str:
    try:
        exchange.post(1, 0, [])
    except Exception as error:
        return str(error)
    return ""
