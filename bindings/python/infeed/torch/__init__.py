"""PyTorch's data loading on infeed's engine: `from infeed.torch import DataLoader`, and the rest stays as it is."""

from torch.utils.data import get_worker_info

from infeed.torch._loader import DataLoader

__all__ = ["DataLoader", "get_worker_info"]
