"""Methods of Tensor that are written in Python."""

from __future__ import annotations

import copy
import copyreg
from typing import Any

from infeed.train import _train
from infeed.train._train import Tensor, dtype
from infeed.train.autograd import _tensor_backward

_NOT_A_LEAF = (
    "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment.  If you were "
    "attempting to deepcopy a module, this may be because of a torch.nn.utils.weight_norm usage, see "
    "https://github.com/pytorch/pytorch/pull/103001"
)


def _deepcopy(self: Tensor, memo: dict[int, Any]) -> Tensor:
    if not self.is_leaf:
        raise RuntimeError(_NOT_A_LEAF)
    if id(self) not in memo:
        made = self.detach().clone()
        made.requires_grad_(self.requires_grad)
        if self.grad is not None:
            made.grad = copy.deepcopy(self.grad, memo)
        memo[id(self)] = made
    found: Tensor = memo[id(self)]
    return found


def _rebuild(data: bytes, kind: dtype, shape: tuple[int, ...], requires_grad: bool) -> Tensor:
    made = _train.empty(*shape, dtype=kind, device="cpu")
    if data:
        made = _train.frombuffer(bytearray(data), dtype=kind).reshape(shape)
    return made.requires_grad_(requires_grad)


def _reduce(self: Tensor) -> Any:
    if not self.is_leaf:
        raise RuntimeError("a tensor that is not a leaf cannot be pickled; detach() it first")
    bytes_of = memoryview(_train._as_bytes(self.detach().cpu().contiguous())).tobytes() if self.numel() else b""
    return _rebuild, (bytes_of, self.dtype, tuple(self.shape), self.requires_grad)


def _softmax(self: Tensor, dim: int, dtype: Any = None) -> Tensor:
    return _train.softmax(self, dim, dtype)


def _log_softmax(self: Tensor, dim: int, dtype: Any = None) -> Tensor:
    return _train.log_softmax(self, dim, dtype)


METHODS = {
    "__deepcopy__": _deepcopy,
    "__reduce__": _reduce,
    "backward": _tensor_backward,
    "log_softmax": _log_softmax,
    "softmax": _softmax,
}
# Functions of the extension are copied and pickled by name, as Python's are.
copyreg.pickle(type(_train.exp), lambda function: function.__qualname__)

for _name, _method in METHODS.items():
    setattr(Tensor, _name, _method)
