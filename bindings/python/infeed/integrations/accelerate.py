"""Hugging Face Accelerate with infeed's loaders: `from infeed.integrations.accelerate import Accelerator`.

Accelerate's own `prepare` builds a torch.utils.data.DataLoader anew from the attributes of the one it is given, whatever
its class. The Accelerator of this module lets it do so, with its sharding and device placement, and then exchanges the
loader inside for one of infeed's class with infeed's options. Loaders of other classes are prepared as ever.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Iterator
from typing import Any

import accelerate
import torch.utils.data

from infeed.torch import DataLoader

__all__ = ["Accelerator", "adopt"]

_FROM_SHARD = ("batch_size", "shuffle", "sampler", "batch_sampler", "drop_last")


class Accelerator(accelerate.Accelerator):
    """accelerate.Accelerator whose `prepare` keeps infeed's loaders."""

    def prepare_data_loader(
        self, data_loader: Any, device_placement: Any = None, slice_fn_for_dispatch: Any = None
    ) -> Any:
        if _class_of(data_loader) is None or getattr(data_loader, "_is_accelerate_prepared", False):
            return super().prepare_data_loader(data_loader, device_placement, slice_fn_for_dispatch)
        stateful = self.use_stateful_dataloader
        with self._without_torchdata():
            prepared = super().prepare_data_loader(data_loader, device_placement, slice_fn_for_dispatch)
        return adopt(prepared, data_loader, stateful=stateful)

    def skip_first_batches(self, dataloader: Any, num_batches: int = 0) -> Any:
        stateful = getattr(dataloader, "use_stateful_dataloader", False)
        return adopt(super().skip_first_batches(dataloader, num_batches), dataloader, stateful=stateful)

    @contextlib.contextmanager
    def _without_torchdata(self) -> Iterator[None]:
        """infeed's loaders have states of their own: torchdata's would only be started to be dropped."""
        configuration = self.dataloader_config
        stateful = configuration.use_stateful_dataloader
        configuration.use_stateful_dataloader = False
        try:
            yield
        finally:
            configuration.use_stateful_dataloader = stateful


def adopt(prepared: Any, loader: Any, *, stateful: bool = False) -> Any:
    """Makes `prepared`, which Accelerate made of `loader`, iterate a loader of infeed's class; returns it.

    For programs that do not make their Accelerator themselves, such as transformers.Trainer:

        def get_train_dataloader(self):
            loader = infeed.torch.DataLoader(...)
            return adopt(self.accelerator.prepare(loader), loader)

    stateful: Accelerator.save_state saves and restores the loader's position.
    """
    kind = _class_of(loader)
    if kind is None:
        return prepared
    if not hasattr(prepared, "base_dataloader"):  # of skip_first_batches; or XLA's wrapper, which stays
        return _rebuilt(kind, prepared, loader) if isinstance(prepared, torch.utils.data.DataLoader) else prepared
    prepared.base_dataloader = _rebuilt(kind, prepared.base_dataloader, loader)
    prepared.use_stateful_dataloader = stateful
    prepared.dl_state_dict = {}  # the position before the first batch
    return prepared


def _class_of(loader: Any) -> type[DataLoader[Any]] | None:
    """infeed's class that `loader`, perhaps a prepared one, is an instance of."""
    kind = getattr(loader, "__class__", object)  # prepared loaders name the class of the one inside here
    return next((base for base in kind.__mro__ if base.__module__.startswith("infeed.torch.")), None)


def _rebuilt(kind: type[DataLoader[Any]], shard: torch.utils.data.DataLoader[Any], loader: Any) -> DataLoader[Any]:
    """A loader over the samples of `shard`, one process's share, with all other options of `loader`."""
    names = [name for name in inspect.signature(kind).parameters if name not in ("dataset", "order", *_FROM_SHARD)]
    source = getattr(loader, "base_dataloader", loader)  # a prepared loader's `device` is Accelerate's
    options = {name: getattr(source, name) for name in names}
    if source.auto_workers:
        options["num_workers"] = "auto"
    if isinstance(shard.dataset, torch.utils.data.IterableDataset):
        options |= {"batch_size": shard.batch_size, "drop_last": shard.drop_last}
    elif shard.batch_sampler is not None:
        options["batch_sampler"] = shard.batch_sampler
    else:
        options |= {"batch_size": None, "sampler": shard.sampler}
    return kind(shard.dataset, **options)
