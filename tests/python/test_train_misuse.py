"""What a user may do wrong, and values at the edge: PyTorch's answer, and never memory of others or a hang."""

import os
import signal

from infeed import train
from infeed.train import nn


def step_of(model, x):
    model(x).sum().backward()
    return model[0].weight.grad.clone()


def test_the_child_of_a_fork_trains_after_its_parent_has():
    model = nn.Sequential(nn.Conv2d(3, 16, 3), nn.ReLU(), nn.Flatten(), nn.Linear(16 * 30 * 30, 10))
    x = train.ones(8, 3, 32, 32)
    step_of(model, x)
    child = os.fork()
    if child == 0:
        signal.alarm(60)  # a hang becomes a signal
        os._exit(0 if step_of(model, x).isfinite().all() else 1)
    assert os.waitpid(child, 0)[1] == 0
