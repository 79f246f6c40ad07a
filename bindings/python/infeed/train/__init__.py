"""infeed.train: a small library to train with. Names, meanings and errors are PyTorch's.

    from infeed import train
    from infeed.train import nn, optim

Needs neither torch nor NumPy. How it works inside: docs/train.md; what is there: docs/train_python.md.
"""

from infeed.train import _tensor_methods as _tensor_methods
from infeed.train import _train
from infeed.train import amp as amp
from infeed.train import autograd as autograd
from infeed.train import checkpoint as checkpoint
from infeed.train import cuda as cuda
from infeed.train import linalg as linalg
from infeed.train import nn as nn
from infeed.train import optim as optim
from infeed.train import random as random
from infeed.train import safetensors as safetensors
from infeed.train._modes import enable_grad as enable_grad
from infeed.train._modes import inference_mode as inference_mode
from infeed.train._modes import no_grad as no_grad
from infeed.train._modes import set_grad_enabled as set_grad_enabled
from infeed.train._train import *
from infeed.train._types import Size as Size
from infeed.train._types import channels_last as channels_last
from infeed.train._types import contiguous_format as contiguous_format
from infeed.train._types import finfo as finfo
from infeed.train._types import iinfo as iinfo
from infeed.train._types import preserve_format as preserve_format
from infeed.train._types import set_printoptions as set_printoptions
from infeed.train.amp import autocast as autocast
from infeed.train.amp import get_autocast_dtype as get_autocast_dtype
from infeed.train.amp import is_autocast_available as is_autocast_available
from infeed.train.amp import is_autocast_enabled as is_autocast_enabled
from infeed.train.checkpoint import latest_checkpoint as latest_checkpoint
from infeed.train.checkpoint import load_checkpoint as load_checkpoint
from infeed.train.checkpoint import save_checkpoint as save_checkpoint
from infeed.train.serialization import load as load
from infeed.train.serialization import save as save

# PyTorch's other names of dtypes. They hide Python's in this module only.
half, float, double, bool = float16, float32, float64, _train.bool_
short, int, long = int16, int32, int64
