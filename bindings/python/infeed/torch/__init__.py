"""PyTorch's data loading on infeed's engine: change the import, keep the rest.

    from infeed.torch import DataLoader
"""

from torch.utils.data import get_worker_info

from infeed.torch._loader import DataLoader

__all__ = ["DataLoader", "get_worker_info"]
