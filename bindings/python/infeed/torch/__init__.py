"""PyTorch's data loading on infeed's engine: `from infeed.torch import DataLoader`, and the rest stays as it is."""

from torch.utils.data import get_worker_info

from infeed.torch._loader import DataLoader
from infeed.torch._stateful_loader import StatefulDataLoader
from infeed.torch.samplers import WeightedRandomSampler

__all__ = ["DataLoader", "StatefulDataLoader", "WeightedRandomSampler", "get_worker_info"]
