"""What will hurt a loader on this machine, and which option mends it."""

from __future__ import annotations

import json
import platform
from typing import Any

from infeed import _native

__all__ = ["Diagnosis", "Report", "doctor"]


class Diagnosis:
    """`severity` is "note", "warning" or "error"; `what` says it with figures, `advice` what to do."""

    def __init__(self, severity: str, topic: str, what: str, advice: str) -> None:
        self.severity = severity
        self.topic = topic
        self.what = what
        self.advice = advice

    def __repr__(self) -> str:
        return f"{self.severity}: {self.what} {self.advice}".rstrip()


class Report:
    """`diagnoses`, `facts` by name, and `exit_code`: 0 fine, 1 warnings, 2 errors. str() is for people."""

    def __init__(self, data: dict[str, Any], text: str) -> None:
        self.diagnoses = [Diagnosis(**row) for row in data["diagnoses"]]
        self.facts: dict[str, Any] = {**data["facts"], **_versions()}
        self.exit_code: int = data["exit_code"]
        self._text = text

    def __str__(self) -> str:
        return self._text


def doctor(loader: Any = None, *, root: str = "") -> Report:
    """Looks at the machine, and at `loader` (infeed.Loader, infeed.torch.DataLoader, or what their stats() gave).

    `root` is put in front of /proc, /sys and /dev: a copy of another machine's.
    """
    data, text = _native.examine(root, _figures(loader))
    return Report(json.loads(data), text)


def _figures(loader: Any) -> Any:
    if loader is None or isinstance(loader, _native.LoaderStats):
        return loader
    stats = loader.stats() if hasattr(loader, "stats") else loader
    return getattr(stats, "times", stats)


def _versions() -> dict[str, str]:
    from importlib import metadata

    versions = {"python": platform.python_version()}
    for package in ("torch", "numpy"):
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return versions
