"""Writes tests/train/schedules.json: learning rates as torch computes them. python tests/train/schedules.py"""

import json
import warnings
from pathlib import Path

import torch
from torch.optim import lr_scheduler as s

EPOCHS = 24
METRICS = [
    5.0,
    4.0,
    4.0,
    4.0,
    3.9999,
    3.0,
    3.0,
    3.0,
    3.0,
    3.0,
    3.0,
    3.0,
    2.0,
    2.0,
    2.0,
    2.0,
    2.0,
    2.0,
    2.0,
    2.0,
    2.0,
    1.0,
    1.0,
    1.0,
]
ONE_CYCLE = {"max_lr": 0.5, "total_steps": EPOCHS + 1}
SCHEDULES = {
    "constant": lambda o: s.ConstantLR(o, 0.25, 3),
    "linear": lambda o: s.LinearLR(o, 0.1, 1.0, 7),
    "step": lambda o: s.StepLR(o, 5, 0.3),
    "multi_step": lambda o: s.MultiStepLR(o, [9, 2, 9], 0.5),
    "exponential": lambda o: s.ExponentialLR(o, 0.9),
    "cosine": lambda o: s.CosineAnnealingLR(o, 7, 0.01),
    "lambda": lambda o: s.LambdaLR(o, lambda epoch: 1.0 / (1 + epoch)),
    "sequential": lambda o: s.SequentialLR(
        o, [s.LinearLR(o, 0.1, 1.0, 4), s.CosineAnnealingLR(o, 10), s.ExponentialLR(o, 0.9)], [4, 14]
    ),
    "one_cycle": lambda o: s.OneCycleLR(o, **ONE_CYCLE),
    "one_cycle_linear": lambda o: s.OneCycleLR(o, **ONE_CYCLE, anneal_strategy="linear", three_phase=True),
    "plateau": lambda o: s.ReduceLROnPlateau(o, factor=0.5, patience=2, cooldown=1),
    "plateau_absolute": lambda o: s.ReduceLROnPlateau(
        o, "max", 0.5, 1, threshold=0.5, threshold_mode="abs", min_lr=0.03
    ),
}


def path(make) -> dict[str, list[float]]:
    parameter = torch.nn.Parameter(torch.ones(1))
    optimizer = torch.optim.SGD([parameter], lr=0.2, momentum=0.9)
    schedule, rates, momenta = make(optimizer), [], []
    for metric in METRICS:
        rates.append(optimizer.param_groups[0]["lr"])
        momenta.append(optimizer.param_groups[0]["momentum"])
        optimizer.step()
        schedule.step(*([metric] if isinstance(schedule, s.ReduceLROnPlateau) else []))
    return {"lr": rates, "momentum": momenta}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    paths = {name: path(make) for name, make in SCHEDULES.items()}
    Path(__file__).with_suffix(".json").write_text(json.dumps({"metrics": METRICS, **paths}, indent=0) + "\n")
