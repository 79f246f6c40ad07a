"""Datasets that need no torch: for tests of what a spawned worker imports."""

import sys


class Modules:
    """Each item: the names of the modules that its process has imported."""

    def __len__(self):
        return 2

    def __getitem__(self, index):
        return sorted(name for name in sys.modules if "." not in name)


class Lean:
    """Item: the index, and a draw from each generator, imported late."""

    def __init__(self, queue=None):
        self.queue = queue

    def __len__(self):
        return 2

    def __getitem__(self, index):
        import random

        import numpy
        import torch

        if self.queue is not None:
            self.queue.put(index)
        return [index, random.random(), float(numpy.random.rand()), torch.rand(()).item(), torch.get_num_threads()]
