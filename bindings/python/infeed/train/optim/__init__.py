"""Optimizers and learning rate schedules. Names and meanings are PyTorch's."""

from infeed.train.optim import lr_scheduler, swa_utils
from infeed.train.optim.algorithms import SGD, Adagrad, Adam, AdamW, RMSprop
from infeed.train.optim.optimizer import Optimizer

__all__ = ["SGD", "Adagrad", "Adam", "AdamW", "Optimizer", "RMSprop", "lr_scheduler", "swa_utils"]
