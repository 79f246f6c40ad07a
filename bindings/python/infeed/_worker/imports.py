"""Actions that wait for a module: run at once if it is imported, else as soon as it is."""

from __future__ import annotations

import importlib.abc
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

Action = Callable[[ModuleType], None]


class _Watcher(importlib.abc.MetaPathFinder):
    """First on `sys.meta_path`; lets the other finders find, and appends the actions to the module's execution."""

    def __init__(self) -> None:
        self.actions: dict[str, list[Action]] = {}

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name not in self.actions:
            return None
        for finder in sys.meta_path:
            spec: Any = finder.find_spec(name, path, target) if finder is not self else None
            if spec is not None:
                break
        else:
            return None
        execute = spec.loader.exec_module

        def execute_then_act(module: ModuleType) -> None:
            execute(module)
            for action in self.actions.pop(name, ()):
                action(module)

        spec.loader.exec_module = execute_then_act
        return spec


_watcher = _Watcher()


def when_imported(name: str, action: Action) -> None:
    """Calls `action(module)` now if the module `name` is imported, else right after its import."""
    module = sys.modules.get(name)
    if module is not None:
        action(module)
        return
    if _watcher not in sys.meta_path:
        sys.meta_path.insert(0, _watcher)
    _watcher.actions.setdefault(name, []).append(action)
