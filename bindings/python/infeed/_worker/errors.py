"""An exception on its way from a worker to the consumer."""

from __future__ import annotations

import pickle
import sys
import traceback
from typing import Any


class _Verbatim(str):
    """Text that KeyError, which prints the repr of its argument, shows as it is."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class CaughtError:
    """Type, formatted traceback and place of an exception. Travels whatever the exception itself is made of."""

    def __init__(self, error: BaseException, where: str) -> None:
        self.name = type(error).__name__
        self.where = where
        self.text = "".join(traceback.format_exception(error))
        self.type = _pickled_type(type(error))

    @classmethod
    def current(cls, where: str) -> CaughtError:
        """The exception that is being handled. `where`: "in DataLoader worker process 3"."""
        error = sys.exc_info()[1]
        assert error is not None, "no exception is being handled"
        return cls(error, where)

    def rebuild(self) -> BaseException:
        """The exception to raise: of the original type if that can be made from one string, else a RuntimeError."""
        message = f"Caught {self.name} {self.where}.\nOriginal {self.text}"
        try:
            kind: Any = pickle.loads(self.type) if self.type is not None else RuntimeError
            if issubclass(kind, (StopIteration, StopAsyncIteration)):  # would end the consumer's loop in silence
                return RuntimeError(message)
            if issubclass(kind, KeyError):
                message = _Verbatim(message)
            error = kind(message=message) if getattr(kind, "message", None) else kind(message)
        except Exception:
            return RuntimeError(message)
        return error if isinstance(error, BaseException) else RuntimeError(message)


def _pickled_type(kind: type) -> bytes | None:
    try:
        return pickle.dumps(kind)
    except Exception:  # a class made inside a function, for one
        return None
