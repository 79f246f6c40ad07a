"""Gradients: backward(), grad(), functions of your own, anomaly mode, checking by differences."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from infeed.train import _train
from infeed.train._modes import Switch, enable_grad, inference_mode, no_grad, set_grad_enabled
from infeed.train._train import Node, Tensor

__all__ = [
    "Function",
    "Node",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "grad",
    "gradcheck",
    "inference_mode",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
]

Tensors = Tensor | Sequence[Tensor]


def _listed(tensors: Any) -> list[Any]:
    return [tensors] if isinstance(tensors, Tensor) or tensors is None else list(tensors)


def _gradients(given: Any, outputs: list[Tensor]) -> list[Tensor | None]:
    gradients = [None] * len(outputs) if given is None else _listed(given)
    for gradient, output in zip(gradients, outputs):
        if gradient is not None and gradient.shape != output.shape:
            raise RuntimeError(
                f"Mismatch in shape: grad_output[0] has a shape of {gradient.shape} and output[0] has a shape of "
                f"{output.shape}."
            )
    return gradients


def backward(
    tensors: Tensors,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Tensors | None = None,
) -> None:
    """Adds to the .grad of the leaves that `tensors` depend on; only of `inputs` if they are given."""
    wanted = [] if inputs is None else _listed(inputs)
    if inputs is not None and not wanted:
        raise RuntimeError("`inputs` argument to `backward` cannot be empty.")
    outputs = _listed(tensors)
    retain = create_graph if retain_graph is None else retain_graph
    _train._backward(outputs, _gradients(grad_tensors, outputs), retain, create_graph, wanted)


def grad(
    outputs: Tensors,
    inputs: Tensors,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor, ...]:
    """d(outputs)/d(inputs) as a tuple; every .grad is left alone."""
    if is_grads_batched:
        raise NotImplementedError("grad(): is_grads_batched is not supported; call grad() for each row")
    if materialize_grads and allow_unused is False:
        raise ValueError("Expected allow_unused to be True or not passed when materialize_grads=True")
    of = _listed(outputs)
    retain = create_graph if retain_graph is None else retain_graph
    unused = materialize_grads if allow_unused is None else allow_unused
    return _train._grad(
        of, _listed(inputs), _gradients(grad_outputs, of), retain, create_graph, unused, materialize_grads
    )


def _tensor_backward(
    self: Tensor,
    gradient: Tensor | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Tensors | None = None,
) -> None:
    backward(self, gradient, retain_graph, create_graph, inputs)


class Function:
    """An operation with a backward of its own. Subclass it, and call apply():

    class Cube(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, grad):  # one gradient for each argument of forward, None for what is no tensor
            (x,) = ctx.saved_tensors
            return 3 * x * x * grad
    """

    _context_type: type = _train.FunctionContext
    _node_name = "FunctionBackward"
    _has_setup_context = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._node_name = cls.__name__ + "Backward"
        cls._context_type = type(cls._node_name, (_train.FunctionContext,), {"__module__": cls.__module__})
        cls._has_setup_context = cls.setup_context is not Function.setup_context

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use it with "
            "backward mode AD."
        )

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """Runs forward() on `args`, and records the call."""
        return _train._apply(cls, *args)


class set_detect_anomaly(Switch):
    """Remembers where each operation was called; backward() then names the one behind an error or a NaN. Slow."""

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        super().__init__()
        self._mode = mode, check_nan
        self._outer = _train.is_anomaly_enabled(), _train.is_anomaly_check_nan_enabled()
        _train._set_detect_anomaly(mode, check_nan)

    def _again(self) -> Switch:
        return set_detect_anomaly(*self._mode)

    def _enter(self) -> tuple[bool, bool]:
        _train._set_detect_anomaly(*self._mode)
        return self._outer

    def _exit(self, before: tuple[bool, bool]) -> None:
        _train._set_detect_anomaly(*before)


class detect_anomaly(set_detect_anomaly):
    """set_detect_anomaly(True) for a while."""

    def __init__(self, check_nan: bool = True) -> None:
        warnings.warn("Anomaly Detection has been enabled. This mode will increase the runtime", stacklevel=2)
        super().__init__(True, check_nan)
        _train._set_detect_anomaly(*self._outer)


def gradcheck(
    func: Callable[..., Any],
    inputs: Tensors,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
) -> bool:
    """Compares gradients with central differences, in float64. Raises RuntimeError that names what differs."""
    arguments = _listed(inputs)
    for which, x in enumerate(arguments):
        if not (isinstance(x, Tensor) and x.requires_grad):
            continue
        for number, output in enumerate(_listed(func(*arguments))):
            if not output.requires_grad:
                continue
            fault = _compare(func, arguments, which, number, eps, atol, rtol)
            if fault and raise_exception:
                raise RuntimeError(fault)
            if fault:
                return False
    return True


def _compare(
    func: Callable[..., Any], arguments: list[Any], which: int, number: int, eps: float, atol: float, rtol: float
) -> str:
    x = arguments[which]
    output = _listed(func(*arguments))[number]
    flat = x.detach().reshape(-1)  # of x's memory: inputs are contiguous
    for row in range(output.numel()):
        seed = _train.zeros_like(output).reshape(-1)
        seed[row] = 1
        (analytic,) = grad(output, x, seed.reshape(output.shape), retain_graph=True, allow_unused=True)
        for column in range(x.numel()):
            value, ends = flat[column].item(), []
            for shifted in (value + eps, value - eps):
                flat[column] = shifted
                ends.append(_listed(func(*arguments))[number].reshape(-1)[row].item())
            flat[column] = value
            numerical = (ends[0] - ends[1]) / (2 * eps)
            found = 0.0 if analytic is None else analytic.reshape(-1)[column].item()
            if not abs(found - numerical) <= atol + rtol * abs(numerical):
                return (
                    f"Jacobian mismatch for output {number} with respect to input {which}, row {row}, column {column}: "
                    f"numerical: {numerical}, analytical: {found}"
                )
        output = _listed(func(*arguments))[number]
    return ""
