"""infeed feeds accelerators."""

from infeed._native import __version__

__all__ = ["__version__"]
