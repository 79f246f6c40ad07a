"""Modules and parameters in lists and dicts: registered, unlike those in Python's own."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, overload

from infeed.train._train import Tensor
from infeed.train.nn.module import Module
from infeed.train.nn.parameter import Parameter


def _place(index: Any, length: int) -> int:
    place = operator.index(index)
    if not -length <= place < length:
        raise IndexError(f"index {place} is out of range")
    return place % length


class _ModuleSequence(Module):
    """Children named "0", "1", ... in order."""

    def _all(self) -> list[Module]:
        return list(self._modules.values())

    def _renumber(self, modules: Iterable[Module]) -> None:
        self._modules.clear()
        for number, module in enumerate(modules):
            self.add_module(str(number), module)

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._all())

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)._of(list(self._modules.items())[index])
        return self._all()[_place(index, len(self))]

    @classmethod
    def _of(cls, items: list[tuple[str, Any]]) -> Any:
        made = cls()
        made._renumber(module for _, module in items)
        return made

    def __setitem__(self, index: Any, module: Module) -> None:
        setattr(self, list(self._modules)[_place(index, len(self))], module)

    def __delitem__(self, index: Any) -> None:
        modules = self._all()
        if isinstance(index, slice):
            del modules[index]
        else:
            del modules[_place(index, len(self))]
        self._renumber(modules)

    def append(self, module: Module) -> Any:
        self.add_module(str(len(self)), module)
        return self

    def insert(self, index: int, module: Module) -> Any:
        modules = self._all()
        modules.insert(index, module)
        self._renumber(modules)
        return self

    def extend(self, modules: Iterable[Module]) -> Any:
        for module in list(modules):
            self.append(module)
        return self

    def pop(self, index: int = -1) -> Module:
        module: Module = self[index]
        del self[index]
        return module

    def __iadd__(self, modules: Iterable[Module]) -> Any:
        return self.extend(modules)

    def __add__(self, modules: Iterable[Module]) -> Any:
        return type(self)._of([("", module) for module in [*self, *modules]])


class Sequential(_ModuleSequence):
    """Feeds each module's output to the next. Takes modules, or an OrderedDict of them."""

    @overload
    def __init__(self, *modules: Module) -> None: ...
    @overload
    def __init__(self, modules: OrderedDict[str, Module], /) -> None: ...
    def __init__(self, *modules: Any) -> None:
        super().__init__()
        named = len(modules) == 1 and isinstance(modules[0], OrderedDict)
        for name, module in modules[0].items() if named else enumerate(modules):
            self.add_module(str(name), module)

    @classmethod
    def _of(cls, items: list[tuple[str, Any]]) -> Any:
        return Sequential(OrderedDict(items)) if all(name for name, _ in items) else Sequential(*(m for _, m in items))

    def forward(self, input: Any) -> Any:
        for module in self._modules.values():
            input = module(input)
        return input


class ModuleList(_ModuleSequence):
    """A list whose modules are found by parameters(), train() and to()."""

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        self.extend(modules or [])


class ModuleDict(Module):
    """A dict whose modules are found by parameters(), train() and to()."""

    def __init__(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]] | None = None) -> None:
        super().__init__()
        self.update(modules or {})

    def __getitem__(self, key: str) -> Any:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: str) -> bool:
        return key in self._modules

    def clear(self) -> None:
        self._modules.clear()

    def pop(self, key: str) -> Any:
        return self._modules.pop(key)

    def keys(self) -> Iterable[str]:
        return self._modules.keys()

    def items(self) -> Iterable[tuple[str, Any]]:
        return self._modules.items()

    def values(self) -> Iterable[Any]:
        return self._modules.values()

    def update(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]]) -> None:
        for key, module in modules.items() if isinstance(modules, (Mapping, ModuleDict)) else modules:
            self[key] = module


def _as_parameter(value: Any) -> Any:
    return value if isinstance(value, Parameter) or not isinstance(value, Tensor) else Parameter(value)


class ParameterList(Module):
    """A list of parameters; tensors become parameters."""

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        self.extend(values or [])

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return ParameterList([self[i] for i in range(*index.indices(len(self)))])
        return getattr(self, str(_place(index, len(self))))

    def __setitem__(self, index: int, value: Any) -> None:
        setattr(self, str(_place(index, len(self))), _as_parameter(value))

    def __iter__(self) -> Iterator[Any]:
        return iter([self[i] for i in range(len(self))])

    def append(self, value: Any) -> ParameterList:
        self._size += 1
        self[self._size - 1] = value
        return self

    def extend(self, values: Iterable[Any]) -> ParameterList:
        for value in list(values):
            self.append(value)
        return self

    __iadd__ = extend

    def __repr__(self) -> str:
        lines = [f"  ({i}): Parameter of size {list(p.shape)}" for i, p in enumerate(self)]
        return "ParameterList(\n" + "\n".join(lines) + "\n)" if lines else "ParameterList()"


class ParameterDict(Module):
    """A dict of parameters; tensors become parameters."""

    def __init__(self, values: Mapping[str, Any] | Iterable[tuple[str, Any]] | None = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        self.update(values or {})

    def __getitem__(self, key: str) -> Any:
        if key not in self._keys:
            raise KeyError(key)
        return getattr(self, key)

    def __setitem__(self, key: str, value: Any) -> None:
        self._keys[key] = None
        setattr(self, key, _as_parameter(value))

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, key)

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __contains__(self, key: str) -> bool:
        return key in self._keys

    def keys(self) -> Iterable[str]:
        return self._keys.keys()

    def values(self) -> Iterable[Any]:
        return [self[key] for key in self._keys]

    def items(self) -> Iterable[tuple[str, Any]]:
        return [(key, self[key]) for key in self._keys]

    def update(self, values: Mapping[str, Any] | Iterable[tuple[str, Any]]) -> None:
        for key, value in values.items() if isinstance(values, (Mapping, ParameterDict)) else values:
            self[key] = value
