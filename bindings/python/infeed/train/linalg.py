"""Norms."""

from infeed.train._train import matmul, norm, vector_norm

__all__ = ["matmul", "norm", "vector_norm"]
