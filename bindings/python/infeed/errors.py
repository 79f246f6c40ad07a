"""What infeed raises. Catch `Error` for all of it, or one class for one cause; each is also the built-in
exception that Python code expects. All are RuntimeErrors, which is what users of torch's loaders catch."""

import builtins


class Error(RuntimeError):
    """Base of all errors below."""


class ConfigError(Error, ValueError):
    """An option, or a combination of options, that cannot work."""


class IndexError(Error, builtins.IndexError):
    """An index outside [0, size), or a sampler that yields other than it promised."""


class DataError(Error):
    """A sample that cannot be read; names its index, its file where there is one, and the cause."""


class DecodeError(Error, ValueError):
    """An image that cannot be decoded. `fault` says why in a word: "truncated", "not an image", ..."""

    def __init__(self, message: str, fault: str = "") -> None:
        super().__init__(message)
        self.fault = fault

    def __reduce__(self) -> tuple[type, tuple[str, str]]:
        return type(self), (str(self), self.fault)


class WorkerError(Error):
    """A worker died, or was stopped for good; names worker, signal or exit code, and the sample in its hands."""


class TimeoutError(Error, builtins.TimeoutError):
    """No batch within `timeout`; names the worker and the sample."""


class MemoryError(Error, builtins.MemoryError):
    """Memory, address space or descriptors do not suffice; has the amounts asked and left."""


class StateError(Error, ValueError):
    """A state that does not belong to this loader, sampler or version."""


class DeviceError(Error):
    """A device, its driver or a copy failed."""
