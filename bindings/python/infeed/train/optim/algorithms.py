"""The optimizers. Arithmetic runs in C++, fused over all parameters of a group: see docs/train.md for the formulas."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from infeed.train import _train
from infeed.train._train import Tensor
from infeed.train.optim.optimizer import Optimizer, Params, loss_of


def _require(condition: bool, text: str) -> None:
    if not condition:
        raise ValueError(text)


def _zeros(param: Tensor) -> Tensor:
    return _train.zeros_like(param)


def _count() -> Tensor:
    return _train.tensor(0.0, dtype=_train.float32, device="cpu")


# Options that choose between PyTorch's implementations; here there is one.
def _unused(differentiable: bool, **others: bool | None) -> dict[str, Any]:
    if differentiable:
        raise NotImplementedError("differentiable optimizers are not supported")
    return {"differentiable": differentiable, **others}


class SGD(Optimizer):
    """Stochastic gradient descent, with momentum if asked."""

    def __init__(
        self,
        params: Params,
        lr: float = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        _require(lr >= 0.0, f"Invalid learning rate: {lr}")
        _require(momentum >= 0.0, f"Invalid momentum value: {momentum}")
        _require(weight_decay >= 0.0, f"Invalid weight_decay value: {weight_decay}")
        _require(
            not nesterov or (momentum > 0 and dampening == 0),
            "Nesterov momentum requires a momentum and zero dampening",
        )
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
            **_unused(differentiable, foreach=foreach, fused=fused),
        }
        super().__init__(params, defaults)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        loss = loss_of(closure)
        for group in self.param_groups:
            rows = [(p, p.grad) for p in group["params"] if p.grad is not None]
            buffers = self._buffers([p for p, _ in rows]) if group["momentum"] else []
            _train._sgd_step(
                [p for p, _ in rows],
                [g for _, g in rows],
                buffers,
                float(group["lr"]),
                group["momentum"],
                group["dampening"],
                group["weight_decay"],
                group["nesterov"],
                group["maximize"],
            )
            if buffers:
                for (param, _), buffer in zip(rows, buffers):
                    self.state[param]["momentum_buffer"] = buffer[0]
        return loss

    # Each buffer and whether it holds something: the first gradient is taken as it is.
    def _buffers(self, params: list[Tensor]) -> list[tuple[Tensor, bool]]:
        known = [self.state[param].get("momentum_buffer") for param in params]
        return [
            (_train.empty_like(param) if buffer is None else buffer, buffer is not None)
            for param, buffer in zip(params, known)
        ]


class Adam(Optimizer):
    """Steps of about lr in the direction of the mean gradient, measured by its root mean square."""

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        _require(float(lr) >= 0.0, f"Invalid learning rate: {lr}")
        _require(eps >= 0.0, f"Invalid epsilon value: {eps}")
        for index in (0, 1):
            _require(0.0 <= betas[index] < 1.0, f"Invalid beta parameter at index {index}: {betas[index]}")
        _require(weight_decay >= 0.0, f"Invalid weight_decay value: {weight_decay}")
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            **_unused(differentiable, foreach=foreach, fused=fused, capturable=capturable),
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        super().__init__(params, defaults)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        loss = loss_of(closure)
        for group in self.param_groups:
            amsgrad = group["amsgrad"]

            def first(param: Tensor, amsgrad: bool = amsgrad) -> dict[str, Any]:
                state = {"step": _count(), "exp_avg": _zeros(param), "exp_avg_sq": _zeros(param)}
                if amsgrad:
                    state["max_exp_avg_sq"] = _zeros(param)
                return state

            rows = self._state_of(group, first)
            _train._adam_step(
                [row[0] for row in rows],
                [row[1] for row in rows],
                [row[2]["exp_avg"] for row in rows],
                [row[2]["exp_avg_sq"] for row in rows],
                [row[2]["max_exp_avg_sq"] for row in rows] if amsgrad else [],
                [row[2]["step"] for row in rows],
                float(group["lr"]),
                float(group["betas"][0]),
                float(group["betas"][1]),
                group["eps"],
                group["weight_decay"],
                group["maximize"],
                group["decoupled_weight_decay"],
            )
        return loss


class AdamW(Adam):
    """Adam whose weight decay shrinks the parameters instead of adding to their gradients."""

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            foreach=foreach,
            maximize=maximize,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            decoupled_weight_decay=True,
        )


class Adagrad(Optimizer):
    """Steps shrink by the root of all squared gradients so far."""

    def __init__(
        self,
        params: Params,
        lr: float = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        _require(lr >= 0.0, f"Invalid learning rate: {lr}")
        _require(lr_decay >= 0.0, f"Invalid lr_decay value: {lr_decay}")
        _require(weight_decay >= 0.0, f"Invalid weight_decay value: {weight_decay}")
        _require(
            initial_accumulator_value >= 0.0, f"Invalid initial_accumulator_value value: {initial_accumulator_value}"
        )
        _require(eps >= 0.0, f"Invalid epsilon value: {eps}")
        defaults = {
            "lr": lr,
            "lr_decay": lr_decay,
            "eps": eps,
            "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value,
            "maximize": maximize,
            **_unused(differentiable, foreach=foreach, fused=fused),
        }
        super().__init__(params, defaults)
        for group in self.param_groups:
            for param in group["params"]:
                self.state[param] = self._first(param, group)

    @staticmethod
    def _first(param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {"step": _count(), "sum": _train.full_like(param, float(group["initial_accumulator_value"]))}

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        loss = loss_of(closure)
        for group in self.param_groups:
            rows = self._state_of(group, lambda param, group=group: self._first(param, group))  # type: ignore[misc]
            _train._adagrad_step(
                [row[0] for row in rows],
                [row[1] for row in rows],
                [row[2]["sum"] for row in rows],
                [row[2]["step"] for row in rows],
                float(group["lr"]),
                group["lr_decay"],
                group["weight_decay"],
                group["eps"],
                group["maximize"],
            )
        return loss


class RMSprop(Optimizer):
    """Steps measured by the root mean square of recent gradients."""

    def __init__(
        self,
        params: Params,
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        _require(lr >= 0.0, f"Invalid learning rate: {lr}")
        _require(eps >= 0.0, f"Invalid epsilon value: {eps}")
        _require(momentum >= 0.0, f"Invalid momentum value: {momentum}")
        _require(weight_decay >= 0.0, f"Invalid weight_decay value: {weight_decay}")
        _require(alpha >= 0.0, f"Invalid alpha value: {alpha}")
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "alpha": alpha,
            "eps": eps,
            "centered": centered,
            "weight_decay": weight_decay,
            "maximize": maximize,
            **_unused(differentiable, foreach=foreach, capturable=capturable),
        }
        super().__init__(params, defaults)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        loss = loss_of(closure)
        for group in self.param_groups:
            names = ["square_avg"]
            names += ["momentum_buffer"] if group["momentum"] > 0 else []
            names += ["grad_avg"] if group["centered"] else []

            def first(param: Tensor, names: list[str] = names) -> dict[str, Any]:
                return {"step": _count(), **{name: _zeros(param) for name in names}}

            rows = self._state_of(group, first)
            _train._rmsprop_step(
                [row[0] for row in rows],
                [row[1] for row in rows],
                [row[2]["square_avg"] for row in rows],
                [row[2]["momentum_buffer"] for row in rows] if group["momentum"] > 0 else [],
                [row[2]["grad_avg"] for row in rows] if group["centered"] else [],
                [row[2]["step"] for row in rows],
                float(group["lr"]),
                group["alpha"],
                group["eps"],
                group["weight_decay"],
                group["momentum"],
                group["maximize"],
            )
        return loss
