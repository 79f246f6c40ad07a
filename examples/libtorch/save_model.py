"""Writes a TorchScript model for 03_torchscript: python save_model.py FILE."""

import sys

import torch
from torch import nn

torch.manual_seed(1)
model = nn.Sequential(
    nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(128, 10)
)
torch.jit.script(model).save(sys.argv[1])
