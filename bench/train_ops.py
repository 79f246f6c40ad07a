"""T5 to T7 of `make bench`: the training library from Python, beside torch; lines as those of infeed-bench.

    PYTHONPATH=bench:build/release/python .venv/bin/python bench/train_ops.py build/bench.json [--only T7] [--rounds 5]

One text of each model runs on both libraries, in turns in one process. Where torch is missing there are no lines.
"""

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import infeed.train as ours
from peers import processes
from peers.bench_rows import Question, line, merge, show

try:
    import torch as theirs
except ImportError:
    theirs = None

Run = Callable[[], object]

SMALL = Question("T5", "", 1.0, 0.5)
AUTOCAST = Question("T6", "", 1.15, 1.0)
ADAM = Question("T7", "", 1.0, 0.6)


def seconds(run: Run) -> float:
    before = time.perf_counter()
    run()
    return time.perf_counter() - before


def contest(
    question: Question, what: str, unit: str, scale: float, runs: list[Run], rounds: int
) -> list[dict[str, Any]]:
    """Two lines: our time (seconds times `scale`), and the ratio to theirs."""
    for run in runs:
        run()
    begin, cpu, busy = time.perf_counter(), time.process_time(), processes.machine_busy_s()
    turns = [[seconds(run) for run in runs] for _ in range(rounds)]
    others = processes.machine_busy_s() - busy - (time.process_time() - cpu)
    share = max(0.0, others) / ((time.perf_counter() - begin) * (os.cpu_count() or 1))
    bars = {"must": question.must, "aim": question.aim}
    ratios = [mine / other for mine, other in turns]
    lower = {"better": "lower"}
    return [
        line(question, what, unit, [mine * scale for mine, _ in turns], share, **lower),
        line(question, "the same by torch's", "x", ratios, share, **lower, **bars),
    ]


def repeated(n: int, lib: ModuleType, operate: Callable[[Any, Any], object]) -> Run:
    x = lib.ones(16, requires_grad=True)
    y = lib.ones(16)

    def run() -> None:
        for _ in range(n):
            operate(x, y)

    return run


def small(rounds: int) -> list[dict[str, Any]]:
    rows = []
    n = 20_000
    for what, operate in (("a tensor", lambda x, y: x * y), ("a number", lambda x, _: x * 2.0)):
        runs = [repeated(n, lib, operate) for lib in (ours, theirs)]
        rows += contest(SMALL, f"Python: 16 floats times {what}, with graph", "ns", 1e9 / n, runs, rounds)
    return rows


def adam_steps(n: int, lib: ModuleType, **options: Any) -> Run:
    params = [lib.randn(10_000).requires_grad_() for _ in range(300)]
    for param in params:
        param.grad = lib.randn(10_000)
    adam = lib.optim.Adam(params, **options)

    def run() -> None:
        for _ in range(n):
            adam.step()

    return run


def adam(rounds: int) -> list[dict[str, Any]]:
    n = 20
    runs = [adam_steps(n, ours), adam_steps(n, theirs, foreach=True)]
    return contest(ADAM, "Adam over 300 tensors of 10,000 floats (torch: foreach)", "ms", 1e3 / n, runs, rounds)


def mlp(lib: ModuleType) -> tuple[Any, Any, Any]:
    nn = lib.nn
    net = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
    return net, lib.randn(256, 784), lib.randint(0, 10, (256,))


def resnet(lib: ModuleType) -> tuple[Any, Any, Any]:
    nn = lib.nn

    def conv(inputs: int, outputs: int, kernel: int, stride: int) -> Any:
        return nn.Conv2d(inputs, outputs, kernel, stride=stride, padding=kernel // 2, bias=False)

    class Block(nn.Module):
        def __init__(self, inputs: int, outputs: int, stride: int) -> None:
            super().__init__()
            self.body = nn.Sequential(
                conv(inputs, outputs, 3, stride),
                nn.BatchNorm2d(outputs),
                nn.ReLU(),
                conv(outputs, outputs, 3, 1),
                nn.BatchNorm2d(outputs),
            )
            same = inputs == outputs
            self.shortcut = (
                nn.Identity() if same else nn.Sequential(conv(inputs, outputs, 1, stride), nn.BatchNorm2d(outputs))
            )

        def forward(self, x: Any) -> Any:
            return lib.relu(self.body(x) + self.shortcut(x))

    net = nn.Sequential(
        nn.Sequential(conv(3, 32, 3, 1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(3, stride=2, padding=1)),
        nn.Sequential(Block(32, 32, 1), Block(32, 64, 2), Block(64, 128, 2)),
        nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 10)),
    )
    images = lib.randn(64, 3, 64, 64)
    if lib is theirs:  # its faster layout
        net, images = net.to(memory_format=lib.channels_last), images.to(memory_format=lib.channels_last)
    return net, images, lib.randint(0, 10, (64,))


def transformer(lib: ModuleType) -> tuple[Any, Any, Any]:
    nn = lib.nn

    class Layer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(256), nn.LayerNorm(256)
            self.qkv, self.out = nn.Linear(256, 768), nn.Linear(256, 256)
            self.up, self.down = nn.Linear(256, 1024), nn.Linear(1024, 256)

        def forward(self, x: Any) -> Any:
            q, k, v = self.qkv(self.norm1(x)).view(16, 256, 3, 8, 32).permute(2, 0, 3, 1, 4)
            mixed = nn.functional.scaled_dot_product_attention(q, k, v)
            x = x + self.out(mixed.transpose(1, 2).reshape(16, 256, 256))
            return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))

    class Flat(nn.Module):
        def forward(self, x: Any) -> Any:
            return x.view(16 * 256, 256)

    layers = [Layer() for _ in range(4)]
    net = nn.Sequential(nn.Embedding(256, 256), *layers, nn.LayerNorm(256), nn.Linear(256, 256), Flat())
    return net, lib.randint(0, 256, (16, 256)), lib.randint(0, 256, (16 * 256,))


def autocast_steps(n: int, lib: ModuleType, make: Callable[[ModuleType], tuple[Any, Any, Any]]) -> Run:
    lib.manual_seed(1)
    net, x, t = make(lib)
    sgd = lib.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)

    def run() -> None:
        for _ in range(n):
            sgd.zero_grad()
            with lib.autocast("cpu", dtype=lib.bfloat16):
                loss = lib.nn.functional.cross_entropy(net(x), t)
            loss.backward()
            sgd.step()

    return run


def autocast(rounds: int) -> list[dict[str, Any]]:
    rows = []
    for make, n in ((mlp, 20), (transformer, 1), (resnet, 2)):
        runs = [autocast_steps(n, lib, make) for lib in (ours, theirs)]
        what = f"Python: training step under bfloat16 autocast, {make.__name__}"
        rows += contest(AUTOCAST, what, "ms", 1e3 / n, runs, rounds)
    return rows


ANSWERS = {SMALL.id: small, AUTOCAST.id: autocast, ADAM.id: adam}


def main() -> None:
    parser = argparse.ArgumentParser(description="T5 to T7 of `make bench`.")
    parser.add_argument("json", type=Path, help="of infeed-bench; the rows are put into it")
    parser.add_argument("--only", choices=list(ANSWERS))
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    if theirs is None:
        return
    for lib in (ours, theirs):
        lib.set_num_threads(2)
    for name, answer in ANSWERS.items():
        if options.only not in (None, name):
            continue
        rows = answer(options.rounds)
        for row in rows:
            show(row)
        merge(options.json, rows)


if __name__ == "__main__":
    main()
